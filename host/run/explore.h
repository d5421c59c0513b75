/* SPDX-License-Identifier: Apache-2.0 */
/* From a segment to a plan, and from a plan to concrete values: the segment as a concrete graph in
 * which composite rows that the driver does not claim are replaced by what they stand for.
 *
 * The graph follows the segment op by op and is made only where it is needed: for a search, or for
 * a run.  Threads: under the stream's baton. */
#ifndef RUN_EXPLORE_H
#define RUN_EXPLORE_H

#include <frit/frit.h>

#include "graph/graph.h"
#include "plan/relative.h"
#include "run/period.h"

struct plan;
struct run_op;
struct search;
struct segment;
struct segment_expansion;
struct str;

/* All zero is empty. */
struct explorer {
    struct graph graph;
    struct run_op *ops; /* per op of the graph */
    uint32_t *call_end; /* per record: ops of the graph up to and with it */
    uint32_t *value_of; /* per value of the segment: its number in the graph */
    uint32_t ops_capacity, call_capacity, value_capacity;
    uint32_t n_calls, n_values; /* of the segment, that the graph has */
    bool expanded;              /* some composite op was replaced by its decomposition */
    struct relative relative;   /* of the first ops of the graph */
    uint32_t n_relative;        /* ops of the segment that `relative` has */
    struct search *search;
    struct period period;
};

void explorer_fini(struct explorer *explorer);
void explorer_reset(struct explorer *explorer);

/* Adds an op over values that the graph has, or what it stands for, for a trial. */
frit_status explorer_add(struct explorer *explorer, frit_device *device, const struct graph_op *op,
                         bool expanded, frit_err *err);

/* The graph of the first `n_calls` records. */
frit_status explorer_graph(struct explorer *explorer, frit_device *device,
                           const struct segment *segment, uint32_t n_calls, frit_err *err);

/* The expansion of recorded op `number`, the next after those that the graph has or one of them;
 * the op has got its last death.  `bytes` is emptied and written; *form points into it and into the
 * explorer.  With no bytes the op is not expanded. */
frit_status explorer_form(struct explorer *explorer, frit_device *device,
                          const struct segment *segment, uint32_t number, struct str *bytes,
                          struct segment_expansion *form, frit_err *err);

/* What the search says after exactly the first `n_calls` records: *plan NULL: go on. */
frit_status explorer_lazy(struct explorer *explorer, frit_device *device,
                          const struct segment *segment, uint32_t n_calls, struct plan **plan,
                          frit_err *err);
/* The plan over all of them. */
frit_status explorer_whole(struct explorer *explorer, frit_device *device,
                           const struct segment *segment, struct plan **plan, frit_err *err);
/* The plan that a saved one at the node of the last matched op is of; fails where it is none for
 * these ops. */
frit_status explorer_rebuild(struct explorer *explorer, frit_device *device,
                             const struct segment *segment, const struct plan *saved,
                             struct plan **plan, frit_err *err);
/* Each op by itself, in order. */
frit_status explorer_plan_unfused(struct explorer *explorer, frit_device *device,
                                  const struct segment *segment, uint32_t n_calls,
                                  struct plan **plan, frit_err *err);
/* Whether a plan of equal keys is one for these ops: a composite may stand for other ops at other
 * sizes. */
frit_status explorer_fits(struct explorer *explorer, frit_device *device,
                          const struct segment *segment, const struct plan *plan, bool *fits,
                          frit_err *err);

#endif
