/* SPDX-License-Identifier: Apache-2.0 */
/* A slow interpreter of graphs of core rows: what a decomposition computes, with nothing of the
 * host's engine or of a driver in between.  Floats are rounded to their type after each op,
 * integers wrap. */
#ifndef TESTS_HOST_GRAPH_EVAL_H
#define TESTS_HOST_GRAPH_EVAL_H

#include "graph/graph.h"

/* An element: `f` of float types, `i` of all others, sign-extended or zero-extended as the type is.
 */
union cell {
    double f;
    int64_t i;
};

/* A value in row-major order. */
struct array {
    struct op_type type;
    union cell *cells;
};

/* Word `index` of the generator that stands in for Philox. */
uint32_t eval_word32(int64_t index);
uint64_t eval_word64(int64_t index);

/* Computes the only output from the inputs, in order, of which it takes the cells that the graph's
 * types require; ends the test at a row it does not know.  The caller frees the cells. */
struct array eval_graph(const struct graph *graph, const struct array *inputs);

/* The value as its type holds it. */
union cell eval_store(uint32_t dtype, union cell value);
bool eval_is_float(uint32_t dtype);

#endif
