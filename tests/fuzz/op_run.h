/* SPDX-License-Identifier: Apache-2.0 */
/* A graph's ops run on devices, through the public interface. */
#ifndef FUZZ_OP_RUN_H
#define FUZZ_OP_RUN_H

#include "graph/graph.h"

/* Runs every op on the reference driver and on the cpu driver's interpreter.  Aborts where a call
 * that the graph took is refused, gives a value of another type, or fails, and where something is
 * left afterwards. */
void op_run(const struct graph *graph, uint64_t seed);

#endif
