/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever follows the op calls of a thread, which is grad/. */
#ifndef API_OBSERVE_H
#define API_OBSERVE_H

#include <frit/frit.h>

struct api_call;

struct op_observer {
    /* Before a call, while its operands are alive; none of them was checked.  Adds the bits of
     * further outputs that it needs to `wanted`.  Returns what `after` gets, NULL: the call is of
     * no interest. */
    void *(*before)(const struct api_call *call, uint32_t *wanted);
    /* After it: `n_out` outputs of the row, NULL where one is not computed. */
    void (*after)(void *node, frit_tensor *const *out, uint32_t n_out);
};

/* Of the calling thread; NULL: nobody follows it. */
extern _Thread_local const struct op_observer *op_observer
    __attribute__((tls_model("initial-exec")));

#endif
