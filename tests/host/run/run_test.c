/* SPDX-License-Identifier: Apache-2.0 */
/* Plans over concrete values: what runs side by side, what is submitted together, what fails. */
#include <string.h>

#include "run/bench.h"

#include "device/device.h"
#include "device/wait.h"
#include "failing_alloc.h"

enum { N = 1 << 14 }; /* elements: 64 KiB, so that memory is used again within a batch */

/* ---- batches ---- */

/* neg(x) + exp-free chains side by side, so that there is something to reorder and memory to use
 * again. */
static void run_many(struct driver *driver)
{
    uint32_t kept[20], a, c;
    struct bench b;

    bench_open(&b, driver, N);
    a = bench_in(&b, 2);
    c = a;
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t x = bench_n(&b, FRIT_OP_add, c, 1);
        uint32_t y = bench_1(&b, FRIT_OP_neg, x);

        kept[i] = bench_2(&b, FRIT_OP_mul, y, a);
        c = x;
        if (i % 3 == 0)
            bench_want(&b, kept[i]);
    }
    bench_want(&b, c);
    bench_run(&b);
    assert_null(b.run.first);
    for (uint32_t i = 0; i < 10; i += 3)
        bench_expect(&b, kept[i], -2 * (3 + (float)i));
    bench_expect(&b, c, 12);
    assert_int_equal(driver->submits, 1);
    assert_true(driver->barriers > 0);
    assert_true(driver->barriers < driver->launches);
    bench_close(&b);
}

static void test_commands_between_barriers_are_independent(void **state)
{
    struct driver forward = {0}, backward = {.reverse = true};
    struct driver inside = {.reverse = true, .alias = 1};

    (void)state;
    run_many(&forward);
    run_many(&backward);
    run_many(&inside);
}

/* y is written over x while z, made from x before, is on its way: a write after a read. */
static void test_a_write_waits_for_reads(void **state)
{
    struct driver driver = {.reverse = true, .alias = 1};
    uint32_t x, z, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, N);
    x = bench_in(&b, 5);
    z = bench_n(&b, FRIT_OP_add, x, 1);
    y = bench_1(&b, FRIT_OP_neg, x);
    bench_want(&b, z);
    bench_want(&b, y);
    b.values[x].last = true;
    bench_run(&b);
    bench_expect(&b, z, 6);
    bench_expect(&b, y, -5);
    assert_int_equal(driver.barriers, 1);
    assert_int_equal(bench_count(&b.device->count.in_place), 1);
    assert_ptr_equal(b.values[x].value.buffer, b.values[y].value.buffer);
    bench_close(&b);
}

/* A BARRIER orders what came before it, too: what only touches that needs no other one. */
static void test_no_barrier_without_need(void **state)
{
    struct driver driver = {.reverse = true};
    uint32_t x, y, z;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
    y = bench_n(&b, FRIT_OP_add, x, 1);
    z = bench_n(&b, FRIT_OP_add, x, 2);
    bench_want(&b, x);
    bench_want(&b, y);
    bench_want(&b, z);
    bench_run(&b);
    bench_expect(&b, y, 0);
    bench_expect(&b, z, 1);
    assert_int_equal(driver.barriers, 1);
    bench_close(&b);
}

static void test_long_plans_are_submitted_in_parts(void **state)
{
    struct driver driver = {0}, inside = {.inline_queue = true};
    struct bench b;
    uint32_t x;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_in(&b, 1);
    for (int i = 0; i < 40; i++)
        x = bench_n(&b, FRIT_OP_add, x, 1);
    bench_want(&b, x);
    bench_run(&b);
    bench_expect(&b, x, 41);
    assert_int_equal(driver.submits, 2);
    bench_close(&b);

    bench_open(&b, &inside, 8);
    x = bench_1(&b, FRIT_OP_neg, bench_1(&b, FRIT_OP_neg, bench_in(&b, 1)));
    bench_want(&b, x);
    bench_run(&b);
    assert_int_equal(inside.submits, 2);
    bench_close(&b);
}

static void test_what_nobody_wants_is_not_run(void **state)
{
    struct driver driver = {0};
    uint32_t x, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_in(&b, 1);
    y = bench_1(&b, FRIT_OP_neg, x);
    bench_1(&b, FRIT_OP_neg, bench_1(&b, FRIT_OP_neg, x));
    bench_want(&b, y);
    bench_run(&b);
    assert_int_equal(driver.launches, 1);
    assert_int_equal(bench_count(&b.device->count.skipped), 2);
    bench_close(&b);
}

/* What was overwritten in place before the refusal is there again for the second way. */
static void test_a_refused_batch_is_undone(void **state)
{
    struct driver driver = {.alias = 1, .poison = true};
    struct bench_block block = {.n_ops = 1, .ops = {3}};
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int first[] = {1};
    uint32_t x, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, N);
    x = bench_in(&b, 1);
    y = x;
    for (int i = 0; i < 3; i++)
        y = bench_n(&b, FRIT_OP_add, y, 1);
    y = bench_n(&b, FRIT_OP_add, bench_1(&b, FRIT_OP_neg, y), 1);
    bench_want(&b, y);
    b.values[x].last = true;
    block.program = bench_program(&driver, neg, 1, first, false);
    bench_script(block.program)->submit_status = FRIT_INTERNAL;
    {
        struct bench_block parts[5];

        for (uint32_t i = 0; i < 5; i++)
            parts[i] = (struct bench_block){.n_ops = 1, .ops = {i}};
        parts[3] = block;
        bench_plan(&b, parts, 5);
    }
    bench_run(&b);
    assert_null(b.run.first);
    bench_expect(&b, y, -3);
    bench_close(&b);
}

/* ---- failures ---- */

/* ---- failures ---- */

static void test_dependents_fail_and_others_run(void **state)
{
    struct driver driver = {.refuse_neg = true};
    uint32_t x, bad, after, good;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_in(&b, 1);
    bad = bench_1(&b, FRIT_OP_neg, x);
    after = bench_n(&b, FRIT_OP_add, bad, 1);
    good = bench_n(&b, FRIT_OP_add, x, 1);
    bench_want(&b, bad);
    bench_want(&b, after);
    bench_want(&b, good);
    bench_run(&b);
    assert_string_equal(bench_failure(&b, bad),
                        "neg: the driver of scripted:0 has no such op for these types");
    assert_ptr_equal(b.values[after].failure, b.values[bad].failure);
    assert_ptr_equal(b.run.first, b.values[bad].failure);
    bench_expect(&b, good, 2);
    bench_close(&b);
}

/* Work that ran inside submit has failed by then. */
static void test_a_failure_inside_submit_is_found(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = true};
    struct bench b;
    uint32_t y;

    (void)state;
    bench_open(&b, &driver, 8);
    y = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
    bench_want(&b, y);
    bench_run(&b);
    assert_string_equal(bench_failure(&b, y), "neg failed on scripted:0: smoke came out");
    assert_ptr_equal(b.run.first, b.values[y].failure);
    bench_close(&b);
}

static frit_device *waiting;

static void wait_for_all(struct driver *driver)
{
    assert_int_equal(device_wait(waiting, driver->timeline, NULL), FRIT_OK);
}

/* The write of x failed, and only that one is known; a wait reports it before the run, or while the
 * run is being submitted. */
static void test_a_failure_reported_meanwhile_reaches_all(void **state)
{
    for (int meanwhile = 0; meanwhile < 3; meanwhile++) {
        struct driver driver = {.fail_writes = true, .alias = meanwhile == 2};
        uint32_t x, y, z, good;
        struct bench b;

        bench_open(&b, &driver, 8);
        x = bench_in(&b, 1);
        good = bench_n(&b, FRIT_OP_add, bench_in(&b, 2), 1);
        y = bench_1(&b, FRIT_OP_neg, x);
        z = bench_1(&b, FRIT_OP_neg, y);
        bench_want(&b, y);
        bench_want(&b, z);
        bench_want(&b, good);
        waiting = b.device;
        b.values[x].last = true; /* 2: overwritten in place */
        if (meanwhile)
            driver.on_submit = wait_for_all;
        else
            wait_for_all(&driver);
        bench_run(&b);
        driver.on_submit = NULL;
        assert_non_null(strstr(bench_failure(&b, y), "smoke came out"));
        assert_ptr_equal(b.values[z].failure, b.values[y].failure);
        assert_int_equal(driver.launches, meanwhile ? 3 : 1);
        bench_close(&b);
    }
    (void)state;
}

/* ---- no host memory ---- */

/* Whatever is missing: each wanted value is right or has a failure, and nothing leaks. */
static void test_no_host_memory_is_survived(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct driver driver = {.wants_dense = true,
                                .refuse_prepare = FRIT_OP_ceil,
                                .poison = true,
                                .workspace = 1 << 16,
                                .derived = 64,
                                .alias = n % 2 == 1};
        struct bench_block block = {.n_ops = 1, .ops = {0}};
        uint32_t x, y, z;
        struct bench b;

        bench_open(&b, &driver, 8);
        x = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
        y = bench_1(&b, FRIT_OP_neg, bench_flip(&b, bench_n(&b, FRIT_OP_add, x, 1)));
        z = bench_1(&b, FRIT_OP_ceil, bench_n(&b, FRIT_OP_add, x, 4));
        bench_want(&b, y);
        bench_want(&b, z);
        block.program = bench_program(&driver, neg, 1, out, false);
        bench_script(block.program)->n_candidates = 2;
        bench_script(block.program)->refuse = n % 3 == 0 ? 3 : 1;
        bench_plan(&b, &block, 1);
        failing_alloc_arm(n);
        bench_run(&b);
        hit = failing_alloc_disarm();
        for (uint32_t v = 0; v < b.graph.n_values; v++)
            assert_true(!b.values[v].wanted || !b.values[v].value.buffer != !b.values[v].failure);
        if (b.values[y].value.buffer)
            bench_expect(&b, y, 0);
        if (b.values[z].value.buffer)
            bench_expect(&b, z, 3);
        assert_true(hit || (!b.values[y].failure && !b.values[z].failure));
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_between_barriers_are_independent),
        cmocka_unit_test(test_a_write_waits_for_reads),
        cmocka_unit_test(test_no_barrier_without_need),
        cmocka_unit_test(test_long_plans_are_submitted_in_parts),
        cmocka_unit_test(test_what_nobody_wants_is_not_run),
        cmocka_unit_test(test_a_refused_batch_is_undone),
        cmocka_unit_test(test_dependents_fail_and_others_run),
        cmocka_unit_test(test_a_failure_inside_submit_is_found),
        cmocka_unit_test(test_a_failure_reported_meanwhile_reaches_all),
        cmocka_unit_test(test_no_host_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
