/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a member, which the calls of job.h share with its thread. */
#ifndef JOB_JOB_THREAD_H
#define JOB_JOB_THREAD_H

#include <pthread.h>

#include "job/channel.h"
#include "job/job.h"
#include "job/place.h"
#include "job/server.h"

enum { JOB_NOTES = 4, JOB_NOTE = 1024 };

/* A call that waits for the reply of rank 0.  The caller's memory. */
struct job_request {
    struct job_request *next;
    uint32_t id;
    bool is_done, outlives_failure;
    frit_status status;
    struct str reply; /* the value, or why not */
};

struct job_member {
    struct job_member *next;   /* of all in the process, for job_bar */
    struct job_config config;  /* without its pointers */
    struct job_server *server; /* rank 0 only */
    pthread_t thread;
    int wake;
    char store[320];

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct channel channel;
    bool is_joined, is_lost, has_ended, stops;
    bool has_heard; /* anything of rank 0 */
    uint32_t rank, size, generation, last_request;
    char first_host[65]; /* of rank 0 */
    uint32_t first_pid;
    struct job_place place;
    frit_err failure;
    bool is_failing; /* this rank has reported its own, and rank 0 has not yet said what is the
                        first */
    struct job_request *requests;
    struct job_wait *waits;
    void (*watch)(void *ctx, const frit_err *why);
    void *watch_ctx;
    bool is_watched; /* the function was called for this failure */
    uint64_t next_beat, heard;
    uint32_t skipped;    /* heartbeats, while rank 0 is silent */
    bool is_silent;      /* rank 0, and that was logged */
    uint64_t warn_sent;  /* 0: no question of warn is open */
    uint64_t warn_since; /* of the operation that it is about */
    uint32_t n_notes;    /* to be logged without the lock */
    struct job_note {
        uint32_t level;
        char text[JOB_NOTE];
    } notes[JOB_NOTES];
};

/* ---- job_thread.c ---- */

/* The thread; `ctx` is the member. */
void *job_run(void *ctx);

/* The time of clock_ns at which a limit ends, and a little later. */
uint64_t job_deadline(uint64_t timeout_ns, uint64_t slack_ns);

/* ---- with the lock ---- */

/* Waits until something has changed; false: the deadline has passed. */
bool job_wait_change(struct job_member *job, uint64_t deadline);

/* The thread looks at what has changed. */
void job_wake(struct job_member *job);
/* The first failure of this generation; ends the requests that it ends. */
void job_set_failure(struct job_member *job, const frit_err *why);
/* A frame of rank 0; `ctx` is the member. */
void job_take(void *ctx, uint32_t kind, struct wire_reader *in);
/* Requests from rank 0 which ranks are behind this one; with `is_error` also those that it has
 * named. */
void job_write_behind(struct job_member *job, uint32_t request, bool is_error);

#endif
