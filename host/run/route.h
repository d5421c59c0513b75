/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that could run here, and run on the fallback device because their neighbours do.
 *
 * Between two ops that only the fallback device has, an op at home costs two crossings of the link.
 * Where values lie is priced in bytes that cross, and an op there in a share of its result, so that
 * long work stays at home; what is cheaper is found by moving one step at a time from all at home
 * and from all there.  Only elementwise ops and views move.  The answer depends on sizes alone,
 * never on time.  Threads: one at a time. */
#ifndef RUN_ROUTE_H
#define RUN_ROUTE_H

#include "run/frame.h"

/* Whether the step at the cursor runs on the fallback device by choice. */
bool route_is_there(struct frame *frame);
/* It could not: from here on everything runs at home that can. */
void route_stay_home(struct frame *frame);

#endif
