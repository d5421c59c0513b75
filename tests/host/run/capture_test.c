/* SPDX-License-Identifier: Apache-2.0 */
/* Bound plans that are recorded by the driver: from when on, what a replay of a recording changes,
 * and what happens where there is none. */
#include "run/recorder.h"

#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "device/queue.h"
#include "run/capture.h"

/* Runs of a plan before it is recorded: the first, which is bound, and replays. */
enum { N = 6, BEFORE = 1 + CAPTURE_AFTER, ROUNDS = BEFORE + 8 };

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

static void expect_failed(frit_tensor *tensor)
{
    float out[N];

    assert_int_equal(frit_read(tensor, out, sizeof(out), NULL), FRIT_TIMEOUT);
    frit_release(tensor);
}

static uint64_t captured(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.captured);
}

static uint64_t played(frit_device *device)
{
    struct stream_counters count;

    streams_sum_counters(device, &count);
    return atomic_load(&count.replays);
}

/* more - x as one plan of two launches. */
static frit_tensor *minus(frit_device *device, frit_tensor *x, double more)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = frit_keep(frit_add_f(frit_neg(x), more));

    frit_scope_end(scope);
    return y;
}

/* x + more in one plan of this many launches, where each pair of negations has its value between.
 */
static frit_tensor *long_way(frit_device *device, frit_tensor *x, int n_launches, double more)
{
    frit_scope scope = frit_scope_begin(device);
    frit_tensor *y = x;

    for (int i = 1; i < n_launches; i++)
        y = frit_neg(y);
    y = frit_keep(frit_add_f(y, more));
    frit_scope_end(scope);
    return y;
}

/* Runs it until it is recorded. */
static void warm_up(frit_device *device)
{
    for (int i = 0; i <= BEFORE; i++) {
        frit_tensor *x = make(device);

        expect(minus(device, x, 1.25), -1, 1.25f);
        frit_release(x);
    }
}

/* ---- what is recorded ---- */

static void test_scalars_and_places_are_those_of_the_replay(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);
    frit_tensor *kept[ROUNDS];

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        frit_tensor *x = make(device);
        uint64_t submits = device_submits(device);

        kept[i] = minus(device, x, 1.25 + i);
        frit_release(x);
        assert_int_equal(frit_flush(device, NULL), FRIT_OK);
        assert_int_equal(device_submits(device) - submits, 1);
        assert_int_equal(recorder.records, i >= BEFORE);
        assert_int_equal(recorder.replays, i < BEFORE ? 0 : i - BEFORE + 1);
    }
    assert_int_equal(captured(device), 2 * (ROUNDS - BEFORE));
    assert_int_equal(played(device), ROUNDS - 1);
    for (int i = 0; i < ROUNDS; i++)
        expect(kept[i], -1, 1.25f + (float)i);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* Each has a recording of its own, in whatever order they come; places that move when the order
 * changes become parameters of a second one. */
static void test_sizes_by_turns(void **state)
{
    static const int64_t sizes[2][2] = {{2, N}, {N, 2}};
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);

    (void)state;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int64_t n = sizes[i / ROUNDS][i % 2];
        frit_tensor *x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(n), six, (uint64_t)n * 4);
        frit_tensor *y = minus(device, x, 0.25 + i);
        float out[N];

        frit_release(x);
        assert_int_equal(frit_read(frit_take(y), out, (uint64_t)n * 4, NULL), FRIT_OK);
        for (int64_t k = 0; k < n; k++)
            assert_true(out[k] == 0.25f + (float)i - six[k]);
    }
    assert_in_range(recorder.records, 2, 4);
    assert_int_equal(recorder.replays, 2 * (ROUNDS - BEFORE));
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* Zeroed workspaces, copied operands, operands that are written over. */
static void test_all_kinds_of_memory(void **state)
{
    struct driver drivers[] = {
        {.workspace = 100},     {.workspace = 100, .workspace_dirty = true},
        {.alias = 1},           {.wants_dense = true},
        {.inline_queue = true}, {.reverse = true, .alias = 1, .workspace = 64}};

    (void)state;
    for (size_t d = 0; d < sizeof(drivers) / sizeof(drivers[0]); d++) {
        struct recorder recorder = {0};
        frit_device *device = recorder_device(&drivers[d], &recorder, 100);
        frit_tensor *other = NULL;

        for (int i = 0; i < ROUNDS; i++) {
            frit_tensor *x = make(device);

            expect(minus(device, frit_take(x), 0.25 + i), -1, 0.25f + (float)i);
            frit_release(other); /* memory moves */
            other = i % 3 ? make(device) : NULL;
            assert_int_equal(frit_sync(device, NULL), FRIT_OK);
        }
        assert_true(recorder.replays >= ROUNDS - BEFORE);
        assert_true(!drivers[d].workspace || drivers[d].workspace_dirty ||
                    drivers[d].workspace_was_zero);
        frit_release(other);
        device_close(device);
        assert_int_equal(recorder.alive, 0);
    }
}

/* Places that stay are constant in a recording, those that move are parameters: a weight that is
 * the same in each replay is none, until it is another one. */
static void test_places_that_stay_are_constant(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);
    frit_tensor *weight = make(device), *another = make(device), *kept[ROUNDS];
    uint32_t before;

    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        kept[i] = minus(device, weight, 0.5 + i);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    assert_int_equal(recorder.records, 1);
    before = recorder.n_places;
    assert_true(before > 0 && before < 4); /* the result, and where the value between lies */
    expect(minus(device, another, 0.25), -1, 0.25f);
    assert_int_equal(recorder.records, 2);
    assert_true(recorder.n_places > before);
    for (int i = 0; i < ROUNDS; i++) {
        expect(minus(device, weight, 0.75), -1, 0.75f);
        expect(minus(device, another, 0.25), -1, 0.25f);
        before = i == 2 ? recorder.records : before;
    }
    assert_int_equal(recorder.records, before);
    assert_int_equal(captured(device), 2 * recorder.replays);
    for (int i = 0; i < ROUNDS; i++)
        expect(kept[i], -1, 0.5f + (float)i);
    frit_release(weight);
    frit_release(another);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* What is derived from an operand once is found in replays; of other contents it is derived anew,
 * which the recording does not do. */
static void test_derived_memory(void **state)
{
    struct driver driver = {.derived = 64, .n_derived = 2};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);
    frit_tensor *x = make(device), *other = make(device);
    uint32_t fills = 0;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        expect(minus(device, x, 0.25 + i), -1, 0.25f + (float)i);
        fills = i ? fills : driver.derived_fills;
    }
    assert_true(fills > 0);
    assert_int_equal(driver.derived_fills, fills);
    assert_int_equal(recorder.replays, ROUNDS - BEFORE);
    for (int i = 0; i < 2; i++) {
        expect(minus(device, other, 0.25 + i), -1, 0.25f + (float)i);
        assert_int_equal(driver.derived_fills, 2 * fills);
    }
    assert_int_equal(recorder.replays, ROUNDS - BEFORE);
    expect(minus(device, x, 0.75), -1, 0.75f);
    assert_int_equal(recorder.replays, ROUNDS - BEFORE + 1);
    frit_release(x);
    frit_release(other);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* A plan that ran as several submits is one recording; where the driver refuses it, each submit is.
 * One submit keeps memory for longer than several, so that places may move once. */
static void test_submits_of_a_plan_are_one_recording(void **state)
{
    enum { LAUNCHES = 81, SUBMITS = 3, REFUSED = 100 };
    static const struct {
        uint32_t max_cmds, records, submits;
    } cases[] = {{0, 1, 1}, {REFUSED, 1 + SUBMITS, SUBMITS}};

    (void)state;
    for (int c = 0; c < 2; c++) {
        struct driver driver = {.reverse = true};
        struct recorder recorder = {.max_cmds = cases[c].max_cmds};
        frit_device *device = recorder_device(&driver, &recorder, 200);
        frit_tensor *kept[ROUNDS];

        for (int i = 0; i < ROUNDS; i++) {
            frit_tensor *x = make(device);
            uint64_t submits = device_submits(device);

            kept[i] = long_way(device, frit_take(x), LAUNCHES, 0.25 + i);
            assert_int_equal(frit_flush(device, NULL), FRIT_OK);
            submits = device_submits(device) - submits;
            if (i != BEFORE)
                assert_int_equal(submits, i < BEFORE ? SUBMITS : cases[c].submits);
        }
        assert_in_range(recorder.records, cases[c].records, 2 * cases[c].records);
        assert_int_equal(captured(device), LAUNCHES * (ROUNDS - BEFORE - c));
        for (int i = 0; i < ROUNDS; i++)
            expect(kept[i], 1, 0.25f + (float)i);
        device_close(device);
        assert_int_equal(recorder.alive, 0);
    }
}

/* ---- where there is no recording ---- */

static void test_what_cannot_be_recorded_is_submitted(void **state)
{
    static const frit_status refusals[] = {FRIT_UNSUPPORTED, FRIT_INTERNAL};
    struct driver driver = {0};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct recorder recorder = {.record_status = refusals[k]};
        frit_device *device = recorder_device(&driver, &recorder, 100);

        for (int i = 0; i < ROUNDS; i++) {
            frit_tensor *x = make(device);

            expect(minus(device, x, 0.25 + i), -1, 0.25f + (float)i);
            frit_release(x);
        }
        assert_int_equal(recorder.records, 1);
        assert_int_equal(captured(device), 0);
        assert_int_equal(played(device), ROUNDS - 1);
        device_close(device);
    }
}

/* A driver that compiles for the recording is called again at some later replays; where launches
 * wait for compiles, at once. */
static void test_a_busy_driver_is_called_again(void **state)
{
    enum { BUSY = 3, LONG = 40 };
    static const struct {
        bool compile_ahead;
        uint64_t first; /* round that is recorded */
    } cases[] = {{false, BEFORE}, {true, 1 + CAPTURE_AFTER * (1 << BUSY)}};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct driver driver = {0};
        struct recorder recorder = {.busy = BUSY};
        frit_device *device = recorder_device(&driver, &recorder, 100);

        device->config.compile_ahead = cases[k].compile_ahead;
        for (uint64_t i = 0; i < LONG; i++) {
            frit_tensor *x = make(device);

            expect(minus(device, x, 0.25 + (double)i), -1, 0.25f + (float)i);
            assert_int_equal(captured(device) > 0, i >= cases[k].first);
            frit_release(x);
        }
        assert_int_equal(recorder.records, BUSY + 1);
        device_close(device);
        assert_int_equal(recorder.alive, 0);
    }
}

static void test_a_replay_that_is_refused_is_submitted(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);

    (void)state;
    warm_up(device);
    assert_int_equal(recorder.replays, 1);
    recorder.replay_status = FRIT_INVALID;
    for (int i = 0; i < 3; i++) {
        frit_tensor *x = make(device);

        expect(minus(device, x, 0.25 + i), -1, 0.25f + (float)i);
        frit_release(x);
    }
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    assert_int_equal(recorder.records, 1);
    assert_int_equal(captured(device), 2);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* A recording counts in the device's cache, and leaves it with its bound plan. */
static void test_recordings_are_bounded(void **state)
{
    enum { SHAPES = 20 };
    static const float data[SHAPES];
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);
    uint64_t bound, recorded;

    (void)state;
    expect(minus(device, make(device), 1), -1, 1);
    bound = atomic_load(&device->cache.bytes);
    warm_up(device);
    recorded = atomic_load(&device->cache.bytes);
    assert_true(recorded > bound);
    device->cache.budget = 3 * recorded;
    for (int64_t n = 1; n <= SHAPES; n++) {
        for (int i = 0; i <= BEFORE; i++) {
            frit_tensor *x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(n), data, (uint64_t)n * 4);

            frit_release(minus(device, x, 1.25));
            frit_release(x);
        }
        assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    }
    assert_true(recorder.records > SHAPES / 2);
    assert_true(recorder.alive < SHAPES / 2);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* The bound plan leaves the cache while its last replay is pending: the recording is released when
 * that has run, as the recorder checks. */
static void test_what_is_pending_is_not_released(void **state)
{
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);
    frit_tensor *x, *y, *other;

    (void)state;
    warm_up(device);
    x = make(device);
    y = minus(device, x, 2.25);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(recorder.replays, 2);
    device->cache.budget = 1;
    other = frit_mul_f(x, 3);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(recorder.alive, 1);
    expect(other, 3, 0);
    expect(y, -1, 2.25f);
    frit_release(x);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

/* ---- failures ---- */

/* -x, 1 - x and x + 2 as one plan. */
struct three {
    frit_tensor *y, *z, *other;
};

static struct three three_of(frit_device *device, frit_tensor *x)
{
    frit_scope scope = frit_scope_begin(device);
    struct three made;

    made.y = frit_keep(frit_neg(x));
    made.z = frit_keep(frit_add_f(made.y, 1));
    made.other = frit_keep(frit_add_f(x, 2));
    frit_scope_end(scope);
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    return made;
}

/* What depends on the launch that fails fails; the rest of its replay, and other replays, do not.
 */
static void test_dependents_in_a_replay_fail_alone(void **state)
{
    enum { FAILS = BEFORE + 3 };
    struct driver driver = {0};
    struct recorder recorder = {0};
    frit_device *device = recorder_device(&driver, &recorder, 100);
    frit_tensor *x = make(device);
    struct three made[ROUNDS];

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        driver.complete_status = i == FAILS ? FRIT_TIMEOUT : FRIT_OK;
        made[i] = three_of(device, x);
    }
    assert_int_equal(recorder.replays, ROUNDS - BEFORE);
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    for (int i = 0; i < ROUNDS; i++) {
        if (i == FAILS) {
            expect_failed(made[i].z);
            expect_failed(made[i].y);
        } else {
            expect(made[i].z, -1, 1);
            expect(made[i].y, -1, 0);
        }
        expect(made[i].other, 1, 2);
    }
    frit_release(x);
    device_close(device);
    assert_int_equal(recorder.alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars_and_places_are_those_of_the_replay),
        cmocka_unit_test(test_sizes_by_turns),
        cmocka_unit_test(test_all_kinds_of_memory),
        cmocka_unit_test(test_places_that_stay_are_constant),
        cmocka_unit_test(test_derived_memory),
        cmocka_unit_test(test_submits_of_a_plan_are_one_recording),
        cmocka_unit_test(test_what_cannot_be_recorded_is_submitted),
        cmocka_unit_test(test_a_busy_driver_is_called_again),
        cmocka_unit_test(test_a_replay_that_is_refused_is_submitted),
        cmocka_unit_test(test_recordings_are_bounded),
        cmocka_unit_test(test_what_is_pending_is_not_released),
        cmocka_unit_test(test_dependents_in_a_replay_fail_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
