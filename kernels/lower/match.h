/* SPDX-License-Identifier: Apache-2.0 */
/* Matches a block against a schedule op by op: each op is visited once, so that the time is
 * proportional to the number of ops.  After each op the matcher reports whether one program can
 * cover all ops so far.  The result does not depend on the sizes of extents.  Not thread-safe. */
#ifndef LOWER_MATCH_H
#define LOWER_MATCH_H

#include <frit/op_table.h>

#include "ir/target.h"
#include "lower/block/block.h"

/* Values that may be live at once: about as many as a kernel keeps in registers.  A schedule of
 * components makes a kernel of each component and has its own limits. */
enum { MATCH_MAX_LIVE = 32 };
/* Reshapes of a block that may determine extents which neither an input nor an output has. */
enum { MATCH_RESHAPES = 16 };

struct schedule;

struct matcher {
    const struct schedule *schedule;
    const struct kir_target *target; /* NULL: what holds for every target */
    uint32_t n_ops;                  /* matched: a prefix of the block's ops */
    bool closed;
    bool no_memory;              /* an allocation failed; `closed` is true then */
    bool fits;                   /* one program can cover the n_ops ops */
    uint32_t n_values, n_inputs; /* values of those ops; the ones that no op makes */
    uint32_t n_hidden_extents; /* extents of those values that neither an input nor an output has */
    uint32_t n_reshapes, reshapes[MATCH_RESHAPES]; /* the first ones: ops */
    uint32_t n_outputs;                            /* live values that the ops make */
    uint32_t *outputs;                             /* values, in no particular order */
    uint32_t *output_slot; /* per value: 1 + its index in `outputs`; 0: none */
    uint32_t outputs_capacity, output_slot_capacity;
    uint32_t
        *extent_uses; /* per extent: 1 + number of uses by inputs and outputs; 0: no value has it */
    uint32_t extent_capacity; /* of `extent_uses` */
    uint32_t values_capacity; /* of `values`: at least the block's number of values */
    void *values;             /* the schedule's value_bytes for each value, initially zeros */
    void *state;              /* the schedule's state_bytes, initially zeros */
};

/* A matcher without ops.  Returns false if out of memory. */
bool matcher_init(struct matcher *matcher, const struct schedule *schedule,
                  const struct kir_target *target);
void matcher_fini(struct matcher *matcher);
/* Removes all ops; the next block may be another one. */
void matcher_reset(struct matcher *matcher);
/* Matches the block's next op.  The matcher is closed, and the op not counted, if the schedule
 * rejects it or if out of memory. */
void matcher_push(struct matcher *matcher, const struct block *block);

/* *covered: the largest number of the block's first ops that one program can cover, or 0.  *open:
 * the schedule accepted all ops and might accept more.  Fails only if out of memory. */
frit_status match_block(const struct schedule *schedule, const struct kir_target *target,
                        const struct block *block, uint32_t *covered, bool *open, frit_err *err);

#endif
