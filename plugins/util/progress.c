/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A fault is noted under the lock under which its value is reached, so that nobody sees a value
 * reached without what failed on the way.  Faults are kept until a caller knows of them; one more
 * than there is room for widens the last. */
#define _POSIX_C_SOURCE 200809L /* clocks, for whoever compiles this as plain C17 */

#include "util/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

void progress_init(struct progress *progress, const struct plug *plug)
{
    pthread_condattr_t clock;

    memset(progress, 0, sizeof *progress);
    progress->plug = plug;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->change, &clock);
    pthread_condattr_destroy(&clock);
}

void progress_fini(struct progress *progress)
{
    pthread_cond_destroy(&progress->change);
    pthread_mutex_destroy(&progress->lock);
}

/* ---- going on ---- */

/* Inside the lock, as all below that are static. */
static void note(struct progress *progress, uint64_t first, uint64_t last,
                 const struct fault *fault)
{
    struct fault *own = &progress->faults[progress->n_faults];

    if (progress->n_faults == PROGRESS_FAULTS) {
        own--;
        own->command = FRIT_ALL_COMMANDS;
    } else {
        progress->n_faults++;
        *own = *fault;
        own->first = first;
        if (first != last || !own->command)
            own->command = FRIT_ALL_COMMANDS;
    }
    own->last = last;
}

static void reach(struct progress *progress, uint64_t value, const struct fault *fault)
{
    if (fault)
        note(progress, progress->reached + 1, value, fault);
    progress->reached = value;
    pthread_cond_broadcast(&progress->change);
}

uint64_t progress_advance(struct progress *progress, const struct fault *fault)
{
    uint64_t value;

    pthread_mutex_lock(&progress->lock);
    value = ++progress->issued;
    reach(progress, value, fault);
    pthread_mutex_unlock(&progress->lock);
    return value;
}

/* Once set, the loss stays as it is. */
static frit_status fail_lost(const struct progress *progress, frit_err *err)
{
    plug_copy_err(progress->plug, err, &progress->lost.err);
    return FRIT_DEVICE_LOST;
}

frit_status progress_check_lost(struct progress *progress, frit_err *err)
{
    bool is_lost;

    pthread_mutex_lock(&progress->lock);
    is_lost = progress->is_lost;
    pthread_mutex_unlock(&progress->lock);
    return is_lost ? fail_lost(progress, err) : FRIT_OK;
}

frit_status progress_issue(struct progress *progress, uint64_t *value, frit_err *err)
{
    bool is_lost;

    pthread_mutex_lock(&progress->lock);
    is_lost = progress->is_lost;
    if (!is_lost)
        *value = ++progress->issued;
    pthread_mutex_unlock(&progress->lock);
    return is_lost ? fail_lost(progress, err) : FRIT_OK;
}

void progress_fail(struct progress *progress, uint64_t value, const struct fault *fault)
{
    pthread_mutex_lock(&progress->lock);
    note(progress, value, value, fault);
    pthread_mutex_unlock(&progress->lock);
}

void progress_reach(struct progress *progress, uint64_t value, const struct fault *fault)
{
    pthread_mutex_lock(&progress->lock);
    if (!progress->is_lost && value > progress->reached)
        reach(progress, value, fault);
    pthread_mutex_unlock(&progress->lock);
}

void progress_lose(struct progress *progress, const struct fault *fault)
{
    pthread_mutex_lock(&progress->lock);
    if (!progress->is_lost) {
        progress->is_lost = true;
        progress->lost = *fault;
        progress->lost.err.status = FRIT_DEVICE_LOST;
        progress->lost.command = FRIT_ALL_COMMANDS;
        pthread_cond_broadcast(&progress->change);
    }
    pthread_mutex_unlock(&progress->lock);
}

/* ---- telling ---- */

/* What a caller knows: all commands before `value`, and those of it up to `command`. */
struct place {
    uint64_t value;
    uint32_t command;
};

static struct place known_of(const frit_failure *failure)
{
    return (struct place){failure->value, failure->command ? failure->command : FRIT_ALL_COMMANDS};
}

static void forget(struct progress *progress, struct place known)
{
    const struct fault *fault = progress->faults, *end = fault + progress->n_faults;

    while (fault < end && (fault->last < known.value ||
                           (fault->last == known.value && fault->command <= known.command)))
        fault++;
    progress->n_faults = (uint32_t)(end - fault);
    memmove(progress->faults, fault, progress->n_faults * sizeof *fault);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Fills `failure` with the first fault after the command that it names, up to `value`, and `out`
 * with the fault's error.  Neither is written if there is none.  Faults of values that are not
 * reached yet are kept for later. */
static void report(struct progress *progress, uint64_t value, frit_failure *failure, frit_err *out)
{
    const struct place known = known_of(failure);
    const struct fault *fault = &progress->faults[0];
    uint64_t first = known.command == FRIT_ALL_COMMANDS ? known.value + 1 : known.value;

    forget(progress, known);
    if (progress->n_faults > 0 && larger(first, fault->first) <= progress->reached) {
        first = larger(first, fault->first);
    } else if (progress->is_lost) {
        fault = &progress->lost;
        first = larger(first, progress->reached + 1);
    } else {
        return;
    }
    if (first > value)
        return;
    failure->status = fault->err.status;
    failure->value = first;
    failure->cookie = fault->cookie;
    failure->command = fault->command;
    *out = fault->err;
}

/* ---- waiting ---- */

frit_status progress_check_queue(const struct progress *progress, const frit_queue *queue,
                                 frit_err *err)
{
    return queue ? plug_fail(progress->plug, err, FRIT_INVALID,
                             "a queue that was never made; there is the first one, NULL, alone")
                 : FRIT_OK;
}

static frit_status check(const struct progress *progress, uint64_t value, frit_err *err)
{
    if (value <= progress->issued)
        return FRIT_OK;
    return plug_fail(progress->plug, err, FRIT_INVALID,
                     "wait for value %" PRIu64 ", but the queue is at %" PRIu64, value,
                     progress->issued);
}

frit_status progress_check_value(struct progress *progress, uint64_t value, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&progress->lock);
    status = check(progress, value, err);
    pthread_mutex_unlock(&progress->lock);
    return status;
}

frit_status progress_check(struct progress *progress, const frit_point *waits, uint32_t n,
                           frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n && !status; i++) {
        status = progress_check_queue(progress, waits[i].queue, err);
        if (!status)
            status = progress_check_value(progress, waits[i].value, err);
    }
    return status;
}

static struct timespec deadline_after(uint64_t ns)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ns / 1000000000);
    at.tv_nsec += (long)(ns % 1000000000);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static frit_status await_inside(struct progress *progress, uint64_t value, uint64_t timeout_ns)
{
    const bool forever = timeout_ns > INT64_MAX;
    struct timespec deadline = {0};
    int late = timeout_ns == 0 ? ETIMEDOUT : 0;

    if (progress->reached < value && !late && !forever)
        deadline = deadline_after(timeout_ns);
    while (progress->reached < value && !progress->is_lost && !late)
        late = forever ? pthread_cond_wait(&progress->change, &progress->lock)
                       : pthread_cond_timedwait(&progress->change, &progress->lock, &deadline);
    if (progress->reached >= value)
        return FRIT_OK;
    return progress->is_lost ? FRIT_DEVICE_LOST : FRIT_TIMEOUT;
}

frit_status progress_await(struct progress *progress, uint64_t value)
{
    frit_status status;

    pthread_mutex_lock(&progress->lock);
    status = await_inside(progress, value, UINT64_MAX);
    pthread_mutex_unlock(&progress->lock);
    return status;
}

frit_status progress_wait(struct progress *progress, uint64_t value, uint64_t timeout_ns,
                          frit_failure *failure, frit_err *err)
{
    const struct plug *plug = progress->plug;
    frit_err reason;
    frit_status status;

    reason.status = failure->status = FRIT_OK;
    pthread_mutex_lock(&progress->lock);
    status = check(progress, value, err);
    if (!status) {
        status = await_inside(progress, value, timeout_ns);
        report(progress, value, failure, &reason);
    }
    if (status == FRIT_DEVICE_LOST)
        reason = progress->lost.err;
    pthread_mutex_unlock(&progress->lock);
    if (status == FRIT_TIMEOUT)
        plug_fail(plug, err, status, "value %" PRIu64 " is not reached yet", value);
    if (reason.status < 0)
        (void)plug->core->err_set(plug->host->self, err, reason.status, reason.native_code,
                                  (frit_str){reason.text, strlen(reason.text)});
    return status;
}
