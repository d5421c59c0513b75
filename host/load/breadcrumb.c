/* SPDX-License-Identifier: Apache-2.0 */
/* Calls have places in a table.  Places of the file mirror those of the table. */
#include "load/breadcrumb.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "load/breadcrumb_file.h"

enum { PLACES = BREADCRUMB_CALLS, NS_PER_S = 1000000000, STACK_BYTES = 64 * 1024 };

static const uint64_t launch_ns = NS_PER_S;
static const uint64_t usual_ns = 10ull * NS_PER_S;
static atomic_uint_least64_t patience_ns = 10ull * NS_PER_S;

struct call {
    const char *path, *slot; /* path NULL: the place is free */
    enum breadcrumb_kind kind;
    pthread_t thread;
    uint64_t began, next_warning; /* 0: no more */
};

static struct {
    pthread_mutex_t life; /* of the first two */
    unsigned users;       /* registries */
    pthread_t thread;
    pthread_mutex_t lock;   /* of all that follows */
    pthread_cond_t changed; /* the thread has to look earlier, or to end */
    bool has_thread, ends;
    uint64_t wakes; /* when the thread looks again, 0: not by itself */
    struct call calls[PLACES];
    struct breadcrumb_file *file; /* NULL: there is none */
} all = {.life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static breadcrumb_sink *listener;
static void *listener_ctx;

void breadcrumb_set_sink(breadcrumb_sink *sink, void *ctx)
{
    listener = sink;
    listener_ctx = ctx;
}

void breadcrumb_set_patience(double seconds)
{
    patience_ns = seconds > 0 ? (uint64_t)(seconds * NS_PER_S) : usual_ns;
}

uint64_t breadcrumb_patience_ns(void)
{
    return patience_ns;
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* ---- calls that take long ---- */

/* Warns if it is time; returns when to look again, 0: never. */
static uint64_t look(unsigned place, uint64_t time)
{
    struct call *call = &all.calls[place];
    const uint64_t blamed_until = call->began + launch_ns;
    uint64_t next = 0;

    if (!call->path)
        return 0;
    if (call->kind == BREADCRUMB_LAUNCH && time >= blamed_until)
        breadcrumb_file_clear(all.file, place);
    else if (call->kind == BREADCRUMB_LAUNCH)
        next = blamed_until;
    if (time >= call->next_warning) {
        const uint64_t lasted = time - call->began;

        log_write(FRIT_LOG_WARN, "load", "plugin %s: %s has not returned for %.0f s", call->path,
                  call->slot, (double)lasted / NS_PER_S);
        call->next_warning = call->began + 2 * lasted;
    }
    return next && next < call->next_warning ? next : call->next_warning;
}

static void sleep_until(uint64_t when)
{
    const struct timespec time = {(time_t)(when / NS_PER_S), (long)(when % NS_PER_S)};

    all.wakes = when;
    if (when)
        (void)pthread_cond_timedwait(&all.changed, &all.lock, &time);
    else
        (void)pthread_cond_wait(&all.changed, &all.lock);
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&all.lock);
    while (!all.ends) {
        const uint64_t time = now();
        uint64_t first = 0;

        for (unsigned i = 0; i < PLACES; i++) {
            const uint64_t next = look(i, time);

            if (next && (!first || next < first))
                first = next;
        }
        sleep_until(first);
    }
    pthread_mutex_unlock(&all.lock);
    return NULL;
}

/* With all signals blocked.  Without the thread nobody warns. */
static void start_thread(void)
{
    pthread_condattr_t monotonic;
    pthread_attr_t attributes;
    sigset_t signals, before;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&all.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    all.ends = false;
    sigfillset(&signals);
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &signals, &before);
    all.has_thread = pthread_create(&all.thread, &attributes, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* ---- the process ---- */

static void begin(const char *folder)
{
    struct breadcrumb_file *file = folder ? breadcrumb_file_create(folder) : NULL;

    pthread_mutex_lock(&all.lock);
    all.file = file;
    start_thread();
    pthread_mutex_unlock(&all.lock);
}

static void end(void)
{
    bool has_thread;

    pthread_mutex_lock(&all.lock);
    breadcrumb_file_remove(all.file);
    all.file = NULL;
    has_thread = all.has_thread;
    all.has_thread = false;
    all.ends = true;
    if (has_thread)
        pthread_cond_signal(&all.changed);
    pthread_mutex_unlock(&all.lock);
    if (has_thread)
        pthread_join(all.thread, NULL);
    pthread_cond_destroy(&all.changed);
}

void breadcrumb_start(const char *folder)
{
    pthread_mutex_lock(&all.life);
    if (all.users++ == 0 && !listener)
        begin(folder);
    pthread_mutex_unlock(&all.life);
}

void breadcrumb_stop(void)
{
    pthread_mutex_lock(&all.life);
    if (--all.users == 0 && !listener)
        end();
    pthread_mutex_unlock(&all.life);
}

/* Threads that are in a call while the program ends in order, such as compiles in the background,
 * do not die of it; the call that ends the program does. */
static __attribute__((destructor)) void at_exit(void)
{
    if (pthread_mutex_trylock(&all.lock))
        return;
    for (unsigned i = 0; i < PLACES; i++)
        if (all.calls[i].path && !pthread_equal(all.calls[i].thread, pthread_self()))
            breadcrumb_file_clear(all.file, i);
    pthread_mutex_unlock(&all.lock);
}

/* ---- calls ---- */

static void wake_by(uint64_t when)
{
    if (all.has_thread && (!all.wakes || all.wakes > when))
        pthread_cond_signal(&all.changed);
}

unsigned breadcrumb_enter(const char *path, const char *slot, enum breadcrumb_kind kind)
{
    const uint64_t began = now();
    unsigned place = 0;

    if (listener)
        listener(listener_ctx, path, slot, true);
    pthread_mutex_lock(&all.lock);
    while (place < PLACES && all.calls[place].path)
        place++;
    if (place < PLACES) {
        all.calls[place] =
            (struct call){path, slot, kind, pthread_self(), began, began + patience_ns};
        if (kind != BREADCRUMB_WATCHED)
            breadcrumb_file_set(all.file, place, path, slot);
        wake_by(began + (kind == BREADCRUMB_LAUNCH ? launch_ns : patience_ns));
    }
    pthread_mutex_unlock(&all.lock);
    return place < PLACES ? place : BREADCRUMB_NONE;
}

void breadcrumb_leave(unsigned place)
{
    struct call call;

    if (place == BREADCRUMB_NONE)
        return;
    pthread_mutex_lock(&all.lock);
    call = all.calls[place];
    if (call.kind != BREADCRUMB_WATCHED)
        breadcrumb_file_clear(all.file, place);
    all.calls[place].path = NULL;
    pthread_mutex_unlock(&all.lock);
    if (listener)
        listener(listener_ctx, call.path, call.slot, false);
}
