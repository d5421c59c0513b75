/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused submit leaves: failures and last writes as they were before. */
#include <string.h>

#include "device/device.h"
#include "device/wait.h"
#include "failing_alloc.h"
#include "memory/memory.h"
#include "run/rig.h"

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
        struct rig rig;

        rig_open(&rig, &driver, 8);
        x = rig_in(&rig, 1);
        y[0] = rig_1(&rig, FRIT_OP_neg, x);
        y[1] = rig_n(&rig, FRIT_OP_add, x, 1);
        y[2] = rig_2(&rig, FRIT_OP_mul, x, x);
        for (int i = 0; i < 3; i++)
            rig_want(&rig, y[i]);
        rig_plan(&rig, NULL, 0);
        failing_alloc_arm(n);
        rig_run(&rig);
        hit = failing_alloc_disarm();
        for (int i = 0; i < 3; i++) {
            static const float right[3] = {-1, 2, 1};

            assert_int_equal(!rig.values[y[i]].failure, !!rig.values[y[i]].value.buffer);
            if (rig.values[y[i]].failure)
                failed = true;
            else
                rig_expect(&rig, y[i], right[i]);
        }
        assert_int_equal(rig.run.first != NULL, failed);
        n_right += hit && !failed;
        rig_close(&rig);
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
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    good = rig_n(&rig, FRIT_OP_add, rig_in(&rig, 2), 1);
    driver.fail_writes = true;
    x = rig_in(&rig, 1);
    y = rig_1(&rig, FRIT_OP_neg, x);
    rig_want(&rig, y);
    rig_want(&rig, good);
    rig.values[x].last = true;
    waiting = rig.device;
    rig_run(&rig);
    driver.on_submit = NULL;
    assert_non_null(strstr(rig_failure(&rig, y), "smoke came out"));
    rig_expect(&rig, good, 3);
    rig_close(&rig);
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
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, BIG);
    x = rig_in(&rig, 1);
    bad = rig_1(&rig, FRIT_OP_neg, x);
    for (int i = 1; i < 32; i++) /* the first submit */
        rig_want(&rig, rig_n(&rig, FRIT_OP_add, x, 1));
    bad = rig_1(&rig, FRIT_OP_neg, bad);
    made = rig_n(&rig, FRIT_OP_add, x, 2); /* where the first one was */
    after = rig_1(&rig, FRIT_OP_neg, made);
    rig_want(&rig, bad);
    rig_want(&rig, made);
    rig_want(&rig, after);
    waiting = rig.device;
    rig_run(&rig);
    assert_int_equal(driver.submits, 2);
    memory_stats(rig.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, (1 + 32 + 2) * BIG * sizeof(float));
    assert_non_null(strstr(rig_failure(&rig, bad), "smoke came out"));
    rig_expect(&rig, made, 3);
    rig_expect(&rig, after, -3);
    rig_close(&rig);
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
