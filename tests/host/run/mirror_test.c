/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses between a device and its fallback device, counted, and that results are right. */
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "run/rig.h"

enum { N = 256, BYTES = N * sizeof(float) };

/* A device without neg and floor, and one that has them; both with and without host pointers. */
static void open_pair(struct rig *rig, struct driver *driver, struct driver *helper, int kind)
{
    driver->refuse[0] = FRIT_OP_neg;
    driver->refuse[1] = FRIT_OP_floor;
    driver->host_visible = helper->host_visible = kind & 1;
    helper->inline_queue = true;
    rig_open(rig, driver, N);
    rig->device->fallback = driver_device(helper, 100);
}

static void expect_traffic(const struct rig *rig, uint64_t out, uint64_t in)
{
    assert_int_equal(rig_count(&rig->device->count.bytes_out), out * BYTES);
    assert_int_equal(rig_count(&rig->device->count.bytes_in), in * BYTES);
}

/* One write for the operand, one read to take it over; nothing comes back, and the result is read
 * where it is. */
static void test_a_chain_stays_there(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct driver driver = {0}, helper = {0};
        struct rig rig;
        uint32_t y;

        open_pair(&rig, &driver, &helper, kind);
        y = rig_1(&rig, FRIT_OP_floor, rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1)));
        y = rig_1(&rig, FRIT_OP_floor, rig_1(&rig, FRIT_OP_neg, y));
        rig_want(&rig, y);
        rig_run(&rig);
        expect_traffic(&rig, 1, 1);
        assert_int_equal(atomic_load(&driver.waits), 1);
        assert_int_equal(helper.launches, 4);
        assert_int_equal(helper.writes, !kind);
        assert_int_equal(helper.reads, 0);
        assert_int_equal(atomic_load(&helper.waits), 4); /* its queue runs inside of submit */
        rig_expect(&rig, y, 1);
        expect_traffic(&rig, 1, 1);
        assert_int_equal(atomic_load(&driver.waits), 1);
        assert_int_equal(driver.submits, 0);
        rig_close(&rig);
    }
}

/* x goes over once and comes back never; y comes home once for its two readers. */
static void test_what_both_need_crosses_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct driver driver = {0}, helper = {0};
        uint32_t x, y, z, sum, product;
        struct rig rig;

        open_pair(&rig, &driver, &helper, kind);
        x = rig_in(&rig, 2);
        y = rig_1(&rig, FRIT_OP_neg, x);
        sum = rig_2(&rig, FRIT_OP_add, x, y);
        z = rig_1(&rig, FRIT_OP_floor, x);
        product = rig_2(&rig, FRIT_OP_mul, y, y);
        rig_want(&rig, sum);
        rig_want(&rig, product);
        rig_want(&rig, y);
        rig_want(&rig, z);
        rig_run(&rig);
        rig_expect(&rig, sum, 0);
        rig_expect(&rig, product, 4);
        expect_traffic(&rig, 1 + 2, 1 + 1); /* two of the reads are rig_expect's */
        assert_int_equal(helper.writes, !kind);
        assert_int_equal(helper.reads, !kind);
        rig_expect(&rig, y, -2);
        rig_expect(&rig, z, 2);
        assert_int_equal(helper.reads, !kind + 1); /* y is at home as well */
        rig_close(&rig);
    }
}

/* All operands are on their way before the first is waited for. */
static void test_operands_share_a_wait(void **state)
{
    struct driver driver = {.refuse = {FRIT_OP_mul}}, helper = {.inline_queue = true};
    struct rig rig;
    uint32_t y;

    (void)state;
    rig_open(&rig, &driver, N);
    rig.device->fallback = driver_device(&helper, 100);
    y = rig_2(&rig, FRIT_OP_mul, rig_in(&rig, 3), rig_in(&rig, 4));
    rig_want(&rig, y);
    rig_run(&rig);
    assert_int_equal(atomic_load(&driver.waits), 1);
    assert_int_equal(driver.reads, 2);
    rig_expect(&rig, y, 12);
    rig_close(&rig);
}

/* What was taken over is not used again once the memory has changed. */
static void test_overwritten_operands_go_over_again(void **state)
{
    for (int poison = 0; poison < 2; poison++) {
        struct driver driver = {.alias = 1, .poison = poison}, helper = {0};
        uint32_t x, y, z;
        struct rig rig;

        open_pair(&rig, &driver, &helper, 0);
        x = rig_n(&rig, FRIT_OP_add, rig_in(&rig, 1), 1);
        y = rig_1(&rig, FRIT_OP_neg, x);
        x = rig_n(&rig, FRIT_OP_add, x, 5);
        z = rig_1(&rig, FRIT_OP_neg, x);
        rig_want(&rig, y);
        rig_want(&rig, z);
        rig_run(&rig);
        assert_int_equal(rig_count(&rig.device->count.in_place), 1);
        rig_expect(&rig, y, -2);
        rig_expect(&rig, z, -7);
        assert_int_equal(helper.writes, 2);
        rig_close(&rig);
    }
    (void)state;
}

/* Only the elements of a small view go over, and views of what is away stay views. */
static void test_views(void **state)
{
    struct driver driver = {0}, helper = {0};
    uint32_t x, y, z;
    struct rig rig;

    (void)state;
    open_pair(&rig, &driver, &helper, 0);
    x = rig_flip(&rig, rig_in(&rig, 2));
    y = rig_flip(&rig, rig_1(&rig, FRIT_OP_neg, x));
    z = rig_1(&rig, FRIT_OP_floor, y);
    rig_want(&rig, y);
    rig_want(&rig, z);
    rig_run(&rig);
    expect_traffic(&rig, 1, 1);
    rig_expect(&rig, y, -2);
    rig_expect(&rig, z, -2);
    expect_traffic(&rig, 1, 1);
    rig_close(&rig);
}

/* A refused submit goes back over what uses a value that is away. */
static void test_a_refused_submit_loses_nothing(void **state)
{
    for (uint32_t nth = 0; nth < 3; nth++) {
        struct driver driver = {.alias = 1, .submit_status = FRIT_INTERNAL, .submit_after = nth},
                      helper = {0};
        uint32_t x, y, z;
        struct rig rig;

        open_pair(&rig, &driver, &helper, 0);
        x = rig_n(&rig, FRIT_OP_add, rig_in(&rig, 1), 1);
        y = rig_1(&rig, FRIT_OP_neg, x);
        z = rig_n(&rig, FRIT_OP_mul, rig_n(&rig, FRIT_OP_add, y, 1), 3);
        y = rig_1(&rig, FRIT_OP_floor, z);
        rig_want(&rig, y);
        rig_run(&rig);
        assert_null(rig.run.first);
        rig_expect(&rig, y, -3);
        rig_close(&rig);
    }
    (void)state;
}

/* The op that fails there fails its dependents at home, and nothing else. */
static void test_a_failure_there(void **state)
{
    struct driver driver = {0}, helper = {.complete_status = FRIT_TIMEOUT};
    uint32_t x, y, z, other;
    struct rig rig;

    (void)state;
    open_pair(&rig, &driver, &helper, 0);
    x = rig_in(&rig, 1);
    y = rig_1(&rig, FRIT_OP_neg, x);
    z = rig_n(&rig, FRIT_OP_add, y, 1);
    other = rig_n(&rig, FRIT_OP_add, x, 2);
    rig_want(&rig, z);
    rig_want(&rig, other);
    rig_run(&rig);
    assert_non_null(strstr(rig_failure(&rig, z), "neg failed on scripted:0"));
    rig_expect(&rig, other, 3);
    rig_close(&rig);
}

/* A queue that runs late there: the failure comes with the bytes. */
static void test_a_late_failure_there(void **state)
{
    struct driver driver = {0}, helper = {.complete_status = FRIT_TIMEOUT};
    uint32_t x, y, z, other;
    struct rig rig;

    (void)state;
    open_pair(&rig, &driver, &helper, 0);
    helper.info.caps = 0;
    x = rig_in(&rig, 1);
    y = rig_1(&rig, FRIT_OP_neg, x);
    z = rig_n(&rig, FRIT_OP_add, y, 1);
    other = rig_n(&rig, FRIT_OP_add, x, 2);
    rig_want(&rig, y);
    rig_want(&rig, z);
    rig_want(&rig, other);
    rig_run(&rig);
    assert_non_null(strstr(rig_failure(&rig, z), "neg failed on scripted:0"));
    rig_expect(&rig, other, 3);
    rig_close(&rig);
}

/* An op between two that are lacking goes with them, also as a block; where it does not lie between
 * any, or something else at home needs what it makes, it stays. */
static void test_what_lies_between_follows(void **state)
{
    static const struct driver_op add[] = {{FRIT_OP_add, 0, -1}};
    static const int out[] = {1};

    for (int fused = 0; fused < 2; fused++) {
        struct driver driver = {0}, helper = {0};
        struct rig_block block = {.n_ops = 1, .ops = {1}};
        struct rig rig;
        uint32_t y;

        open_pair(&rig, &driver, &helper, 0);
        y = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
        y = rig_1(&rig, FRIT_OP_floor, rig_n(&rig, FRIT_OP_add, y, 3));
        y = rig_n(&rig, FRIT_OP_add, y, 1);
        rig_want(&rig, y);
        if (fused) {
            block.program = rig_program(&driver, add, 1, out, false);
            rig_plan(&rig, &block, 1);
        }
        rig_run(&rig);
        assert_int_equal(helper.launches, 3);
        assert_int_equal(driver.launches, 1);
        expect_traffic(&rig, 1, 2);
        assert_int_equal(rig.notes[1].marks, RUN_ELSEWHERE);
        rig_expect(&rig, y, 3);
        rig_close(&rig);
    }
    (void)state;
}

static void test_what_is_needed_here_stays(void **state)
{
    struct driver driver = {0}, helper = {0};
    uint32_t y, z, sum;
    struct rig rig;

    (void)state;
    open_pair(&rig, &driver, &helper, 0);
    y = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
    sum = rig_n(&rig, FRIT_OP_add, y, 3);
    z = rig_1(&rig, FRIT_OP_floor, sum);
    rig_want(&rig, sum);
    rig_want(&rig, y);
    rig_want(&rig, z);
    rig_run(&rig);
    assert_int_equal(helper.launches, 2);
    assert_int_equal(driver.launches, 1);
    expect_traffic(&rig, 2, 2);
    rig_expect(&rig, z, 2);
    rig_expect(&rig, sum, 2);
    rig_close(&rig);
}

/* A small value is there, a large one here, and their sum is needed there: at home the sum crosses
 * and the small one, there the large one alone, but the op costs something.  What a crossing costs
 * decides. */
static void test_the_link_decides(void **state)
{
    static const struct {
        uint32_t latency_ns;
        uint64_t bytes_per_s;
        bool follows;
    } links[] = {{0, 0, false}, {1000, 0, true}, {0, 1000000000, true}, {0, 100000000000, false}};

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        struct driver driver = {.info.link_latency_ns = links[i].latency_ns,
                                .info.link_bytes_per_s = links[i].bytes_per_s};
        struct driver helper = {0};
        uint32_t small, large, sum;
        struct rig rig;

        open_pair(&rig, &driver, &helper, 0);
        rig.n = 1;
        small = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
        rig.n = 64;
        large = rig_in(&rig, 2);
        sum = rig_1(&rig, FRIT_OP_floor, rig_2(&rig, FRIT_OP_add, small, large));
        rig_want(&rig, sum);
        rig_run(&rig);
        assert_int_equal(driver.launches, !links[i].follows);
        assert_int_equal(helper.launches, 2 + links[i].follows);
        rig_expect(&rig, sum, 1);
        rig_close(&rig);
    }
    (void)state;
}

static frit_tensor *make(frit_device *device)
{
    static const float ones[N] = {1};

    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), ones, sizeof(ones));
}

/* Ops at home that run as before: they fetch what is away, and what they overwrite goes over again.
 */
static void test_replays_fetch_and_overwrite(void **state)
{
    struct driver driver = {.refuse = {FRIT_OP_neg}, .alias = 1}, helper = {.inline_queue = true};
    frit_device *device = driver_device(&driver, 100), *there = driver_device(&helper, 100);
    struct stream_counters counters;
    float out[N];

    (void)state;
    device->fallback = there;
    for (int i = 0; i < 6; i++) {
        frit_tensor *x = make(device), *y = frit_neg(x), *z;

        assert_int_equal(frit_flush(device, NULL), FRIT_OK);
        z = frit_add_f(frit_take(x), 1);
        assert_int_equal(frit_flush(device, NULL), FRIT_OK);
        z = frit_neg(frit_take(z));
        assert_int_equal(frit_read(frit_take(z), out, sizeof(out), NULL), FRIT_OK);
        assert_true(out[0] == -2);
        y = frit_add_f(frit_take(y), 3);
        assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
        assert_true(out[0] == 2);
    }
    streams_sum_counters(device, &counters);
    assert_true(atomic_load(&counters.replays) >= 8);
    assert_true(rig_count(&device->count.in_place) >= 1);
    device_close(device);
    device_close(there);
}

/* Only a sync waits for a late queue there; it returns the failure, once. */
static void test_a_sync_waits_there_too(void **state)
{
    struct driver driver = {.refuse = {FRIT_OP_neg}}, helper = {0};
    frit_device *device = driver_device(&driver, 100), *there = driver_device(&helper, 100);
    frit_tensor *good, *bad;

    (void)state;
    device->fallback = there;
    good = frit_neg(frit_take(frit_neg(frit_take(make(device)))));
    assert_int_equal(frit_flush(device, NULL), FRIT_OK);
    assert_int_equal(helper.launches, 2);
    assert_int_equal(atomic_load(&helper.waits), 0);
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    assert_int_equal(atomic_load(&helper.waits), 1);
    helper.complete_status = FRIT_TIMEOUT;
    bad = frit_neg(frit_take(make(device)));
    assert_int_equal(frit_sync(device, NULL), FRIT_TIMEOUT);
    assert_int_equal(frit_tensor_status(bad), FRIT_TIMEOUT);
    assert_non_null(strstr(frit_tensor_error(bad), "neg failed on scripted:0"));
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    assert_int_equal(frit_tensor_status(good), FRIT_OK);
    frit_release(good);
    frit_release(bad);
    device_close(device);
    device_close(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain_stays_there),
        cmocka_unit_test(test_what_both_need_crosses_once),
        cmocka_unit_test(test_operands_share_a_wait),
        cmocka_unit_test(test_overwritten_operands_go_over_again),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_a_refused_submit_loses_nothing),
        cmocka_unit_test(test_a_failure_there),
        cmocka_unit_test(test_a_late_failure_there),
        cmocka_unit_test(test_what_lies_between_follows),
        cmocka_unit_test(test_what_is_needed_here_stays),
        cmocka_unit_test(test_the_link_decides),
        cmocka_unit_test(test_replays_fetch_and_overwrite),
        cmocka_unit_test(test_a_sync_waits_there_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
