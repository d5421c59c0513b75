/* SPDX-License-Identifier: Apache-2.0 */
/* One op of the driver run by hand. */
#ifndef REFERENCE_RUN_OP_H
#define REFERENCE_RUN_OP_H

#include "plugins/rig.h"

/* A tensor in a buffer of its own. */
struct tensor {
    uint32_t dtype;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK];
    int64_t first; /* elements from the start of the buffer to element 0 */
    void *data;    /* what the buffer holds */
    uint64_t bytes;
};

/* An operand: a tensor, or with dtype only a scalar of that type; all zero: absent. */
struct operand {
    const struct tensor *tensor;
    uint32_t dtype;
    double real;
};

/* One op from op_program to read, through write, prepare and submit. */
struct op_run {
    uint32_t id;
    const void *attrs;
    uint32_t n_in;
    struct operand in[4];
    const struct tensor *out; /* its data is overwritten with the result */
    uint64_t words[2];        /* of rows that draw random numbers */
    const int64_t *bounds;
};

void run_op(struct rig *rig, const struct op_run *run);
/* Calls prepare for it: the inputs whose memory its output may take, a bit each, and the bytes of
 * workspace. */
void prepare_op(struct rig *rig, const struct op_run *run, uint64_t *aliases, uint64_t *workspace);

#endif
