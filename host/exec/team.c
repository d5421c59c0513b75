/* SPDX-License-Identifier: Apache-2.0 */
/* A call opens a round (an odd number), works, and closes it (the next even one).  What is left of
 * a range is one word, taken from the front by its thread and from the back by the others.  When
 * the caller finds nothing left anywhere it closes the round and waits until no thread is inside:
 * a thread counts itself in before it looks whether its round is still open, so that the caller
 * either sees it or it sees the end. */
#include "exec/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_NS = 30000, SPINS_PER_LOOK = 64, SHARE = 16 };

/* Units of one grain: the first not taken in the low half, the end in the high half. */
struct range {
    _Alignas(64) atomic_uint_least64_t left;
};

struct team_job {
    team_run run;
    void *ctx;
    uint64_t count, grain;
    uint32_t n; /* threads */
};

static struct team {
    pthread_mutex_t lock; /* of users and sleep */
    pthread_cond_t wake;
    uint32_t users;
    uint32_t n_threads; /* changed by the call that has the team, or by the last user */
    pthread_t threads[TEAM_MAX - 1];
    atomic_bool busy;
    atomic_bool ending;
    atomic_uint sleepers;
    atomic_uint inside;          /* threads that look at the job */
    atomic_uint_least64_t round; /* odd: open */
    struct team_job job;         /* constant while the round is open or a thread inside */
    struct range ranges[TEAM_MAX];
} team = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

uint32_t team_processors(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more than fit the set */
    return online > 0 ? (uint32_t)online : 1;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- ranges ---- */

static uint64_t range_word(uint64_t first, uint64_t end)
{
    return first | end << 32;
}

/* Takes a share of what is left, at least one unit. */
static bool take(struct range *range, bool front, uint64_t *first, uint64_t *end)
{
    uint64_t word = atomic_load_explicit(&range->left, memory_order_relaxed), rest;

    do {
        uint64_t share;

        *first = word & UINT32_MAX;
        *end = word >> 32;
        if (*first >= *end)
            return false;
        share = 1 + (*end - *first - 1) / SHARE;
        rest = front ? range_word(*first + share, *end) : range_word(*first, *end - share);
        if (front)
            *end = *first + share;
        else
            *first = *end - share;
    } while (!atomic_compare_exchange_weak(&range->left, &word, rest));
    return true;
}

static void run_units(uint64_t first, uint64_t end, uint32_t thread)
{
    const struct team_job *job = &team.job;
    uint64_t last = end * job->grain;

    job->run(job->ctx, first * job->grain, last < job->count ? last : job->count, thread);
}

static void participate(uint32_t thread)
{
    uint32_t n = team.job.n;
    uint64_t first, end;

    while (take(&team.ranges[thread], true, &first, &end))
        run_units(first, end, thread);
    for (uint32_t i = 1; i < n; i++)
        while (take(&team.ranges[(thread + i) % n], false, &first, &end))
            run_units(first, end, thread);
}

/* ---- threads ---- */

static bool is_new(uint64_t round, uint64_t seen)
{
    return round % 2 && round != seen;
}

/* A round that was not seen yet, 0: it is time to end. */
static uint64_t sleep_until(uint64_t seen)
{
    uint64_t round;

    pthread_mutex_lock(&team.lock);
    atomic_fetch_add(&team.sleepers, 1);
    while (!is_new(round = atomic_load(&team.round), seen) && !atomic_load(&team.ending))
        pthread_cond_wait(&team.wake, &team.lock);
    atomic_fetch_sub(&team.sleepers, 1);
    pthread_mutex_unlock(&team.lock);
    return is_new(round, seen) ? round : 0;
}

static uint64_t next_round(uint64_t seen)
{
    uint64_t end = now_ns() + SPIN_NS;

    do {
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            uint64_t round = atomic_load(&team.round);

            if (is_new(round, seen))
                return round;
            relax();
        }
    } while (now_ns() < end);
    return sleep_until(seen);
}

static void *work(void *ctx)
{
    const uint32_t thread = (uint32_t)(uintptr_t)ctx;
    uint64_t round = 0;

    while ((round = next_round(round))) {
        atomic_fetch_add(&team.inside, 1);
        if (atomic_load(&team.round) == round && thread < team.job.n)
            participate(thread);
        atomic_fetch_sub(&team.inside, 1);
    }
    return NULL;
}

/* As many threads as there can be, up to `n`.  Signals are for the threads of the program. */
static void start(uint32_t n)
{
    sigset_t all, before;

    if (team.n_threads >= n)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (team.n_threads < n && pthread_create(&team.threads[team.n_threads], NULL, work,
                                                (void *)(uintptr_t)(team.n_threads + 1)) == 0)
        team.n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_threads(void)
{
    pthread_mutex_lock(&team.lock);
    atomic_store(&team.ending, true);
    pthread_cond_broadcast(&team.wake);
    pthread_mutex_unlock(&team.lock);
    while (team.n_threads > 0)
        pthread_join(team.threads[--team.n_threads], NULL);
    atomic_store(&team.ending, false);
}

void team_join(void)
{
    pthread_mutex_lock(&team.lock);
    team.users++;
    pthread_mutex_unlock(&team.lock);
}

void team_leave(void)
{
    bool last;

    while (atomic_exchange(&team.busy, true))
        sched_yield();
    pthread_mutex_lock(&team.lock);
    last = --team.users == 0;
    pthread_mutex_unlock(&team.lock);
    if (last)
        end_threads();
    atomic_store(&team.busy, false);
}

/* ---- calls ---- */

static void open_round(void)
{
    atomic_fetch_add(&team.round, 1);
    if (atomic_load(&team.sleepers) == 0)
        return;
    pthread_mutex_lock(&team.lock);
    pthread_cond_broadcast(&team.wake);
    pthread_mutex_unlock(&team.lock);
}

static void close_round(void)
{
    uint64_t end = now_ns() + SPIN_NS;

    atomic_fetch_add(&team.round, 1);
    while (atomic_load(&team.inside)) {
        relax();
        if (now_ns() > end)
            sched_yield();
    }
}

void team_for(uint32_t threads, uint64_t count, uint64_t grain, team_run run, void *ctx)
{
    uint64_t most = (count + UINT32_MAX - 1) / UINT32_MAX; /* units are counted in 32 bits */
    uint64_t units, n;

    if (count == 0)
        return;
    grain = grain > most ? grain : most;
    units = (count - 1) / grain + 1;
    n = threads < TEAM_MAX ? threads : TEAM_MAX;
    n = units < n ? units : n;
    if (n < 2 || atomic_exchange(&team.busy, true)) {
        run(ctx, 0, count, 0);
        return;
    }
    start((uint32_t)n - 1);
    n = team.n_threads + 1 < n ? team.n_threads + 1 : n;
    team.job = (struct team_job){run, ctx, count, grain, (uint32_t)n};
    for (uint64_t i = 0; i < n; i++)
        atomic_store_explicit(&team.ranges[i].left, range_word(units * i / n, units * (i + 1) / n),
                              memory_order_relaxed);
    open_round();
    participate(0);
    close_round();
    atomic_store(&team.busy, false);
}
