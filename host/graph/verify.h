/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a graph from the first op to the last. */
#ifndef GRAPH_VERIFY_H
#define GRAPH_VERIFY_H

#include <frit/status.h>

struct graph;

/* Checks what append guarantees, for graphs from elsewhere and in tests: producers before users,
 * one producer per value, types and attributes as op_check leaves them, names that parse and are
 * there once. */
frit_status graph_verify(const struct graph *graph, frit_err *err);

#endif
