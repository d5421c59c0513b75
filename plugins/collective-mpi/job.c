/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "advance.h"
#include "group.h"

enum {
    IDLE_NS = 2000000,
    BUSY_NS_LOW = 20000,
    BUSY_NS_HIGH = 500000,
    SPINS = 200,
    SHORT_PAUSES = 400
};

/* MPI starts and ends once in a process. */
static struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A message under way. */
struct outgoing {
    struct outgoing *next;
    mpi_handle request;
    struct message message;
};

/* A message to a group that is not here yet. */
struct early {
    struct early *next;
    struct message message;
};

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t deadline_after(uint64_t ns)
{
    const uint64_t now = now_ns();

    return ns > INT64_MAX ? UINT64_MAX : now + ns;
}

void job_wake(struct job *j)
{
    j->is_woken = true;
    pthread_cond_signal(&j->work);
}

bool job_sleep(struct job *j, pthread_cond_t *condition, uint64_t deadline_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                .tv_nsec = (long)(deadline_ns % 1000000000)};

    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(condition, &j->lock) == 0;
    return pthread_cond_timedwait(condition, &j->lock, &at) == 0;
}

/* ---- messages ---- */

void job_send(struct job *j, uint32_t to, const struct message *message)
{
    struct outgoing *out = malloc(sizeof *out);

    if (!out)
        return; /* the others run into their time limits */
    out->message = *message;
    if (j->mpi.Isend(&out->message, sizeof out->message, j->mpi.byte, (int)to, TAG_MESSAGE, j->comm,
                     &out->request)) {
        free(out);
        return;
    }
    out->next = j->outgoing;
    j->outgoing = out;
}

/* Frees what has been sent. */
static void sweep_outgoing(struct job *j)
{
    struct outgoing **at = &j->outgoing;

    while (*at) {
        struct outgoing *out = *at;
        int done = 0;

        if (!j->mpi.Testall(1, &out->request, &done, NULL) && !done) {
            at = &out->next;
            continue;
        }
        *at = out->next;
        free(out);
    }
}

static void keep_early(struct job *j, const struct message *message)
{
    struct early *early = malloc(sizeof *early), **at = &j->early;

    if (!early)
        return;
    while (*at)
        at = &(*at)->next;
    *early = (struct early){NULL, *message};
    *at = early;
}

bool job_take_early(struct job *j, uint64_t key, struct message *out)
{
    for (struct early **at = &j->early; *at; at = &(*at)->next) {
        struct early *early = *at;

        if (early->message.key != key)
            continue;
        *out = early->message;
        *at = early->next;
        free(early);
        return true;
    }
    return false;
}

static void post_receive(struct job *j)
{
    (void)j->mpi.Irecv(&j->received, sizeof j->received, j->mpi.byte, MPI_ANY_SOURCE, TAG_MESSAGE,
                       j->comm, &j->receive);
}

/* True: there was one. */
static bool receive_message(struct job *j)
{
    struct frit_group *group = j->groups;
    int done = 0;

    if (j->mpi.Testall(1, &j->receive, &done, NULL) || !done)
        return false;
    j->received.text[MESSAGE_TEXT - 1] = '\0';
    while (group && group_key(group) != j->received.key)
        group = group_next(group);
    if (group)
        advance_receive(group, &j->received);
    else if (j->received.kind == MESSAGE_JOIN || j->received.kind == MESSAGE_LEAVE)
        keep_early(j, &j->received);
    post_receive(j);
    return true;
}

/* ---- the thread ---- */

static void take_incoming(struct job *j)
{
    struct frit_group *group;

    pthread_mutex_lock(&j->lock);
    group = j->incoming;
    j->incoming = NULL;
    pthread_mutex_unlock(&j->lock);
    while (group) {
        struct frit_group *next = group_next(group);

        group_link(group, &j->groups);
        advance_begin_to_join(group);
        group = next;
    }
}

/* How long to sleep after that many rounds in which nothing moved. */
static uint64_t pause_ns(bool is_busy, uint32_t n_still)
{
    if (!is_busy || n_still > SPINS + SHORT_PAUSES)
        return IDLE_NS;
    return n_still - SPINS < 5 ? (uint64_t)BUSY_NS_LOW << (n_still - SPINS) : BUSY_NS_HIGH;
}

/* Until there is work, or for as long as others may be left waiting. */
static void rest(struct job *j, bool is_busy, uint32_t n_still)
{
    if (is_busy && n_still < SPINS) {
        (void)sched_yield();
        return;
    }
    pthread_mutex_lock(&j->lock);
    if (!j->is_woken)
        (void)job_sleep(j, &j->work,
                        j->groups || j->outgoing ? deadline_after(pause_ns(is_busy, n_still))
                                                 : UINT64_MAX);
    j->is_woken = false;
    pthread_mutex_unlock(&j->lock);
}

static bool is_ending(struct job *j)
{
    bool ending;

    pthread_mutex_lock(&j->lock);
    ending = j->state == JOB_ENDING;
    pthread_mutex_unlock(&j->lock);
    return ending;
}

static void serve(struct job *j)
{
    uint32_t n_still = 0;

    while (!is_ending(j)) {
        bool moved = false, is_busy = false;

        take_incoming(j);
        while (receive_message(j))
            moved = true;
        for (struct frit_group *group = j->groups, *next; group; group = next) {
            next = group_next(group);
            moved |= advance_step(group, &is_busy);
        }
        sweep_outgoing(j);
        n_still = moved || !is_busy ? 0 : n_still + (n_still < UINT32_MAX);
        if (!moved)
            rest(j, is_busy, n_still);
    }
}

/* ---- start and end ---- */

static bool is_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", NULL};

    for (const char *const *name = names; *name; name++)
        if (getenv(*name))
            return true;
    return false;
}

/* False: `why` is set. */
static bool start_mpi(struct job *j)
{
    struct mpi *mpi = &j->mpi;
    int is_there = 0, level = 0, result;
    char text[MPI_ERROR_BYTES];
    int length;

    result = mpi->Initialized(&is_there);
    if (!result)
        result = is_there ? mpi->Query_thread(&level)
                          : mpi->Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    if (!result && level < MPI_THREAD_MULTIPLE) {
        snprintf(j->why, sizeof j->why, "MPI was started without MPI_THREAD_MULTIPLE");
        return false;
    }
    if (!result)
        result = mpi->Comm_dup(mpi->world, &j->comm);
    if (!result)
        result = mpi->Comm_set_errhandler(j->comm, mpi->errors_return);
    if (!result)
        result = mpi->Comm_rank(j->comm, &j->rank);
    if (!result)
        result = mpi->Comm_size(j->comm, &j->size);
    if (result) {
        if (mpi->Error_string(result, text, &length))
            text[0] = '\0';
        snprintf(j->why, sizeof j->why, "MPI does not start: %s", text);
    }
    return !result;
}

static void set_state(struct job *j, enum job_state state)
{
    pthread_mutex_lock(&j->lock);
    j->state = state;
    pthread_cond_broadcast(&j->change);
    pthread_mutex_unlock(&j->lock);
}

static void *job_main(void *arg)
{
    struct job *j = arg;

    if (!start_mpi(j)) {
        set_state(j, JOB_FAILED);
        return NULL;
    }
    post_receive(j);
    set_state(j, JOB_READY);
    serve(j);
    while (j->outgoing)
        sweep_outgoing(j);
    (void)j->mpi.Cancel(&j->receive);
    (void)j->mpi.Finalize();
    set_state(j, JOB_ENDED);
    return NULL;
}

/* A process that ends while it is in a group ends without MPI_Finalize, so that its launcher ends
 * the job. */
static void end_at_exit(void)
{
    const uint64_t deadline = deadline_after(10000000000u);

    pthread_mutex_lock(&job.lock);
    if (job.state == JOB_READY && !job.n_groups) {
        job.state = JOB_ENDING;
        job_wake(&job);
        while (job.state == JOB_ENDING && job_sleep(&job, &job.change, deadline))
            ;
    }
    pthread_mutex_unlock(&job.lock);
}

/* With the lock. */
static void launch(struct job *j, const char *library)
{
    pthread_condattr_t clock;
    pthread_t thread;
    sigset_t all, before;

    j->state = JOB_FAILED;
    if (!is_launched()) {
        snprintf(j->why, sizeof j->why,
                 "this process was not started as a rank of an MPI job; use frit launch or mpirun");
        return;
    }
    if (!mpi_load(&j->mpi, library, j->why, sizeof j->why))
        return;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&j->change, &clock);
    pthread_cond_init(&j->work, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!pthread_create(&thread, NULL, job_main, j)) {
        pthread_detach(thread);
        j->state = JOB_STARTING;
        (void)atexit(end_at_exit);
    } else {
        snprintf(j->why, sizeof j->why, "no thread can be started");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct job *job_start(const char *library, uint64_t deadline_ns, bool *is_late, char *why,
                      size_t why_bytes)
{
    struct job *result = NULL;

    pthread_mutex_lock(&job.lock);
    if (job.state == JOB_NEW)
        launch(&job, library);
    while (job.state == JOB_STARTING && job_sleep(&job, &job.change, deadline_ns))
        ;
    *is_late = job.state == JOB_STARTING;
    if (job.state == JOB_READY)
        result = &job;
    else
        snprintf(why, why_bytes, "%s",
                 *is_late                  ? "not all processes of the job have started MPI"
                 : job.state == JOB_FAILED ? job.why
                                           : "MPI has ended in this process");
    pthread_mutex_unlock(&job.lock);
    return result;
}
