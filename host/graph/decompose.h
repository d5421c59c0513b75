/* SPDX-License-Identifier: Apache-2.0 */
/* Composite rows as core rows. */
#ifndef GRAPH_DECOMPOSE_H
#define GRAPH_DECOMPOSE_H

#include "graph/graph.h"

/* Whether there is a decomposition. */
bool decompose_has(uint32_t op);

/* Fills the empty `graph`: one input value per tensor operand of the checked call, in order; the
 * outputs in the row's order, wanted ones only.  The ops may themselves be composite.
 * FRIT_UNSUPPORTED if there is no decomposition. */
frit_status decompose(const struct op_call *call, struct graph *graph, frit_err *err);

#endif
