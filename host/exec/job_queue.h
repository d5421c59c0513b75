/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for a few background threads, the one with the highest priority first: compiles.
 *
 * There are two classes.  JOB_AWAITED: somebody takes a slower way until it is done.  JOB_SPARE:
 * nobody does, it improves what runs already.  Awaited jobs go first, and one thread more than the
 * limit serves them alone, so that a long spare job never holds up an awaited one.  Jobs of equal
 * priority run in the order in which they came; of jobs with equal keys one runs at a time, and the
 * first to run has the priority of all.
 *
 * A job is memory of its user.  It belongs to the queue from job_queue_add until `end` is called,
 * or until it is taken back.  Threads begin with the first job that needs one and block all
 * signals.  Threads: any; the queue's lock is held during none of the callbacks. */
#ifndef EXEC_JOB_QUEUE_H
#define EXEC_JOB_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/host.h>

struct job_queue;

enum job_class { JOB_SPARE, JOB_AWAITED };

/* Zeroed but for the fields before `prev`, which the user leaves alone while the queue has it. */
struct job {
    void (*run)(struct job *job);
    /* Afterwards; also where it was cancelled before it began (`begun` is false then).  The job is
     * the user's again, who may free it. */
    void (*end)(struct job *job);
    const void *owner; /* job_queue_cancel_all */
    const void *key;   /* NULL: equal to no other */
    size_t key_bytes;
    enum job_class class;
    uint64_t priority; /* once added: job_queue_raise */
    /* Of the queue; `run` may read `cancel`, `end` `begun` and `joined`. */
    struct job *prev, *next;
    uint64_t id; /* unique in the queue, never 0 */
    bool queued, begun;
    bool joined; /* came while a job with an equal key was there */
    frit_cancel cancel;
};

/* At most `limit` threads (and the one for awaited jobs), `niceness` (0..19) below the program's.
 */
frit_status job_queue_create(uint32_t limit, int niceness, struct job_queue **out, frit_err *err);
/* Cancels what did not begin, waits for what runs, ends the threads.  Nobody adds any more.  NULL
 * does nothing. */
void job_queue_destroy(struct job_queue *queue);

/* 1 + half of the processors, at most 8. */
uint32_t job_queue_limit(uint32_t processors);

/* *id (may be NULL) is set before the job can end.  On failure (no thread) the job stays the
 * caller's. */
frit_status job_queue_add(struct job_queue *queue, struct job *job, uint64_t *id, frit_err *err);
/* Adds to the priority of a job that did not begin. */
void job_queue_raise(struct job_queue *queue, struct job *job, uint64_t by);
/* Takes a job back that did not begin: it is the caller's and will not run or end.  False: it
 * began.  Here and below the caller knows that `end` has not returned. */
bool job_queue_take(struct job_queue *queue, struct job *job);
/* The same; asks a job that began to stop. */
bool job_queue_cancel(struct job_queue *queue, struct job *job);
/* The same for the owner's job of this id, which may have ended.  job_queue_cancel_id returns the
 * job if it did not begin. */
void job_queue_raise_id(struct job_queue *queue, const void *owner, uint64_t id, uint64_t by);
struct job *job_queue_cancel_id(struct job_queue *queue, const void *owner, uint64_t id);
/* Cancels all jobs of an owner (NULL: of all), who adds none meanwhile; those that began are asked
 * to stop, and have ended when it returns. */
void job_queue_cancel_all(struct job_queue *queue, const void *owner);

#endif
