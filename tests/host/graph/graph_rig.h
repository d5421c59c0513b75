/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of graphs and texts share. */
#ifndef TESTS_GRAPH_RIG_H
#define TESTS_GRAPH_RIG_H

#include "unit.h"

#include "base/fail.h"
#include "graph/text/text.h"

/* Parses and binds with no type known; on failure the graph is empty. */
frit_status rig_graph(const char *text, struct graph *graph, frit_err *err);

/* Fails the test where the graphs differ in anything but the names of values. */
void rig_assert_equal(const struct graph *a, const struct graph *b);

/* Prints, parses, binds, prints: fails the test unless graph and text are the same again. */
void rig_assert_round_trip(const struct graph *graph);

#endif
