/* SPDX-License-Identifier: Apache-2.0 */
/* A recorder of what took how long: spans and counters of the whole process, off by default, shown
 * by viewers of Chrome traces (chrome://tracing, Perfetto).  Threads are one group of tracks there,
 * the queues of devices another.
 *
 * Off, begin is one load and end one test.  On, an event takes a slot by one atomic addition, and
 * no lock; what comes when all slots are taken is counted and lost.  Threads: any. */
#ifndef BASE_TIMELINE_H
#define BASE_TIMELINE_H

#include <stdbool.h>

#include "base/str.h"

#include <frit/status.h>

enum { TIMELINE_NAME = 48, TIMELINE_AREA = 24 }; /* bytes of names and categories, with the end */

/* Begins to record up to `max_events` events; FRIT_BUSY while somebody does. */
frit_status timeline_start(uint32_t max_events, frit_err *err);
/* Ends it and appends the recording as JSON; `out` NULL: throws it away.  Does nothing if it is
 * off.  By one thread at a time. */
void timeline_stop(struct str *out);

/* Whether events are recorded now. */
bool timeline_is_on(void);
/* Monotonic nanoseconds, never 0, for timeline_end on the same thread; 0 while off. */
uint64_t timeline_begin(void);
/* A span of this thread from `begun` until now; nothing if that is 0.  `area` says who speaks,
 * such as "stream" or a plugin's id; both texts are cut. */
void timeline_end(uint64_t begun, const char *area, frit_str name);
/* A span between two moments in monotonic nanoseconds, on a track that no thread writes. */
void timeline_span(uint32_t track, uint64_t start, uint64_t end, const char *area, frit_str name);
/* Names such a track for viewers; may be repeated. */
void timeline_track(uint32_t track, frit_str name);
/* The value that a quantity has from now on. */
void timeline_counter(const char *area, frit_str name, double value);

#endif
