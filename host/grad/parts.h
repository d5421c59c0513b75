/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients by running the forward ops again. */
#ifndef GRAD_PARTS_H
#define GRAD_PARTS_H

#include <stdbool.h>

#include <frit/frit.h>

#include "graph/op.h"

/* Gradients of ops by running what they consist of again, under a history of their own.
 * `records` records that; it gets the operands and returns outputs, which are released. */
struct replay {
    frit_status (*records)(void *ctx, frit_device *device, frit_tensor *const *in,
                           frit_tensor **out, frit_err *err);
    void *ctx;
    uint32_t n_in, n_out;
};
/* `in`: NULL where an operand is no tensor.  `grads[i]` gets the gradient of each operand that
 * `wanted[i]`, else NULL: the caller's to history_unkeep. */
frit_status replay_backward(frit_device *device, const struct replay *replay,
                            frit_tensor *const *in, const bool *wanted,
                            frit_tensor *const *out_grads, frit_tensor **grads, frit_err *err);

/* A checked call by its decomposition; `in` are its operands, NULL where one is no tensor. */
frit_status parts_backward(frit_device *device, const struct op_call *call, frit_tensor *const *in,
                           const bool *wanted, frit_tensor *const *out_grads, frit_tensor **grads,
                           frit_err *err);

#endif
