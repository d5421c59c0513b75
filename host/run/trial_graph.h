/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of ops that were not recorded as they are tried: in parts, on dense operands. */
#ifndef RUN_TRIAL_GRAPH_H
#define RUN_TRIAL_GRAPH_H

#include <frit/frit.h>

#include "graph/graph.h"
#include "run/trial.h"

struct trial_graph {
    const char *label;
    struct graph *graph; /* taken over and left empty, also on failure */
    const uint32_t *out; /* values that are compared, GRAPH_NO_VALUE */
    uint32_t n_out;
    uint32_t context; /* of its ops, see record/context.h */
};

/* Equal inputs of two graphs, in their order, have equal elements.  FRIT_UNSUPPORTED: it needs more
 * memory than trials may take. */
frit_status trial_create_graph(frit_device *device, const struct trial_graph *from,
                               struct launch_trial **out, frit_err *err);

#endif
