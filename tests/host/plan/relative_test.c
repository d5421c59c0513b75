/* SPDX-License-Identifier: Apache-2.0 */
/* What the relative form keeps of a graph, and what it forgets. */
#include "host/graph/graph_rig.h"

#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "plan/relative.h"

/* The relative form of a text program. */
static void relative_of(const char *text, struct relative *relative)
{
    struct graph graph;
    frit_err err = ERR_INIT;

    *relative = (struct relative){0};
    if (rig_graph(text, &graph, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < graph.n_ops; i++)
        assert_int_equal(relative_append(relative, &graph, i, NULL, 0, &err), FRIT_OK);
    graph_fini(&graph);
}

static void assert_text(const char *program, const char *expected)
{
    struct relative relative;
    struct str text = {0};

    relative_of(program, &relative);
    relative_print(&relative, &text);
    assert_string_equal(text.text, expected);
    str_fini(&text);
    relative_fini(&relative);
}

static bool are_same(const char *a, const char *b)
{
    struct relative x, y;
    bool same;

    relative_of(a, &x);
    relative_of(b, &y);
    same = x.n_ops == y.n_ops;
    for (uint32_t i = 0; i < x.n_ops && same; i++)
        same = relative_same_op(&x.ops[i], &y.ops[i]);
    relative_fini(&x);
    relative_fini(&y);
    return same;
}

static void prints_what_it_keeps(void **state)
{
    (void)state;
    assert_text("input x : f32[3, 1, 7]\ninput y : f32[7, 3]\na = add x, 2\nb = neg y\n"
                "c = sum a, axes=[0]\n",
                "0: add f32[a, 1, b] %0, s -> %2\n1: neg f32[b, a] %1 -> %3\n"
                "2: sum f32[1, b] %2 -> %4\n");
}

static void d1_forgets_sizes_and_scalars(void **state)
{
    (void)state;
    assert_true(are_same("input x : f32[3, 4]\na = add x, 2\nb = layer_norm a, eps=0.5\n",
                         "input z : f32[30, 5]\nq = add z, -7.5\nw = layer_norm q, eps=0.25\n"));
    assert_true(are_same("input x : f32[0, 4]\na = neg x\n", "input x : f32[0, 9]\na = neg x\n"));
}

static void d2_keeps_what_matters(void **state)
{
    const char *plain = "input x : f32[3, 4]\na = add x, 2\n";

    (void)state;
    assert_true(are_same(plain, plain));
    assert_false(are_same(plain, "input x : f32[3, 3]\na = add x, 2\n"));
    assert_false(are_same(plain, "input x : f32[3, 1]\na = add x, 2\n"));
    assert_false(are_same(plain, "input x : f32[3, 0]\na = add x, 2\n"));
    assert_false(are_same(plain, "input x : f32[3]\na = add x, 2\n"));
    assert_false(are_same(plain, "input x : f64[3, 4]\na = add x, 2\n"));
    assert_false(are_same(plain, "input x : f32[3, 4]\na = add 2, x\n"));
    assert_false(are_same(plain, "input x : f32[3, 4]\na = add x, x\n"));
    assert_false(are_same(plain, "input x : f32[3, 4]\na = sub x, 2\n"));
    assert_false(are_same("input x : f32[3, 4]\na = sum x, axes=[0]\n",
                          "input x : f32[4, 3]\na = sum x, axes=[1]\n"));
}

static void numbers_extents_past_the_alphabet(void **state)
{
    char program[4096] = "", line[64], *at = program;
    struct relative relative;
    struct str text = {0};

    (void)state;
    for (int i = 0; i < 30; i++)
        at += snprintf(at, 64, "input x%d : f32[%d]\n", i, 100 + i);
    for (int i = 0; i < 30; i++)
        at += snprintf(at, 64, "y%d = neg x%d\n", i, i);
    relative_of(program, &relative);
    assert_int_equal(relative.n_extents, 30);
    assert_int_equal(relative.extents[29], 129);
    relative_print(&relative, &text);
    snprintf(line, sizeof(line), "%s", strstr(text.text, "25: "));
    assert_memory_equal(line, "25: neg f32[z]", 14);
    assert_non_null(strstr(text.text, "26: neg f32[aa]"));
    assert_non_null(strstr(text.text, "29: neg f32[ad]"));
    str_fini(&text);
    relative_fini(&relative);
}

/* Deaths are at the last use, ascending; what no op has is left out. */
static void deaths_move_to_the_last_use(void **state)
{
    struct relative relative;
    struct relative_deaths deaths;
    struct arena arena = {0};
    frit_err err = ERR_INIT;

    (void)state;
    relative_of(
        "input x : f32[3]\ninput y : f32[3]\na = neg x\nb = exp a\nc = add a, b\nd = abs x\n",
        &relative);
    assert_int_equal(relative.n_deaths, 0);
    for (uint32_t v = 0; v < 6; v++)
        assert_int_equal(relative_add_death(&relative, 3, 5 - v, &err), FRIT_OK);
    assert_int_equal(relative.n_deaths, 6);
    assert_int_equal(relative.ops[3].n_dead, 6);
    assert_int_equal(relative.ops[3].dead[0], 5);
    assert_int_equal(relative.ops[3].dead[5], 0);
    assert_int_equal(relative_last_uses(&relative, &arena, &deaths, &err), FRIT_OK);
    assert_int_equal(deaths.first[0], 0);
    assert_int_equal(deaths.first[1], 0);
    assert_int_equal(deaths.first[2], 0);
    assert_int_equal(deaths.first[3], 3);
    assert_int_equal(deaths.first[4], 5);
    assert_int_equal(deaths.values[0], 2);
    assert_int_equal(deaths.values[1], 3);
    assert_int_equal(deaths.values[2], 4);
    assert_int_equal(deaths.values[3], 0);
    assert_int_equal(deaths.values[4], 5);
    arena_fini(&arena);
    relative_reset(&relative);
    assert_int_equal(relative.n_ops + relative.n_values + relative.n_deaths, 0);
    relative_fini(&relative);
}

/* What did not find memory was not appended. */
static void memory_may_end(void **state)
{
    struct relative relative = {0};
    struct graph graph;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(rig_graph("input x : f32[3, 4, 5, 6, 7]\na = add x, 2\n", &graph, &err),
                     FRIT_OK);
    for (long n = 0, hit = 1; hit; n++) {
        const uint32_t dead = 0;
        frit_status st;

        failing_alloc_arm(n);
        st = relative_append(&relative, &graph, 0, &dead, 1, &err);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_int_equal(relative.n_ops, !hit);
        assert_int_equal(relative.n_extents, hit ? 0 : 5);
        assert_int_equal(relative.n_deaths, !hit);
        if (hit)
            relative_fini(&relative);
    }
    relative_fini(&relative);
    graph_fini(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_end),
        cmocka_unit_test(prints_what_it_keeps),
        cmocka_unit_test(d1_forgets_sizes_and_scalars),
        cmocka_unit_test(d2_keeps_what_matters),
        cmocka_unit_test(numbers_extents_past_the_alphabet),
        cmocka_unit_test(deaths_move_to_the_last_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
