/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The timeline of a queue: how far it is, which of its commands failed, whether the
 * device is lost.
 *
 * Work that is done inside of its slot goes on with progress_advance.  A queue that runs on takes
 * each value by progress_issue, in the order in which its work goes to the device, and gives it
 * back by progress_reach, from the thread or callback that sees the work done; or from the slot
 * `wait` itself, before progress_wait, where there is no such thread.  Each command that failed on
 * the way is noted by progress_fail before that.  Work takes along what it needs: of what submit is
 * given nothing lives on.
 *
 * Owned by the queue, which inits it before its first thread and finis it after its last.
 * Threads: any, for all between. */
#ifndef UTIL_PROGRESS_H
#define UTIL_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include <frit/backend.h>

#include "util/plug.h"

enum { PROGRESS_FAULTS = 16 };

/* A failed command, and those after it that there was no room for. */
struct fault {
    uint64_t first, last; /* timeline values; set by progress */
    uint64_t cookie;      /* of the launch, 0 if it is none */
    uint32_t command;     /* number in its submit, from 1; 0: not known */
    frit_err err;         /* of the first; for plug_fail: has its struct_size */
};

struct progress {
    const struct plug *plug;
    pthread_mutex_t lock;  /* of the rest */
    pthread_cond_t change; /* `reached` or `is_lost` */
    uint64_t issued;       /* last handed out */
    uint64_t reached;      /* everything up to it is done */
    bool is_lost;          /* what is not reached never will be */
    struct fault lost;     /* then: why */
    uint32_t n_faults;
    struct fault faults[PROGRESS_FAULTS]; /* in the order of values and commands */
};

void progress_init(struct progress *progress, const struct plug *plug);
void progress_fini(struct progress *progress);

/* The next value, reached at once; `fault` (may be NULL) is what failed on the way. */
uint64_t progress_advance(struct progress *progress, const struct fault *fault);

/* The next value, for work that is about to go to the device: progress_reach or progress_lose will
 * be called for it.  FRIT_DEVICE_LOST with the reason once the device is lost. */
frit_status progress_issue(struct progress *progress, uint64_t *value, frit_err *err);
/* A command of `value`, which was issued and is not reached yet, failed.  In the order of values
 * and, in a value, of commands. */
void progress_fail(struct progress *progress, uint64_t value, const struct fault *fault);
/* Everything up to `value`, which was issued, is done; `fault` (may be NULL) is one more failure,
 * somewhere on the way from the value reached before.  A value that is reached already is ignored.
 */
void progress_reach(struct progress *progress, uint64_t value, const struct fault *fault);
/* What is not reached never will be, for the reason in `fault`, and nothing is issued any more: for
 * a device that has to be closed.  The second time it does nothing. */
void progress_lose(struct progress *progress, const struct fault *fault);

/* FRIT_DEVICE_LOST with the reason once the device is lost; for slots without a value, such as
 * `alloc`. */
frit_status progress_check_lost(struct progress *progress, frit_err *err);

/* FRIT_INVALID with a text for any queue but the first one, NULL. */
frit_status progress_check_queue(const struct progress *progress, const frit_queue *queue,
                                 frit_err *err);
/* FRIT_INVALID with a text for a value that was never handed out. */
frit_status progress_check_value(struct progress *progress, uint64_t value, frit_err *err);
/* Waits until a value that was handed out is reached, on behalf of another queue; failures on the
 * way are not reported.  FRIT_DEVICE_LOST: it will never be reached. */
frit_status progress_await(struct progress *progress, uint64_t value);
/* FRIT_INVALID with a text for points that were never handed out, where there is the first queue
 * alone. */
frit_status progress_check(struct progress *progress, const frit_point *waits, uint32_t n,
                           frit_err *err);
/* The slot `wait` of the queue.  `err` has the words of `failure`; with FRIT_DEVICE_LOST
 * those of the loss, also where `failure` is one from before it or none. */
frit_status progress_wait(struct progress *progress, uint64_t value, uint64_t timeout_ns,
                          frit_failure *failure, frit_err *err);

#endif
