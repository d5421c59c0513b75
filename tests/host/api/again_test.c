/* SPDX-License-Identifier: Apache-2.0 */
/* A loop records the same ops again and again, and then something else where they stood: other
 * operands, attributes, scalars, deaths. */
#include "api/rig.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include <frit/inspect.h>

enum { ROUNDS = 4 }; /* until a segment's memory is used again and its plan is known */

static void open_fused(struct rig *rig)
{
    static char path[4096];
    const frit_setting settings[] = {{"plugin.org.frit.blocks", "library", path},
                                     {"fusion", "store", "none"}};
    const char *build = getenv("FRIT_TEST_BUILD");

    if (!build)
        fail_msg("FRIT_TEST_BUILD must name the build folder");
    snprintf(path, sizeof(path), "%s/tests/outside/libfrit-blocks.so", build);
    rig_open(rig, settings, 2);
}

static frit_tensor *square(struct rig *rig, float a, float b, float c, float d)
{
    return rig_f32(rig, FRIT_SHAPE(2, 2), (const float[]){a, b, c, d});
}

static void expect(frit_tensor *tensor, const float *values, size_t n)
{
    float out[4];

    assert_int_equal(frit_read(tensor, out, n * sizeof(float), NULL), FRIT_OK);
    assert_memory_equal(out, values, n * sizeof(float));
}

/* One operand in two places where two stood, and the other way round. */
static void test_a_tensor_that_stands_twice(void **state)
{
    struct rig rig;
    frit_tensor *a, *b;

    (void)state;
    open_fused(&rig);
    a = square(&rig, 1, 2, 3, 4);
    b = square(&rig, 10, 20, 30, 40);
    for (int i = 0; i < 4 * ROUNDS; i++) {
        bool twice = i / ROUNDS % 2;

        expect(frit_take(frit_sub(a, twice ? a : b)),
               twice ? (const float[]){0, 0, 0, 0} : (const float[]){-9, -18, -27, -36}, 4);
    }
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = frit_take(frit_ref(b)), *twice = frit_mul(x, x);

        expect(frit_take(twice), (const float[]){100, 400, 900, 1600}, 4);
    }
    frit_release(a);
    frit_release(b);
    rig_close(&rig);
}

/* The same for a tensor of another stream. */
static void *twice_elsewhere(void *arg)
{
    frit_tensor **in = arg;

    for (int i = 0; i < 3 * ROUNDS; i++) {
        bool twice = i / ROUNDS % 2;

        expect(frit_take(frit_sub(in[0], in[!twice])),
               twice ? (const float[]){0, 0, 0, 0} : (const float[]){-9, -18, -27, -36}, 4);
    }
    return NULL;
}

static void test_a_tensor_of_another_thread_twice(void **state)
{
    struct rig rig;
    frit_tensor *in[2];
    pthread_t thread;

    (void)state;
    open_fused(&rig);
    in[0] = square(&rig, 1, 2, 3, 4);
    in[1] = square(&rig, 10, 20, 30, 40);
    assert_int_equal(pthread_create(&thread, NULL, twice_elsewhere, in), 0);
    pthread_join(thread, NULL);
    frit_release(in[0]);
    frit_release(in[1]);
    rig_close(&rig);
}

static void test_other_attributes(void **state)
{
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig);
    x = square(&rig, 1, 2, 3, 4);
    for (int i = 0; i < 4 * ROUNDS; i++) {
        bool rows = i / ROUNDS % 2;
        frit_tensor *sum =
            rows ? frit_sum(x, .axes = FRIT_AXES(1)) : frit_sum(x, .axes = FRIT_AXES(0));

        expect(frit_take(sum), rows ? (const float[]){3, 7} : (const float[]){4, 6}, 2);
    }
    frit_release(x);
    rig_close(&rig);
}

/* What op_check refuses it refuses also where others of its kind were taken. */
static void test_a_scalar_out_of_range(void **state)
{
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig);
    x = square(&rig, 1, 2, 3, 4);
    for (int i = 0; i < ROUNDS; i++)
        expect(frit_take(frit_add_f(x, 1)), (const float[]){2, 3, 4, 5}, 4);
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *y = frit_add_f(x, 1e39);

        assert_int_equal(frit_tensor_status(y), FRIT_INVALID);
        frit_release(y);
    }
    frit_sync(rig.dev, NULL);
    expect(frit_take(frit_add_f(x, INFINITY)),
           (const float[]){INFINITY, INFINITY, INFINITY, INFINITY}, 4);
    frit_release(x);
    rig_close(&rig);
}

/* A value that died each time is kept once, and one that was kept dies. */
static void test_other_deaths(void **state)
{
    struct rig rig;
    frit_tensor *x;

    (void)state;
    open_fused(&rig);
    x = square(&rig, 1, 2, 3, 4);
    for (int i = 0; i < 6 * ROUNDS; i++) {
        bool keep = i / ROUNDS % 2;
        frit_tensor *y = frit_neg(x), *z = frit_add_f(keep ? y : frit_take(y), 1);
        frit_tensor *w = frit_mul_f(frit_take(z), 2);

        expect(frit_take(w), (const float[]){0, -2, -4, -6}, 4);
        if (keep)
            expect(frit_take(y), (const float[]){-1, -2, -3, -4}, 4);
    }
    frit_release(x);
    rig_close(&rig);
}

/* Recorded as ordinary, then as persistent: memory of its own size from the driver. */
static void test_persistent_again(void **state)
{
    struct rig rig;
    frit_tensor *x, *kept[2 * ROUNDS];

    (void)state;
    open_fused(&rig);
    x = square(&rig, 1, 2, 3, 4);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        frit_stats before;

        before = rig_stats(&rig);
        if (i == ROUNDS)
            frit_persistent_begin(rig.dev);
        kept[i] = frit_neg(x);
        frit_sync(rig.dev, NULL);
        if (i >= ROUNDS)
            assert_int_equal(rig_stats(&rig).driver_allocs, before.driver_allocs + 1);
    }
    frit_persistent_end(rig.dev);
    for (int i = 0; i < 2 * ROUNDS; i++)
        frit_release(kept[i]);
    frit_release(x);
    rig_close(&rig);
}

/* An op from a thread-specific destructor that runs after the host's own. */
static pthread_key_t late;

static void use_late(void *arg)
{
    frit_release(frit_neg(arg));
}

static void *end_late(void *arg)
{
    frit_release(frit_neg(arg));
    pthread_setspecific(late, arg);
    return NULL;
}

static void test_ops_at_the_end_of_a_thread(void **state)
{
    struct rig rig;
    frit_tensor *x;
    pthread_t thread;

    (void)state;
    open_fused(&rig);
    x = square(&rig, 1, 2, 3, 4);
    frit_sync(rig.dev, NULL);
    assert_int_equal(pthread_key_create(&late, use_late), 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(pthread_create(&thread, NULL, end_late, x), 0);
        pthread_join(thread, NULL);
    }
    pthread_key_delete(late);
    frit_release(x);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tensor_that_stands_twice),
        cmocka_unit_test(test_a_tensor_of_another_thread_twice),
        cmocka_unit_test(test_other_attributes),
        cmocka_unit_test(test_a_scalar_out_of_range),
        cmocka_unit_test(test_other_deaths),
        cmocka_unit_test(test_persistent_again),
        cmocka_unit_test(test_ops_at_the_end_of_a_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
