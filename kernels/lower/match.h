/* SPDX-License-Identifier: Apache-2.0 */
/* Matching a block against a schedule, op by op: each op is looked at once, so that a block costs
 * time in proportion to its ops.  After each op the matcher says whether one program can cover all
 * ops up to it.  Relative: nothing depends on an extent.  Not thread-safe. */
#ifndef LOWER_MATCH_H
#define LOWER_MATCH_H

#include <frit/op_table.h>

#include "lower/block/block.h"

/* Values that may be alive at once: a kernel keeps about as many in registers.  Components of a
 * block are kernels each, and their schedule limits what each of them has. */
enum { MATCH_ALIVE = 32 };

struct schedule;

struct matcher {
    const struct schedule *schedule;
    uint32_t n_ops;              /* matched, the first of the block */
    bool closed;                 /* takes no more ops */
    bool no_memory;              /* why it was closed */
    bool fits;                   /* a program can cover all of n_ops */
    uint32_t n_values, n_inputs; /* that those ops have; of them, that no op makes */
    uint32_t n_hidden;           /* extents of those values that no input and no output has */
    uint32_t n_outputs;          /* values that the ops make and that are alive */
    uint32_t *outputs;           /* in no order */
    uint32_t *place;             /* per value: 1 + where it is among the outputs, 0: it is not */
    uint32_t outputs_capacity, place_capacity;
    uint32_t *seen; /* per extent: 1 + how often inputs and outputs have it, 0: no value has it */
    uint32_t capacity; /* of `seen` */
    uint32_t n_states; /* of `values`: one for each value of the block */
    void *values;      /* the schedule's: value_bytes for each value, zeros at first */
    void *state;       /* the schedule's: state_bytes, zeros at first */
};

/* Without ops; false without memory. */
bool matcher_init(struct matcher *matcher, const struct schedule *schedule);
void matcher_fini(struct matcher *matcher);
/* Back to no ops, for another block too. */
void matcher_reset(struct matcher *matcher);
/* Looks at the block's next op.  One that the schedule does not take, or that there is no memory
 * for, closes the matcher and is not counted. */
void matcher_push(struct matcher *matcher, const struct block *block);

/* *covered: how many of the block's first ops a program can cover at most, 0: none.  *open: the
 * schedule took all of its ops and might take more.  Fails only without memory. */
frit_status match_block(const struct schedule *schedule, const struct block *block,
                        uint32_t *covered, bool *open, frit_err *err);

#endif
