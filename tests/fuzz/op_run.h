/* SPDX-License-Identifier: Apache-2.0 */
/* A graph's ops run on devices, through the public interface. */
#ifndef FUZZ_OP_RUN_H
#define FUZZ_OP_RUN_H

#include "graph/graph.h"

/* Runs every op of the graph on the reference driver and on the cpu driver's interpreter.  Aborts
 * if a call is refused, gives a value of another type than the graph, or fails, and if tensors or
 * buffers are left at the end. */
void op_run(const struct graph *graph, uint64_t seed);

#endif
