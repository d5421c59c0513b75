/* SPDX-License-Identifier: Apache-2.0 */
/* A detached segment on its way through a plan: as it ran before, where there is a tape that fits,
 * else step by step.
 * Threads: the one that has the stream's baton, outside of its lock. */
#ifndef STREAM_FLIGHT_H
#define STREAM_FLIGHT_H

#include "stream/stream.h"

struct flight {
    struct stream *stream;
    struct work *work;
    uint32_t n_calls; /* records that the plan covers */
    uint32_t ordinal; /* of the stream when the work was taken off: it may pass to another thread */
    bool lacked;      /* memory, to be run as before */
    struct assignment *assigned; /* to values that the plan makes */
    struct run_value *values;
    struct run run;
};

/* Runs the first `n_calls` records, op by op where there is no plan or it does not fit.  Then their
 * slots are ready or failed, and the segment is empty. */
void flight_run(struct flight *flight, struct plan *plan);

/* Ends the reference to a plan that the automaton may not have kept, when what it launched has
 * ended.  NULL does nothing. */
void flight_drop_plan(frit_device *device, struct plan *plan);

#endif
