/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for work that nobody waits for: saving stores, compiling ahead.
 *
 * The thread begins with the first job and blocks all signals; jobs run one after the other in the
 * order in which they came.  Threads: any; a job may spawn more but must not wait or destroy. */
#ifndef EXEC_WORKER_H
#define EXEC_WORKER_H

#include <frit/status.h>

struct worker;

frit_status worker_create(struct worker **out, frit_err *err);
/* Runs `fn(ctx)` later.  On failure (no memory, no thread) it will not run. */
frit_status worker_spawn(struct worker *worker, void (*fn)(void *ctx), void *ctx, frit_err *err);
/* Returns when no job is left. */
void worker_wait(struct worker *worker);
/* Waits, then ends the thread.  Nobody spawns any more.  NULL does nothing. */
void worker_destroy(struct worker *worker);

#endif
