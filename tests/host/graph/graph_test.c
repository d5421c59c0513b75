/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs: what append guarantees, that a failure changes nothing, and that verify sees
 * each way of being wrong. */
#include "host/graph/graph_rig.h"

#include <string.h>

#include "failing_alloc.h"
#include "graph/verify.h"

static const struct op_type matrix = {.dtype = FRIT_F32, .rank = 2, .dims = {3, 4}};

static struct graph_operand tensor(uint32_t value)
{
    return (struct graph_operand){.kind = FRIT_OPERAND_TENSOR, .value = value};
}

static struct graph_operand number(double value)
{
    struct graph_operand operand = {.kind = FRIT_OPERAND_SCALAR,
                                    .scalar = {.kind = FRIT_SCALAR_F64}};

    memcpy(&operand.scalar.bits, &value, sizeof(value));
    return operand;
}

/* Value 0 is an input, 1 = sum of it over axis 1, 2 = value 0 times 0.5. */
static frit_status build(struct graph *graph, frit_err *err)
{
    frit_attrs_reduce attrs = {.struct_size = sizeof(attrs), .axes = {1, {-1}}};
    struct graph_operand in[2] = {tensor(0), number(0.5)};
    struct graph_call sum = {.op = FRIT_OP_sum, .n_in = 1, .in = in, .attrs = &attrs};
    struct graph_call mul = {.op = FRIT_OP_mul, .n_in = 2, .in = in};
    uint32_t out[FRIT_OP_MAX_OUT], value;

    TRY(graph_input(graph, GRAPH_INPUT, "x", &matrix, &value, err));
    TRY(graph_append(graph, &sum, out, err));
    TRY(graph_append(graph, &mul, out, err));
    TRY(graph_output(graph, 2, err));
    return graph_output(graph, 1, err);
}

static int setup(void **state)
{
    static struct graph graph;
    frit_err err = ERR_INIT;

    graph = (struct graph){0};
    *state = &graph;
    return build(&graph, &err);
}

static int teardown(void **state)
{
    graph_fini(*state);
    return 0;
}

static void test_append_checks_and_fills(void **state)
{
    struct graph *graph = *state;
    const frit_attrs_reduce *attrs = graph->ops[0].attrs;
    frit_err err = ERR_INIT;

    assert_int_equal(graph->n_values, 3);
    assert_int_equal(graph->values[1].type.rank, 1);
    assert_int_equal(graph->values[1].type.dims[0], 3);
    assert_int_equal(attrs->axes.axis[0], 1);
    assert_int_equal(graph->ops[1].in[1].dtype, FRIT_F32);
    assert_int_equal(graph->ops[0].out[1], GRAPH_NO_VALUE);
    assert_int_equal(graph_verify(graph, &err), FRIT_OK);
}

static void test_nameless_values_are_numbers(void **state)
{
    struct str text = {0};

    graph_print(*state, &text);
    assert_string_equal(text.text, "input x : f32[3, 4]\n"
                                   "%1 = sum x, axis=1\n"
                                   "output %2 = mul x, 0.5\n"
                                   "output %1\n");
    str_fini(&text);
    rig_assert_round_trip(*state);
}

static void assert_refused(struct graph *graph, const struct graph_call *call, const char *text)
{
    uint32_t n_values = graph->n_values, n_ops = graph->n_ops, out[FRIT_OP_MAX_OUT];
    frit_err err = ERR_INIT;

    assert_int_equal(graph_append(graph, call, out, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(graph->n_values, n_values);
    assert_int_equal(graph->n_ops, n_ops);
}

static void test_wrong_calls_change_nothing(void **state)
{
    struct graph_operand in[2] = {tensor(0), tensor(7)};
    struct graph_call call = {.op = FRIT_OP_add, .n_in = 2, .in = in};

    assert_refused(*state, &call, "operand 1 is value 7, the graph has 3");
    in[1] = tensor(GRAPH_NO_VALUE);
    assert_refused(*state, &call, "operand 1");
    in[1] = tensor(1);
    assert_refused(*state, &call, "broadcast");
    call.op = 39;
    assert_refused(*state, &call, "no op has the number 39");
    call.op = FRIT_OP_LIMIT + 1000;
    assert_refused(*state, &call, "no op has the number");
}

static void test_wrong_inputs_and_outputs(void **state)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = 2, .dims = {INT64_MAX, 3}};
    struct graph *graph = *state;
    uint32_t value;
    frit_err err = ERR_INIT;

    assert_int_equal(graph_input(graph, GRAPH_INPUT, "y", &type, &value, &err), FRIT_INVALID);
    type.rank = FRIT_MAX_RANK + 1;
    assert_int_equal(graph_input(graph, GRAPH_INPUT, "y", &type, &value, &err), FRIT_INVALID);
    assert_int_equal(graph->n_values, 3);
    assert_int_equal(graph_output(graph, 3, &err), FRIT_INVALID);
    assert_int_equal(graph->n_outputs, 2);
}

static void assert_found(struct graph *graph, const char *text)
{
    frit_err err = ERR_INIT;

    assert_int_equal(graph_verify(graph, &err), FRIT_INVALID);
    if (!strstr(err.text, text))
        fail_msg("'%s' is not in '%s'", text, err.text);
}

static void test_verify_sees_wrong_order(void **state)
{
    struct graph *graph = *state;

    graph->ops[0].in[0].value = 2;
    assert_found(graph, "op 0: sum: operand 0 is used before it is made");
    graph->ops[0].in[0].value = 3;
    assert_found(graph, "op 0: sum: operand 0 is not a value");
}

static void test_verify_sees_wrong_results(void **state)
{
    struct graph *graph = *state;

    graph->values[1].type.dims[0] = 4;
    assert_found(graph, "op 0: sum: output 0 is not of the type it has");
    graph->values[1].type.dims[0] = 3;
    graph->ops[1].out[0] = 1;
    assert_found(graph, "op 1: mul: output 0 has two producers");
    graph->ops[1].out[0] = 0;
    assert_found(graph, "op 1: mul: output 0 is not a result");
    graph->ops[1].out[0] = GRAPH_NO_VALUE;
    assert_found(graph, "op 1: mul: output 0 is missing");
    graph->n_ops = 1;
    assert_found(graph, "value 2 has no producer");
}

static void test_verify_sees_wrong_attributes(void **state)
{
    struct graph *graph = *state;
    frit_attrs_reduce *attrs = graph->ops[0].attrs;

    attrs->axes.axis[0] = -1;
    assert_found(graph, "op 0: sum: attributes that op_check would change");
    attrs->axes.axis[0] = 5;
    assert_found(graph, "op 0: sum");
    graph->ops[0].attrs = NULL;
    assert_found(graph, "op 0: sum: no attributes");
}

static void test_verify_sees_wrong_names(void **state)
{
    struct graph *graph = *state;

    graph->values[1].name = "x";
    assert_found(graph, "value 1: the name 'x' is taken");
    graph->values[1].name = "a\nb";
    assert_found(graph, "value 1: 'a\nb' is not a name");
    graph->values[1].name = "";
    assert_found(graph, "value 1: '' is not a name");
    graph->values[1].name = "a b"; /* in quotes */
    graph->output_names[0] = "x";
    assert_found(graph, "value 2: the name 'x' is taken");
    graph->output_names[0] = NULL;
    graph->outputs[0] = 9;
    assert_found(graph, "output 0 is not a value");
}

static frit_status build_and_verify(frit_err *err)
{
    struct graph graph = {0};
    frit_status st = build(&graph, err);

    if (!st)
        st = graph_verify(&graph, err);
    graph_fini(&graph);
    return st;
}

static void test_every_allocation_may_fail(void **state)
{
    bool hit = true;
    long n = 0;

    (void)state;
    for (; hit; n++) {
        frit_err err = ERR_INIT;
        frit_status st;

        failing_alloc_arm(n);
        st = build_and_verify(&err);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
    }
    assert_true(n > 8);
}

/* Values 3 = value 2 times 0.5, which nothing uses, then 4 = value 1 times 0.5. */
static void test_prune_drops_what_nothing_uses(void **state)
{
    struct graph *graph = *state;
    struct graph_operand in[2] = {tensor(2), number(0.5)};
    struct graph_call mul = {.op = FRIT_OP_mul, .n_in = 2, .in = in};
    uint32_t out[FRIT_OP_MAX_OUT], value;
    frit_err err = ERR_INIT;

    assert_int_equal(graph_append(graph, &mul, out, &err), FRIT_OK);
    in[0] = tensor(1);
    assert_int_equal(graph_append(graph, &mul, out, &err), FRIT_OK);
    assert_int_equal(graph_input(graph, GRAPH_CONST, "c", &matrix, &value, &err), FRIT_OK);
    graph->n_outputs = 0;
    assert_int_equal(graph_output(graph, out[0], &err), FRIT_OK);
    assert_int_equal(graph_prune(graph, &err), FRIT_OK);
    assert_int_equal(graph_verify(graph, &err), FRIT_OK);
    assert_int_equal(graph->n_ops, 2);
    assert_int_equal(graph->n_values, 3);
    assert_int_equal(graph->ops[1].in[0].value, 1);
    assert_int_equal(graph->outputs[0], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_append_checks_and_fills, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nameless_values_are_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_calls_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_inputs_and_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_sees_wrong_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_sees_wrong_results, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_sees_wrong_attributes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_sees_wrong_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prune_drops_what_nothing_uses, setup, teardown),
        cmocka_unit_test(test_every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
