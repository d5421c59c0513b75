/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges cover the work once; who may run them, and which threads there are. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "exec/team.h"
#include "threads.h"

enum { ITEMS = 100000, CALLERS = 4, ROUNDS = 200, THREADS = 4, SOON_NS = 10000 };

/* ---- what is covered ---- */

struct cover {
    uint64_t count, grain;
    uint32_t threads;
    atomic_uchar *seen;
    atomic_bool here[TEAM_MAX]; /* threads inside of run */
    atomic_bool wrong;
};

static void mark(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    struct cover *cover = ctx;

    if (thread >= cover->threads || atomic_exchange(&cover->here[thread], true) ||
        first % cover->grain || (end % cover->grain && end != cover->count) || first >= end ||
        end > cover->count) {
        atomic_store(&cover->wrong, true);
        return;
    }
    for (uint64_t i = first; i < end; i++)
        atomic_fetch_add_explicit(&cover->seen[i], 1, memory_order_relaxed);
    atomic_store(&cover->here[thread], false);
}

static bool covers_once(uint64_t count, uint64_t grain, uint32_t threads)
{
    struct cover *cover = calloc(1, sizeof(*cover));
    bool good;

    assert_non_null(cover);
    cover->count = count;
    cover->grain = grain;
    cover->threads = threads;
    cover->seen = calloc(count + 1, sizeof(*cover->seen));
    assert_non_null(cover->seen);
    team_for(threads, count, grain, mark, cover);
    good = !atomic_load(&cover->wrong);
    for (uint64_t i = 0; i < count; i++)
        good = good && atomic_load(&cover->seen[i]) == 1;
    free(cover->seen);
    free(cover);
    return good;
}

static void each_item_once(void **state)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, ITEMS};
    static const uint64_t grains[] = {1, 3, 64, 1 << 20};
    static const uint32_t threads[] = {1, 2, 3, THREADS};

    (void)state;
    team_join();
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
        for (size_t g = 0; g < sizeof(grains) / sizeof(*grains); g++)
            for (size_t t = 0; t < sizeof(threads) / sizeof(*threads); t++)
                assert_true(covers_once(counts[c], grains[g], threads[t]));
    team_leave();
}

/* More units than are counted in 32 bits. */
static void add_length(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    atomic_uint_least64_t *sum = ctx;

    (void)thread;
    atomic_fetch_add(sum, end - first);
}

static void counts_of_64_bits(void **state)
{
    const uint64_t count = (1ull << 40) + 17;
    atomic_uint_least64_t sum = 0;

    (void)state;
    team_join();
    team_for(THREADS, count, 1, add_length, &sum);
    assert_true(atomic_load(&sum) == count);
    team_leave();
}

/* ---- who works ---- */

struct meeting {
    atomic_uint arrived;
    uint32_t wanted;
};

/* Ends only when as many calls have begun, which takes as many threads. */
static void meet(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    struct meeting *meeting = ctx;

    (void)first;
    (void)end;
    (void)thread;
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meeting->wanted)
        sched_yield();
}

static void threads_work_at_once(void **state)
{
    struct meeting meeting = {.wanted = THREADS};

    (void)state;
    team_join();
    for (int i = 0; i < 3; i++) { /* the second time they are there already */
        atomic_store(&meeting.arrived, 0);
        team_for(THREADS, THREADS, 1, meet, &meeting);
        assert_int_equal(atomic_load(&meeting.arrived), THREADS);
    }
    team_leave();
}

struct heap {
    atomic_uint done;
    uint32_t held; /* items in the first range of thread 0 */
};

/* The calling thread goes on only when everything else is done, most of its own part too. */
static void hold_back(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    struct heap *heap = ctx;

    if (thread == 0) {
        if (first == 0)
            heap->held = (uint32_t)(end - first);
        while (atomic_load(&heap->done) + heap->held < ITEMS)
            sched_yield();
    }
    atomic_fetch_add(&heap->done, (uint32_t)(end - first));
}

static void a_late_thread_is_helped(void **state)
{
    struct heap heap = {0};

    (void)state;
    team_join();
    team_for(2, ITEMS, 1, hold_back, &heap);
    assert_int_equal(atomic_load(&heap.done), ITEMS);
    assert_true(heap.held < ITEMS / 4);
    team_leave();
}

struct nest {
    atomic_uint inner;
    atomic_bool elsewhere;
};

static void inside(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    struct nest *nest = ctx;

    if (thread != 0 || first != 0 || end != 10)
        atomic_store(&nest->elsewhere, true);
    atomic_fetch_add(&nest->inner, 1);
}

static void outside(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    (void)thread;
    for (; first < end; first++)
        team_for(THREADS, 10, 1, inside, ctx);
}

static void a_call_inside_runs_alone(void **state)
{
    struct nest nest = {0};

    (void)state;
    team_join();
    team_for(THREADS, 100, 1, outside, &nest);
    assert_int_equal(atomic_load(&nest.inner), 100);
    assert_false(atomic_load(&nest.elsewhere));
    team_leave();
}

static void *call_often(void *ctx)
{
    atomic_bool *wrong = ctx;

    team_join();
    for (int i = 0; i < ROUNDS; i++)
        if (!covers_once(1000, 1, THREADS))
            atomic_store(wrong, true);
    team_leave();
    return NULL;
}

/* Also joining and leaving at once. */
static void many_callers(void **state)
{
    pthread_t callers[CALLERS];
    atomic_bool wrong = false;

    (void)state;
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &wrong), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    assert_false(atomic_load(&wrong));
}

/* ---- threads of the process ---- */

static void hear_signals(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    struct meeting *meeting = ctx;
    sigset_t mask;

    if (thread > 0) {
        pthread_sigmask(SIG_BLOCK, NULL, &mask);
        assert_int_equal(sigismember(&mask, SIGTERM), 1);
        assert_int_equal(sigismember(&mask, SIGPROF), 1);
    }
    meet(meeting, first, end, thread);
}

static void threads_come_and_go(void **state)
{
    const uint32_t before = count_threads();
    struct meeting meeting = {.wanted = THREADS};
    atomic_uint_least64_t sum = 0;
    sigset_t mine;

    (void)state;
    team_join();
    team_join();
    assert_int_equal(count_threads(), before); /* none without work */
    team_for(1, THREADS, 1, add_length, &sum);
    assert_int_equal(count_threads(), before);
    team_for(THREADS, THREADS, 1, hear_signals, &meeting);
    assert_int_equal(count_threads(), before + THREADS - 1);
    pthread_sigmask(SIG_BLOCK, NULL, &mine);
    assert_int_equal(sigismember(&mine, SIGTERM), 0);
    team_leave();
    assert_int_equal(count_threads(), before + THREADS - 1);
    team_leave();
    assert_int_equal(count_threads(), before);
}

static void processors_of_the_process(void **state)
{
    cpu_set_t all, one;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(team_processors(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(team_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* ---- lent processors ---- */

static void wait_for_both(void *ctx, uint64_t first, uint64_t end, uint32_t thread)
{
    atomic_uint *met = ctx;

    (void)thread;
    for (; first < end; first++) {
        atomic_fetch_add(met, 1);
        while (atomic_load(met) < 2)
            sched_yield();
    }
}

static int64_t count_sleeps(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

/* Calls so soon after each other that a thread would spin in between: how often one slept. */
static int64_t sleeps_between_calls(void)
{
    int64_t before = count_sleeps();

    for (int i = 0; i < ROUNDS; i++) {
        struct timespec begun, now;
        atomic_uint met = 0;

        team_for(2, 2, 1, wait_for_both, &met);
        clock_gettime(CLOCK_MONOTONIC, &begun);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while (now.tv_sec == begun.tv_sec && now.tv_nsec - begun.tv_nsec < SOON_NS);
    }
    return count_sleeps() - before;
}

static void a_lent_processor_is_not_spun_on(void **state)
{
    const uint32_t n = team_processors();

    (void)state;
    team_join();
    for (uint32_t i = 0; i < n; i++)
        team_lend_processor();
    assert_true(sleeps_between_calls() > ROUNDS / 4);
    for (uint32_t i = 0; i < n; i++)
        team_return_processor();
    team_leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_once),
        cmocka_unit_test(counts_of_64_bits),
        cmocka_unit_test(threads_work_at_once),
        cmocka_unit_test(a_late_thread_is_helped),
        cmocka_unit_test(a_call_inside_runs_alone),
        cmocka_unit_test(many_callers),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(processors_of_the_process),
        cmocka_unit_test(a_lent_processor_is_not_spun_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
