/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, and the ways round a program that refuses or fails. */
#include <string.h>

#include "run/bench.h"

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "plan/program.h"
#include "tensor/failure.h"

/* ---- blocks ---- */

static const struct driver_op add_mul_neg[] = {
    {FRIT_OP_add, 0, -1}, {FRIT_OP_mul, 2, 1}, {FRIT_OP_neg, 3, -2}};
static const int third[] = {4};

/* -((x + 1) * y), as one block with the given script, and another op on top. */
static void open_block(struct bench *b, struct driver *driver, bool foreign,
                       struct program **program, uint32_t *result)
{
    struct bench_block block = {.n_ops = 3, .ops = {0, 1, 2}};
    uint32_t x, y;

    bench_open(b, driver, 8);
    x = bench_in(b, 2);
    y = bench_in(b, 10);
    *result = bench_1(b, FRIT_OP_neg, bench_2(b, FRIT_OP_mul, bench_n(b, FRIT_OP_add, x, 1), y));
    *result = bench_n(b, FRIT_OP_mul, *result, 2);
    bench_want(b, *result);
    *program = block.program = bench_program(driver, add_mul_neg, 3, third, foreign);
    bench_plan(b, &block, 1);
}

static void test_a_block_is_one_launch(void **state)
{
    for (int foreign = 0; foreign < 2; foreign++) {
        struct driver driver = {0};
        struct program *program;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, foreign, &program, &y);
        bench_script(program)->workspace = 100;
        bench_run(&b);
        bench_expect(&b, y, -60);
        assert_int_equal(driver.launches, 2);
        assert_int_equal(driver.dispatches, foreign);
        assert_int_equal(bench_count(&b.device->count.fused), 1);
        assert_string_equal(run_label(b.device, driver.last_cookie), "mul");
        bench_close(&b);
    }
    (void)state;
}

static void test_copies_for_a_refused_candidate_are_not_made(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    bench_script(program)->n_candidates = 2;
    bench_script(program)->refuse = 1;
    bench_script(program)->relayout_first = true;
    bench_run(&b);
    bench_expect(&b, y, -60);
    assert_int_equal(driver.launches, 2);
    driver_improves(bench_script(program));
    bench_close(&b);
}

static void test_the_next_candidate_takes_over(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    bench_script(program)->n_candidates = 3;
    bench_script(program)->refuse = 3;
    bench_run(&b);
    bench_expect(&b, y, -60);
    assert_int_equal(driver.launches, 2);
    assert_int_equal(bench_script(program)->last_candidate, 2);
    assert_int_equal(bench_count(&b.device->count.fallbacks[FALLBACK_CANDIDATE]), 2);
    assert_int_equal(b.notes[0].marks, RUN_CANDIDATE);
    assert_string_equal(b.notes[0].why, "not this shape");
    bench_close(&b);
}

/* The highest priority of those whose numbers the user allows; the first one is always allowed. */
static void test_classes_and_priorities_choose_the_candidate(void **state)
{
    static const struct {
        uint32_t allowed, runs;
    } rows[] = {{FRIT_NUMERIC_EXACT, 0},
                {FRIT_NUMERIC_REORDERED, 1},
                {FRIT_NUMERIC_REDUCED, 2},
                {FRIT_NUMERIC_RELAXED, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct driver driver = {0};
        struct program *program;
        struct driver_program *script;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, false, &program, &y);
        script = bench_script(program);
        script->n_candidates = 3;
        script->numeric[0] = FRIT_NUMERIC_RELAXED;
        script->numeric[1] = FRIT_NUMERIC_REORDERED;
        script->numeric[2] = FRIT_NUMERIC_REDUCED;
        script->priority[0] = -7;
        script->priority[2] = 5;
        b.device->config.numeric_class = rows[i].allowed;
        bench_run(&b);
        bench_expect(&b, y, -60);
        assert_int_equal(script->last_candidate, rows[i].runs);
        bench_close(&b);
    }
}

/* Then the block's ops run by themselves. */
static void test_recorded_grids_have_limits(void **state)
{
    (void)state;
    for (uint32_t lanes = 64; lanes <= 65; lanes++) {
        struct driver driver = {.phase = {{1, 4, 1}, {lanes, 1, 1}}, .max_group = 64};
        struct program *program;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, true, &program, &y);
        bench_run(&b);
        if (lanes == 64)
            bench_expect(&b, y, -60);
        assert_int_equal(driver.dispatches, lanes == 64);
        bench_close(&b);
    }
}

/* All ops by themselves, and the refusal is remembered. */
static void test_a_refused_block_runs_op_by_op(void **state)
{
    struct driver driver = {.poison = true};
    struct program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    bench_script(program)->refuse = 1;
    for (int i = 1; i <= 3; i++) {
        bench_run(&b);
        assert_null(b.run.first);
        bench_expect(&b, y, -60);
        assert_int_equal(bench_count(&b.device->count.fallbacks[FALLBACK_OPS]), i);
        buffer_disown(b.values[y].value.buffer);
        b.values[y].value.buffer = NULL;
    }
    assert_int_equal(bench_script(program)->prepares, 1);
    assert_int_equal(driver.launches, 12);
    bench_close(&b);
}

static void test_new_generations_are_queried_again(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    bench_script(program)->refuse = 1;
    for (int i = 0; i < 40; i++) {
        bench_run(&b);
        buffer_disown(b.values[y].value.buffer);
        b.values[y].value.buffer = NULL;
        if (i == 0) {
            bench_script(program)->refuse = 0;
            driver_improves(bench_script(program));
        }
    }
    assert_int_equal(bench_script(program)->prepares, 2);
    assert_int_equal(bench_script(program)->launches, 39); /* from the next run on */
    bench_close(&b);
}

/* Only the program whose submit fails is out; the rest of the batch runs. */
static void test_a_program_that_fails_is_disabled(void **state)
{
    for (int memory = 0; memory < 2; memory++) {
        struct driver driver = {.reverse = true};
        struct program *program;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, false, &program, &y);
        bench_script(program)->submit_status = memory ? FRIT_NO_DEVICE_MEMORY : FRIT_INTERNAL;
        for (int i = 0; i < 2; i++) {
            bench_run(&b);
            assert_null(b.run.first);
            bench_expect(&b, y, -60);
            buffer_disown(b.values[y].value.buffer);
            b.values[y].value.buffer = NULL;
        }
        assert_int_equal(bench_script(program)->launches, 0);
        assert_int_equal(bench_count(&b.device->count.disabled), !memory);
        assert_int_equal(atomic_load(&program->disabled), !memory);
        assert_int_equal(driver.launches, 8);
        bench_close(&b);
    }
    (void)state;
}

/* A block with a poisoned operand computes what does not depend on it. */
static void test_a_poisoned_block_runs_op_by_op(void **state)
{
    static const struct driver_op both[] = {{FRIT_OP_neg, 0, -2}, {FRIT_OP_neg, 1, -2}};
    static const int outs[] = {2, 3};
    struct bench_block block = {.n_ops = 2, .ops = {0, 1}};
    struct driver driver = {0};
    uint32_t x, y, u, v;
    struct failure *failure;
    frit_err err = ERR_INIT;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    x = bench_in(&b, 1);
    y = bench_in(&b, 2);
    u = bench_1(&b, FRIT_OP_neg, x);
    v = bench_1(&b, FRIT_OP_neg, y);
    bench_want(&b, u);
    bench_want(&b, v);
    block.program = bench_program(&driver, both, 2, outs, false);
    bench_plan(&b, &block, 1);
    fail(&err, FRIT_IO, "the disk is gone");
    failure = failure_create(&err);
    b.values[x].failure = failure;
    bench_run(&b);
    assert_string_equal(bench_failure(&b, u), "the disk is gone");
    assert_int_equal(b.notes[0].marks, RUN_BY_OPS);
    assert_string_equal(b.notes[0].why, "the disk is gone");
    bench_expect(&b, v, -2);
    assert_int_equal(bench_count(&b.device->count.fallbacks[FALLBACK_OPS]), 0);
    bench_close(&b);
    failure_unref(failure);
}

static void test_a_late_failure_names_the_block(void **state)
{
    for (int inside = 0; inside < 2; inside++) {
        struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = inside};
        struct program *program;
        struct failure *failure;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, false, &program, &y);
        bench_run(&b);
        if (inside) {
            assert_non_null(strstr(bench_failure(&b, y), "add mul neg failed on scripted:0"));
        } else {
            assert_int_equal(device_wait(b.device, driver.timeline, NULL), FRIT_OK);
            failure = lineage_failure_of(b.device->lineage, b.values[y].value.buffer);
            assert_non_null(failure);
            assert_non_null(strstr(failure->text, "add mul neg failed on scripted:0: smoke"));
            failure_unref(failure);
        }
        assert_int_equal(bench_script(program)->launches, 0);
        failure_unref(b.values[y].failure);
        failure_unref(b.run.first);
        buffer_disown(b.values[y].value.buffer);
        b.values[y].value.buffer = NULL;
        b.values[y].failure = NULL;
        bench_run(&b);
        bench_expect(&b, y, -60);
        assert_int_equal(bench_script(program)->launches, 0);
        assert_int_equal(bench_count(&b.device->count.disabled), 1);
        bench_close(&b);
    }
    (void)state;
}

/* The other block has the same label, and another program. */
static void test_only_the_program_that_failed_is_disabled(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};

    for (int inside = 0; inside < 2; inside++) {
        struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = inside};
        struct bench_block blocks[2] = {{.n_ops = 1, .ops = {0}}, {.n_ops = 1, .ops = {1}}};
        uint32_t x, y[2];
        struct bench b;

        bench_open(&b, &driver, 8);
        x = bench_in(&b, 1);
        for (int i = 0; i < 2; i++) {
            y[i] = bench_1(&b, FRIT_OP_neg, x);
            bench_want(&b, y[i]);
            blocks[i].program = bench_program(&driver, neg, 1, out, false);
        }
        bench_plan(&b, blocks, 2);
        bench_run(&b);
        assert_int_equal(device_wait(b.device, driver.timeline, NULL), FRIT_OK);
        assert_true(atomic_load(&blocks[0].program->disabled));
        assert_false(atomic_load(&blocks[1].program->disabled));
        assert_int_equal(bench_count(&b.device->count.disabled), 1);
        bench_close(&b);
    }
    (void)state;
}

/* ---- other devices ---- */

static void test_another_device_runs_what_this_cannot(void **state)
{
    struct driver driver = {.refuse_neg = true}, helper = {0};
    uint32_t x, y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    b.device->fallback = driver_device(&helper, 100);
    x = bench_n(&b, FRIT_OP_add, bench_in(&b, 1), 1);
    y = bench_n(&b, FRIT_OP_add, bench_1(&b, FRIT_OP_neg, x), 1);
    bench_want(&b, y);
    bench_run(&b);
    bench_expect(&b, y, -1);
    assert_int_equal(driver.launches, 2);
    assert_int_equal(helper.launches, 1);
    assert_int_equal(bench_count(&b.device->count.fallbacks[FALLBACK_DEVICE]), 1);
    bench_close(&b);
}

static void test_a_refused_composite_is_unfolded(void **state)
{
    struct driver driver = {.refuse_prepare = FRIT_OP_ceil, .poison = true};
    uint32_t y;
    struct bench b;

    (void)state;
    bench_open(&b, &driver, 8);
    y = bench_1(&b, FRIT_OP_ceil, bench_n(&b, FRIT_OP_add, bench_in(&b, 1), 1));
    bench_want(&b, y);
    b.ops[1].persistent = true;
    bench_run(&b);
    bench_expect(&b, y, 2);
    assert_int_equal(driver.launches, 4);
    assert_true(buffer_is_persistent(b.values[y].value.buffer));
    assert_int_equal(bench_count(&b.device->count.fallbacks[FALLBACK_DECOMPOSED]), 1);
    bench_close(&b);
}

/* ceil is -floor(-x) then: what its parts do is noted at it. */
static void test_a_part_on_another_device_is_noted(void **state)
{
    struct driver driver = {.refuse_prepare = FRIT_OP_ceil, .refuse_neg = true}, helper = {0};
    struct bench b;
    uint32_t y;

    (void)state;
    bench_open(&b, &driver, 8);
    b.device->fallback = driver_device(&helper, 100);
    y = bench_1(&b, FRIT_OP_ceil, bench_n(&b, FRIT_OP_add, bench_in(&b, 1), 1));
    bench_want(&b, y);
    bench_run(&b);
    bench_expect(&b, y, 2);
    assert_int_equal(b.notes[0].marks, 0);
    assert_string_equal(b.notes[0].why, "");
    assert_int_equal(b.notes[1].marks, RUN_DECOMPOSED | RUN_ELSEWHERE);
    assert_string_equal(b.notes[1].why, "not this shape");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_is_one_launch),
        cmocka_unit_test(test_copies_for_a_refused_candidate_are_not_made),
        cmocka_unit_test(test_the_next_candidate_takes_over),
        cmocka_unit_test(test_classes_and_priorities_choose_the_candidate),
        cmocka_unit_test(test_recorded_grids_have_limits),
        cmocka_unit_test(test_a_refused_block_runs_op_by_op),
        cmocka_unit_test(test_new_generations_are_queried_again),
        cmocka_unit_test(test_a_program_that_fails_is_disabled),
        cmocka_unit_test(test_a_poisoned_block_runs_op_by_op),
        cmocka_unit_test(test_a_late_failure_names_the_block),
        cmocka_unit_test(test_only_the_program_that_failed_is_disabled),
        cmocka_unit_test(test_another_device_runs_what_this_cannot),
        cmocka_unit_test(test_a_refused_composite_is_unfolded),
        cmocka_unit_test(test_a_part_on_another_device_is_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
