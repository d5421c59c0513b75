/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the process that compute: one team for all hosts and plugins.
 *
 * A call splits its work into one contiguous range per thread, always the same one for the same
 * thread, so that what lies in a core's cache is found again; a thread that is done takes from the
 * ends of the others' ranges.  The calling thread is one of them and never waits for a thread that
 * did not begin.  Threads begin with the first call that wants them, block all signals, spin for a
 * moment after each call, then sleep.  One call at a time has the team: a second one, or one from
 * inside of `run`, runs on its own thread alone.  Threads: any. */
#ifndef EXEC_TEAM_H
#define EXEC_TEAM_H

#include <stdint.h>

enum { TEAM_MAX = 256 }; /* threads of a call */

/* first .. end - 1; `thread` is below the call's threads, and no two calls at once have the same.
 */
typedef void (*team_run)(void *ctx, uint64_t first, uint64_t end, uint32_t thread);

/* Whoever calls team_for is one of its users; the last one to leave ends the threads. */
void team_join(void);
void team_leave(void);

/* Processors that this process may run on, at least 1. */
uint32_t team_processors(void);

/* Calls `run` for ranges that together are 0 .. count - 1, and returns when all have returned.
 * Ranges begin at multiples of `grain` (>= 1): so much is worth a hand-over.  At most `threads`
 * threads work, the calling one included; without a second one, one call has it all. */
void team_for(uint32_t threads, uint64_t count, uint64_t grain, team_run run, void *ctx);

#endif
