/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused submit leaves: failures and last writes as they were before. */
#include <string.h>

#include "device/device.h"
#include "device/wait.h"
#include "failing_alloc.h"
#include "memory/memory.h"
#include "run/bench.h"

enum { BIG = 1 << 14 }; /* elements: memory is used again within a batch */

/* An op that finds no host memory fails, and the batch that it is part of is refused: it runs again
 * with the rest, and then is right. */
static void test_what_failed_runs_again(void **state)
{
    uint32_t n_right = 0;
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct driver driver = {.submit_status = FRIT_INTERNAL};
        bool failed = false;
        uint32_t x, y[3];
        struct bench b;

        bench_open(&b, &driver, 8);
        x = bench_in(&b, 1);
        y[0] = bench_1(&b, FRIT_OP_neg, x);
        y[1] = bench_n(&b, FRIT_OP_add, x, 1);
        y[2] = bench_2(&b, FRIT_OP_mul, x, x);
        for (int i = 0; i < 3; i++)
            bench_want(&b, y[i]);
        bench_plan(&b, NULL, 0);
        failing_alloc_arm(n);
        bench_run(&b);
        hit = failing_alloc_disarm();
        for (int i = 0; i < 3; i++) {
            static const float right[3] = {-1, 2, 1};

            assert_int_equal(!b.values[y[i]].failure, !!b.values[y[i]].value.buffer);
            if (b.values[y[i]].failure)
                failed = true;
            else
                bench_expect(&b, y[i], right[i]);
        }
        assert_int_equal(b.run.first != NULL, failed);
        n_right += hit && !failed;
        bench_close(&b);
    }
    assert_true(n_right > 0);
}

static frit_device *waiting;

static void wait_for_all(struct driver *driver)
{
    assert_int_equal(device_wait(waiting, driver->timeline, NULL), FRIT_OK);
}

/* The write of x failed, which is reported after a batch was refused in which y took the memory of
 * x: x is in its memory again, so it must be spoiled. */
static void test_writes_of_before_are_known_again(void **state)
{
    struct driver driver = {.alias = 1, .submit_status = FRIT_INTERNAL, .on_submit = wait_for_all};
    uint32_t x, y, good;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    good = bench_n(&b, FRIT_OP_add, bench_in(&b, 2), 1);
    driver.fail_writes = true;
    x = bench_in(&b, 1);
    y = bench_1(&b, FRIT_OP_neg, x);
    bench_want(&b, y);
    bench_want(&b, good);
    b.values[x].last = true;
    waiting = b.device;
    bench_run(&b);
    driver.on_submit = NULL;
    assert_non_null(strstr(bench_failure(&b, y), "smoke came out"));
    bench_expect(&b, good, 3);
    bench_close(&b);
}

static void wait_at_second(struct driver *driver)
{
    if (driver->submits == 2)
        wait_for_all(driver);
}

/* What failed had the memory before: what has it now is not spoiled. */
static void test_memory_is_not_spoiled(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT, .on_submit = wait_at_second};
    uint32_t x, bad, made, after;
    struct memory_stats stats;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, BIG);
    x = bench_in(&b, 1);
    bad = bench_1(&b, FRIT_OP_neg, x);
    for (int i = 1; i < 32; i++) /* the first submit */
        bench_want(&b, bench_n(&b, FRIT_OP_add, x, 1));
    bad = bench_1(&b, FRIT_OP_neg, bad);
    made = bench_n(&b, FRIT_OP_add, x, 2); /* where the first one was */
    after = bench_1(&b, FRIT_OP_neg, made);
    bench_want(&b, bad);
    bench_want(&b, made);
    bench_want(&b, after);
    waiting = b.device;
    bench_run(&b);
    assert_int_equal(driver.submits, 2);
    memory_stats(b.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, (1 + 32 + 2) * BIG * sizeof(float));
    assert_non_null(strstr(bench_failure(&b, bad), "smoke came out"));
    bench_expect(&b, made, 3);
    bench_expect(&b, after, -3);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_failed_runs_again),
        cmocka_unit_test(test_writes_of_before_are_known_again),
        cmocka_unit_test(test_memory_is_not_spoiled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
