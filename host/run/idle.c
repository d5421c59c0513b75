/* SPDX-License-Identifier: Apache-2.0 */
#include "run/idle.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "device/device.h"
#include "device/profile.h"
#include "device/queue.h"
#include "exec/worker.h"
#include "record/binding.h"
#include "run/limits.h"
#include "run/measure.h"
#include "run/trial_run.h"
#include "run/trial_sets.h"

enum {
    CALM_NS = 10000000,      /* in which nothing was submitted */
    MAX_BYTES = 64 << 20,    /* of operands of contests that wait */
    MAX_LAUNCH_NS = 5000000, /* others may have to wait for a launch that runs */
    FEW = 3                  /* samples, which may have been disturbed */
};

struct idle_contest {
    struct idle_contest *next;
    struct measure *measure;
    uint64_t bytes, spent_ns;
};

struct idle_tuner {
    frit_device *device;
    struct worker *worker;
    pthread_mutex_t step;  /* held during a step and the end of its contest; outside of `lock` */
    pthread_mutex_t lock;  /* of the rest */
    pthread_cond_t change; /* of `ending` */
    struct idle_contest *first, **last;
    uint64_t bytes;
    uint64_t n_submits; /* of the device, when it was last looked at */
    bool working, ending;
};

/* ---- contests ---- */

static uint64_t bytes_of(const struct measure *m)
{
    const struct launch_trial *trial = m->trial;

    return trial_set_bytes(trial) * (trial->n_sets ? trial->n_sets : 1);
}

/* Whether others would wait too long for a launch that is timed. */
static bool takes_long(const struct measure *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n; i++)
        n += m->contestants[i].n_samples;
    return n > FEW && m->contest.best_ns > MAX_LAUNCH_NS;
}

static void end_contest(struct idle_contest *contest)
{
    measure_destroy(contest->measure);
    free(contest);
}

/* Inside the lock. */
static struct idle_contest *take_first(struct idle_tuner *t)
{
    struct idle_contest *first = t->first;

    t->first = first->next;
    if (!t->first)
        t->last = &t->first;
    t->bytes -= first->bytes;
    return first;
}

/* ---- the device is idle ---- */

/* Inside the lock: whether nothing was submitted for a moment, and nobody else measures. */
static bool is_calm(struct idle_tuner *t)
{
    const uint64_t n_submits = device_submits(t->device);
    const bool calm = n_submits == t->n_submits;

    t->n_submits = n_submits;
    return calm && !atomic_load(&t->device->n_measuring) && device_is_idle(t->device) &&
           !profile_is_on(t->device->profile);
}

/* Inside the lock, which is released meanwhile. */
static void rest(struct idle_tuner *t)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CALM_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&t->change, &t->lock, &until);
}

/* ---- steps ---- */

/* Outside of the lock.  False: the contest is over, or has had its time. */
static bool take_step(struct idle_tuner *t, struct idle_contest *contest)
{
    const uint64_t limit_ns = t->device->config.tune.idle_ms * 1000000, begun = clock_ns();
    struct measure *m = contest->measure;
    const bool more = measure_step(m);

    contest->spent_ns += clock_ns() - begun;
    if (more && contest->spent_ns < limit_ns && !takes_long(m))
        return true;
    limits_review(m);
    measure_keep(m, !more);
    return false;
}

/* Inside the lock, which is released meanwhile. */
static void go_on(struct idle_tuner *t)
{
    struct idle_contest *contest = t->first;
    bool more;

    pthread_mutex_unlock(&t->lock);
    pthread_mutex_lock(&t->step);
    more = take_step(t, contest);
    pthread_mutex_lock(&t->lock);
    t->n_submits = contest->measure->n_submits;
    if (!more)
        end_contest(take_first(t));
    pthread_mutex_unlock(&t->step);
}

static void work(void *ctx)
{
    struct idle_tuner *t = ctx;

    thread_set_executing(true);
    pthread_mutex_lock(&t->lock);
    while (t->first && !t->ending) {
        if (is_calm(t))
            go_on(t);
        else
            rest(t);
    }
    t->working = false;
    pthread_mutex_unlock(&t->lock);
    thread_set_executing(false);
}

/* ---- life ---- */

static void destroy(struct idle_tuner *t)
{
    worker_destroy(t->worker);
    while (t->first)
        end_contest(take_first(t));
    pthread_cond_destroy(&t->change);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->step);
    free(t);
}

static struct idle_tuner *create(frit_device *device)
{
    struct idle_tuner *t = calloc(1, sizeof(*t));
    pthread_condattr_t attributes;

    if (!t)
        return NULL;
    t->device = device;
    t->last = &t->first;
    pthread_mutex_init(&t->step, NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&t->change, &attributes);
    pthread_condattr_destroy(&attributes);
    if (worker_create(&t->worker, NULL)) {
        destroy(t);
        return NULL;
    }
    return t;
}

/* That of the device, made by the first caller; NULL: no memory. */
static struct idle_tuner *tuner_of(frit_device *device)
{
    struct idle_tuner *there = atomic_load(&device->idle), *made;

    if (there)
        return there;
    made = create(device);
    if (made && !atomic_compare_exchange_strong(&device->idle, &there, made)) {
        destroy(made);
        made = there;
    }
    return made;
}

bool idle_add(frit_device *device, struct measure *m)
{
    struct idle_contest *contest;
    struct idle_tuner *t;
    bool added;

    if (!device->config.tune.idle_ms || takes_long(m) || !(t = tuner_of(device)) ||
        !(contest = calloc(1, sizeof(*contest))))
        return false;
    *contest = (struct idle_contest){.measure = m, .bytes = bytes_of(m)};
    pthread_mutex_lock(&t->lock);
    added = t->bytes + contest->bytes <= MAX_BYTES &&
            (t->working || !worker_spawn(t->worker, work, t, NULL));
    if (added) {
        m->is_shared = t->working = true;
        *t->last = contest;
        t->last = &contest->next;
        t->bytes += contest->bytes;
    }
    pthread_mutex_unlock(&t->lock);
    if (!added)
        free(contest);
    return added;
}

struct idle_tuner *idle_stop(frit_device *device)
{
    struct idle_tuner *t = atomic_load(&device->idle);

    if (t)
        pthread_mutex_lock(&t->step);
    return t;
}

void idle_go_on(struct idle_tuner *stopped)
{
    if (stopped)
        pthread_mutex_unlock(&stopped->step);
}

void idle_memory(struct idle_tuner *stopped, uint64_t *n_buffers, uint64_t *n_bytes)
{
    *n_buffers = *n_bytes = 0;
    if (!stopped)
        return;
    pthread_mutex_lock(&stopped->lock);
    for (const struct idle_contest *c = stopped->first; c; c = c->next) {
        const struct launch_trial *trial = c->measure->trial;

        *n_bytes += bytes_of(c->measure);
        for (uint32_t m = 0; m < trial->n_memories; m++)
            *n_buffers += trial->memories[m].copies ? trial->n_sets : 1;
    }
    pthread_mutex_unlock(&stopped->lock);
}

void idle_close(frit_device *device)
{
    struct idle_tuner *t = atomic_load(&device->idle);

    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_signal(&t->change);
    pthread_mutex_unlock(&t->lock);
    destroy(t);
    atomic_store(&device->idle, NULL);
}
