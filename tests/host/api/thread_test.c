/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors used from several threads: pending, materialised, orphaned, released elsewhere. */
#include "api/rig.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 200 };

static const float four[4] = {1, 2, 3, 4};

struct shared {
    struct rig rig;
    frit_tensor *weight; /* used by all */
    atomic_int failures;
};

/* A chain of this thread's own that reads a tensor of all: (w + i) * 2 - w. */
static void *work(void *arg)
{
    struct shared *shared = arg;

    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(shared->rig.dev);
        frit_tensor *y =
            frit_keep(frit_sub(frit_mul_f(frit_add_f(shared->weight, i), 2), shared->weight));
        float out[4];

        frit_scope_end(scope);
        if (frit_read(frit_take(y), out, sizeof(out), NULL) || out[3] != 4 + 2 * (float)i)
            atomic_fetch_add(&shared->failures, 1);
    }
    return NULL;
}

static void run_threads(struct shared *shared, void *(*fn)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fn, shared), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&shared->failures), 0);
}

/* One op, left in the queue for whoever comes next. */
static void *pass_by(void *arg)
{
    struct shared *shared = arg;

    frit_release(frit_sub(shared->weight, shared->weight));
    return frit_neg(shared->weight);
}

/* Threads come and go while others sync what they left. */
static void test_threads_come_and_go(void **state)
{
    struct shared shared = {0};
    pthread_t threads[THREADS];

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    shared.weight = rig_f32(&shared.rig, FRIT_SHAPE(4), four);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, pass_by, &shared), 0);
        assert_int_equal(frit_sync_all(shared.rig.dev, NULL), FRIT_OK);
        for (int i = 0; i < THREADS; i++) {
            void *left;
            float out[4];

            pthread_join(threads[i], &left);
            assert_int_equal(frit_read(frit_take(left), out, sizeof(out), NULL), FRIT_OK);
            assert_true(out[3] == -4);
        }
    }
    frit_release(shared.weight);
    rig_close(&shared.rig);
}

static void *draw(void *arg)
{
    struct shared *shared = arg;

    return frit_random_uniform(shared->rig.dev, FRIT_F32, FRIT_SHAPE(4), 0, 1);
}

/* Also a thread that comes after another is gone. */
static void test_threads_draw_different_numbers(void **state)
{
    struct shared shared = {0};
    float out[3][4];
    frit_tensor *drawn[3];

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    drawn[0] = draw(&shared);
    for (int i = 1; i < 3; i++) {
        pthread_t thread;
        void *result;

        assert_int_equal(pthread_create(&thread, NULL, draw, &shared), 0);
        pthread_join(thread, &result);
        drawn[i] = result;
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(frit_read(frit_take(drawn[i]), out[i], sizeof(out[i]), NULL), FRIT_OK);
    assert_memory_not_equal(out[0], out[1], sizeof(out[0]));
    assert_memory_not_equal(out[1], out[2], sizeof(out[0]));
    assert_memory_not_equal(out[0], out[2], sizeof(out[0]));
    rig_close(&shared.rig);
}

static void test_threads_share_a_weight(void **state)
{
    struct shared shared = {0};

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    shared.weight = rig_f32(&shared.rig, FRIT_SHAPE(4), four);
    run_threads(&shared, work);
    frit_release(shared.weight);
    rig_close(&shared.rig);
}

/* The weight is still queued on this thread when the others begin. */
static void test_threads_share_a_pending_value(void **state)
{
    struct shared shared = {0};

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    shared.weight = frit_add_f(frit_take(rig_f32(&shared.rig, FRIT_SHAPE(4), four)), 0);
    run_threads(&shared, work);
    assert_true(rig_stats(&shared.rig).drains_share > 0);
    frit_release(shared.weight);
    rig_close(&shared.rig);
}

static void *make_and_leave(void *arg)
{
    struct shared *shared = arg;

    shared->weight =
        frit_exp(frit_take(frit_mul_f(frit_take(rig_f32(&shared->rig, FRIT_SHAPE(4), four)), 0)));
    return NULL;
}

/* A thread that is gone left its queue behind; whoever needs a value runs it. */
static void test_orphaned_values_can_be_read(void **state)
{
    struct shared shared = {0};
    pthread_t thread;
    float out[4];

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    pthread_create(&thread, NULL, make_and_leave, &shared);
    pthread_join(thread, NULL);
    assert_int_equal(rig_stats(&shared.rig).queued_now, 1); /* the last op was never closed */
    assert_int_equal(frit_read(frit_take(shared.weight), out, sizeof(out), NULL), FRIT_OK);
    assert_true(out[0] == 1 && out[3] == 1);
    rig_close(&shared.rig);
}

static void test_sync_all_runs_orphans(void **state)
{
    struct shared shared = {0};
    pthread_t thread;

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    pthread_create(&thread, NULL, make_and_leave, &shared);
    pthread_join(thread, NULL);
    assert_int_equal(frit_sync_all(shared.rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&shared.rig).queued_now, 0);
    assert_int_equal(rig_stats(&shared.rig).launches, 2);
    frit_release(shared.weight);
    rig_close(&shared.rig);
}

/* Everybody releases, takes and uses the same handle: exactly one succeeds in ending it, nobody
 * crashes. */
static void *fight(void *arg)
{
    struct shared *shared = arg;

    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *mine = frit_neg(shared->weight);
        float out[4];

        if (frit_tensor_status(mine) == FRIT_OK && frit_read(mine, out, sizeof(out), NULL))
            atomic_fetch_add(&shared->failures, 1);
        frit_release(mine);
        if (i == ROUNDS / 2)
            frit_release(shared->weight);
    }
    return NULL;
}

static void test_racing_releases(void **state)
{
    struct shared shared = {0};

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    shared.weight = rig_f32(&shared.rig, FRIT_SHAPE(4), four);
    run_threads(&shared, fight);
    assert_int_equal(frit_tensor_status(shared.weight), FRIT_INVALID);
    frit_sync_all(shared.rig.dev, NULL);
    rig_close(&shared.rig);
}

/* A reader sees either the old or the new elements, whole. */
static void *rewrite(void *arg)
{
    struct shared *shared = arg;

    for (int i = 0; i < ROUNDS; i++) {
        float in[4], out[4];

        for (int k = 0; k < 4; k++)
            in[k] = (float)i;
        if (frit_write(shared->weight, in, sizeof(in), NULL) ||
            frit_read(shared->weight, out, sizeof(out), NULL) || out[0] != out[3])
            atomic_fetch_add(&shared->failures, 1);
    }
    return NULL;
}

static void test_racing_writes(void **state)
{
    struct shared shared = {0};

    (void)state;
    rig_open(&shared.rig, NULL, 0);
    shared.weight = rig_f32(&shared.rig, FRIT_SHAPE(4), (float[]){7, 7, 7, 7});
    run_threads(&shared, rewrite);
    frit_release(shared.weight);
    rig_close(&shared.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_share_a_weight),
        cmocka_unit_test(test_threads_share_a_pending_value),
        cmocka_unit_test(test_orphaned_values_can_be_read),
        cmocka_unit_test(test_sync_all_runs_orphans),
        cmocka_unit_test(test_threads_come_and_go),
        cmocka_unit_test(test_threads_draw_different_numbers),
        cmocka_unit_test(test_racing_releases),
        cmocka_unit_test(test_racing_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
