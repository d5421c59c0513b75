/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass over a history. */
#ifndef GRAD_BACKWARD_H
#define GRAD_BACKWARD_H

#include "grad/history.h"

/* Adds the gradients of the sum of out[i] * grads[i] to those of the watched values (an entry of
 * `grads` may be NULL: ones).  Without `keep` releases what the nodes held as it passes them.
 * Records ops in the calling thread's stream; runs nothing. */
frit_status backward(struct history *history, frit_tensor *const *out, frit_tensor *const *grads,
                     uint32_t n, bool keep, frit_err *err);

/* parts.c: gradients of ops by running what they consist of again, under a history of their own.
 * `records` records that; it gets the operands and returns outputs, which are released. */
struct replay {
    frit_status (*records)(void *ctx, frit_device *device, frit_tensor *const *in,
                           frit_tensor **out, frit_err *err);
    void *ctx;
    uint32_t n_in, n_out;
};
/* `in`: NULL where an operand is no tensor.  `grads[i]` gets the gradient of each operand that
 * `wanted[i]`, else NULL: the caller's to release. */
frit_status replay_backward(frit_device *device, const struct replay *replay,
                            frit_tensor *const *in, const bool *wanted,
                            frit_tensor *const *out_grads, frit_tensor **grads, frit_err *err);

/* A checked call by its decomposition; `in` are its operands, NULL where one is no tensor. */
struct op_call;
frit_status parts_backward(frit_device *device, const struct op_call *call, frit_tensor *const *in,
                           const bool *wanted, frit_tensor *const *out_grads, frit_tensor **grads,
                           frit_err *err);

#endif
