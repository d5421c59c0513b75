/* SPDX-License-Identifier: Apache-2.0 */
/* The engine from outside, on the reference device with fusers of another plugin: what is found
 * again as known, that the numbers are right each time, when memory goes, and that groupings do not
 * depend on other threads. */
#include "api/rig.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* With fusers; `more` may add one setting. */
static void open_fused(struct rig *rig, const frit_setting *more)
{
    static char path[4096];
    frit_setting settings[4] = {{"plugin.org.frit.blocks", "library", path},
                                {"frit", "poison", "yes"},
                                {"fusion", "store", "none"}};
    const char *build = getenv("FRIT_TEST_BUILD");

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/outside/libfrit-blocks.so", build);
    if (more)
        settings[3] = *more;
    rig_open(rig, settings, more ? 4 : 3);
}

/* `n` elements i + 1. */
static frit_tensor *counting(struct rig *rig, int64_t n)
{
    float data[64];

    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(i + 1);
    return rig_f32(rig, FRIT_SHAPE(n), data);
}

static void expect(frit_tensor *tensor, int64_t n, float scale, float shift)
{
    float out[64];

    assert_int_equal(frit_read(tensor, out, (uint64_t)n * sizeof(float), NULL), FRIT_OK);
    for (int64_t i = 0; i < n; i++) {
        if (out[i] != (float)(i + 1) * scale + shift)
            fail_msg("element %d is %g", (int)i, (double)out[i]);
    }
}

/* x * scale + shift, squared and rooted again, in a scope. */
static frit_tensor *chain(struct rig *rig, frit_tensor *x, double scale, double shift)
{
    frit_scope scope = frit_scope_begin(rig->dev);
    frit_tensor *y = frit_add_f(frit_mul_f(x, scale), shift);
    frit_tensor *z = frit_keep(frit_sqrt(frit_mul(y, y)));

    frit_scope_end(scope);
    return z;
}

/* ---- known again ---- */

/* Other tensors, sizes and scalars, and another stream: one search serves all. */
static void test_one_search_serves_all_sizes_and_scalars(void **state)
{
    struct rig rig;
    frit_stream *stream;

    (void)state;
    open_fused(&rig, NULL);
    assert_int_equal(frit_stream_open(rig.dev, &stream, NULL), FRIT_OK);
    for (int i = 0; i < 40; i++) {
        int64_t n = 2 + i % 20;
        frit_tensor *x = counting(&rig, n), *y;

        if (i == 20)
            frit_stream_enter(rig.dev, stream, NULL, NULL);
        y = chain(&rig, x, 1 + i, i % 3);
        expect(frit_take(y), n, (float)(1 + i), (float)(i % 3));
        frit_release(x);
    }
    assert_int_equal(rig_stats(&rig).explorations, 1);
    assert_int_equal(rig_stats(&rig).plan_runs, 40);
    assert_int_equal(rig_stats(&rig).plan_hits, 39);
    assert_int_equal(rig_stats(&rig).launches, 40);
    assert_int_equal(rig_stats(&rig).fused, 40);
    frit_stream_enter(rig.dev, NULL, NULL, NULL);
    assert_int_equal(frit_stream_close(stream, NULL), FRIT_OK);
    rig_close(&rig);
}

/* An operand that occurs twice is not a pair of two: a - b, then a - a, with the same memory. */
static void test_an_operand_that_stands_twice(void **state)
{
    struct rig rig;

    (void)state;
    open_fused(&rig, NULL);
    for (int i = 0; i < 12; i++) {
        frit_tensor *a = counting(&rig, 4), *b = counting(&rig, 4);
        bool twice = i / 3 % 2;
        frit_tensor *y = frit_sub_f(frit_take(twice ? frit_mul(a, a) : frit_mul(a, b)), 1);
        float out[4];

        frit_release(b);
        frit_release(frit_neg(frit_take(a)));
        assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
        assert_true(out[0] == 0 && out[3] == 15);
    }
    rig_close(&rig);
}

/* What is not a number of the plan is another one: an extent of 1, another type, one more value
 * kept.
 */
static void test_other_ops_are_searched(void **state)
{
    struct rig rig;
    frit_tensor *x, *one, *kept, *last;
    frit_scope scope;

    (void)state;
    open_fused(&rig, NULL);
    x = counting(&rig, 4);
    one = counting(&rig, 1);
    frit_release(chain(&rig, x, 2, 1));
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    frit_release(chain(&rig, one, 2, 1));
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).explorations, 2);
    scope = frit_scope_begin(rig.dev);
    kept = frit_keep(frit_mul_f(x, 2));
    last = frit_keep(frit_add_f(kept, 1));
    frit_scope_end(scope);
    scope = frit_scope_begin(rig.dev);
    frit_release(kept), frit_release(last);
    kept = frit_mul_f(x, 2); /* not kept: it dies */
    last = frit_keep(frit_add_f(kept, 1));
    frit_scope_end(scope);
    assert_int_equal(rig_stats(&rig).explorations, 4);
    frit_release(last), frit_release(x), frit_release(one);
    rig_close(&rig);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Scalars of a known plan are those of the call: zero of either sign, infinity, NaN. */
static void test_scalars_are_bound_anew(void **state)
{
    static const float values[] = {2, 0, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, 0.1f};
    struct rig rig;
    frit_tensor *x;
    float one = 1, out;

    (void)state;
    open_fused(&rig, NULL);
    x = rig_f32(&rig, FRIT_RANK0, &one);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        frit_scope scope = frit_scope_begin(rig.dev);
        frit_tensor *y = frit_keep(frit_neg(frit_neg(frit_mul_f(x, (double)values[i]))));

        frit_scope_end(scope);
        assert_int_equal(frit_read(frit_take(y), &out, sizeof(out), NULL), FRIT_OK);
        if (isnan(values[i]))
            assert_true(isnan(out));
        else
            assert_int_equal(bits_of(out), bits_of(values[i]));
    }
    assert_int_equal(rig_stats(&rig).explorations, 1);
    frit_release(x);
    rig_close(&rig);
}

/* The bounds of a slice are the call's too. */
static void test_bounds_are_bound_anew(void **state)
{
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig, NULL);
    x = counting(&rig, 10);
    for (int64_t from = 0; from < 6; from++) {
        frit_scope scope = frit_scope_begin(rig.dev);
        frit_tensor *part = frit_slice(x, FRIT_SLICES({from, from + 4, 1}));
        frit_tensor *y = frit_keep(frit_add_f(frit_mul_f(part, 2), 1));

        frit_scope_end(scope);
        expect(frit_take(y), 4, 2, (float)(2 * from + 1));
    }
    assert_int_equal(rig_stats(&rig).explorations, 1);
    frit_release(x);
    rig_close(&rig);
}

/* After this many searches ops run by themselves, and right. */
static void test_a_cap_on_searches(void **state)
{
    const frit_setting cap = {"fusion", "max_explorations", "2"};
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig, &cap);
    x = counting(&rig, 4);
    for (int length = 1; length < 12; length++) {
        frit_scope scope = frit_scope_begin(rig.dev);
        frit_tensor *y = x;

        for (int i = 0; i < length; i++)
            y = frit_add_f(y, 1);
        frit_keep(y);
        frit_scope_end(scope);
        expect(frit_take(y), 4, 1, (float)length);
    }
    assert_int_equal(rig_stats(&rig).explorations, 2);
    frit_release(x);
    rig_close(&rig);
}

static void test_fusion_can_be_turned_off(void **state)
{
    const frit_setting off = {"fusion", "enabled", "no"};
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig, &off);
    x = counting(&rig, 4);
    expect(frit_take(chain(&rig, x, 3, 2)), 4, 3, 2);
    assert_int_equal(rig_stats(&rig).fused, 0);
    assert_int_equal(rig_stats(&rig).launches, 4);
    frit_release(x);
    rig_close(&rig);
}

/* ---- shapes at the edge ---- */

static void test_empty_and_rank_0_go_all_ways(void **state)
{
    struct rig rig;
    float two = 2, out = 7;

    (void)state;
    open_fused(&rig, NULL);
    frit_tensor *none = rig_f32(&rig, FRIT_SHAPE(0), &two),
                *scalar = rig_f32(&rig, FRIT_RANK0, &two);
    frit_tensor *empty = chain(&rig, none, 2, 1), *number = chain(&rig, scalar, 3, 1);
    frit_tensor *sum = frit_sum(empty), *view = frit_reshape(number, FRIT_SHAPE(1, 1));

    assert_int_equal(frit_read(empty, NULL, 0, NULL), FRIT_OK);
    assert_int_equal(frit_read(number, &out, sizeof(out), NULL), FRIT_OK);
    assert_true(out == 7);
    assert_int_equal(frit_read(sum, &out, sizeof(out), NULL), FRIT_OK);
    assert_true(out == 0);
    assert_int_equal(frit_write(view, &two, sizeof(two), NULL), FRIT_OK);
    assert_int_equal(frit_read(view, &out, sizeof(out), NULL), FRIT_OK);
    assert_true(out == 2);
    assert_int_equal(frit_write(none, NULL, 0, NULL), FRIT_OK);
    frit_release(none), frit_release(scalar), frit_release(empty);
    frit_release(number), frit_release(sum), frit_release(view);
    rig_close(&rig);
}

/* ---- when memory goes ---- */

/* The last use by a read frees at once; while the queue needs it, when that ran. */
static void test_a_last_read_frees(void **state)
{
    struct rig rig;
    frit_tensor *x, *y;
    float out[4];

    (void)state;
    open_fused(&rig, NULL);
    x = counting(&rig, 4);
    assert_int_equal(rig_stats(&rig).buffers_now, 1);
    assert_int_equal(frit_read(frit_take(x), out, sizeof(out), NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).buffers_now, 0);
    x = counting(&rig, 4);
    y = frit_neg(x);
    assert_int_equal(frit_read(frit_take(x), out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[3] == 4);
    assert_int_equal(rig_stats(&rig).buffers_now, 1);
    assert_int_equal(rig_stats(&rig).queued_now, 1); /* what is there cuts no queue */
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).buffers_now, 1); /* y alone */
    expect(frit_take(y), 4, -1, 0);
    rig_close(&rig);
}

/* An operand given up is overwritten; one that somebody keeps is intact. */
static void test_memory_in_place(void **state)
{
    struct rig rig;
    frit_tensor *x, *kept, *y;

    (void)state;
    open_fused(&rig, NULL);
    x = counting(&rig, 8);
    y = chain(&rig, x, 2, 1);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).in_place, 0);
    expect(x, 8, 1, 0);
    frit_release(y);
    kept = frit_reshape(x, FRIT_SHAPE(8)); /* the same memory */
    y = frit_add_f(frit_take(x), 1);
    expect(frit_take(y), 8, 1, 1);
    expect(frit_take(kept), 8, 1, 0);
    rig_close(&rig);
}

/* N tensors with one wait; each item has its own status. */
static void test_many_reads_at_once(void **state)
{
    frit_read_item items[3];
    float out[3][4];
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig, NULL);
    x = counting(&rig, 4);
    for (int i = 0; i < 3; i++)
        items[i] = (frit_read_item){.tensor = frit_take(frit_mul_f(x, i + 1)),
                                    .data = out[i],
                                    .bytes = i == 1 ? 1 : sizeof(out[i])};
    assert_int_equal(frit_read_many(items, 3, NULL), FRIT_INVALID);
    assert_int_equal(items[0].status, FRIT_OK);
    assert_int_equal(items[1].status, FRIT_INVALID);
    assert_int_equal(items[2].status, FRIT_OK);
    assert_true(out[0][3] == 4 && out[2][3] == 12);
    frit_release(x);
    rig_close(&rig);
}

/* ---- random numbers ---- */

/* A seed counts for ops recorded after it, however late they run. */
static void test_a_seed_counts_from_where_it_stands(void **state)
{
    float out[4][8];
    frit_tensor *drawn[4];
    struct rig rig;
    frit_scope scope;

    (void)state;
    open_fused(&rig, NULL);
    for (int round = 0; round < 2; round++) {
        frit_seed(rig.host, 1);
        scope = frit_scope_begin(rig.dev);
        drawn[2 * round] = frit_keep(frit_random_uniform(rig.dev, FRIT_F32, FRIT_SHAPE(8), 0, 1));
        if (round == 0)
            frit_seed(rig.host, 2);
        drawn[2 * round + 1] =
            frit_keep(frit_random_uniform(rig.dev, FRIT_F32, FRIT_SHAPE(8), 0, 1));
        frit_scope_end(scope);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(frit_read(frit_take(drawn[i]), out[i], sizeof(out[i]), NULL), FRIT_OK);
    assert_memory_equal(out[0], out[2], sizeof(out[0]));
    assert_memory_not_equal(out[0], out[1], sizeof(out[0]));
    assert_memory_not_equal(out[1], out[3], sizeof(out[0]));
    rig_close(&rig);
}

/* ---- threads ---- */

enum { THREADS = 8 };

struct shared {
    struct rig rig;
    struct rig other;
    frit_tensor *weight;
    atomic_int failures, next;
    double seconds;
};

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* In `n` threads beside this one. */
static void run(struct shared *shared, int n, void *(*fn)(void *))
{
    pthread_t threads[THREADS];

    atomic_store(&shared->next, 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fn, shared), 0);
    fn(shared);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&shared->failures), 0);
}

/* Back and forth between two devices, in opposite directions. */
static void *move(void *arg)
{
    struct shared *shared = arg;
    bool back = atomic_fetch_add(&shared->next, 1) % 2;
    frit_device *from = back ? shared->other.dev : shared->rig.dev;
    frit_device *to = back ? shared->rig.dev : shared->other.dev;
    const float two = 2;

    for (int i = 0; i < 200; i++) {
        frit_tensor *x =
            frit_neg(frit_take(frit_from_host(from, FRIT_F32, FRIT_SHAPE(1), &two, 4)));
        frit_tensor *y = frit_neg(frit_take(frit_to_device(frit_take(x), to)));
        float out;

        if (frit_read(frit_take(y), &out, sizeof(out), NULL) || out != 2)
            atomic_fetch_add(&shared->failures, 1);
    }
    return NULL;
}

static void test_moves_in_both_directions(void **state)
{
    struct shared shared = {0};

    (void)state;
    open_fused(&shared.rig, NULL);
    open_fused(&shared.other, NULL);
    run(&shared, 1, move);
    rig_close(&shared.other);
    rig_close(&shared.rig);
}

/* One thread's ops, of which none is shared but the weight that is there. */
static void *steps(void *arg)
{
    struct shared *shared = arg;
    frit_tensor *x = counting(&shared->rig, 8);

    for (int i = 0; i < 20; i++) {
        frit_tensor *y = chain(&shared->rig, x, 2, 1), *z;

        if (i % 3 == 0)
            sched_yield();
        z = frit_mul(frit_take(frit_add(frit_take(y), shared->weight)), shared->weight);
        frit_release(frit_take(frit_neg(frit_take(z))));
    }
    frit_release(x);
    return NULL;
}

/* Whatever the threads do meanwhile: as many launches as if one after the other. */
static void test_groupings_are_the_thread_s_own(void **state)
{
    uint64_t expected = 0;

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct shared shared = {0};

        open_fused(&shared.rig, NULL);
        shared.weight = counting(&shared.rig, 8);
        run(&shared, round ? 3 : 0, steps);
        frit_sync_all(shared.rig.dev, NULL);
        if (round == 0)
            expected = rig_stats(&shared.rig).launches;
        else
            assert_int_equal(rig_stats(&shared.rig).launches, 4 * expected);
        assert_true(rig_stats(&shared.rig).fused > 0);
        frit_release(shared.weight);
        rig_close(&shared.rig);
    }
}

/* Pending and materialised tensors of all, handed round. */
static _Atomic(frit_tensor *) board[THREADS];

static void *mingle(void *arg)
{
    struct shared *shared = arg;
    int me = atomic_fetch_add(&shared->next, 1);
    unsigned seed = (unsigned)me;
    double end = now() + shared->seconds;

    while (now() < end) {
        frit_tensor *x = frit_ref(shared->weight);
        frit_tensor *mine = chain(&shared->rig, x, 1 + rand_r(&seed) % 4, 1), *got;
        float out[8];

        frit_release(x);
        if (rand_r(&seed) % 3 == 0)
            frit_release(frit_neg(mine));
        got = atomic_exchange(&board[rand_r(&seed) % THREADS], mine);
        if (!got)
            continue;
        if (rand_r(&seed) % 2) {
            if (frit_read(frit_take(got), out, sizeof(out), NULL) || out[0] < 2 || out[0] > 5)
                atomic_fetch_add(&shared->failures, 1);
        } else {
            frit_tensor *sum = frit_add(frit_take(got), shared->weight);

            if (frit_read(frit_take(sum), out, sizeof(out), NULL) || out[0] < 3 || out[0] > 6)
                atomic_fetch_add(&shared->failures, 1);
        }
    }
    return NULL;
}

static void test_eight_threads_share_tensors(void **state)
{
    struct shared shared = {.seconds = 2};

    (void)state;
    open_fused(&shared.rig, NULL);
    shared.weight = counting(&shared.rig, 8);
    run(&shared, THREADS - 1, mingle);
    for (int i = 0; i < THREADS; i++)
        frit_release(atomic_exchange(&board[i], NULL));
    frit_release(shared.weight);
    rig_close(&shared.rig);
}

/* ---- the end of the process ---- */

static struct rig at_end;
static frit_tensor *left[3];

static void release_late(void)
{
    float out[4];

    if (frit_read(left[0], out, sizeof(out), NULL) || out[3] != -4)
        _exit(3);
    for (int i = 0; i < 3; i++)
        frit_release(left[i]);
}

/* Tensors that end in atexit, an error and a queued op among them. */
static void test_the_end_of_a_process(void **state)
{
    int status = -1;
    pid_t child;

    (void)state;
    child = fork();
    if (child == 0) {
        open_fused(&at_end, NULL);
        left[1] = counting(&at_end, 4);
        left[0] = frit_neg(left[1]);
        left[2] = frit_reshape(left[1], FRIT_SHAPE(5));
        atexit(release_late);
        alarm(60);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_end_of_a_process),
        cmocka_unit_test(test_one_search_serves_all_sizes_and_scalars),
        cmocka_unit_test(test_an_operand_that_stands_twice),
        cmocka_unit_test(test_other_ops_are_searched),
        cmocka_unit_test(test_scalars_are_bound_anew),
        cmocka_unit_test(test_bounds_are_bound_anew),
        cmocka_unit_test(test_a_cap_on_searches),
        cmocka_unit_test(test_fusion_can_be_turned_off),
        cmocka_unit_test(test_empty_and_rank_0_go_all_ways),
        cmocka_unit_test(test_a_last_read_frees),
        cmocka_unit_test(test_memory_in_place),
        cmocka_unit_test(test_many_reads_at_once),
        cmocka_unit_test(test_a_seed_counts_from_where_it_stands),
        cmocka_unit_test(test_moves_in_both_directions),
        cmocka_unit_test(test_groupings_are_the_thread_s_own),
        cmocka_unit_test(test_eight_threads_share_tensors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
