/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of one op that no stream has recorded, to measure the device itself. */
#ifndef RUN_TRIAL_OP_H
#define RUN_TRIAL_OP_H

#include <frit/frit.h>

#include "graph/op.h"
#include "run/trial.h"

struct str;

struct trial_op {
    uint32_t op, n_in;
    struct op_type type; /* of each operand */
    const void *attrs;   /* NULL: the row's defaults */
};

/* By the driver's program for the op, on dense operands.  FRIT_UNSUPPORTED: it has none. */
frit_status trial_create_op(frit_device *device, const struct trial_op *op,
                            struct launch_trial **out, frit_err *err);

/* Appends operands and results as tune_key_print does. */
void trial_print(const struct launch_trial *trial, struct str *out);
/* The bytes of a memory that are surely read where its operands are. */
uint64_t trial_least_bytes(const struct launch_trial *trial, uint32_t memory);

#endif
