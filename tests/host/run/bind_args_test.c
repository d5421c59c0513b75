/* SPDX-License-Identifier: Apache-2.0 */
/* Where values lie: memory that is used again, and outputs in the memory of operands. */
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/bench.h"

enum { N = 1 << 14 }; /* elements: 64 KiB, so that memory is used again within a batch */

/* A chain needs two buffers however long it is, and what is freed is NaN in poisoned runs. */
static void test_memory_is_used_again(void **state)
{
    struct driver driver = {0}, poisoned = {.poison = true, .reverse = true};
    struct driver *drivers[] = {&driver, &poisoned};

    (void)state;
    for (int d = 0; d < 2; d++) {
        struct memory_stats stats;
        struct bench b;
        uint32_t x;

        bench_open(&b, drivers[d], N);
        x = bench_in(&b, 1);
        for (int i = 0; i < 20; i++)
            x = bench_n(&b, FRIT_OP_add, x, 1);
        bench_want(&b, x);
        bench_run(&b);
        bench_expect(&b, x, 21);
        memory_stats(b.device->memory, &stats);
        assert_int_equal(stats.bytes_peak, 3 * N * sizeof(float));
        bench_close(&b);
    }
}

/* The device has room for what is alive in the plan only if what died meanwhile is given back. */
static void test_a_full_device_gets_the_dead_back(void **state)
{
    struct driver driver = {.capacity = 6 * 4096};
    struct bench b;
    uint32_t x;

    (void)state;
    bench_open(&b, &driver, 1024); /* too small to be used again within a batch */
    b.device->info = &driver.info;
    driver.info.caps = FRIT_CAP_NO_SUBALLOC;
    x = bench_in(&b, 1);
    for (int i = 0; i < 20; i++)
        x = bench_n(&b, FRIT_OP_add, x, 1);
    bench_want(&b, x);
    bench_run(&b);
    assert_null(b.run.first);
    bench_expect(&b, x, 21);
    assert_true(driver.submits > 1);
    bench_close(&b);
}

/* Steps that share nothing but the workspace, which each gets from the one before. */
static void test_a_workspace_is_used_again(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};
    struct driver driver = {.reverse = true, .workspace = 1 << 16, .workspace_dirty = true};
    struct bench_block blocks[2] = {{.n_ops = 1, .ops = {0}}, {.n_ops = 1, .ops = {1}}};
    struct memory_stats stats;
    uint32_t y[3];
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    for (uint32_t i = 0; i < 3; i++) {
        y[i] = bench_1(&b, FRIT_OP_neg, bench_in(&b, (float)i));
        bench_want(&b, y[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        blocks[i].program = bench_program(&driver, neg, 1, out, false);
        bench_script(blocks[i].program)->workspace = 1 << 16;
    }
    bench_plan(&b, blocks, 2);
    bench_run(&b);
    bench_expect(&b, y[0], 0);
    bench_expect(&b, y[1], -1);
    bench_expect(&b, y[2], -2);
    assert_int_equal(driver.barriers, 2);
    memory_stats(b.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, 65536 + 6 * 64);
    bench_close(&b);
}

/* Dead memory of another size or kind, or that a view still shows, is not for new values. */
static void test_memory_is_used_again_where_it_fits(void **state)
{
    struct driver driver = {0};
    uint32_t x, v, y, small, large;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, N);
    small = bench_in(&b, 1);
    b.n = 2 * N;
    large = bench_in(&b, 2);
    b.n = N;
    x = bench_1(&b, FRIT_OP_neg, small);
    v = bench_flip(&b, x);
    y = bench_1(&b, FRIT_OP_neg, bench_1(&b, FRIT_OP_neg, bench_n(&b, FRIT_OP_add, small, 1)));
    large = bench_n(&b, FRIT_OP_add, large, 1);
    bench_want(&b, v);
    bench_want(&b, y);
    bench_want(&b, large);
    b.ops[4].persistent = true; /* y */
    bench_run(&b);
    bench_expect(&b, v, -1);
    bench_expect(&b, y, 2);
    assert_true(buffer_is_persistent(b.values[y].value.buffer));
    assert_false(buffer_is_persistent(b.values[large].value.buffer));
    b.n = 2 * N;
    bench_expect(&b, large, 3);
    bench_close(&b);
}

static void test_values_that_lost_their_owners_go(void **state)
{
    struct driver driver = {0};
    uint32_t x, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
    y = bench_1(&b, FRIT_OP_neg, x);
    bench_want(&b, x);
    bench_want(&b, y);
    bench_plan(&b, NULL, 0);
    b.values[x].wanted = false; /* the plan does not know */
    bench_run(&b);
    assert_null(b.values[x].value.buffer);
    bench_expect(&b, y, 1);
    bench_close(&b);
}

/* ---- in place ---- */

/* ---- in place ---- */

static void test_a_chain_stays_in_one_buffer(void **state)
{
    struct driver driver = {.alias = 1};
    struct memory_stats stats;
    uint32_t x, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 1024);
    x = bench_in(&b, 1);
    y = x;
    for (int i = 0; i < 5; i++)
        y = bench_n(&b, FRIT_OP_add, y, 1);
    bench_want(&b, y);
    bench_run(&b);
    bench_expect(&b, x, 1);
    bench_expect(&b, y, 6);
    memory_stats(b.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, 2 * 4096);
    assert_int_equal(bench_count(&b.device->count.in_place), 4); /* not over x */
    bench_close(&b);
}

/* Nobody sees x afterwards, but its buffer has a second owner, or is pinned by somebody. */
static void test_a_shared_buffer_is_not_overwritten(void **state)
{
    for (int shared = 0; shared < 4; shared++) {
        struct driver driver = {.alias = 1};
        uint32_t x, y;
        struct bench b;

        bench_open(&b, &driver, 8);
        x = bench_in(&b, 1);
        y = bench_1(&b, FRIT_OP_neg, x);
        bench_want(&b, y);
        b.values[x].last = true;
        b.values[x].pinned = shared == 3;
        if (shared == 1)
            buffer_own(b.values[x].value.buffer);
        if (shared >= 2)
            buffer_pin(b.values[x].value.buffer);
        bench_run(&b);
        assert_int_equal(bench_count(&b.device->count.in_place), shared == 0 || shared == 3);
        bench_expect(&b, y, -1);
        bench_expect(&b, x, shared == 0 || shared == 3 ? -1 : 1);
        if (shared == 1)
            buffer_disown(b.values[x].value.buffer);
        if (shared >= 2)
            buffer_unpin(b.values[x].value.buffer);
        bench_close(&b);
    }
    (void)state;
}

/* A view that is still wanted keeps its base; one that dies with it does not. */
static void test_a_view_keeps_its_base(void **state)
{
    for (int wanted = 0; wanted < 2; wanted++) {
        struct driver driver = {.alias = 1};
        uint32_t x, v, y;
        struct bench b;

        bench_open(&b, &driver, 8);
        x = bench_1(&b, FRIT_OP_neg, bench_in(&b, 1));
        v = bench_flip(&b, x);
        y = bench_1(&b, FRIT_OP_neg, x);
        if (!wanted)
            y = bench_2(&b, FRIT_OP_add, y, v);
        else
            bench_want(&b, v);
        bench_want(&b, y);
        bench_run(&b);
        bench_expect(&b, y, wanted ? 1 : 0);
        if (wanted)
            bench_expect(&b, v, -1);
        assert_int_equal(bench_count(&b.device->count.in_place), wanted ? 0 : 1);
        bench_close(&b);
    }
    (void)state;
}

/* The base died earlier in the batch and is only held until the submit. */
static void test_a_dead_base_gives_its_place(void **state)
{
    struct driver driver = {.alias = 1};
    uint32_t v, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    v = bench_flip(&b, bench_flip(&b, bench_1(&b, FRIT_OP_neg, bench_in(&b, 1))));
    y = bench_1(&b, FRIT_OP_exp, bench_n(&b, FRIT_OP_add, v, 1));
    bench_want(&b, y);
    bench_run(&b);
    bench_expect(&b, y, 1);
    assert_int_equal(bench_count(&b.device->count.in_place), 2);
    bench_close(&b);
}

/* x + x reads its memory through two arguments. */
static void test_no_place_under_two_arguments(void **state)
{
    struct driver driver = {.alias = 1};
    struct bench b;
    uint32_t x, y;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_in(&b, 3);
    y = bench_2(&b, FRIT_OP_add, x, x);
    bench_want(&b, y);
    b.values[x].last = true;
    bench_run(&b);
    bench_expect(&b, y, 6);
    bench_expect(&b, x, 3);
    bench_close(&b);
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
