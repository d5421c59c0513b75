/* SPDX-License-Identifier: Apache-2.0 */
/* The process's compute threads: one team for all hosts and plugins.
 *
 * A call divides its work into one contiguous range per thread, the same for the same thread each
 * time, so that data stays in the caches of a core; a thread that has finished steals from the ends
 * of other ranges.  The calling thread takes part and never waits for a thread that has not begun.
 * Threads are started on demand (base/thread.h), spin briefly after each call, then sleep.  One
 * call at a time uses the team: a concurrent or nested call runs on its own thread only.
 * Thread-safe. */
#ifndef EXEC_TEAM_H
#define EXEC_TEAM_H

#include <stdint.h>

enum { TEAM_MAX = 256 }; /* threads of a call */

/* Processes first .. end - 1.  `thread` is below the call's number of threads and unique among
 * concurrent calls of `run`. */
typedef void (*team_run)(void *ctx, uint64_t first, uint64_t end, uint32_t thread);

/* Callers of team_for must have joined; the last one to leave ends the threads. */
void team_join(void);
void team_leave(void);

/* Processors that this process may run on, at least 1. */
uint32_t team_processors(void);

/* Calls `run` for ranges that partition 0 .. count - 1 and returns when all have returned.  Ranges
 * begin at multiples of `grain` (>= 1), the least work that is worth distributing.  Uses at most
 * `threads` threads including the calling one; with one thread `run` is called once. */
void team_for(uint32_t threads, uint64_t count, uint64_t grain, team_run run, void *ctx);

/* Between the two a thread of lower priority works: one thread of the team does not spin, so that
 * its processor is free for that between calls.  Any thread; several at once count. */
void team_lend_processor(void);
void team_return_processor(void);

#endif
