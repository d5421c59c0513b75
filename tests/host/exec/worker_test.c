/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs run once, in order, in one thread that is not the caller's and hears no signal. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "exec/worker.h"
#include "failing_alloc.h"
#include "threads.h"

enum { JOBS = 1000, SPAWNERS = 4 };

struct log {
    struct worker *worker;
    uint32_t seen[SPAWNERS * JOBS]; /* written by the worker alone */
    uint32_t count;
};

struct note {
    struct log *log;
    uint32_t number;
};

static void write_note(void *ctx)
{
    const struct note *note = ctx;

    note->log->seen[note->log->count++] = note->number;
}

static struct worker *create(void)
{
    struct worker *worker;

    assert_int_equal(worker_create(&worker, NULL), FRIT_OK);
    return worker;
}

static void spawn(struct worker *worker, void (*fn)(void *ctx), void *ctx)
{
    assert_int_equal(worker_spawn(worker, fn, ctx, NULL), FRIT_OK);
}

static void test_in_order(void **state)
{
    struct log *log = calloc(1, sizeof(*log));
    struct note notes[JOBS];
    struct worker *worker = create();

    (void)state;
    assert_non_null(log);
    for (uint32_t i = 0; i < JOBS; i++) {
        notes[i] = (struct note){log, i};
        spawn(worker, write_note, &notes[i]);
    }
    worker_wait(worker);
    assert_int_equal(log->count, JOBS);
    for (uint32_t i = 0; i < JOBS; i++)
        assert_int_equal(log->seen[i], i);
    worker_destroy(worker);
    free(log);
}

struct late {
    atomic_bool begins;
    atomic_uint done;
};

/* Late enough for a destroy that does not wait to be seen. */
static void count_late(void *ctx)
{
    struct late *late = ctx;

    while (!atomic_load(&late->begins))
        usleep(100);
    usleep(20000);
    atomic_fetch_add(&late->done, 1);
}

static void test_destroy_waits(void **state)
{
    struct worker *worker = create();
    struct late late = {0};

    (void)state;
    spawn(worker, count_late, &late);
    spawn(worker, count_late, &late);
    atomic_store(&late.begins, true);
    worker_destroy(worker);
    assert_int_equal(atomic_load(&late.done), 2);
}

struct spawner {
    pthread_t thread;
    struct worker *worker;
    struct note notes[JOBS];
};

static void *spawn_all(void *ctx)
{
    struct spawner *spawner = ctx;

    for (uint32_t i = 0; i < JOBS; i++)
        spawn(spawner->worker, write_note, &spawner->notes[i]);
    return NULL;
}

/* Each spawner's jobs stay in its order, none is lost. */
static void test_many_spawners(void **state)
{
    struct spawner *spawners = calloc(SPAWNERS, sizeof(*spawners));
    struct log *log = calloc(1, sizeof(*log));
    uint32_t next[SPAWNERS] = {0};
    struct worker *worker = create();

    (void)state;
    assert_true(spawners && log);
    for (uint32_t s = 0; s < SPAWNERS; s++) {
        spawners[s].worker = worker;
        for (uint32_t i = 0; i < JOBS; i++)
            spawners[s].notes[i] = (struct note){log, s * JOBS + i};
        assert_int_equal(pthread_create(&spawners[s].thread, NULL, spawn_all, &spawners[s]), 0);
    }
    for (uint32_t s = 0; s < SPAWNERS; s++)
        pthread_join(spawners[s].thread, NULL);
    worker_wait(worker);
    assert_int_equal(log->count, SPAWNERS * JOBS);
    for (uint32_t i = 0; i < log->count; i++) {
        uint32_t s = log->seen[i] / JOBS;

        assert_int_equal(log->seen[i] % JOBS, next[s]++);
    }
    worker_destroy(worker);
    free(spawners);
    free(log);
}

static void spawn_another(void *ctx)
{
    const struct note *note = ctx;

    write_note(ctx);
    spawn(note->log->worker, write_note, ctx);
}

static void test_job_spawns(void **state)
{
    struct log *log = calloc(1, sizeof(*log));
    struct note note = {log, 7};

    (void)state;
    assert_non_null(log);
    log->worker = create();
    spawn(log->worker, spawn_another, &note);
    worker_wait(log->worker);
    assert_int_equal(log->count, 2);
    worker_destroy(log->worker);
    free(log);
}

struct context {
    pthread_t thread;
    sigset_t mask;
};

static void look_around(void *ctx)
{
    struct context *context = ctx;

    context->thread = pthread_self();
    pthread_sigmask(SIG_BLOCK, NULL, &context->mask);
}

static void test_thread(void **state)
{
    const uint32_t before = count_threads();
    struct worker *worker = create();
    struct context context[2];
    sigset_t mine;

    (void)state;
    assert_int_equal(count_threads(), before); /* none without a job */
    spawn(worker, look_around, &context[0]);
    spawn(worker, look_around, &context[1]);
    worker_wait(worker);
    assert_int_equal(count_threads(), before + 1);
    assert_true(pthread_equal(context[0].thread, context[1].thread));
    assert_false(pthread_equal(context[0].thread, pthread_self()));
    assert_int_equal(sigismember(&context[0].mask, SIGTERM), 1);
    assert_int_equal(sigismember(&context[0].mask, SIGPROF), 1);
    assert_int_equal(sigismember(&context[0].mask, SIGSEGV), 0); /* a fault of its own */
    pthread_sigmask(SIG_BLOCK, NULL, &mine);
    assert_int_equal(sigismember(&mine, SIGTERM), 0);
    worker_destroy(worker);
}

static void test_no_memory(void **state)
{
    struct worker *worker;
    struct log *log = calloc(1, sizeof(*log));
    struct note note = {log, 1};

    (void)state;
    assert_non_null(log);
    failing_alloc_arm(0);
    assert_int_equal(worker_create(&worker, NULL), FRIT_NO_HOST_MEMORY);
    assert_true(failing_alloc_disarm());
    assert_null(worker);
    worker = create();
    failing_alloc_arm(0);
    assert_int_equal(worker_spawn(worker, write_note, &note, NULL), FRIT_NO_HOST_MEMORY);
    assert_true(failing_alloc_disarm());
    spawn(worker, write_note, &note);
    worker_destroy(worker);
    worker_destroy(NULL);
    assert_int_equal(log->count, 1);
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),      cmocka_unit_test(test_destroy_waits),
        cmocka_unit_test(test_many_spawners), cmocka_unit_test(test_job_spawns),
        cmocka_unit_test(test_thread),        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
