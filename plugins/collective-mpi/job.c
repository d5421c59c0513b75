/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "advance.h"
#include "group.h"
#include "shared.h"

/* How a thread waits.  It keeps the processor for a moment where there is one for each rank.  Then,
 * if all ranks are on this host, it sleeps until one of them rings.  Else it must look itself
 * whether there are messages: it yields the processor, then sleeps for longer and longer times.
 * Data that is under way comes soon; another rank may compute for seconds. */
enum {
    SPIN_NS = 50000,
    YIELD_NS_RANKS = 100000,
    YIELD_NS_DATA = 2000000,
    SLEEP_NS_LOW = 20000,
    SLEEP_NS_IDLE = 4000000,
    SLEEP_NS_BELL = 10000000,
    SLEEP_PART = 50 /* of the time that has passed so far */
};

/* MPI starts and ends once in a process. */
static struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A message under way. */
struct outgoing {
    struct outgoing *next;
    union mpi_handle request;
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
    bell_ring(j->bell);
}

/* With the lock: until the condition or the deadline.  False after the deadline. */
static bool sleep_until(struct job *j, pthread_cond_t *condition, uint64_t deadline_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                .tv_nsec = (long)(deadline_ns % 1000000000)};

    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(condition, &j->lock) == 0;
    return pthread_cond_timedwait(condition, &j->lock, &at) == 0;
}

/* ---- messages ---- */

void job_open_bell(struct job *j, uint32_t rank, uint64_t number)
{
    if (!j->bells[rank])
        j->bells[rank] = shared_open(number, sizeof *j->bell);
    else
        return;
    j->n_bells += j->bells[rank] != NULL;
}

void job_send(struct job *j, uint32_t to, const struct message *message)
{
    struct outgoing *out = malloc(sizeof *out);

    if (!out)
        return; /* the others run into their time limits */
    out->message = *message;
    if (j->mpi.abi->send(&j->mpi, &out->message, sizeof out->message, (int)to, TAG_MESSAGE,
                         &out->request)) {
        free(out);
        return;
    }
    out->next = j->outgoing;
    j->outgoing = out;
    bell_ring(j->bells[to]);
}

/* Frees what has been sent. */
static void sweep_outgoing(struct job *j)
{
    struct outgoing **at = &j->outgoing;

    while (*at) {
        struct outgoing *out = *at;
        bool done;

        if (!j->mpi.abi->test(&j->mpi, &out->request, 1, &done) && !done) {
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
    (void)j->mpi.abi->receive_from_any(&j->mpi, &j->received, sizeof j->received, TAG_MESSAGE,
                                       &j->receive);
}

/* True: there was one. */
static bool receive_message(struct job *j)
{
    struct frit_group *group = j->groups;
    bool done;

    if (j->mpi.abi->test(&j->mpi, &j->receive, 1, &done) || !done)
        return false;
    j->received.text[MESSAGE_TEXT - 1] = '\0';
    while (group && group_key(group) != j->received.key)
        group = group_next(group);
    if (j->received.kind == MESSAGE_END)
        j->n_ended++;
    else if (group)
        advance_receive(group, &j->received);
    else if (j->received.kind == MESSAGE_JOIN || j->received.kind == MESSAGE_LEAVE)
        keep_early(j, &j->received);
    post_receive(j);
    return true;
}

/* ---- driving ---- */

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

/* Looks at everything once.  True: something moved. */
static bool run_once(struct job *j)
{
    bool moved = false;

    take_incoming(j);
    while (receive_message(j))
        moved = true;
    j->expected = EXPECTED_NOTHING;
    for (struct frit_group *group = j->groups, *next; group; group = next) {
        enum expected expected = EXPECTED_NOTHING;

        next = group_next(group);
        moved |= advance_step(group, &expected);
        if (expected > j->expected)
            j->expected = expected;
    }
    sweep_outgoing(j);
    return moved;
}

/* Whatever comes next, there is a ring with it. */
static bool all_ring(const struct job *j)
{
    return j->n_bells == j->size - 1 && !j->outgoing;
}

/* How long to sleep after `still_ns` in which nothing moved; 0: not at all. */
static uint64_t sleep_ns(const struct job *j, uint64_t still_ns)
{
    const uint64_t yield_ns = j->expected == EXPECTED_DATA ? YIELD_NS_DATA : YIELD_NS_RANKS;
    const uint64_t ns = still_ns / SLEEP_PART;

    if (j->expected == EXPECTED_NOTHING)
        return all_ring(j) ? SLEEP_NS_BELL : SLEEP_NS_IDLE;
    if (all_ring(j))
        return j->spins && still_ns < SPIN_NS ? 0 : SLEEP_NS_BELL;
    if (still_ns < yield_ns)
        return 0;
    return ns < SLEEP_NS_LOW ? SLEEP_NS_LOW : ns > SLEEP_NS_IDLE ? SLEEP_NS_IDLE : ns;
}

/* Waits a little. */
static void rest(struct job *j, uint64_t still_ns, uint64_t left_ns)
{
    const uint64_t ns = sleep_ns(j, still_ns);

    if (ns)
        bell_sleep(j->bell, j->seen, ns < left_ns ? ns : left_ns);
    else if (!j->spins || still_ns > SPIN_NS)
        (void)sched_yield();
}

/* With the lock, on the thread that drives. */
static void drive(struct job *j, bool (*is_over)(const void *what), const void *what,
                  uint64_t deadline_ns)
{
    uint64_t still_since = 0, now = now_ns();

    while (!is_over(what) && now < deadline_ns) {
        j->seen = bell_rings(j->bell);
        pthread_mutex_unlock(&j->lock);
        if (run_once(j)) {
            still_since = 0;
        } else {
            still_since = still_since ? still_since : now;
            rest(j, now - still_since, deadline_ns - now);
        }
        now = now_ns();
        pthread_mutex_lock(&j->lock);
    }
}

bool job_try_drive(struct job *j)
{
    if (j->is_driven)
        return false;
    j->is_driven = true;
    return true;
}

void job_stop_driving(struct job *j)
{
    j->is_driven = false;
    j->left.has_work = j->groups || j->outgoing;
    j->left.seen = j->seen;
    j->left.all_ring = all_ring(j);
    if (j->n_waiting)
        pthread_cond_broadcast(&j->change);
    if (j->is_parked && j->left.has_work)
        pthread_cond_signal(&j->idle);
}

bool job_await(struct job *j, bool (*is_over)(const void *what), const void *what,
               uint64_t deadline_ns)
{
    bool in_time = true;

    while (!is_over(what) && in_time) {
        if (job_try_drive(j)) {
            drive(j, is_over, what, deadline_ns);
            job_stop_driving(j);
            j->n_driven_by_others++;
            in_time = deadline_ns == UINT64_MAX || now_ns() < deadline_ns;
            continue;
        }
        j->n_waiting++;
        if (j->is_driven_by_own)
            job_wake(j); /* which makes room */
        in_time = sleep_until(j, &j->change, deadline_ns);
        j->n_waiting--;
    }
    return is_over(what);
}

/* ---- the job's own thread ---- */

static bool is_relieved(const void *what)
{
    const struct job *j = what;

    return j->n_waiting || j->state == JOB_ENDING ||
           (j->expected == EXPECTED_NOTHING && !j->incoming);
}

/* With the lock, which it lets go of: sleeps until there may be something to do.  Where others
 * drive from time to time a ring is for them, and this thread looks only whether they have gone. */
static void idle(struct job *j)
{
    const bool others_drive = j->is_driven || j->n_waiting || j->n_driven_by_others;
    const uint32_t seen = j->left.seen;
    const uint64_t ns = j->left.all_ring ? SLEEP_NS_BELL : SLEEP_NS_IDLE;

    j->n_driven_by_others = 0;
    j->is_parked = !j->left.has_work && !j->incoming && !others_drive;
    if (j->is_parked || others_drive) {
        (void)sleep_until(j, &j->idle, j->is_parked ? UINT64_MAX : deadline_after(SLEEP_NS_IDLE));
        j->is_parked = false;
        return;
    }
    pthread_mutex_unlock(&j->lock);
    bell_sleep(j->bell, seen, ns);
    pthread_mutex_lock(&j->lock);
}

static void serve(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    while (j->state != JOB_ENDING) {
        if (!j->n_waiting && !j->n_driven_by_others && job_try_drive(j)) {
            j->is_driven_by_own = true;
            j->expected = EXPECTED_RANKS; /* looks at least once */
            drive(j, is_relieved, j, UINT64_MAX);
            j->is_driven_by_own = false;
            job_stop_driving(j);
        }
        if (j->state != JOB_ENDING)
            idle(j);
    }
    pthread_mutex_unlock(&j->lock);
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

/* By what the launcher has set: mpirun of Open MPI has variables of its own, that of MPICH those of
 * PMI, which srun sets for both. */
static const struct mpi_abi *launcher_abi(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || !getenv("PMI_RANK") ? &mpi_openmpi : &mpi_mpich;
}

/* Whether each rank of this host has a processor. */
static bool have_processors(uint32_t n_ranks)
{
    const char *of_openmpi = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const char *local = of_openmpi ? of_openmpi : getenv("MPI_LOCALNRANKS");
    cpu_set_t set;

    if (local)
        n_ranks = (uint32_t)strtoul(local, NULL, 10);
    return !sched_getaffinity(0, sizeof set, &set) && n_ranks <= (uint32_t)CPU_COUNT(&set);
}

static void set_state(struct job *j, enum job_state state)
{
    pthread_mutex_lock(&j->lock);
    j->state = state;
    pthread_cond_broadcast(&j->change);
    pthread_mutex_unlock(&j->lock);
}

/* All messages that others have sent are received.  MPI, too, ends when all processes do. */
static void drain(struct job *j)
{
    const struct message last = {.kind = MESSAGE_END};

    for (int r = 0; r < j->size; r++) {
        if (r != j->rank)
            job_send(j, (uint32_t)r, &last);
    }
    while (j->n_ended < j->size - 1 || j->outgoing) {
        const uint32_t seen = bell_rings(j->bell);

        if (!receive_message(j))
            bell_sleep(j->bell, seen, SLEEP_NS_IDLE);
        sweep_outgoing(j);
    }
}

static void *job_main(void *arg)
{
    struct job *j = arg;

    if (!j->mpi.abi->start(&j->mpi, &j->rank, &j->size, j->why, sizeof j->why)) {
        set_state(j, JOB_FAILED);
        return NULL;
    }
    j->spins = have_processors((uint32_t)j->size);
    post_receive(j);
    set_state(j, JOB_READY);
    serve(j);
    drain(j);
    shared_unlink(j->bell_number);
    j->mpi.abi->cancel(&j->mpi, &j->receive);
    j->mpi.abi->finish(&j->mpi);
    set_state(j, JOB_ENDED);
    return NULL;
}

/* A process that ends while it is in a group ends without MPI_Finalize, so that its launcher ends
 * the job.  Else it waits for the others, which may still be at work; if one of them fails, the
 * launcher ends this process, too. */
static void end_at_exit(void)
{
    pthread_mutex_lock(&job.lock);
    if (job.state == JOB_READY && !job.n_groups) {
        job.state = JOB_ENDING;
        pthread_cond_signal(&job.idle);
        job_wake(&job);
        while (job.state == JOB_ENDING && sleep_until(&job, &job.change, UINT64_MAX))
            ;
    }
    pthread_mutex_unlock(&job.lock);
}

/* With the lock. */
static void launch(struct job *j, const char *library, bool shares_memory)
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
    if (!mpi_load(&j->mpi, library, launcher_abi(), j->why, sizeof j->why))
        return;
    j->bell = shared_create(sizeof *j->bell, shares_memory, &j->bell_number);
    if (!j->bell) {
        snprintf(j->why, sizeof j->why, "no memory");
        return;
    }
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&j->change, &clock);
    pthread_cond_init(&j->idle, &clock);
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

struct job *job_start(const char *library, bool shares_memory, uint64_t deadline_ns, bool *is_late,
                      char *why, size_t why_bytes)
{
    struct job *result = NULL;

    pthread_mutex_lock(&job.lock);
    if (job.state == JOB_NEW)
        launch(&job, library, shares_memory);
    while (job.state == JOB_STARTING && sleep_until(&job, &job.change, deadline_ns))
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
