/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses between a device and its fallback device, counted, and that results are right. */
#include <string.h>

#include <frit/frit.h>

#include "device/device.h"
#include "run/bench.h"

enum { N = 256, BYTES = N * sizeof(float) };

/* A device without neg and floor, and one that has them; both with and without host pointers. */
static void open_pair(struct bench *b, struct driver *driver, struct driver *helper, int kind)
{
    driver->refuse[0] = FRIT_OP_neg;
    driver->refuse[1] = FRIT_OP_floor;
    driver->host_visible = helper->host_visible = kind & 1;
    helper->inline_queue = true;
    bench_open(b, driver, N);
    b->device->fallback = driver_device(helper, 100);
}

static void expect_traffic(const struct bench *b, uint64_t out, uint64_t in)
{
    assert_int_equal(bench_count(&b->device->count.bytes_out), out * BYTES);
    assert_int_equal(bench_count(&b->device->count.bytes_in), in * BYTES);
}

/* One write for the operand, one read to take it over; nothing comes back, and the result is read
 * where it is. */
static void test_a_chain_stays_there(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct driver driver = {0}, helper = {0};
        struct bench b;
        uint32_t y;

        open_pair(&b, &driver, &helper, kind);
        y = bench_1(&b, FRIT_OP_floor, bench_1(&b, FRIT_OP_neg, bench_in(&b, 1)));
        y = bench_1(&b, FRIT_OP_floor, bench_1(&b, FRIT_OP_neg, y));
        bench_want(&b, y);
        bench_run(&b);
        expect_traffic(&b, 1, 1);
        assert_int_equal(atomic_load(&driver.waits), 1);
        assert_int_equal(helper.launches, 4);
        assert_int_equal(helper.writes, !kind);
        assert_int_equal(helper.reads, 0);
        assert_int_equal(atomic_load(&helper.waits), 4); /* its queue runs inside of submit */
        bench_expect(&b, y, 1);
        expect_traffic(&b, 1, 1);
        assert_int_equal(atomic_load(&driver.waits), 1);
        assert_int_equal(driver.submits, 0);
        bench_close(&b);
    }
}

/* x goes over once and comes back never; y comes home once for its two readers. */
static void test_what_both_need_crosses_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct driver driver = {0}, helper = {0};
        uint32_t x, y, z, sum, product;
        struct bench b;

        open_pair(&b, &driver, &helper, kind);
        x = bench_in(&b, 2);
        y = bench_1(&b, FRIT_OP_neg, x);
        sum = bench_2(&b, FRIT_OP_add, x, y);
        z = bench_1(&b, FRIT_OP_floor, x);
        product = bench_2(&b, FRIT_OP_mul, y, y);
        bench_want(&b, sum);
        bench_want(&b, product);
        bench_want(&b, y);
        bench_want(&b, z);
        bench_run(&b);
        bench_expect(&b, sum, 0);
        bench_expect(&b, product, 4);
        expect_traffic(&b, 1 + 2, 1 + 1); /* two of the reads are bench_expect's */
        assert_int_equal(helper.writes, !kind);
        assert_int_equal(helper.reads, !kind);
        bench_expect(&b, y, -2);
        bench_expect(&b, z, 2);
        assert_int_equal(helper.reads, !kind + 1); /* y is at home as well */
        bench_close(&b);
    }
}

/* All operands are on their way before the first is waited for. */
static void test_operands_share_a_wait(void **state)
{
    struct driver driver = {.refuse = {FRIT_OP_mul}}, helper = {.inline_queue = true};
    struct bench b;
    uint32_t y;

    (void)state;
    bench_open(&b, &driver, N);
    b.device->fallback = driver_device(&helper, 100);
    y = bench_2(&b, FRIT_OP_mul, bench_in(&b, 3), bench_in(&b, 4));
    bench_want(&b, y);
    bench_run(&b);
    assert_int_equal(atomic_load(&driver.waits), 1);
    assert_int_equal(driver.reads, 2);
    bench_expect(&b, y, 12);
    bench_close(&b);
}

/* What was taken over is not used again once the memory has changed. */
static void test_overwritten_operands_go_over_again(void **state)
{
    for (int poison = 0; poison < 2; poison++) {
        struct driver driver = {.alias = 1, .poison = poison}, helper = {0};
        uint32_t x, y, z;
        struct bench b;

        open_pair(&b, &driver, &helper, 0);
        x = bench_n(&b, FRIT_OP_add, bench_in(&b, 1), 1);
        y = bench_1(&b, FRIT_OP_neg, x);
        x = bench_n(&b, FRIT_OP_add, x, 5);
        z = bench_1(&b, FRIT_OP_neg, x);
        bench_want(&b, y);
        bench_want(&b, z);
        bench_run(&b);
        assert_int_equal(bench_count(&b.device->count.in_place), 1);
        bench_expect(&b, y, -2);
        bench_expect(&b, z, -7);
        assert_int_equal(helper.writes, 2);
        bench_close(&b);
    }
    (void)state;
}

/* Only the elements of a small view go over, and views of what is away stay views. */
static void test_views(void **state)
{
    struct driver driver = {0}, helper = {0};
    uint32_t x, y, z;
    struct bench b;

    (void)state;
    open_pair(&b, &driver, &helper, 0);
    x = bench_flip(&b, bench_in(&b, 2));
    y = bench_flip(&b, bench_1(&b, FRIT_OP_neg, x));
    z = bench_1(&b, FRIT_OP_floor, y);
    bench_want(&b, y);
    bench_want(&b, z);
    bench_run(&b);
    expect_traffic(&b, 1, 1);
    bench_expect(&b, y, -2);
    bench_expect(&b, z, -2);
    expect_traffic(&b, 1, 1);
    bench_close(&b);
}

/* A refused submit goes back over what uses a value that is away. */
static void test_a_refused_submit_loses_nothing(void **state)
{
    for (uint32_t nth = 0; nth < 3; nth++) {
        struct driver driver = {.alias = 1, .submit_status = FRIT_INTERNAL, .submit_after = nth},
                      helper = {0};
        uint32_t x, y, z;
        struct bench b;

        open_pair(&b, &driver, &helper, 0);
        x = bench_n(&b, FRIT_OP_add, bench_in(&b, 1), 1);
        y = bench_1(&b, FRIT_OP_neg, x);
        z = bench_n(&b, FRIT_OP_mul, bench_n(&b, FRIT_OP_add, y, 1), 3);
        y = bench_1(&b, FRIT_OP_floor, z);
        bench_want(&b, y);
        bench_run(&b);
        assert_null(b.run.first);
        bench_expect(&b, y, -3);
        bench_close(&b);
    }
    (void)state;
}

/* The op that fails there fails its dependents at home, and nothing else. */
static void test_a_failure_there(void **state)
{
    struct driver driver = {0}, helper = {.complete_status = FRIT_TIMEOUT};
    uint32_t x, y, z, other;
    struct bench b;

    (void)state;
    open_pair(&b, &driver, &helper, 0);
    x = bench_in(&b, 1);
    y = bench_1(&b, FRIT_OP_neg, x);
    z = bench_n(&b, FRIT_OP_add, y, 1);
    other = bench_n(&b, FRIT_OP_add, x, 2);
    bench_want(&b, z);
    bench_want(&b, other);
    bench_run(&b);
    assert_non_null(strstr(bench_failure(&b, z), "neg failed on scripted:0"));
    bench_expect(&b, other, 3);
    bench_close(&b);
}

/* A queue that runs late there: the failure comes with the bytes. */
static void test_a_late_failure_there(void **state)
{
    struct driver driver = {0}, helper = {.complete_status = FRIT_TIMEOUT};
    uint32_t x, y, z, other;
    struct bench b;

    (void)state;
    open_pair(&b, &driver, &helper, 0);
    helper.info.caps = 0;
    x = bench_in(&b, 1);
    y = bench_1(&b, FRIT_OP_neg, x);
    z = bench_n(&b, FRIT_OP_add, y, 1);
    other = bench_n(&b, FRIT_OP_add, x, 2);
    bench_want(&b, y);
    bench_want(&b, z);
    bench_want(&b, other);
    bench_run(&b);
    assert_non_null(strstr(bench_failure(&b, z), "neg failed on scripted:0"));
    bench_expect(&b, other, 3);
    bench_close(&b);
}

/* An op between two that are lacking goes with them, also as a block; where it does not lie between
 * any, or something else at home needs what it makes, it stays. */
static void test_what_lies_between_follows(void **state)
{
    static const struct driver_op add[] = {{FRIT_OP_add, 0, -1}};
    static const int out[] = {1};

    for (int fused = 0; fused < 2; fused++) {
        struct driver driver = {0}, helper = {0};
        struct bench_block block = {.n_ops = 1, .ops = {1}};
        struct bench b;
        uint32_t y;

        open_pair(&b, &driver, &helper, 0);
        y = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
        y = bench_1(&b, FRIT_OP_floor, bench_n(&b, FRIT_OP_add, y, 3));
        y = bench_n(&b, FRIT_OP_add, y, 1);
        bench_want(&b, y);
        if (fused) {
            block.program = bench_program(&driver, add, 1, out, false);
            bench_plan(&b, &block, 1);
        }
        bench_run(&b);
        assert_int_equal(helper.launches, 3);
        assert_int_equal(driver.launches, 1);
        expect_traffic(&b, 1, 2);
        assert_int_equal(b.notes[1].marks, RUN_ELSEWHERE);
        bench_expect(&b, y, 3);
        bench_close(&b);
    }
    (void)state;
}

static void test_what_is_needed_here_stays(void **state)
{
    struct driver driver = {0}, helper = {0};
    uint32_t y, z, sum;
    struct bench b;

    (void)state;
    open_pair(&b, &driver, &helper, 0);
    y = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
    sum = bench_n(&b, FRIT_OP_add, y, 3);
    z = bench_1(&b, FRIT_OP_floor, sum);
    bench_want(&b, sum);
    bench_want(&b, y);
    bench_want(&b, z);
    bench_run(&b);
    assert_int_equal(helper.launches, 2);
    assert_int_equal(driver.launches, 1);
    expect_traffic(&b, 2, 2);
    bench_expect(&b, z, 2);
    bench_expect(&b, sum, 2);
    bench_close(&b);
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
        struct bench b;

        open_pair(&b, &driver, &helper, 0);
        b.n = 1;
        small = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
        b.n = 64;
        large = bench_in(&b, 2);
        sum = bench_1(&b, FRIT_OP_floor, bench_2(&b, FRIT_OP_add, small, large));
        bench_want(&b, sum);
        bench_run(&b);
        assert_int_equal(driver.launches, !links[i].follows);
        assert_int_equal(helper.launches, 2 + links[i].follows);
        bench_expect(&b, sum, 1);
        bench_close(&b);
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
    assert_true(bench_count(&device->count.in_place) >= 1);
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
