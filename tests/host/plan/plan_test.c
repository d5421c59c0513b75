/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of its steps, and what its simulation refuses. */
#include "host/graph/graph_rig.h"

#include <string.h>

#include "plan/plan.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "plan/verify.h"

/* ---- a program that is never launched ---- */

static int programs;

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    (void)self, (void)err;
    out->name = FRIT_STR("map");
    return FRIT_OK;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    (void)self, (void)candidate, (void)sig, (void)out, (void)variant;
    return fail(err, FRIT_UNSUPPORTED, "never");
}

static void destroy(void *self)
{
    (void)self;
    programs--;
}

static const frit_program_table table = {
    .struct_size = sizeof(table), .describe = describe, .prepare = prepare, .destroy = destroy};

static struct program *a_program(void)
{
    const frit_program program = {.struct_size = sizeof(program), .table = &table};
    struct program *shared = program_create(&program, 3);

    assert_non_null(shared);
    programs++;
    return shared;
}

/* ---- segments ---- */

/* x and y are values 0 and 1, the ops make 2, 3, ... */
static const char *const segment =
    "input x : f32[4]\ninput y : f32[4]\n"
    "a = neg x\nb = reshape a, dims=[2, 2]\nc = exp b\nd = add a, y\n"
    "e = mul d, x\n";

struct death {
    uint32_t op, value;
};

static void make_relative(const struct death *deaths, uint32_t n_deaths, struct relative *relative)
{
    struct graph graph;
    frit_err err = ERR_INIT;

    *relative = (struct relative){0};
    if (rig_graph(segment, &graph, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < graph.n_ops; i++)
        assert_int_equal(relative_append(relative, &graph, i, NULL, 0, &err), FRIT_OK);
    for (uint32_t i = 0; i < n_deaths; i++)
        assert_int_equal(relative_add_death(relative, deaths[i].op, deaths[i].value, &err),
                         FRIT_OK);
    graph_fini(&graph);
}

static frit_status make_plan(const struct death *deaths, uint32_t n_deaths,
                             const struct plan_block *blocks, uint32_t n_blocks, struct plan **plan,
                             frit_err *err)
{
    struct relative relative;
    frit_status st;

    make_relative(deaths, n_deaths, &relative);
    st = plan_create(&relative, 7, blocks, n_blocks, plan, err);
    relative_fini(&relative);
    return st;
}

static void assert_text(const struct plan *plan, const char *expected)
{
    struct str text = {0};

    plan_print(plan, &text);
    assert_string_equal(text.text, expected);
    str_fini(&text);
}

/* ---- the tests ---- */

/* a is kept for its view b, b dies in the exp, d in the mul. */
static const struct death usual[] = {{4, 2}, {4, 3}, {4, 5}};

static void unfused_steps(void **state)
{
    struct relative relative;
    struct plan *plan;
    frit_err err = ERR_INIT;

    (void)state;
    make_relative(usual, 3, &relative);
    assert_int_equal(plan_create_unfused(&relative, 5, &plan, &err), FRIT_OK);
    relative_fini(&relative);
    assert_text(plan, "0: neg | ops 0 | in %0 | out %2 | single\n"
                      "1: reshape | ops 1 | in %2 | out %3 | single\n"
                      "2: exp | ops 2 | in %3 | out %4 | dead %3 | single\n"
                      "3: add | ops 3 | in %2 %1 | out %5 | dead %2 | single\n"
                      "4: mul | ops 4 | in %5 %0 | out %6 | dead %5 | single\n");
    assert_int_equal(plan->n_calls, 5);
    assert_int_equal(plan->last_step[0], 4);
    assert_int_equal(plan->last_step[2], 3);
    assert_true(plan->bytes > sizeof(*plan));
    plan_unref(plan_ref(plan));
    plan_unref(plan);
}

static void programs_take_and_give(void **state)
{
    struct program *program = a_program();
    const uint32_t ops[] = {0, 3, 4}, rest[] = {1, 2};
    const struct plan_block blocks[] = {
        {.program = program, .n_ops = 3, .ops = ops, .score = 420, .end = PLAN_END_CLOSED},
        {.n_ops = 2, .ops = rest, .end = PLAN_END_SINGLE}};
    const struct death all[] = {{4, 2}, {4, 3}, {4, 5}};
    struct plan *plan;
    frit_err err = ERR_INIT;

    (void)state;
    /* Value 2 dies in the add, which runs before the reshape that needs it. */
    assert_int_equal(make_plan(all, 3, blocks, 2, &plan, &err), FRIT_INTERNAL);
    assert_non_null(strstr(err.text, "uses value 2 after it died"));
    assert_null(plan);
    /* It lives on: the program stores it. */
    assert_int_equal(make_plan(all + 1, 2, blocks, 2, &plan, &err), FRIT_OK);
    assert_text(plan, "0: map: neg add mul | ops 0 3 4 | in %0 %1 | out %2 %6 | dead %5 |"
                      " score 420 | closed\n"
                      "1: reshape | ops 1 | in %2 | out %3 | single\n"
                      "2: exp | ops 2 | in %3 | out %4 | dead %3 | single\n");
    /* Its memory is that of its view. */
    assert_int_equal(plan->last_step[2], 2);
    program_unref(program);
    assert_int_equal(programs, 1);
    plan_unref(plan);
    assert_int_equal(programs, 0);
}

/* A base whose last use is before its view's is kept for the view. */
static void views_keep_their_base(void **state)
{
    const uint32_t ops[] = {0, 1, 3, 4, 2};
    const struct plan_block block = {.n_ops = 5, .ops = ops, .end = PLAN_END_SINGLE};
    struct plan *plan;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(make_plan(usual, 3, &block, 1, &plan, &err), FRIT_OK);
    assert_text(plan, "0: neg | ops 0 | in %0 | out %2 | single\n"
                      "1: reshape | ops 1 | in %2 | out %3 | single\n"
                      "2: add | ops 3 | in %2 %1 | out %5 | single\n"
                      "3: mul | ops 4 | in %5 %0 | out %6 | dead %5 | single\n"
                      "4: exp | ops 2 | in %3 | out %4 | dead %3 %2 | single\n");
    /* Given up with the add, its memory would be gone. */
    plan->steps[4].n_dead = 1;
    plan->steps[4].dead[0] = 3;
    plan->steps[2].dead = plan->steps[4].dead + 1;
    plan->steps[2].dead[0] = 2;
    plan->steps[2].n_dead = 1;
    assert_int_equal(plan_verify(plan, &err), FRIT_INTERNAL);
    assert_non_null(strstr(err.text, "memory is gone"));
    plan_unref(plan);
}

static void d9_blocks_hold_each_op_once(void **state)
{
    const uint32_t twice[] = {0, 1, 1}, beyond[] = {0, 2}, backwards[] = {1, 0},
                   many[] = {0, 1, 2, 3, 4, 5};
    const struct {
        const uint32_t *ops;
        uint32_t n_ops;
        const char *text;
    } cases[] = {{twice, 3, "twice"},
                 {beyond, 2, "beyond"},
                 {backwards, 2, "before it is made"},
                 {many, 6, "hold 6 ops"},
                 {many, 0, "hold 0 ops"}};
    struct plan *plan;
    frit_err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plan_block block = {.n_ops = cases[i].n_ops, .ops = cases[i].ops};

        assert_int_equal(make_plan(NULL, 0, &block, 1, &plan, &err), FRIT_INTERNAL);
        if (!strstr(err.text, cases[i].text))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].text);
    }
}

/* A plan over the first ops: a value that later ops use is stored, one that they only bury is
 * not. */
static void plans_of_a_beginning(void **state)
{
    struct program *program = a_program();
    const uint32_t ops[] = {0, 1, 2};
    const struct plan_block block = {.program = program, .n_ops = 3, .ops = ops};
    struct plan *plan;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(make_plan(usual, 3, &block, 1, &plan, &err), FRIT_OK);
    assert_text(plan, "0: map: neg reshape exp | ops 0 1 2 | in %0 | out %2 %4 | dead %3 |"
                      " score 0 | all\n");
    assert_int_equal(plan->n_ops, 3);
    assert_int_equal(plan->last_step[6], PLAN_NO_STEP);
    plan_unref(plan);
    program_unref(program);
}

static void simulation_keeps_ordered_ops(void **state)
{
    const frit_operand in = {.kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32};
    frit_operand out[2] = {in, in};
    frit_op_desc ops[2];
    const uint32_t forth[] = {0, 1}, back[] = {1, 0};
    frit_err err = ERR_INIT;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        out[i].value = i + 1;
        ops[i] = (frit_op_desc){
            .id = FRIT_OP_all_reduce, .n_in = 1, .n_out = 1, .in = &in, .out = &out[i]};
    }
    assert_int_equal(plan_simulate(ops, 2, 3, forth, &err), FRIT_OK);
    assert_int_equal(plan_simulate(ops, 2, 3, back, &err), FRIT_INTERNAL);
    ops[0].id = FRIT_OP_neg;
    assert_int_equal(plan_simulate(ops, 2, 3, back, &err), FRIT_OK);
    out[1].value = 1;
    assert_int_equal(plan_simulate(ops, 2, 3, forth, &err), FRIT_INTERNAL);
    assert_non_null(strstr(err.text, "made already"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unfused_steps),         cmocka_unit_test(programs_take_and_give),
        cmocka_unit_test(views_keep_their_base), cmocka_unit_test(d9_blocks_hold_each_op_once),
        cmocka_unit_test(plans_of_a_beginning),  cmocka_unit_test(simulation_keeps_ordered_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
