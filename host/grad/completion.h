/* SPDX-License-Identifier: Apache-2.0 */
/* When the gradients of some values are complete, while a backward pass goes on: when the last node
 * that adds to a gradient has been passed, or at once where there is none.  Nodes count that the
 * pass will reach, so a value that only other losses use is complete at once.
 *
 * Threads: that of the history. */
#ifndef GRAD_COMPLETION_H
#define GRAD_COMPLETION_H

#include "grad/history.h"

/* Values, each once, and what is called when the gradient of values[i] is complete: the value's
 * `grad`, NULL where none has arrived.  A failure ends the pass. */
struct completion_watch {
    const uint32_t *values;
    uint32_t n;
    frit_status (*complete)(void *ctx, uint32_t i, frit_err *err);
    void *ctx;
};

struct completion {
    const struct completion_watch *watch; /* NULL: nobody listens */
    uint32_t *index;                      /* by value: 1 + i, 0: of no interest, or complete */
    uint32_t *last;                       /* by value: 1 + the node that is passed last, 0: none */
};

/* The gradients that the losses get are there.  Calls `complete` for values without a node. */
frit_status completion_begin(struct completion *completion, const struct completion_watch *watch,
                             const struct history *history, frit_err *err);
/* The pass has passed node `number`, or will not reach it. */
frit_status completion_passed(struct completion *completion, const struct history *history,
                              uint32_t number, frit_err *err);
void completion_end(struct completion *completion);

#endif
