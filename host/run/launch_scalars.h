/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers a launch takes besides its tensors: scalars with their classes, and bounds, of the
 * covered ops one after the other, each in the order that frit_launch gives.  Pure. */
#ifndef RUN_LAUNCH_SCALARS_H
#define RUN_LAUNCH_SCALARS_H

#include <stdbool.h>

#include <frit/status.h>
#include <frit/types.h>

struct arena;
struct graph;
struct graph_op;
struct graph_value;
struct recorded_op;
struct run_op;

/* Lies in the arena it was gathered into. */
struct launch_scalars {
    frit_scalar *scalars;
    uint8_t *classes; /* FRIT_SCALAR_CLASS_*, by scalar */
    int64_t *bounds;
    uint32_t n_scalars, n_bounds;
    uint8_t *bound_classes; /* by bound; launch_scalars_update leaves them: its bounds are what they
                               were */
};

/* `extra` by op of the graph. */
frit_status launch_scalars_gather(const struct graph *graph, const uint32_t *ops, uint32_t n_ops,
                                  const struct run_op *extra, struct arena *arena,
                                  struct launch_scalars *out, frit_err *err);

/* How many one op has; `rank` of its operand 0. */
struct scalar_counts {
    uint32_t n_scalars, n_bounds, rank;
};
struct scalar_counts launch_scalars_count(const struct graph_op *op,
                                          const struct graph_value *values);

/* The words of a recorded op once more, at the start of `to`.  False: a scalar is of another class
 * than before; the classes stay. */
bool launch_scalars_update(const struct recorded_op *record, const struct scalar_counts *count,
                           struct launch_scalars *to);
/* The random words of a SEEDED part of a recorded op: its last two scalars. */
void launch_scalars_update_random(const struct recorded_op *record,
                                  const struct scalar_counts *count, struct launch_scalars *to);

#endif
