/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a bound plan fits a segment. */
#ifndef RUN_REPLAY_MATCH_H
#define RUN_REPLAY_MATCH_H

#include "run/bound_plan.h"
#include "run/preassign.h"

/* Inside the stream's lock: whether the segment's values are as they were when the plan was bound;
 * notes their buffers. */
bool replay_matches(struct bound_plan *bound, const struct segment *segment,
                    const struct assignment *assigned);

#endif
