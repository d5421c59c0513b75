/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers a launch takes beside its tensors: scalars with their classes, and bounds, of the
 * covered ops one after the other, each in the order that frit_launch gives.  Pure. */
#ifndef STREAM_WORDS_H
#define STREAM_WORDS_H

#include "base/arena.h"
#include "graph/graph.h"
#include "stream/run.h"
#include "stream/segment.h"

/* Lies in the arena it was gathered into. */
struct words {
    frit_scalar *scalars;
    uint8_t *classes; /* FRIT_SCALAR_CLASS_*, by scalar */
    int64_t *bounds;
    uint32_t n_scalars, n_bounds;
    uint8_t *bound_classes; /* by bound; words_again leaves them: its bounds are what they were */
};

/* `extra` by op of the graph. */
frit_status words_gather(const struct graph *graph, const uint32_t *ops, uint32_t n_ops,
                         const struct run_op *extra, struct arena *arena, struct words *out,
                         frit_err *err);

/* How many one op has; `rank` of its operand 0. */
struct words_count {
    uint32_t n_scalars, n_bounds, rank;
};
struct words_count words_count(const struct graph_op *op, const struct graph_value *values);

/* The words of a recorded op once more, at the start of `to`.  False: a scalar is of another class
 * than before; the classes stay. */
bool words_again(const struct op_record *record, const struct words_count *count, struct words *to);
/* The random words of a SEEDED part of a recorded op: its last two scalars. */
void words_random_again(const struct op_record *record, const struct words_count *count,
                        struct words *to);

#endif
