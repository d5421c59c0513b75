/* SPDX-License-Identifier: Apache-2.0 */
/* A background thread for work that is not waited for: saving stores, compiling in advance.
 *
 * The thread is started by the first job (base/thread.h).  Jobs run one after another in
 * order.  Thread-safe; a job may spawn jobs, but must not wait or destroy. */
#ifndef EXEC_WORKER_H
#define EXEC_WORKER_H

#include <frit/status.h>

struct worker;

frit_status worker_create(struct worker **out, frit_err *err);
/* Runs `fn(ctx)` later.  On failure (no memory, no thread) it will not run. */
frit_status worker_spawn(struct worker *worker, void (*fn)(void *ctx), void *ctx, frit_err *err);
/* Waits until no job is left. */
void worker_wait(struct worker *worker);
/* Waits for all jobs and ends the thread; no jobs may be added any more.  NULL does nothing. */
void worker_destroy(struct worker *worker);

#endif
