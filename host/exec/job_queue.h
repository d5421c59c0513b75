/* SPDX-License-Identifier: Apache-2.0 */
/* A priority queue of background jobs, such as compiles, with a few threads.
 *
 * There are two classes.  JOB_AWAITED: until it is done, something takes a slower path.  JOB_SPARE:
 * it only improves code that already runs.  Awaited jobs run first, and one thread in addition to
 * the limit serves only them, so that a long spare job never delays an awaited one.  Jobs of equal
 * priority run in order of arrival.  Of jobs with equal keys one runs at a time, and the first has
 * the priority of all.
 *
 * The user allocates jobs.  A job belongs to the queue from job_queue_add until `end` is called or
 * the job is taken back.  Threads are started on demand (base/thread.h).  Thread-safe; no
 * callback is called with the queue's lock held. */
#ifndef EXEC_JOB_QUEUE_H
#define EXEC_JOB_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/host.h>

struct job_queue;

enum job_class { JOB_SPARE, JOB_AWAITED };

/* The user sets the fields before `prev`, zeros the others, and must not access a job while the
 * queue has it. */
struct job {
    void (*run)(struct job *job);
    /* Called after `run`, or when the job is cancelled before it began (then `begun` is false). The
     * job belongs to the user again, who may free it. */
    void (*end)(struct job *job);
    const void *owner; /* job_queue_cancel_all */
    const void *key;   /* NULL: equal to no other */
    size_t key_bytes;
    enum job_class class;
    uint64_t priority; /* changed by job_queue_raise once added */
    /* Set by the queue; `run` may read `cancel`, `end` may read `begun` and `joined`. */
    struct job *prev, *next;
    uint64_t id; /* unique in the queue, never 0 */
    bool queued, begun;
    bool joined; /* came while a job with an equal key was there */
    frit_cancel cancel;
};

/* At most `limit` threads, and one for awaited jobs, at `niceness` (0..19) above the program's. */
frit_status job_queue_create(uint32_t limit, int niceness, struct job_queue **out, frit_err *err);
/* Cancels jobs that have not begun, waits for running ones, ends the threads.  No jobs may be added
 * any more.  NULL does nothing. */
void job_queue_destroy(struct job_queue *queue);

/* 1 + half of the processors, at most 8. */
uint32_t job_queue_limit(uint32_t processors);

/* *id (may be NULL) is set before the job can end.  On failure (no thread) the caller keeps the
 * job. */
frit_status job_queue_add(struct job_queue *queue, struct job *job, uint64_t *id, frit_err *err);
/* Raises the priority of a job unless it has begun. */
void job_queue_raise(struct job_queue *queue, struct job *job, uint64_t by);
/* The caller is going to wait for a job: if it runs, it gets the program's priority until it has
 * ended, where the system allows that. */
void job_queue_hurry(struct job_queue *queue, const struct job *job);
/* Takes back a job that has not begun: it will not run or end.  False: it has begun.  Here and
 * below the caller must ensure that `end` has not returned. */
bool job_queue_take(struct job_queue *queue, struct job *job);
/* As job_queue_take; a job that has begun is requested to stop. */
bool job_queue_cancel(struct job_queue *queue, struct job *job);
/* The same for the owner's job with this id, which may have ended.  job_queue_cancel_id returns the
 * job if it had not begun. */
void job_queue_raise_id(struct job_queue *queue, const void *owner, uint64_t id, uint64_t by);
struct job *job_queue_cancel_id(struct job_queue *queue, const void *owner, uint64_t id);
/* Cancels all jobs of an owner (NULL: all jobs) and waits until those that run have ended, as after
 * job_queue_hurry.  The owner must not add jobs meanwhile. */
void job_queue_cancel_all(struct job_queue *queue, const void *owner);

#endif
