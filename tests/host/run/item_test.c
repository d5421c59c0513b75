/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, and the fallbacks when a program refuses or fails. */
#include <string.h>

#include "run/rig.h"

#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/programs.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "plan/program.h"
#include "record/context.h"
#include "tensor/failure.h"

/* ---- blocks ---- */

static const struct driver_op add_mul_neg[] = {
    {FRIT_OP_add, 0, -1}, {FRIT_OP_mul, 2, 1}, {FRIT_OP_neg, 3, -2}};
static const int add_mul_neg_outs[] = {4};

/* -((x + 1) * y) of `n` elements as one block, whose program is returned for the test to script,
 * times 2 by a single op. */
static void open_large_block(struct rig *rig, struct driver *driver, int64_t n, bool foreign,
                             struct program **program, uint32_t *result)
{
    struct rig_block block = {.n_ops = 3, .ops = {0, 1, 2}};
    uint32_t x, y;

    rig_open(rig, driver, n);
    x = rig_in(rig, 2);
    y = rig_in(rig, 10);
    *result = rig_1(rig, FRIT_OP_neg, rig_2(rig, FRIT_OP_mul, rig_n(rig, FRIT_OP_add, x, 1), y));
    *result = rig_n(rig, FRIT_OP_mul, *result, 2);
    rig_want(rig, *result);
    *program = block.program = rig_program(driver, add_mul_neg, 3, add_mul_neg_outs, foreign);
    rig_plan(rig, &block, 1);
}

static void open_block(struct rig *rig, struct driver *driver, bool foreign,
                       struct program **program, uint32_t *result)
{
    open_large_block(rig, driver, 8, foreign, program, result);
}

static void test_a_block_is_one_launch(void **state)
{
    for (int foreign = 0; foreign < 2; foreign++) {
        struct driver driver = {0};
        struct program *program;
        struct rig rig;
        uint32_t y;

        open_block(&rig, &driver, foreign, &program, &y);
        rig_script(program)->workspace = 100;
        rig_run(&rig);
        rig_expect(&rig, y, -60);
        assert_int_equal(driver.launches, 2);
        assert_int_equal(driver.dispatches, foreign);
        assert_int_equal(rig_count(&rig.device->count.fused), 1);
        assert_string_equal(run_label(rig.device, driver.last_cookie), "mul");
        rig_close(&rig);
    }
    (void)state;
}

static void test_copies_for_a_refused_candidate_are_not_made(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct rig rig;
    uint32_t y;

    (void)state;
    open_block(&rig, &driver, false, &program, &y);
    rig_script(program)->n_candidates = 2;
    rig_script(program)->refuse = 1;
    rig_script(program)->relayout_first = true;
    rig_run(&rig);
    rig_expect(&rig, y, -60);
    assert_int_equal(driver.launches, 2);
    driver_improves(rig_script(program));
    rig_close(&rig);
}

static void test_the_next_candidate_takes_over(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct rig rig;
    uint32_t y;

    (void)state;
    open_block(&rig, &driver, false, &program, &y);
    rig_script(program)->n_candidates = 3;
    rig_script(program)->refuse = 3;
    rig_run(&rig);
    rig_expect(&rig, y, -60);
    assert_int_equal(driver.launches, 2);
    assert_int_equal(rig_script(program)->last_candidate, 2);
    assert_int_equal(rig_count(&rig.device->count.fallbacks[FALLBACK_CANDIDATE]), 2);
    assert_int_equal(rig.notes[0].marks, RUN_CANDIDATE);
    assert_string_equal(rig.notes[0].why, "not this shape");
    rig_close(&rig);
}

/* The candidate of highest priority runs among those of a numeric class that the user allows; the
 * first candidate is always allowed. */
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
        struct rig rig;
        uint32_t y;

        open_block(&rig, &driver, false, &program, &y);
        script = rig_script(program);
        script->n_candidates = 3;
        script->numeric[0] = FRIT_NUMERIC_RELAXED;
        script->numeric[1] = FRIT_NUMERIC_REORDERED;
        script->numeric[2] = FRIT_NUMERIC_REDUCED;
        script->priority[0] = -7;
        script->priority[2] = 5;
        rig.device->config.numeric_class = rows[i].allowed;
        rig_run(&rig);
        rig_expect(&rig, y, -60);
        assert_int_equal(script->last_candidate, rows[i].runs);
        rig_close(&rig);
    }
}

/* A program whose first candidate gives other bits in each run is not used where that matters; its
 * ops run one by one. */
static void test_results_that_vary_are_not_used(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        for (int deterministic = 0; deterministic < 2; deterministic++) {
            struct driver driver = {0};
            struct program *program;
            struct driver_program *script;
            struct rig rig;
            uint32_t y;

            open_block(&rig, &driver, false, &program, &y);
            script = rig_script(program);
            script->n_candidates = n;
            script->numeric[0] = FRIT_NUMERIC_RELAXED;
            script->numeric[1] = FRIT_NUMERIC_RELAXED;
            rig.device->config.tune.deterministic = deterministic;
            rig.device->config.numeric_class = FRIT_NUMERIC_EXACT;
            rig_run(&rig);
            rig_expect(&rig, y, -60);
            assert_int_equal(rig.notes[0].marks, deterministic ? RUN_BY_OPS : 0);
            rig_close(&rig);
        }
    }
}

/* The ops of one block were recorded in different sections. */
static void test_the_strictest_section_of_a_block_counts(void **state)
{
    static const struct {
        uint32_t first, second, runs;
    } rows[] = {{FRIT_NUMERIC_RELAXED, FRIT_NUMERIC_RELAXED, 2},
                {FRIT_NUMERIC_REORDERED, FRIT_NUMERIC_RELAXED, 1},
                {FRIT_NUMERIC_REDUCED, FRIT_NUMERIC_REORDERED, 1},
                {FRIT_NUMERIC_RELAXED, FRIT_NUMERIC_EXACT, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct driver driver = {0};
        struct program *program;
        struct driver_program *script;
        struct rig rig;
        uint32_t y;

        open_block(&rig, &driver, false, &program, &y);
        script = rig_script(program);
        script->n_candidates = 3;
        script->numeric[1] = FRIT_NUMERIC_REORDERED;
        script->numeric[2] = FRIT_NUMERIC_REDUCED;
        script->priority[1] = 1;
        script->priority[2] = 2;
        rig.device->config.numeric_class = FRIT_NUMERIC_RELAXED;
        rig.ops[0].context = context_of(false, rows[i].first);
        rig.ops[1].context = context_of(true, rows[i].second);
        rig_run(&rig);
        rig_expect(&rig, y, -60);
        assert_int_equal(script->last_candidate, rows[i].runs);
        rig_close(&rig);
    }
}

/* With a recorded grid beyond the device's limits the block's ops run as single ops. */
static void test_recorded_grids_have_limits(void **state)
{
    (void)state;
    for (uint32_t lanes = 64; lanes <= 65; lanes++) {
        struct driver driver = {.phase = {{1, 4, 1}, {lanes, 1, 1}}, .max_group = 64};
        struct program *program;
        struct rig rig;
        uint32_t y;

        open_block(&rig, &driver, true, &program, &y);
        rig_run(&rig);
        if (lanes == 64)
            rig_expect(&rig, y, -60);
        assert_int_equal(driver.dispatches, lanes == 64);
        rig_close(&rig);
    }
}

/* All its ops run as single ops, and the refusal is remembered. */
static void test_a_refused_block_runs_op_by_op(void **state)
{
    struct driver driver = {.poison = true};
    struct program *program;
    struct rig rig;
    uint32_t y;

    (void)state;
    open_block(&rig, &driver, false, &program, &y);
    rig_script(program)->refuse = 1;
    for (int i = 1; i <= 3; i++) {
        rig_run(&rig);
        assert_null(rig.run.first);
        rig_expect(&rig, y, -60);
        assert_int_equal(rig_count(&rig.device->count.fallbacks[FALLBACK_OPS]), i);
        buffer_disown(rig.values[y].value.buffer);
        rig.values[y].value.buffer = NULL;
    }
    assert_int_equal(rig_script(program)->prepares, 1);
    assert_int_equal(driver.launches, 12);
    rig_close(&rig);
}

static void test_new_generations_are_queried_again(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct rig rig;
    uint32_t y;

    (void)state;
    open_block(&rig, &driver, false, &program, &y);
    rig_script(program)->refuse = 1;
    for (int i = 0; i < 40; i++) {
        rig_run(&rig);
        buffer_disown(rig.values[y].value.buffer);
        rig.values[y].value.buffer = NULL;
        if (i == 0) {
            rig_script(program)->refuse = 0;
            driver_improves(rig_script(program));
        }
    }
    assert_int_equal(rig_script(program)->prepares, 2);
    assert_int_equal(rig_script(program)->launches, 39); /* from the next run on */
    rig_close(&rig);
}

/* Only the program whose submit fails is disabled; the rest of the batch runs. */
static void test_a_program_that_fails_is_disabled(void **state)
{
    for (int memory = 0; memory < 2; memory++) {
        struct driver driver = {.reverse = true};
        struct program *program;
        struct rig rig;
        uint32_t y;

        open_block(&rig, &driver, false, &program, &y);
        rig_script(program)->submit_status = memory ? FRIT_NO_DEVICE_MEMORY : FRIT_INTERNAL;
        for (int i = 0; i < 2; i++) {
            rig_run(&rig);
            assert_null(rig.run.first);
            rig_expect(&rig, y, -60);
            buffer_disown(rig.values[y].value.buffer);
            rig.values[y].value.buffer = NULL;
        }
        assert_int_equal(rig_script(program)->launches, 0);
        assert_int_equal(rig_count(&rig.device->count.disabled), !memory);
        assert_int_equal(atomic_load(&program->disabled), !memory);
        assert_int_equal(driver.launches, 8);
        rig_close(&rig);
    }
    (void)state;
}

/* Of a block with a poisoned operand, the ops that do not depend on it still compute, as single
 * ops. */
static void test_a_poisoned_block_runs_op_by_op(void **state)
{
    static const struct driver_op both[] = {{FRIT_OP_neg, 0, -2}, {FRIT_OP_neg, 1, -2}};
    static const int outs[] = {2, 3};
    struct rig_block block = {.n_ops = 2, .ops = {0, 1}};
    struct driver driver = {0};
    uint32_t x, y, u, v;
    struct failure *failure;
    frit_err err = ERR_INIT;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    x = rig_in(&rig, 1);
    y = rig_in(&rig, 2);
    u = rig_1(&rig, FRIT_OP_neg, x);
    v = rig_1(&rig, FRIT_OP_neg, y);
    rig_want(&rig, u);
    rig_want(&rig, v);
    block.program = rig_program(&driver, both, 2, outs, false);
    rig_plan(&rig, &block, 1);
    fail(&err, FRIT_IO, "the disk is gone");
    failure = failure_create(&err);
    rig.values[x].failure = failure;
    rig_run(&rig);
    assert_string_equal(rig_failure(&rig, u), "the disk is gone");
    assert_int_equal(rig.notes[0].marks, RUN_BY_OPS);
    assert_string_equal(rig.notes[0].why, "the disk is gone");
    rig_expect(&rig, v, -2);
    assert_int_equal(rig_count(&rig.device->count.fallbacks[FALLBACK_OPS]), 0);
    rig_close(&rig);
    failure_unref(failure);
}

static void test_a_late_failure_names_the_block(void **state)
{
    for (int inline_queue = 0; inline_queue < 2; inline_queue++) {
        struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = inline_queue};
        struct program *program;
        struct failure *failure;
        struct rig rig;
        uint32_t y;

        open_block(&rig, &driver, false, &program, &y);
        rig_run(&rig);
        if (inline_queue) {
            assert_non_null(strstr(rig_failure(&rig, y), "add mul neg failed on scripted:0"));
        } else {
            assert_int_equal(device_wait(rig.device, driver.timeline, NULL), FRIT_OK);
            failure = lineage_failure_of(rig.device->lineage, rig.values[y].value.buffer);
            assert_non_null(failure);
            assert_non_null(strstr(failure->text, "add mul neg failed on scripted:0: smoke"));
            failure_unref(failure);
        }
        assert_int_equal(rig_script(program)->launches, 0);
        failure_unref(rig.values[y].failure);
        failure_unref(rig.run.first);
        buffer_disown(rig.values[y].value.buffer);
        rig.values[y].value.buffer = NULL;
        rig.values[y].failure = NULL;
        rig_run(&rig);
        rig_expect(&rig, y, -60);
        assert_int_equal(rig_script(program)->launches, 0);
        assert_int_equal(rig_count(&rig.device->count.disabled), 1);
        rig_close(&rig);
    }
    (void)state;
}

/* Two blocks with the same label and different programs. */
static void test_only_the_program_that_failed_is_disabled(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};

    for (int inline_queue = 0; inline_queue < 2; inline_queue++) {
        struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = inline_queue};
        struct rig_block blocks[2] = {{.n_ops = 1, .ops = {0}}, {.n_ops = 1, .ops = {1}}};
        uint32_t x, y[2];
        struct rig rig;

        rig_open(&rig, &driver, 8);
        x = rig_in(&rig, 1);
        for (int i = 0; i < 2; i++) {
            y[i] = rig_1(&rig, FRIT_OP_neg, x);
            rig_want(&rig, y[i]);
            blocks[i].program = rig_program(&driver, neg, 1, out, false);
        }
        rig_plan(&rig, blocks, 2);
        rig_run(&rig);
        assert_int_equal(device_wait(rig.device, driver.timeline, NULL), FRIT_OK);
        assert_true(atomic_load(&blocks[0].program->disabled));
        assert_false(atomic_load(&blocks[1].program->disabled));
        assert_int_equal(rig_count(&rig.device->count.disabled), 1);
        rig_close(&rig);
    }
    (void)state;
}

/* ---- other devices ---- */

static void test_another_device_runs_what_this_cannot(void **state)
{
    struct driver driver = {.refuse_neg = true}, helper = {0};
    uint32_t x, y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    rig.device->fallback = driver_device(&helper, 100);
    x = rig_n(&rig, FRIT_OP_add, rig_in(&rig, 1), 1);
    y = rig_n(&rig, FRIT_OP_add, rig_1(&rig, FRIT_OP_neg, x), 1);
    rig_want(&rig, y);
    rig_run(&rig);
    rig_expect(&rig, y, -1);
    assert_int_equal(driver.launches, 2);
    assert_int_equal(helper.launches, 1);
    assert_int_equal(rig_count(&rig.device->count.fallbacks[FALLBACK_DEVICE]), 1);
    rig_close(&rig);
}

static void test_a_refused_composite_is_unfolded(void **state)
{
    struct driver driver = {.refuse_prepare = FRIT_OP_ceil, .poison = true};
    uint32_t y;
    struct rig rig;

    (void)state;
    rig_open(&rig, &driver, 8);
    y = rig_1(&rig, FRIT_OP_ceil, rig_n(&rig, FRIT_OP_add, rig_in(&rig, 1), 1));
    rig_want(&rig, y);
    rig.ops[1].context = CONTEXT_PERSISTENT;
    rig_run(&rig);
    rig_expect(&rig, y, 2);
    assert_int_equal(driver.launches, 4);
    assert_true(buffer_is_persistent(rig.values[y].value.buffer));
    assert_int_equal(rig_count(&rig.device->count.fallbacks[FALLBACK_DECOMPOSED]), 1);
    rig_close(&rig);
}

/* ceil is decomposed to -floor(-x); that its neg ran on the other device is noted for the ceil. */
static void test_a_part_on_another_device_is_noted(void **state)
{
    struct driver driver = {.refuse_prepare = FRIT_OP_ceil, .refuse_neg = true}, helper = {0};
    struct rig rig;
    uint32_t y;

    (void)state;
    rig_open(&rig, &driver, 8);
    rig.device->fallback = driver_device(&helper, 100);
    y = rig_1(&rig, FRIT_OP_ceil, rig_n(&rig, FRIT_OP_add, rig_in(&rig, 1), 1));
    rig_want(&rig, y);
    rig_run(&rig);
    rig_expect(&rig, y, 2);
    assert_int_equal(rig.notes[0].marks, 0);
    assert_string_equal(rig.notes[0].why, "");
    assert_int_equal(rig.notes[1].marks, RUN_DECOMPOSED | RUN_ELSEWHERE);
    assert_string_equal(rig.notes[1].why, "not this shape");
    rig_close(&rig);
}

/* ---- blocks in parts ---- */

static void open_parts(struct rig *rig, struct driver *driver, int64_t n, struct program **program,
                       uint32_t *y)
{
    open_large_block(rig, driver, n, false, program, y);
    rig->device->config.tune.force = "parts";
    rig->device->config.numeric_class = FRIT_NUMERIC_REORDERED;
}

/* The script of the program of op `number` by itself, as long as the device is open. */
static struct driver_program *op_script(struct rig *rig, uint32_t number)
{
    struct op_input in[FRIT_OP_MAX_IN];
    struct op_type out[FRIT_OP_MAX_OUT];
    const struct program_call call = program_call_of(&rig->graph, &rig->graph.ops[number], in, out);
    struct program *program;

    assert_int_equal(programs_get(rig->device, &call, &program, NULL), FRIT_OK);
    assert_non_null(program);
    program_unref(program);
    return rig_script(program);
}

static void expect_whole(struct rig *rig, const struct program *program)
{
    assert_int_equal(rig_count(&rig->device->count.fused), 1);
    assert_string_equal(rig->notes[0].candidate, "");
    assert_false(atomic_load(&program->disabled));
}

static void test_a_block_runs_in_parts(void **state)
{
    for (int inline_queue = 0; inline_queue < 2; inline_queue++) {
        struct driver driver = {.alias = 1, .inline_queue = inline_queue};
        struct program *program;
        struct rig rig;
        uint32_t y;

        open_parts(&rig, &driver, 8, &program, &y);
        rig_run(&rig);
        rig_expect(&rig, y, -60);
        assert_int_equal(driver.launches, 4);
        assert_int_equal(driver.submits, 1 + inline_queue);
        assert_int_equal(rig_count(&rig.device->count.in_parts), 1);
        assert_int_equal(rig_count(&rig.device->count.fused), 0);
        assert_int_equal(rig_count(&rig.device->count.fallbacks[FALLBACK_OPS]), 0);
        assert_string_equal(rig.notes[0].candidate, "parts");
        assert_string_equal(rig.notes[0].chosen, "forced");
        rig_close(&rig);
    }
    (void)state;
}

/* With what was added of them already: the last part is refused, by prepare or at the submit. */
static void test_refused_parts_leave_it_to_the_program(void **state)
{
    for (int at_submit = 0; at_submit < 2; at_submit++) {
        struct driver driver = {.refuse_prepare = at_submit ? 0 : FRIT_OP_neg};
        struct program *program;
        struct rig rig;
        uint32_t y;

        open_parts(&rig, &driver, 8, &program, &y);
        if (at_submit)
            op_script(&rig, 2)->submit_status = FRIT_INTERNAL;
        rig_run(&rig);
        rig_expect(&rig, y, -60);
        assert_int_equal(driver.launches, 2);
        expect_whole(&rig, program);
        rig_close(&rig);
    }
    (void)state;
}

/* Parts and program are refused: the ops run one by one, with all ways round. */
static void test_parts_and_program_are_refused(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct rig rig;
    uint32_t y;

    (void)state;
    open_parts(&rig, &driver, 8, &program, &y);
    op_script(&rig, 2)->submit_status = FRIT_INTERNAL;
    rig_script(program)->submit_status = FRIT_INTERNAL;
    rig_run(&rig);
    assert_non_null(strstr(rig_failure(&rig, y), "neg"));
    assert_true(atomic_load(&program->disabled));
    rig_close(&rig);
}

/* Each buffer is an allocation of its own; the second for a part fails, also when it is tried
 * again.
 */
static void test_parts_without_memory_leave_it_to_the_program(void **state)
{
    struct driver driver = {0};
    struct program *program;
    struct rig rig;
    uint32_t y;

    (void)state;
    open_parts(&rig, &driver, 4 << 20, &program, &y);
    driver.fail_alloc = 2;
    driver.fail_allocs = 2;
    rig_run(&rig);
    rig_expect(&rig, y, -60);
    assert_int_equal(driver.fail_allocs, 0);
    assert_int_equal(driver.launches, 2);
    expect_whole(&rig, program);
    rig_close(&rig);
}

/* What a part fails with is the block's, and says nothing about its program. */
static void test_a_part_fails(void **state)
{
    for (int inline_queue = 0; inline_queue < 2; inline_queue++) {
        struct driver driver = {.inline_queue = inline_queue};
        struct program *program;
        struct failure *failure;
        struct rig rig;
        uint32_t y;

        open_parts(&rig, &driver, 8, &program, &y);
        driver.complete_status = FRIT_TIMEOUT;
        driver.complete_after = 1;
        rig_run(&rig);
        assert_int_equal(device_wait(rig.device, driver.timeline, NULL), FRIT_OK);
        failure = inline_queue
                      ? failure_ref(rig.values[y].failure)
                      : lineage_failure_of(rig.device->lineage, rig.values[y].value.buffer);
        assert_non_null(failure);
        failure_unref(failure);
        assert_false(atomic_load(&program->disabled));
        rig_close(&rig);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_is_one_launch),
        cmocka_unit_test(test_copies_for_a_refused_candidate_are_not_made),
        cmocka_unit_test(test_the_next_candidate_takes_over),
        cmocka_unit_test(test_classes_and_priorities_choose_the_candidate),
        cmocka_unit_test(test_the_strictest_section_of_a_block_counts),
        cmocka_unit_test(test_results_that_vary_are_not_used),
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
        cmocka_unit_test(test_a_block_runs_in_parts),
        cmocka_unit_test(test_refused_parts_leave_it_to_the_program),
        cmocka_unit_test(test_parts_and_program_are_refused),
        cmocka_unit_test(test_parts_without_memory_leave_it_to_the_program),
        cmocka_unit_test(test_a_part_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
