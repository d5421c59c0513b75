/* SPDX-License-Identifier: Apache-2.0 */
/* Plans over concrete values: hazards, memory, in place, other ways when a program refuses. */
#include <string.h>

#include "stream/bench.h"

#include "base/fail.h"
#include "failing_alloc.h"

enum { N = 1 << 14 }; /* elements: 64 KiB, so that memory is used again within a batch */

static uint64_t count(const atomic_uint_least64_t *counter)
{
    return atomic_load(counter);
}

static struct driver_program *script(const struct plan_program *program)
{
    return program->program.self;
}

static struct plan_program *block_program(struct driver *driver, const struct driver_op *ops,
                                          uint32_t n_ops, const int *out, bool foreign)
{
    frit_program program = driver_block(driver, ops, n_ops, out, foreign);
    struct plan_program *shared = plan_program_create(&program, 0);

    assert_non_null(shared);
    return shared;
}

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
    assert_int_equal(count(&b.device->count.in_place), 1);
    assert_ptr_equal(b.values[x].value.buffer, b.values[y].value.buffer);
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
    struct driver driver = {.room = 6 * 4096};
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
    assert_int_equal(count(&b.device->count.skipped), 2);
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

/* Two steps that share nothing but the workspace that the second gets from the first. */
static void test_a_workspace_is_used_again(void **state)
{
    static const struct driver_op neg[] = {{FRIT_OP_neg, 0, -2}};
    static const int out[] = {1};
    struct driver driver = {.reverse = true, .derived = 1 << 16, .n_derived = 2};
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
        blocks[i].program = block_program(&driver, neg, 1, out, false);
        script(blocks[i].program)->workspace = 1 << 16;
    }
    bench_plan(&b, blocks, 2);
    bench_run(&b);
    bench_expect(&b, y[0], 0);
    bench_expect(&b, y[1], -1);
    bench_expect(&b, y[2], -2);
    assert_int_equal(driver.barriers, 2);
    memory_stats(b.device->memory, &stats);
    assert_int_equal(stats.bytes_peak, 2 * 65536 + 6 * 64);
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
    assert_int_equal(count(&b.device->count.in_place), 4); /* not over x */
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
        assert_int_equal(count(&b.device->count.in_place), shared == 0 || shared == 3);
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
        assert_int_equal(count(&b.device->count.in_place), wanted ? 0 : 1);
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
    assert_int_equal(count(&b.device->count.in_place), 2);
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

/* ---- blocks ---- */

static const struct driver_op add_mul_neg[] = {
    {FRIT_OP_add, 0, -1}, {FRIT_OP_mul, 2, 1}, {FRIT_OP_neg, 3, -2}};
static const int third[] = {4};

/* -((x + 1) * y), as one block with the given script, and another op on top. */
static void open_block(struct bench *b, struct driver *driver, bool foreign,
                       struct plan_program **program, uint32_t *result)
{
    struct bench_block block = {.n_ops = 3, .ops = {0, 1, 2}};
    uint32_t x, y;

    bench_open(b, driver, 8);
    x = bench_in(b, 2);
    y = bench_in(b, 10);
    *result = bench_1(b, FRIT_OP_neg, bench_2(b, FRIT_OP_mul, bench_n(b, FRIT_OP_add, x, 1), y));
    *result = bench_n(b, FRIT_OP_mul, *result, 2);
    bench_want(b, *result);
    *program = block.program = block_program(driver, add_mul_neg, 3, third, foreign);
    bench_plan(b, &block, 1);
}

static void test_a_block_is_one_launch(void **state)
{
    for (int foreign = 0; foreign < 2; foreign++) {
        struct driver driver = {0};
        struct plan_program *program;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, foreign, &program, &y);
        script(program)->workspace = 100;
        bench_run(&b);
        bench_expect(&b, y, -60);
        assert_int_equal(driver.launches, 2);
        assert_int_equal(driver.dispatches, foreign);
        assert_int_equal(count(&b.device->count.fused), 1);
        assert_int_equal(driver.last_cookie >> 32, 3);
        assert_string_equal(run_label(b.device, driver.last_cookie), "mul");
        bench_close(&b);
    }
    (void)state;
}

static void test_copies_for_a_refused_candidate_are_not_made(void **state)
{
    struct driver driver = {0};
    struct plan_program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    script(program)->n_candidates = 2;
    script(program)->refuse = 1;
    script(program)->relayout_first = true;
    bench_run(&b);
    bench_expect(&b, y, -60);
    assert_int_equal(driver.launches, 2);
    script(program)->generation = 1;
    bench_close(&b);
}

static void test_the_next_candidate_takes_over(void **state)
{
    struct driver driver = {0};
    struct plan_program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    script(program)->n_candidates = 3;
    script(program)->refuse = 3;
    bench_run(&b);
    bench_expect(&b, y, -60);
    assert_int_equal(driver.launches, 2);
    assert_int_equal(script(program)->last_candidate, 2);
    assert_int_equal(count(&b.device->count.fallbacks[FALLBACK_CANDIDATE]), 2);
    bench_close(&b);
}

/* All ops by themselves, and the refusal is remembered. */
static void test_a_refused_block_runs_op_by_op(void **state)
{
    struct driver driver = {.poison = true};
    struct plan_program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    script(program)->refuse = 1;
    for (int i = 1; i <= 3; i++) {
        bench_run(&b);
        assert_null(b.run.first);
        bench_expect(&b, y, -60);
        assert_int_equal(count(&b.device->count.fallbacks[FALLBACK_OPS]), i);
        buffer_disown(b.values[y].value.buffer);
        b.values[y].value.buffer = NULL;
    }
    assert_int_equal(script(program)->prepares, 1);
    assert_int_equal(driver.launches, 12);
    bench_close(&b);
}

static void test_new_generations_are_asked_again(void **state)
{
    struct driver driver = {0};
    struct plan_program *program;
    struct bench b;
    uint32_t y;

    (void)state;
    open_block(&b, &driver, false, &program, &y);
    script(program)->refuse = 1;
    for (int i = 0; i < 40; i++) {
        bench_run(&b);
        buffer_disown(b.values[y].value.buffer);
        b.values[y].value.buffer = NULL;
        if (i == 0) {
            script(program)->refuse = 0;
            script(program)->generation = 1;
        }
    }
    assert_int_equal(script(program)->prepares, 2);
    assert_true(script(program)->launches > 20);
    bench_close(&b);
}

/* Only the program whose submit fails is out; the rest of the batch runs. */
static void test_a_program_that_fails_is_disabled(void **state)
{
    for (int memory = 0; memory < 2; memory++) {
        struct driver driver = {.reverse = true};
        struct plan_program *program;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, false, &program, &y);
        script(program)->submit_status = memory ? FRIT_NO_DEVICE_MEMORY : FRIT_INTERNAL;
        for (int i = 0; i < 2; i++) {
            bench_run(&b);
            assert_null(b.run.first);
            bench_expect(&b, y, -60);
            buffer_disown(b.values[y].value.buffer);
            b.values[y].value.buffer = NULL;
        }
        assert_int_equal(script(program)->launches, 0);
        assert_int_equal(count(&b.device->count.disabled), !memory);
        assert_int_equal(atomic_load(&program->disabled), !memory);
        assert_int_equal(driver.launches, 8);
        bench_close(&b);
    }
    (void)state;
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
    block.program = block_program(&driver, neg, 1, first, false);
    script(block.program)->submit_status = FRIT_INTERNAL;
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
    block.program = block_program(&driver, both, 2, outs, false);
    bench_plan(&b, &block, 1);
    fail(&err, FRIT_IO, "the disk is gone");
    failure = failure_create(&err);
    b.values[x].failure = failure;
    bench_run(&b);
    assert_string_equal(bench_failure(&b, u), "the disk is gone");
    bench_expect(&b, v, -2);
    assert_int_equal(count(&b.device->count.fallbacks[FALLBACK_OPS]), 0);
    bench_close(&b);
    failure_unref(failure);
}

static void test_a_late_failure_names_the_block(void **state)
{
    for (int inside = 0; inside < 2; inside++) {
        struct driver driver = {.complete_status = FRIT_TIMEOUT, .inline_queue = inside};
        struct plan_program *program;
        struct failure *failure;
        struct bench b;
        uint32_t y;

        open_block(&b, &driver, false, &program, &y);
        bench_run(&b);
        if (inside) {
            assert_non_null(strstr(bench_failure(&b, y), "add mul neg failed on scripted:0"));
        } else {
            assert_int_equal(device_wait(b.device, driver.timeline, NULL), FRIT_OK);
            failure =
                device_poison_of(b.device, atomic_load(&b.values[y].value.buffer->last_write));
            assert_non_null(failure);
            assert_non_null(strstr(failure->text, "add mul neg failed on scripted:0: smoke"));
            failure_unref(failure);
        }
        assert_int_equal(script(program)->launches, 0);
        failure_unref(b.values[y].failure);
        failure_unref(b.run.first);
        buffer_disown(b.values[y].value.buffer);
        b.values[y].value.buffer = NULL;
        b.values[y].failure = NULL;
        bench_run(&b);
        bench_expect(&b, y, -60);
        assert_int_equal(script(program)->launches, 0);
        assert_int_equal(count(&b.device->count.disabled), 1);
        bench_close(&b);
    }
    (void)state;
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

/* The write of x failed, and only that one is known; somebody is told before the run, or while it
 * is being submitted. */
static void test_a_failure_told_meanwhile_reaches_all(void **state)
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
            atomic_store(&b.values[good - 1].value.buffer->last_write, 0);
        if (!meanwhile)
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
    assert_int_equal(count(&b.device->count.fallbacks[FALLBACK_DEVICE]), 1);
    device_destroy(b.device->fallback);
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
    assert_int_equal(count(&b.device->count.fallbacks[FALLBACK_DECOMPOSED]), 1);
    bench_close(&b);
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
        block.program = block_program(&driver, neg, 1, out, false);
        script(block.program)->n_candidates = 2;
        script(block.program)->refuse = n % 3 == 0 ? 3 : 1;
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
        cmocka_unit_test(test_long_plans_are_submitted_in_parts),
        cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test(test_a_full_device_gets_the_dead_back),
        cmocka_unit_test(test_what_nobody_wants_is_not_run),
        cmocka_unit_test(test_a_chain_stays_in_one_buffer),
        cmocka_unit_test(test_a_shared_buffer_is_not_overwritten),
        cmocka_unit_test(test_a_view_keeps_its_base),
        cmocka_unit_test(test_no_place_under_two_arguments),
        cmocka_unit_test(test_a_block_is_one_launch),
        cmocka_unit_test(test_the_next_candidate_takes_over),
        cmocka_unit_test(test_a_refused_block_runs_op_by_op),
        cmocka_unit_test(test_new_generations_are_asked_again),
        cmocka_unit_test(test_a_program_that_fails_is_disabled),
        cmocka_unit_test(test_a_refused_batch_is_undone),
        cmocka_unit_test(test_dependents_fail_and_others_run),
        cmocka_unit_test(test_a_poisoned_block_runs_op_by_op),
        cmocka_unit_test(test_a_late_failure_names_the_block),
        cmocka_unit_test(test_no_barrier_without_need),
        cmocka_unit_test(test_a_workspace_is_used_again),
        cmocka_unit_test(test_memory_is_used_again_where_it_fits),
        cmocka_unit_test(test_values_that_lost_their_owners_go),
        cmocka_unit_test(test_a_dead_base_gives_its_place),
        cmocka_unit_test(test_copies_for_a_refused_candidate_are_not_made),
        cmocka_unit_test(test_a_failure_inside_submit_is_found),
        cmocka_unit_test(test_a_failure_told_meanwhile_reaches_all),
        cmocka_unit_test(test_no_host_memory_is_survived),
        cmocka_unit_test(test_another_device_runs_what_this_cannot),
        cmocka_unit_test(test_a_refused_composite_is_unfolded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
