/* SPDX-License-Identifier: Apache-2.0 */
/* Ops with effects: each runs once and in order, whoever reads its result, and ends no block.  The
 * op is one that the test lists, of which the scripted driver writes down what it took. */
#include "run/fuser.h"

#include <pthread.h>
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "run/drain.h"

enum { N = 6, ROUNDS = 4 };

static frit_tensor *make(frit_device *device, float value)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = value;
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), data, sizeof(data));
}

static frit_tensor *effect(frit_tensor *x)
{
    const frit_input in = {.tensor = x};
    const frit_call call = {
        .struct_size = sizeof(call), .op = driver_effect_op(), .n_in = 1, .in = &in};
    frit_tensor *out;

    frit_op(frit_tensor_device(x), &call, &out, 1);
    return out;
}

static void expect(frit_tensor *tensor, float value)
{
    float out[N];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == value);
}

static void expect_effects(const struct driver *driver, uint32_t n, const float *effects)
{
    assert_int_equal(driver->n_effects, n);
    for (uint32_t i = 0; i < n; i++)
        assert_true(driver->effects[i] == effects[i]);
}

#define EFFECTS(driver, ...) \
    expect_effects(driver, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__})

static uint64_t plays(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.replays);
}

/* ---- never dropped ---- */

static void test_it_runs_though_nobody_reads_it(void **state)
{
    struct fusing f = {.most = 0};
    frit_tensor *x;

    (void)state;
    fusing_open(&f);
    x = make(f.device, 3);
    frit_release(frit_floor(x));
    frit_release(effect(frit_take(frit_neg(x))));
    frit_release(frit_floor(x));
    assert_int_equal(frit_sync(f.device, NULL), FRIT_OK);
    EFFECTS(&f.driver, -3);
    assert_int_equal(atomic_load(&f.device->count.skipped), 2);
    frit_release(x);
    fusing_close(&f);
}

static void test_the_end_of_a_device_runs_it(void **state)
{
    struct fusing f = {.most = 0};

    (void)state;
    fusing_open(&f);
    frit_release(effect(frit_take(make(f.device, 5))));
    assert_int_equal(f.driver.n_effects, 0);
    fusing_close(&f);
    EFFECTS(&f.driver, 5);
}

static void *leave_one(void *device)
{
    frit_release(effect(frit_take(make(device, 7))));
    return NULL;
}

static void test_the_end_of_its_thread_leaves_it(void **state)
{
    struct fusing f = {.most = 0};
    pthread_t thread;

    (void)state;
    fusing_open(&f);
    assert_int_equal(pthread_create(&thread, NULL, leave_one, f.device), 0);
    pthread_join(thread, NULL);
    assert_int_equal(frit_sync_all(f.device, NULL), FRIT_OK);
    EFFECTS(&f.driver, 7);
    fusing_close(&f);
}

/* The op makes nothing that could carry the failure. */
static void test_a_failure_without_results_is_reported(void **state)
{
    const frit_call call = {.struct_size = sizeof(call), .op = driver_unknown_op()};
    struct fusing f = {.most = 0};

    (void)state;
    fusing_open(&f);
    frit_op(f.device, &call, NULL, 0);
    assert_int_equal(frit_sync(f.device, NULL), FRIT_UNSUPPORTED);
    assert_int_equal(frit_sync(f.device, NULL), FRIT_OK);
    fusing_close(&f);
}

/* ---- never reordered ---- */

/* They have no bytes in common, and the driver runs backwards what it may. */
static void test_effects_stay_in_order_between_barriers(void **state)
{
    struct fusing f = {.driver.reverse = true};
    frit_tensor *x[4];
    frit_scope scope;

    (void)state;
    fusing_open(&f);
    for (int i = 0; i < 4; i++)
        x[i] = make(f.device, (float)i);
    scope = frit_scope_begin(f.device);
    for (int i = 0; i < 4; i++)
        effect(frit_take(x[i]));
    frit_scope_end(scope);
    assert_int_equal(f.driver.submits, 1);
    EFFECTS(&f.driver, 0, 1, 2, 3);
    fusing_close(&f);
}

/* The block of neg, the first effect and add waits for floor; the second effect, which was recorded
 * before that, could run at once. */
static void test_effects_stay_in_order_across_blocks(void **state)
{
    struct fusing f = {.takes_effects = true, .driver.reverse = true};
    frit_tensor *x, *w, *z, *n, *first, *second, *whole, *sum;
    frit_scope scope;

    (void)state;
    fusing_open(&f);
    x = make(f.device, 1), w = make(f.device, 10), z = make(f.device, 100);
    scope = frit_scope_begin(f.device);
    n = frit_neg(x);
    first = effect(n);
    second = effect(z);
    whole = frit_floor(w);
    sum = frit_keep(frit_add(n, whole));
    frit_keep(first), frit_keep(second);
    frit_scope_end(scope);
    EFFECTS(&f.driver, -1, 100);
    assert_int_equal(atomic_load(&f.device->count.fused), 1);
    expect(sum, 9), expect(first, -1), expect(second, 100);
    frit_release(x), frit_release(w), frit_release(z);
    fusing_close(&f);
}

/* ---- ends nothing else ---- */

static void test_blocks_go_on_around_it(void **state)
{
    struct fusing f = {.most = 0};
    frit_tensor *x, *z, *y;
    frit_scope scope;

    (void)state;
    fusing_open(&f);
    x = make(f.device, 2), z = make(f.device, 4);
    scope = frit_scope_begin(f.device);
    y = frit_neg(x);
    effect(z);
    y = frit_add_f(y, 1);
    effect(z);
    y = frit_keep(frit_neg(y));
    assert_int_equal(f.driver.submits, 0);
    frit_scope_end(scope);
    assert_int_equal(f.driver.launches, 3);
    EFFECTS(&f.driver, 4, 4);
    expect(y, 1);
    frit_release(x), frit_release(z);
    fusing_close(&f);
}

/* ---- never doubled ---- */

static frit_tensor *negated_twice(frit_device *device, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_keep(frit_neg(effect(frit_neg(x))));

    frit_scope_end(scope);
    return y;
}

/* A block that is refused runs op by op. */
static void test_a_refused_block_has_its_effect_once(void **state)
{
    struct fusing f = {.takes_effects = true, .driver.submit_status = FRIT_INTERNAL};
    frit_tensor *x;

    (void)state;
    fusing_open(&f);
    x = make(f.device, 2);
    expect(negated_twice(f.device, x), 2);
    EFFECTS(&f.driver, -2);
    assert_int_equal(atomic_load(&f.device->count.fallbacks[FALLBACK_OPS]), 1);
    assert_int_equal(f.driver.launches, 3);
    frit_release(x);
    fusing_close(&f);
}

/* As often as it was recorded, also where the plan is played again, and where that is refused. */
static void test_played_again_it_has_its_effect_once(void **state)
{
    struct fusing f = {.takes_effects = false};
    frit_tensor *x;

    (void)state;
    fusing_open(&f);
    x = make(f.device, 2);
    for (int i = 0; i < ROUNDS; i++)
        expect(negated_twice(f.device, x), 2);
    assert_true(plays(f.device) > 0);
    f.driver.submit_status = FRIT_INTERNAL;
    expect(negated_twice(f.device, x), 2);
    EFFECTS(&f.driver, -2, -2, -2, -2, -2);
    frit_release(x);
    fusing_close(&f);
}

/* More launches than one submit takes; one of them is refused in the midst of it. */
static void test_parts_of_a_plan_have_effects_once(void **state)
{
    struct fusing f = {.driver.inline_queue = true};
    frit_tensor *x, *y;

    (void)state;
    fusing_open(&f);
    x = make(f.device, 1);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(f.device);

        y = effect(x);
        y = frit_floor(y);
        y = frit_keep(effect(y));
        f.driver.submit_status = i % 2 ? FRIT_NO_DEVICE_MEMORY : FRIT_OK;
        frit_scope_end(scope);
        expect(y, 1);
        assert_int_equal(f.driver.n_effects, 2 * (i + 1));
    }
    frit_release(x);
    fusing_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_runs_though_nobody_reads_it),
        cmocka_unit_test(test_the_end_of_a_device_runs_it),
        cmocka_unit_test(test_the_end_of_its_thread_leaves_it),
        cmocka_unit_test(test_a_failure_without_results_is_reported),
        cmocka_unit_test(test_effects_stay_in_order_between_barriers),
        cmocka_unit_test(test_effects_stay_in_order_across_blocks),
        cmocka_unit_test(test_blocks_go_on_around_it),
        cmocka_unit_test(test_a_refused_block_has_its_effect_once),
        cmocka_unit_test(test_played_again_it_has_its_effect_once),
        cmocka_unit_test(test_parts_of_a_plan_have_effects_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
