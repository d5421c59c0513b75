/* SPDX-License-Identifier: Apache-2.0 */
/* Composite rows as core rows; joins of many operands as joins of fewer. */
#ifndef GRAPH_DECOMPOSE_H
#define GRAPH_DECOMPOSE_H

#include "graph/graph.h"

/* Whether there is one for the op, of this many operands. */
bool decompose_has(uint32_t op, uint32_t n_in);

/* Whether the row, which is no composite one, has a form in others all the same, that drivers may
 * be faster with; and whether it is one for this call.  Nothing runs so because a program lacks. */
bool decompose_has_other(uint32_t op);
bool decompose_fits_other(const struct op_call *call);

/* Fills the empty `graph`: one input value per tensor operand of the checked call, in order; the
 * outputs in the row's order, wanted ones only.  The ops may themselves be composite.
 * FRIT_UNSUPPORTED if there is no decomposition. */
frit_status decompose(const struct op_call *call, struct graph *graph, frit_err *err);
/* The same for an op of another graph. */
frit_status decompose_op(const struct graph *from, const struct graph_op *op, struct graph *graph,
                         frit_err *err);

/* decompose_custom.c: the same for a custom op that has one; the graph holds its inputs, `out` has
 * the types of its results. */
frit_status decompose_custom(const struct op_call *call, const struct op_type *out,
                             struct graph *graph, frit_err *err);

/* Whether a part gives what the op it stands for gave when it was recorded: FRIT_INTERNAL where a
 * plugin's infer says another thing each time. */
frit_status decompose_fits(const struct graph *part, const struct graph *whole,
                           const struct graph_op *op, frit_err *err);

#endif
