/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a recorded run: what a replay needs is worked out once. */
#ifndef RUN_BOUND_FINISH_H
#define RUN_BOUND_FINISH_H

#include "run/bound_plan.h"

/* The values after the run.  True: it can be replayed.  `explorer` and `segment` are what the graph
 * was made from. */
bool bound_finish(struct bound_plan *bound, const struct run_value *values,
                  const struct explorer *explorer, const struct segment *segment, uint32_t n_calls);

#endif
