/* SPDX-License-Identifier: Apache-2.0 */
/* What launches derive from operands is made once per contents, found by later launches, dropped
 * with the contents, with the buffer and when memory is short. */
#include "run/driver.h"

#include <pthread.h>
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "failing_alloc.h"
#include "memory/memory.h"
#include "run/drain.h"

enum { N = 6, ROUNDS = 4, BYTES = 64 };

static const float six[N] = {1, 2, 3, 4, 5, 6};

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), six, sizeof(six));
}

/* Elements are factor * six + more; the tensor is released. */
static void expect(frit_tensor *tensor, float factor, float more)
{
    float out[N];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == factor * six[i] + more);
}

static uint64_t replays(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.replays);
}

static uint64_t buffers(frit_device *device)
{
    struct memory_stats stats;

    memory_stats(device->memory, &stats);
    return stats.buffers_now;
}

static void expect_counts(const struct driver *driver, frit_device *device, uint64_t fills,
                          uint64_t hits)
{
    assert_int_equal(driver->derived_stale, 0);
    assert_int_equal(driver->derived_fills, fills);
    assert_int_equal(atomic_load(&device->count.derived_fills), fills);
    assert_int_equal(atomic_load(&device->count.derived_hits), hits);
}

/* 1 - x as a plan of two launches. */
static frit_tensor *one_minus(frit_device *device, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_keep(frit_add_f(frit_neg(x), 1));

    frit_scope_end(scope);
    return y;
}

static void test_a_weight_is_packed_once(void **state)
{
    struct driver driver = {.derived = BYTES, .n_derived = 2, .reverse = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);

    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        expect(one_minus(device, x), -1, 1);
    expect_counts(&driver, device, 2, 2 * (ROUNDS - 1));
    assert_true(driver.last_content != 0);
    assert_int_equal(replays(device), ROUNDS - 1);
    assert_int_equal(buffers(device), 3);
    frit_release(x);
    assert_int_equal(buffers(device), 0);
    device_close(device);
}

/* Replays of one bound plan with two operands by turns. */
static void test_each_operand_has_its_own(void **state)
{
    struct driver driver = {.derived = BYTES};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x[2];

    (void)state;
    x[0] = make(device);
    x[1] = frit_mul_f(x[0], 2);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    for (int i = 0; i < 2 * ROUNDS; i++)
        expect(one_minus(device, x[i % 2]), i % 2 ? -2 : -1, 1);
    expect_counts(&driver, device, 2, 2 * ROUNDS - 2);
    assert_int_equal(replays(device), 2 * ROUNDS - 1);
    frit_release(x[0]);
    frit_release(x[1]);
    device_close(device);
}

/* A part of an operand is another operand. */
static void test_each_range_has_its_own(void **state)
{
    struct driver driver = {.derived = BYTES};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        for (int64_t first = 0; first < 2; first++) {
            frit_tensor *part = frit_slice(x, FRIT_SLICES({first, first + 3, 1}));
            float out[3];

            assert_int_equal(
                frit_read(frit_take(frit_neg(frit_take(part))), out, sizeof(out), NULL), FRIT_OK);
            assert_true(out[0] == -six[first] && out[2] == -six[first + 2]);
        }
    }
    expect_counts(&driver, device, 2, 2 * ROUNDS - 2);
    frit_release(x);
    device_close(device);
}

/* The operand is overwritten between the launches of a plan, which the recorded run submits one by
 * one where the queue runs inside submit. */
static void write_between(bool inline_queue)
{
    struct driver driver = {.derived = BYTES, .alias = 1, .inline_queue = inline_queue};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);

    for (int i = 0; i < ROUNDS; i++) {
        frit_scope scope = frit_scope_begin(device);
        frit_tensor *before = frit_keep(frit_add_f(frit_neg(x), 0)), *after;

        x = frit_keep(frit_add_f(frit_take(x), 1));
        after = frit_keep(frit_add_f(frit_neg(x), 0));
        frit_scope_end(scope);
        expect(before, -1, (float)-i);
        expect(after, -1, (float)-i - 1);
        assert_int_equal(driver.derived_stale, 0);
    }
    assert_true(atomic_load(&device->count.in_place) > 0);
    assert_true(replays(device) > 0);
    assert_true(driver.derived_fills > ROUNDS);
    frit_release(x);
    assert_int_equal(buffers(device), 0);
    device_close(device);
}

static void test_a_write_ends_it(void **state)
{
    (void)state;
    write_between(false);
    write_between(true);
}

static void test_an_update_between_plans_ends_it(void **state)
{
    struct driver driver = {.derived = BYTES, .alias = 1, .inline_queue = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);
    uint64_t in_place;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        expect(one_minus(device, x), -1, (float)(1 - i));
        expect(one_minus(device, x), -1, (float)(1 - i));
        x = frit_add_f(frit_take(x), 1);
        assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    }
    in_place = atomic_load(&device->count.in_place);
    assert_true(in_place > 0);
    expect_counts(&driver, device, ROUNDS, ROUNDS);
    frit_release(x);
    device_close(device);
}

/* x used by two launches of one plan: one of them derives, the other is after it. */
static frit_tensor *twice(frit_device *device, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_keep(frit_add(frit_neg(x), frit_neg(x)));

    frit_scope_end(scope);
    return y;
}

static void test_two_launches_share_it(void **state)
{
    struct driver driver = {.derived = BYTES, .reverse = true};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(device);

        expect(twice(device, x), -2, 0);
        expect_counts(&driver, device, (uint64_t)i + 1, (uint64_t)i + 1);
        frit_release(x);
    }
    assert_int_equal(replays(device), ROUNDS - 1);
    device_close(device);
}

/* The plan was bound where both found it, so that there is no BARRIER between them. */
static void test_launches_side_by_side_do_not_share_it(void **state)
{
    struct driver driver = {.derived = BYTES, .reverse = true};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);

    (void)state;
    expect(one_minus(device, x), -1, 1);
    expect(twice(device, x), -2, 0);
    expect_counts(&driver, device, 1, 2);
    frit_release(x);
    x = make(device);
    expect(twice(device, x), -2, 0);
    expect_counts(&driver, device, 3, 2);
    expect(twice(device, x), -2, 0);
    expect_counts(&driver, device, 3, 4);
    assert_int_equal(replays(device), 2);
    frit_release(x);
    assert_int_equal(buffers(device), 0);
    device_close(device);
}

/* What a failed launch was to derive is derived again. */
static void fails(bool inline_queue, bool replayed)
{
    struct driver driver = {.derived = BYTES, .inline_queue = inline_queue};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);
    uint64_t fills;
    float out[N];

    if (replayed)
        expect(one_minus(device, frit_take(make(device))), -1, 1);
    fills = atomic_load(&device->count.derived_fills);
    driver.complete_status = FRIT_IO;
    assert_int_not_equal(frit_read(frit_take(one_minus(device, x)), out, sizeof(out), NULL),
                         FRIT_OK);
    assert_int_equal(driver.complete_status, FRIT_OK);
    expect(one_minus(device, x), -1, 1);
    assert_int_equal(atomic_load(&device->count.derived_fills) - fills, 2);
    assert_int_equal(driver.derived_stale, 0);
    frit_release(x);
    assert_int_equal(buffers(device), 0);
    device_close(device);
}

static void test_a_failure_ends_it(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        fails(i & 1, i & 2);
}

/* A refused submit derived nothing. */
static void test_a_refused_submit_fills_nothing(void **state)
{
    struct driver driver = {.derived = BYTES};
    frit_device *device = driver_device(&driver, 100);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(device);

        driver.submit_status = FRIT_NO_DEVICE_MEMORY;
        expect(one_minus(device, x), -1, 1);
        expect(one_minus(device, x), -1, 1);
        assert_int_equal(driver.derived_fills, i + 1);
        assert_int_equal(driver.derived_stale, 0);
        frit_release(x);
        assert_int_equal(buffers(device), 0);
    }
    device_close(device);
}

/* It can be made again, so that it goes before an allocation fails. */
static void test_it_goes_when_memory_is_short(void **state)
{
    enum { LARGE = 1 << 20 };
    static const float data[LARGE / 4 + LARGE / 8];
    struct driver driver = {.derived = LARGE, .capacity = 2 * LARGE + (LARGE >> 1)};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device), *large;

    (void)state;
    expect(one_minus(device, x), -1, 1);
    expect(one_minus(device, x), -1, 1);
    expect_counts(&driver, device, 1, 1);
    large = frit_from_host(device, FRIT_F32, FRIT_SHAPE(LARGE / 4 + LARGE / 8), data, sizeof(data));
    assert_int_equal(frit_tensor_status(large), FRIT_OK);
    frit_release(large);
    expect(one_minus(device, x), -1, 1);
    expect_counts(&driver, device, 2, 1);
    frit_trim(device);
    expect(one_minus(device, x), -1, 1);
    expect_counts(&driver, device, 3, 1);
    frit_release(x);
    device_close(device);
}

static void *in_thread(void *ctx)
{
    frit_tensor *x = ctx;

    for (int i = 0; i < 50; i++) {
        float out[N];
        frit_tensor *y = frit_neg(x);

        if (frit_read(frit_take(y), out, sizeof(out), NULL) || out[5] != -6)
            return x;
    }
    return NULL;
}

static void test_streams_share_it(void **state)
{
    enum { THREADS = 4 };
    struct driver driver = {.derived = BYTES};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = make(device);
    pthread_t threads[THREADS];
    void *wrong;

    (void)state;
    expect(one_minus(device, x), -1, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, in_thread, x), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    expect_counts(&driver, device, 1, (uint64_t)THREADS * 50);
    frit_release(x);
    device_close(device);
}

static void test_out_of_host_memory(void **state)
{
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct driver driver = {.derived = BYTES};
        frit_device *device = driver_device(&driver, 100);
        frit_tensor *x = make(device), *y[2];
        float out[N];

        expect(one_minus(device, frit_take(make(device))), -1, 1);
        failing_alloc_arm(n);
        for (int i = 0; i < 2; i++)
            y[i] = one_minus(device, x);
        hit = failing_alloc_disarm();
        for (int i = 0; i < 2; i++) {
            if (!frit_read(frit_take(y[i]), out, sizeof(out), NULL))
                assert_true(out[5] == -5);
        }
        assert_int_equal(driver.derived_stale, 0);
        frit_release(x);
        assert_int_equal(buffers(device), 0);
        device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_weight_is_packed_once),
        cmocka_unit_test(test_each_operand_has_its_own),
        cmocka_unit_test(test_each_range_has_its_own),
        cmocka_unit_test(test_a_write_ends_it),
        cmocka_unit_test(test_an_update_between_plans_ends_it),
        cmocka_unit_test(test_two_launches_share_it),
        cmocka_unit_test(test_launches_side_by_side_do_not_share_it),
        cmocka_unit_test(test_a_failure_ends_it),
        cmocka_unit_test(test_a_refused_submit_fills_nothing),
        cmocka_unit_test(test_it_goes_when_memory_is_short),
        cmocka_unit_test(test_streams_share_it),
        cmocka_unit_test(test_out_of_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
