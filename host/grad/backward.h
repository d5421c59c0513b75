/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass over a history. */
#ifndef GRAD_BACKWARD_H
#define GRAD_BACKWARD_H

#include "grad/history.h"

struct completion_watch;

/* Adds the gradients of the sum of out[i] * grads[i] to those of the watched values (an entry of
 * `grads` may be NULL: ones).  Without `keep` releases what the nodes held as it passes them.
 * Records ops in the calling thread's stream; runs nothing.  `watch` (may be NULL) gets gradients
 * that are complete, while the pass goes on. */
frit_status backward(struct history *history, frit_tensor *const *out, frit_tensor *const *grads,
                     uint32_t n, bool keep, const struct completion_watch *watch, frit_err *err);

#endif
