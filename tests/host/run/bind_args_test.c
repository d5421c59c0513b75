/* SPDX-License-Identifier: Apache-2.0 */
/* Where values lie: memory that is used again, and outputs in the memory of operands. */
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/context.h"
#include "run/rig.h"

enum { N = 1 << 14 }; /* elements: 64 KiB, so that memory is used again within a batch */

/* A chain needs two buffers however long it is, and what is freed is NaN in poisoned runs. */
static void test_memory_is_used_again(void **state)
{
    struct driver driver = {0}, poisoned = {.poison = true, .reverse = true};
    struct driver *drivers[] = {&driver, &poisoned};

    (void)state;
    for (int d = 0; d < 2; d++) {
        struct memory_stats stats;
        struct rig rig;
        uint32_t x;

        rig_open(&rig, drivers[d], N);
        x = rig_in(&rig, 1);
        for (int i = 0; i < 20; i++)
            x = rig_n(&rig, FRIT_OP_add, x, 1);
        rig_want(&rig, x);
        rig_run(&rig);
        rig_expect(&rig, x, 21);
        memory_stats(rig.device->memory, &stats);
        assert_int_equal(stats.bytes_peak, 3 * N * sizeof(float));
        rig_close(&rig);
    }
}

/* The device has room for what is alive in the plan only if what died meanwhile is given back. */
static void test_a_full_device_gets_the_dead_back(void **state)
{
    struct driver driver = {.capacity = 6 * 4096};
    struct rig rig;
    uint32_t x;

    (void)state;
    rig_open(&rig, &driver, 1024); /* too small to be used again within a batch */
    rig.device->info = &driver.info;
    driver.info.caps = FRIT_CAP_NO_SUBALLOC;
    x = rig_in(&rig, 1);
    for (int i = 0; i < 20; i++)
        x = rig_n(&rig, FRIT_OP_add, x, 1);
    rig_want(&rig, x);
    rig_run(&rig);
    assert_null(rig.run.first);
    rig_expect(&rig, x, 21);
    assert_true(driver.submits > 1);
    rig_close(&rig);
}

/* Steps that share nothing but the workspace, which each gets from the one before. */
static void test_a_workspace_is_used_again(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};
    struct driver driver = {.reverse = true, .workspace = 1 << 16, .workspace_dirty = true};
    struct rig_block blocks[2] = {{.n_ops = 1, .ops = {0}}, {.n_ops = 1, .ops = {1}}};
    struct memory_stats stats;
    uint32_t y[3];
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    for (uint32_t i = 0; i < 3; i++) {
        y[i] = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, (float)i));
        rig_want(&rig, y[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        blocks[i].program = rig_program(&driver, neg, 1, out, false);
        rig_script(blocks[i].program)->workspace = 1 << 16;
    }
    rig_plan(&rig, blocks, 2);
    rig_run(&rig);
    rig_expect(&rig, y[0], 0);
    rig_expect(&rig, y[1], -1);
    rig_expect(&rig, y[2], -2);
    assert_int_equal(driver.barriers, 2);
    memory_stats(rig.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, 65536 + 6 * 64);
    rig_close(&rig);
}

/* Dead memory of another size or kind, or that a view still shows, is not for new values. */
static void test_memory_is_used_again_where_it_fits(void **state)
{
    struct driver driver = {0};
    uint32_t x, v, y, small, large;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, N);
    small = rig_in(&rig, 1);
    rig.n = 2 * N;
    large = rig_in(&rig, 2);
    rig.n = N;
    x = rig_1(&rig, FRIT_OP_neg, small);
    v = rig_flip(&rig, x);
    y = rig_1(&rig, FRIT_OP_neg, rig_1(&rig, FRIT_OP_neg, rig_n(&rig, FRIT_OP_add, small, 1)));
    large = rig_n(&rig, FRIT_OP_add, large, 1);
    rig_want(&rig, v);
    rig_want(&rig, y);
    rig_want(&rig, large);
    rig.ops[4].context = CONTEXT_PERSISTENT; /* y */
    rig_run(&rig);
    rig_expect(&rig, v, -1);
    rig_expect(&rig, y, 2);
    assert_true(buffer_is_persistent(rig.values[y].value.buffer));
    assert_false(buffer_is_persistent(rig.values[large].value.buffer));
    rig.n = 2 * N;
    rig_expect(&rig, large, 3);
    rig_close(&rig);
}

static void test_values_that_lost_their_owners_go(void **state)
{
    struct driver driver = {0};
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
    y = rig_1(&rig, FRIT_OP_neg, x);
    rig_want(&rig, x);
    rig_want(&rig, y);
    rig_plan(&rig, NULL, 0);
    rig.values[x].wanted = false; /* the plan does not know */
    rig_run(&rig);
    assert_null(rig.values[x].value.buffer);
    rig_expect(&rig, y, 1);
    rig_close(&rig);
}

/* ---- in place ---- */

/* ---- in place ---- */

static void test_a_chain_stays_in_one_buffer(void **state)
{
    struct driver driver = {.alias = 1};
    struct memory_stats stats;
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 1024);
    x = rig_in(&rig, 1);
    y = x;
    for (int i = 0; i < 5; i++)
        y = rig_n(&rig, FRIT_OP_add, y, 1);
    rig_want(&rig, y);
    rig_run(&rig);
    rig_expect(&rig, x, 1);
    rig_expect(&rig, y, 6);
    memory_stats(rig.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, 2 * 4096);
    assert_int_equal(rig_count(&rig.device->count.in_place), 4); /* not over x */
    rig_close(&rig);
}

/* Nobody sees x afterwards, but its buffer has a second owner, or is pinned by somebody. */
static void test_a_shared_buffer_is_not_overwritten(void **state)
{
    for (int shared = 0; shared < 4; shared++) {
        struct driver driver = {.alias = 1};
        uint32_t x, y;
        struct rig rig;

        rig_open(&rig, &driver, 8);
        x = rig_in(&rig, 1);
        y = rig_1(&rig, FRIT_OP_neg, x);
        rig_want(&rig, y);
        rig.values[x].last = true;
        rig.values[x].pinned = shared == 3;
        if (shared == 1)
            buffer_own(rig.values[x].value.buffer);
        if (shared >= 2)
            buffer_pin(rig.values[x].value.buffer);
        rig_run(&rig);
        assert_int_equal(rig_count(&rig.device->count.in_place), shared == 0 || shared == 3);
        rig_expect(&rig, y, -1);
        rig_expect(&rig, x, shared == 0 || shared == 3 ? -1 : 1);
        if (shared == 1)
            buffer_disown(rig.values[x].value.buffer);
        if (shared >= 2)
            buffer_unpin(rig.values[x].value.buffer);
        rig_close(&rig);
    }
    (void)state;
}

/* A view that is still wanted keeps its base; one that dies with it does not. */
static void test_a_view_keeps_its_base(void **state)
{
    for (int wanted = 0; wanted < 2; wanted++) {
        struct driver driver = {.alias = 1};
        uint32_t x, v, y;
        struct rig rig;

        rig_open(&rig, &driver, 8);
        x = rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1));
        v = rig_flip(&rig, x);
        y = rig_1(&rig, FRIT_OP_neg, x);
        if (!wanted)
            y = rig_2(&rig, FRIT_OP_add, y, v);
        else
            rig_want(&rig, v);
        rig_want(&rig, y);
        rig_run(&rig);
        rig_expect(&rig, y, wanted ? 1 : 0);
        if (wanted)
            rig_expect(&rig, v, -1);
        assert_int_equal(rig_count(&rig.device->count.in_place), wanted ? 0 : 1);
        rig_close(&rig);
    }
    (void)state;
}

/* The base died earlier in the batch and is only held until the submit. */
static void test_a_dead_base_gives_its_place(void **state)
{
    struct driver driver = {.alias = 1};
    uint32_t v, y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    v = rig_flip(&rig, rig_flip(&rig, rig_1(&rig, FRIT_OP_neg, rig_in(&rig, 1))));
    y = rig_1(&rig, FRIT_OP_exp, rig_n(&rig, FRIT_OP_add, v, 1));
    rig_want(&rig, y);
    rig_run(&rig);
    rig_expect(&rig, y, 1);
    assert_int_equal(rig_count(&rig.device->count.in_place), 2);
    rig_close(&rig);
}

/* x + x reads its memory through two arguments. */
static void test_no_place_under_two_arguments(void **state)
{
    struct driver driver = {.alias = 1};
    struct rig rig;
    uint32_t x, y;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_in(&rig, 3);
    y = rig_2(&rig, FRIT_OP_add, x, x);
    rig_want(&rig, y);
    rig.values[x].last = true;
    rig_run(&rig);
    rig_expect(&rig, y, 6);
    rig_expect(&rig, x, 3);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test(test_a_full_device_gets_the_dead_back),
        cmocka_unit_test(test_a_workspace_is_used_again),
        cmocka_unit_test(test_memory_is_used_again_where_it_fits),
        cmocka_unit_test(test_values_that_lost_their_owners_go),
        cmocka_unit_test(test_a_chain_stays_in_one_buffer),
        cmocka_unit_test(test_a_shared_buffer_is_not_overwritten),
        cmocka_unit_test(test_a_view_keeps_its_base),
        cmocka_unit_test(test_a_dead_base_gives_its_place),
        cmocka_unit_test(test_no_place_under_two_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
