/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that a stream replays in turn: from when on they are one replay, and what happens to a step
 * that is like the others only as far as its beginning. */
#include "run/recorder.h"

#include <math.h>

#include <frit/frit.h>

#include "device/queue.h"
#include "run/capture.h"
#include "run/join.h"

enum {
    N = 6,
    PLANS = 3,
    MAX_OPS = 50,
    JOINED = 1 + JOIN_PERIODS, /* the first run of all as one: one that binds, replays */
    RECORDED = JOINED + 1 + CAPTURE_AFTER, /* and the first that is recorded */
    STEPS = RECORDED + 10
};

static const float six[N] = {1, 2, 3, 4, 5, 6};

static frit_tensor *make(frit_device *device)
{
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), six, sizeof(six));
}

/* Whole numbers are recorded apart from others. */
static float number(int i)
{
    return 0.125f + 0.25f * (float)i;
}

/* (number - x) / 2: as no scope is open, each op is a plan. */
static frit_tensor *half_of(frit_device *device, int i)
{
    frit_tensor *y = frit_neg(frit_take(make(device)));

    y = frit_add_f(frit_take(y), (double)number(i));
    return frit_mul_f(frit_take(y), 0.5);
}

static void expect(frit_tensor *tensor, float factor, float more)
{
    float out[N];

    assert_int_equal(frit_read(frit_take(tensor), out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == factor * six[i] + more);
}

/* Runs a step to its end; returns how many calls of the driver that took. */
static uint64_t run_step(frit_device *device, int i)
{
    uint64_t submits = device_submits(device);

    expect(half_of(device, i), -0.5f, 0.5f * number(i));
    return device_submits(device) - submits;
}

static void warm_up(frit_device *device)
{
    for (int i = 0; i <= RECORDED; i++)
        run_step(device, i);
    assert_int_equal(run_step(device, 5), 1);
}

static void test_three_plans_are_one_replay(void **state)
{
    (void)state;
    for (int visible = 0; visible < 2; visible++) {
        struct driver driver = {.host_visible = visible, .reverse = true};
        struct recorder recorder = {0};
        frit_device *device = recorder_device(&driver, &recorder, MAX_OPS);
        frit_tensor *kept[STEPS];

        for (int i = 0; i < STEPS; i++) {
            uint64_t submits = device_submits(device);
            uint32_t replays = recorder.replays;

            kept[i] = half_of(device, i);
            assert_int_equal(frit_flush(device, NULL), FRIT_OK);
            assert_int_equal(device_submits(device) - submits, i < JOINED ? PLANS : 1);
            assert_int_equal(recorder.replays - replays, i >= RECORDED);
        }
        for (int i = 0; i < STEPS; i++)
            expect(kept[i], -0.5f, 0.5f * number(i));
        device_close(device);
        assert_int_equal(recorder.alive, 0);
    }
}

/* A stream that never waits: what repeats itself is one replay. */
static void test_a_loop_without_end(void **state)
{
    enum { ROUNDS = 40 };
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, MAX_OPS);
    frit_tensor *kept[ROUNDS];
    uint64_t submits = 0;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 2)
            submits = device_submits(device);
        kept[i] = half_of(device, i);
    }
    assert_true(device_submits(device) - submits <= ROUNDS / 2);
    assert_true(recorder.replays > ROUNDS / 4);
    for (int i = 0; i < ROUNDS; i++)
        expect(kept[i], -0.5f, 0.5f * number(i));
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* Another second op: the step runs as it would without the others, and so do those after it, until
 * they came as often again as it takes the second time. */
static void test_a_step_that_goes_on_in_another_way(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, MAX_OPS);
    uint64_t submits;
    int again = 0;

    (void)state;
    warm_up(device);
    submits = device_submits(device);
    expect(frit_mul_f(frit_take(frit_mul_f(frit_take(frit_neg(frit_take(make(device)))), 2)), 0.5),
           -1, 0);
    assert_int_equal(device_submits(device) - submits, PLANS);
    assert_int_equal(run_step(device, 3), PLANS);
    while (run_step(device, 4 + again) > 1 && again < 100)
        again++;
    assert_int_equal(again, 2 * (JOIN_PERIODS - 1));
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* One op more, or a read before the end. */
static void test_longer_and_shorter_steps(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, MAX_OPS);
    frit_tensor *y;

    (void)state;
    warm_up(device);
    y = frit_neg(frit_take(make(device)));
    expect(frit_add_f(frit_take(y), 2.25), -1, 2.25f);
    assert_int_equal(run_step(device, 3), 1);
    expect(frit_neg(frit_take(half_of(device, 4))), 0.5f, -0.5f * number(4));
    assert_int_equal(run_step(device, 3), PLANS);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* What is kept inside of a step is stored, and where nothing else differs the rest is, too. */
static void test_values_that_outlive_their_step(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, MAX_OPS);
    frit_tensor *inner;

    (void)state;
    warm_up(device);
    inner = frit_neg(frit_take(make(device)));
    expect(frit_mul_f(frit_take(frit_add_f(inner, 3.25)), 0.5), -0.5f, 1.625f);
    for (int i = 0; i < STEPS; i++)
        run_step(device, i);
    expect(inner, -1, 0);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

static void test_two_sequences_by_turns(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, MAX_OPS);

    (void)state;
    for (int i = 0; i < 4 * STEPS; i++) {
        uint64_t submits = device_submits(device);
        frit_tensor *y = frit_exp(frit_take(make(device)));
        float out[N];

        y = frit_mul_f(frit_take(frit_add_f(frit_take(y), (double)number(i))), 2);
        assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
        for (int k = 0; k < N; k++)
            assert_true(out[k] == (expf(six[k]) + number(i)) * 2);
        submits = device_submits(device) - submits;
        submits += run_step(device, i);
        assert_true(i < 3 * STEPS || submits == 2);
    }
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* Without a driver that records, and where work runs inside submit, plans stay apart. */
static void test_devices_that_do_not_record(void **state)
{
    struct driver late = {0}, inside = {.inline_queue = true};
    struct recorder recorder = {0};
    frit_device *devices[] = {driver_device(&late, MAX_OPS),
                              recorder_device(&inside, &recorder, MAX_OPS)};

    (void)state;
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < STEPS; i++)
            assert_int_equal(run_step(devices[d], i), PLANS);
        device_close(devices[d]);
    }
}

/* The sum of a sequence's ops must stay below those that make a stream run. */
static void test_long_sequences_stay_apart(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, PLANS);

    (void)state;
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(run_step(device, i), PLANS);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_plans_are_one_replay),
        cmocka_unit_test(test_a_loop_without_end),
        cmocka_unit_test(test_a_step_that_goes_on_in_another_way),
        cmocka_unit_test(test_longer_and_shorter_steps),
        cmocka_unit_test(test_values_that_outlive_their_step),
        cmocka_unit_test(test_two_sequences_by_turns),
        cmocka_unit_test(test_devices_that_do_not_record),
        cmocka_unit_test(test_long_sequences_stay_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
