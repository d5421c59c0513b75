/* SPDX-License-Identifier: Apache-2.0 */
/* Plans over concrete values: what runs side by side, what is submitted together, what fails. */
#include <stdio.h>
#include <string.h>

#include "run/rig.h"

#include "base/log.h"
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
    struct rig rig;

    rig_open(&rig, driver, N);
    a = rig_in(&rig, 2);
    c = a;
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t x = rig_n(&rig, FRIT_OP_add, c, 1);
        uint32_t y = rig_1(&rig, FRIT_OP_neg, x);

        kept[i] = rig_2(&rig, FRIT_OP_mul, y, a);
        c = x;
        if (i % 3 == 0)
            rig_want(&rig, kept[i]);
    }
    rig_want(&rig, c);
    rig_run(&rig);
    assert_null(rig.run.first);
    for (uint32_t i = 0; i < 10; i += 3)
        rig_expect(&rig, kept[i], -2 * (3 + (float)i));
    rig_expect(&rig, c, 12);
    assert_int_equal(driver->submits, 1);
    assert_true(driver->barriers > 0);
    assert_true(driver->barriers < driver->launches);
    rig_close(&rig);
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
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, N);
    x = rig_in(&rig, 5);
    z = rig_n(&rig, FRIT_OP_add, x, 1);
    y = rig_1(&rig, FRIT_OP_neg, x);
    rig_want(&rig, z);
    rig_want(&rig, y);
    rig.values[x].last = true;
    rig_run(&rig);
    rig_expect(&rig, z, 6);
    rig_expect(&rig, y, -5);
    assert_int_equal(driver.barriers, 1);
    assert_int_equal(rig_count(&rig.device->count.in_place), 1);
    assert_ptr_equal(rig.values[x].value.buffer, rig.values[y].value.buffer);
    rig_close(&rig);
}

/* A BARRIER orders what came before it, too: what only touches that needs no other one. */
static void test_no_barrier_without_need(void **state)
{
    struct driver driver = {.reverse = true};
    uint32_t x, y, z;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
    y = rig_n(&rig, FRIT_OP_add, x, 1);
    z = rig_n(&rig, FRIT_OP_add, x, 2);
    rig_want(&rig, x);
    rig_want(&rig, y);
    rig_want(&rig, z);
    rig_run(&rig);
    rig_expect(&rig, y, 0);
    rig_expect(&rig, z, 1);
    assert_int_equal(driver.barriers, 1);
    rig_close(&rig);
}

static void test_long_plans_are_submitted_in_parts(void **state)
{
    struct driver driver = {0}, inside = {.inline_queue = true};
    struct rig rig;
    uint32_t x;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_in(&rig, 1);
    for (int i = 0; i < 40; i++)
        x = rig_n(&rig, FRIT_OP_add, x, 1);
    rig_want(&rig, x);
    rig_run(&rig);
    rig_expect(&rig, x, 41);
    assert_int_equal(driver.submits, 2);
    rig_close(&rig);

    rig_open(&rig, &inside, 8);
    x = rig_1(&rig, FRIT_OP_neg, rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1)));
    rig_want(&rig, x);
    rig_run(&rig);
    assert_int_equal(inside.submits, 2);
    rig_close(&rig);
}

static void test_what_nobody_wants_is_not_run(void **state)
{
    struct driver driver = {0};
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_in(&rig, 1);
    y = rig_1(&rig, FRIT_OP_neg, x);
    rig_1(&rig, FRIT_OP_neg, rig_1(&rig, FRIT_OP_neg, x));
    rig_want(&rig, y);
    rig_run(&rig);
    assert_int_equal(driver.launches, 1);
    assert_int_equal(rig_count(&rig.device->count.skipped), 2);
    rig_close(&rig);
}

/* What was overwritten in place before the refusal is there again for the second way. */
static void test_a_refused_batch_is_undone(void **state)
{
    struct driver driver = {.alias = 1, .poison = true};
    struct rig_block block = {.n_ops = 1, .ops = {3}};
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int first[] = {1};
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, N);
    x = rig_in(&rig, 1);
    y = x;
    for (int i = 0; i < 3; i++)
        y = rig_n(&rig, FRIT_OP_add, y, 1);
    y = rig_n(&rig, FRIT_OP_add, rig_1(&rig, FRIT_OP_neg, y), 1);
    rig_want(&rig, y);
    rig.values[x].last = true;
    block.program = rig_program(&driver, neg, 1, first, false);
    rig_script(block.program)->submit_status = FRIT_INTERNAL;
    {
        struct rig_block parts[5];

        for (uint32_t i = 0; i < 5; i++)
            parts[i] = (struct rig_block){.n_ops = 1, .ops = {i}};
        parts[3] = block;
        rig_plan(&rig, parts, 5);
    }
    rig_run(&rig);
    assert_null(rig.run.first);
    rig_expect(&rig, y, -3);
    rig_close(&rig);
}

/* ---- failures ---- */

/* ---- failures ---- */

static void test_dependents_fail_and_others_run(void **state)
{
    struct driver driver = {.refuse_neg = true};
    uint32_t x, bad, after, good;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_in(&rig, 1);
    bad = rig_1(&rig, FRIT_OP_neg, x);
    after = rig_n(&rig, FRIT_OP_add, bad, 1);
    good = rig_n(&rig, FRIT_OP_add, x, 1);
    rig_want(&rig, bad);
    rig_want(&rig, after);
    rig_want(&rig, good);
    rig_run(&rig);
    assert_string_equal(rig_failure(&rig, bad),
                        "neg: the driver of scripted:0 has no such op for these types");
    assert_ptr_equal(rig.values[after].failure, rig.values[bad].failure);
    assert_ptr_equal(rig.run.first, rig.values[bad].failure);
    rig_expect(&rig, good, 2);
    rig_close(&rig);
}

/* Work that ran inside submit has failed by then. */
static void test_a_failure_inside_submit_is_found(void **state)
{
    struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = true};
    struct rig rig;
    uint32_t y;

    (void)state;
    rig_open(&rig, &driver, 8);
    y = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
    rig_want(&rig, y);
    rig_run(&rig);
    assert_string_equal(rig_failure(&rig, y), "neg failed on scripted:0: smoke came out");
    assert_ptr_equal(rig.run.first, rig.values[y].failure);
    rig_close(&rig);
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
        struct rig rig;

        rig_open(&rig, &driver, 8);
        x = rig_in(&rig, 1);
        good = rig_n(&rig, FRIT_OP_add, rig_in(&rig, 2), 1);
        y = rig_1(&rig, FRIT_OP_neg, x);
        z = rig_1(&rig, FRIT_OP_neg, y);
        rig_want(&rig, y);
        rig_want(&rig, z);
        rig_want(&rig, good);
        waiting = rig.device;
        rig.values[x].last = true; /* 2: overwritten in place */
        if (meanwhile)
            driver.on_submit = wait_for_all;
        else
            wait_for_all(&driver);
        rig_run(&rig);
        driver.on_submit = NULL;
        assert_non_null(strstr(rig_failure(&rig, y), "smoke came out"));
        assert_ptr_equal(rig.values[z].failure, rig.values[y].failure);
        assert_int_equal(driver.launches, meanwhile ? 3 : 1);
        rig_close(&rig);
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
        struct rig_block block = {.n_ops = 1, .ops = {0}};
        uint32_t x, y, z;
        struct rig rig;

        rig_open(&rig, &driver, 8);
        x = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
        y = rig_1(&rig, FRIT_OP_neg, rig_flip(&rig, rig_n(&rig, FRIT_OP_add, x, 1)));
        z = rig_1(&rig, FRIT_OP_ceil, rig_n(&rig, FRIT_OP_add, x, 4));
        rig_want(&rig, y);
        rig_want(&rig, z);
        block.program = rig_program(&driver, neg, 1, out, false);
        rig_script(block.program)->n_candidates = 2;
        rig_script(block.program)->refuse = n % 3 == 0 ? 3 : 1;
        rig_plan(&rig, &block, 1);
        failing_alloc_arm(n);
        rig_run(&rig);
        hit = failing_alloc_disarm();
        for (uint32_t v = 0; v < rig.graph.n_values; v++)
            assert_true(!rig.values[v].wanted ||
                        !rig.values[v].value.buffer != !rig.values[v].failure);
        if (rig.values[y].value.buffer)
            rig_expect(&rig, y, 0);
        if (rig.values[z].value.buffer)
            rig_expect(&rig, z, 3);
        assert_true(hit || (!rig.values[y].failure && !rig.values[z].failure));
        rig_close(&rig);
    }
}

static char long_waits[512];

static void note_wait(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx, (void)level, (void)topic;
    if (strstr(text, "a wait has not returned for"))
        snprintf(long_waits + strlen(long_waits), sizeof(long_waits) - strlen(long_waits), "%s\n",
                 text);
}

static void test_a_long_wait_goes_on_with_warnings(void **state)
{
    struct driver driver = {.late_waits = 3};
    struct rig rig;
    uint32_t y;

    (void)state;
    log_set_sink(note_wait, NULL);
    rig_open(&rig, &driver, 8);
    y = rig_n(&rig, FRIT_OP_add, rig_in(&rig, 1), 2);
    rig_want(&rig, y);
    rig_run(&rig);
    rig_expect(&rig, y, 3);
    assert_int_equal(driver.late_waits, 0);
    rig_close(&rig);
    log_set_sink(NULL, NULL);
    assert_non_null(strstr(long_waits, "for 10 s\n"));
    assert_non_null(strstr(long_waits, "for 20 s\n"));
    assert_non_null(strstr(long_waits, "for 40 s\n"));
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
        cmocka_unit_test(test_a_long_wait_goes_on_with_warnings),
        cmocka_unit_test(test_no_host_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
