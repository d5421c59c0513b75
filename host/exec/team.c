/* SPDX-License-Identifier: Apache-2.0 */
/* A call opens a round (an odd number), works, and closes it (the next even number).  The remainder
 * of a range is one atomic word: its own thread takes units from the front, other threads from the
 * back.  When no units are left the caller closes the round and waits until no thread is inside.  A
 * thread increments `inside` before it checks whether its round is open, so either the caller sees
 * the thread, or the thread sees that the round is closed.
 *
 * Threads form a tree, the caller at its root: each one wakes those below it that sleep, so that
 * waking many costs nobody much, and only as many as the call uses. */
#include "exec/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

enum { SPIN_NS = 30000, SPINS_PER_CLOCK = 64, FRACTION = 16, BRANCHES = 4 };

/* A range of units of one grain: low half: the first unit not taken, high half: the end. */
struct range {
    _Alignas(64) atomic_uint_least64_t left;
};

/* Where a thread sleeps. */
struct bed {
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool sleeps;
};

struct team_job {
    team_run run;
    void *ctx;
    uint64_t count, grain;
    uint32_t n; /* number of threads */
};

static struct team {
    pthread_mutex_t lock; /* guards users */
    uint32_t users;
    uint32_t n_threads; /* changed only by the call that holds the team, or by the last user */
    pthread_t threads[TEAM_MAX - 1];
    atomic_bool busy;
    atomic_bool ending;
    atomic_uint inside;          /* threads that may access the job */
    atomic_uint lent;            /* processors that threads of lower priority use */
    atomic_uint_least64_t round; /* odd: a call is running */
    struct team_job job;         /* constant while the round is open or threads are inside */
    struct range ranges[TEAM_MAX];
    struct bed beds[TEAM_MAX]; /* of threads that were started */
} team = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint32_t team_processors(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set can hold */
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

/* Takes a fraction of the remaining units, at least one. */
static bool take(struct range *range, bool front, uint64_t *first, uint64_t *end)
{
    uint64_t word = atomic_load_explicit(&range->left, memory_order_relaxed), rest;

    do {
        uint64_t n_taken;

        *first = word & UINT32_MAX;
        *end = word >> 32;
        if (*first >= *end)
            return false;
        n_taken = 1 + (*end - *first - 1) / FRACTION;
        rest = front ? range_word(*first + n_taken, *end) : range_word(*first, *end - n_taken);
        if (front)
            *end = *first + n_taken;
        else
            *first = *end - n_taken;
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

/* Waits for a round other than `seen`; returns 0 if the thread is to end. */
static uint64_t sleep_until(uint64_t seen, struct bed *bed)
{
    uint64_t round;

    pthread_mutex_lock(&bed->lock);
    atomic_store(&bed->sleeps, true);
    while (!is_new(round = atomic_load(&team.round), seen) && !atomic_load(&team.ending))
        pthread_cond_wait(&bed->wake, &bed->lock);
    atomic_store(&bed->sleeps, false);
    pthread_mutex_unlock(&bed->lock);
    return is_new(round, seen) ? round : 0;
}

/* A thread sets `sleeps` before it looks at the round, which the waking one has opened before it
 * looks at `sleeps`. */
static void wake(struct bed *bed)
{
    if (!atomic_load(&bed->sleeps))
        return;
    pthread_mutex_lock(&bed->lock);
    pthread_cond_signal(&bed->wake);
    pthread_mutex_unlock(&bed->lock);
}

/* Those below a thread, of n. */
static void wake_branches(uint32_t thread, uint32_t n)
{
    for (uint32_t i = 1; i <= BRANCHES && thread * BRANCHES + i < n; i++)
        wake(&team.beds[thread * BRANCHES + i]);
}

/* The last threads lend theirs. */
static bool lends_processor(uint32_t thread, uint32_t processors)
{
    return thread + atomic_load_explicit(&team.lent, memory_order_relaxed) >= processors;
}

static uint64_t next_round(uint64_t seen, uint32_t thread, uint32_t processors)
{
    uint64_t end = now_ns() + SPIN_NS;

    while (!lends_processor(thread, processors) && now_ns() < end) {
        for (int i = 0; i < SPINS_PER_CLOCK; i++) {
            uint64_t round = atomic_load(&team.round);

            if (is_new(round, seen))
                return round;
            relax();
        }
    }
    return sleep_until(seen, &team.beds[thread]);
}

static void *work(void *ctx)
{
    const uint32_t thread = (uint32_t)(uintptr_t)ctx, processors = team_processors();
    uint64_t round = 0;

    while ((round = next_round(round, thread, processors))) {
        atomic_fetch_add(&team.inside, 1);
        if (atomic_load(&team.round) == round && thread < team.job.n) {
            wake_branches(thread, team.job.n);
            participate(thread);
        }
        atomic_fetch_sub(&team.inside, 1);
    }
    return NULL;
}

/* Starts threads until there are `n`, as far as possible. */
static void start(uint32_t n)
{
    while (team.n_threads < n) {
        struct bed *bed = &team.beds[team.n_threads + 1];

        (void)pthread_mutex_init(&bed->lock, NULL);
        (void)pthread_cond_init(&bed->wake, NULL);
        if (thread_start(&team.threads[team.n_threads], work,
                         (void *)(uintptr_t)(team.n_threads + 1)))
            return;
        team.n_threads++;
    }
}

static void end_threads(void)
{
    atomic_store(&team.ending, true);
    for (uint32_t i = 1; i <= team.n_threads; i++)
        wake(&team.beds[i]);
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

void team_lend_processor(void)
{
    atomic_fetch_add(&team.lent, 1);
}

void team_return_processor(void)
{
    atomic_fetch_sub(&team.lent, 1);
}

/* ---- calls ---- */

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
    uint64_t most = (count + UINT32_MAX - 1) / UINT32_MAX; /* unit numbers have 32 bits */
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
    atomic_fetch_add(&team.round, 1);
    wake_branches(0, (uint32_t)n);
    participate(0);
    close_round();
    atomic_store(&team.busy, false);
}
