/* SPDX-License-Identifier: Apache-2.0 */
/* Text programs: numbers that survive, values of attributes, binding of dims, hostile text.  The
 * texts of messages are in tests/golden. */
#include "host/graph/graph_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "graph/dtype.h"
#include "graph/foreign.h"
#include "graph/scalar.h"
#include "graph/text/text_number.h"
#include "graph/text/text_script.h"
#include "graph/verify.h"

static void must(const char *text, struct graph *graph)
{
    frit_err err = ERR_INIT;

    if (rig_graph(text, graph, &err) || graph_verify(graph, &err))
        fail_msg("%s\n%s", text, err.text);
}

/* ---- numbers ---- */

static void assert_number_survives(const frit_scalar *scalar)
{
    struct str text = {0};
    frit_scalar back = {0};

    number_print(&text, scalar, FRIT_F64);
    assert_null(number_parse((frit_str){text.text, text.length}, &back));
    assert_int_equal(back.kind, scalar->kind);
    if (back.bits != scalar->bits)
        fail_msg("%s", text.text);
    str_fini(&text);
}

static void test_numbers_survive(void **state)
{
    static const double floats[] = {0.0,
                                    -0.0,
                                    1.0,
                                    -1.5,
                                    0.1,
                                    1e22,
                                    1e-5,
                                    5e-324,
                                    2.2250738585072014e-308,
                                    1.7976931348623157e308,
                                    123456789012345680.0,
                                    (double)INFINITY,
                                    -(double)INFINITY};
    static const uint64_t integers[] = {0, 1, INT64_MAX, 42, 1000000007};
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++) {
        frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

        memcpy(&scalar.bits, &floats[i], sizeof(scalar.bits));
        assert_number_survives(&scalar);
    }
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        assert_number_survives(&(frit_scalar){.kind = FRIT_SCALAR_I64, .bits = integers[i]});
        if (integers[i])
            assert_number_survives(
                &(frit_scalar){.kind = FRIT_SCALAR_I64, .bits = 0 - integers[i]});
    }
    assert_number_survives(&(frit_scalar){.kind = FRIT_SCALAR_I64, .bits = 1ull << 63});
    assert_number_survives(&(frit_scalar){.kind = FRIT_SCALAR_U64, .bits = UINT64_MAX});
    assert_number_survives(&(frit_scalar){.kind = FRIT_SCALAR_U64, .bits = 1ull << 63});
    for (int i = 0; i < 20000; i++) {
        frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
        double value;

        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        scalar.bits = seed ^ seed >> 29;
        memcpy(&value, &scalar.bits, sizeof(value));
        if (!isnan(value))
            assert_number_survives(&scalar);
    }
}

static void test_spellings_of_numbers(void **state)
{
    static const struct {
        const char *text;
        uint32_t kind;
        double value;
    } good[] = {
        {"0x10", FRIT_SCALAR_I64, 16},    {"0x1p-3", FRIT_SCALAR_F64, 0.125},
        {"-0x.8p1", FRIT_SCALAR_F64, -1}, {"+7", FRIT_SCALAR_I64, 7},
        {".5", FRIT_SCALAR_F64, 0.5},     {"2.", FRIT_SCALAR_F64, 2},
        {"1E3", FRIT_SCALAR_F64, 1000},   {"-inf", FRIT_SCALAR_F64, -(double)INFINITY},
        {"1e-999", FRIT_SCALAR_F64, 0},
    };
    static const char *const bad[] = {
        "",
        "-",
        "1e",
        "1.2.3",
        "0x",
        "0xg",
        "1_000",
        "12a",
        ".",
        "-.",
        "infinity",
        "1e999",
        "18446744073709551616",
        "-9223372036854775809",
        "0x10000000000000000",
        "nan(1)",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        frit_scalar scalar = {0};
        double value;

        assert_null(number_parse(str_of(good[i].text), &scalar));
        assert_int_equal(scalar.kind, good[i].kind);
        memcpy(&value, &scalar.bits, sizeof(value));
        if (scalar.kind == FRIT_SCALAR_I64)
            value = (double)(int64_t)scalar.bits;
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        frit_scalar scalar;

        if (!number_parse(str_of(bad[i]), &scalar))
            fail_msg("'%s' is taken for a number", bad[i]);
    }
}

/* As few digits as the precision that a scalar gets needs, all of them where it keeps its own. */
static void test_digits_by_precision(void **state)
{
    struct str text = {0};
    struct graph graph;

    (void)state;
    must("input x : f32[2]\ninput y : f64[2]\ninput h : f16[2]\ninput m : bool[2]\n"
         "a = add x, 0.1\nb = add y, 0.1\nc = add h, 0.33333\nd = full 0.1, dtype=f32, dims=[]\n"
         "e = full 0.10000000149011612, dtype=f32, dims=[]\nf = and m, 1\n"
         "g = mul x, 300\nk = mul y, 1e20\n",
         &graph);
    graph_print(&graph, &text);
    assert_non_null(strstr(text.text, "a = add x, 0.1\n"));
    assert_non_null(strstr(text.text, "b = add y, 0.1\n"));
    assert_non_null(strstr(text.text, "c = add h, 0.3333\n"));
    assert_non_null(strstr(text.text, "d = full 0.1,"));
    assert_non_null(strstr(text.text, "e = full 0.10000000149011612,"));
    assert_non_null(strstr(text.text, "f = and m, true\n"));
    assert_non_null(strstr(text.text, "g = mul x, 300.0\n"));
    assert_non_null(strstr(text.text, "k = mul y, 1e+20\n"));
    str_fini(&text);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
}

/* ---- statements ---- */

static void test_inputs_are_numbered_first(void **state)
{
    struct graph graph;

    (void)state;
    must("input a : f32[2]\nb = neg a\ninput c : f32[2] = \"q \\\"1\\\\.npy\"\nd = add b, "
         "c\noutput d, a\n",
         &graph);
    assert_string_equal(graph.values[0].name, "a");
    assert_string_equal(graph.values[1].name, "c");
    assert_string_equal(graph.values[1].file, "q \"1\\.npy");
    assert_string_equal(graph.values[2].name, "b");
    assert_int_equal(graph.ops[1].in[0].value, 2);
    assert_int_equal(graph.ops[1].in[1].value, 1);
    assert_int_equal(graph.ops[1].line, 4);
    assert_int_equal(graph.n_outputs, 2);
    assert_int_equal(graph.outputs[0], 3);
    assert_int_equal(graph.outputs[1], 0);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
}

static void test_results_are_wanted_if_named(void **state)
{
    struct graph graph;

    (void)state;
    must("input x : f32[1,1,4]\ninput g : f32[1,2,3]\n"
         "a = max_pool x, kernel=[2]\nb, i = max_pool x, kernel=[2]\nc, _ = sort x, axis=2\n",
         &graph);
    assert_int_equal(graph.ops[0].out[1], GRAPH_NO_VALUE);
    assert_int_not_equal(graph.ops[1].out[1], GRAPH_NO_VALUE);
    assert_int_equal(graph.values[graph.ops[1].out[1]].type.dtype, FRIT_I64);
    assert_int_equal(graph.ops[2].out[1], GRAPH_NO_VALUE);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
}

static void test_results_left_out_in_the_middle(void **state)
{
    struct str text = {0};
    struct graph graph;

    (void)state;
    must("input x : f32[2,4,6,6]\ninput o : f32[2,18,4,4]\ninput w : f32[3,4,3,3]\n"
         "input b : f32[3]\ninput g : f32[2,3,4,4]\n"
         "dx, do, dw, _, db = deform_conv_backward x, o, w, none, b, g\n",
         &graph);
    graph_print_op(&graph, &graph.ops[0], &text);
    assert_non_null(
        strstr(text.text, "dx, do, dw, _, db = deform_conv_backward x, o, w, none, b, g"));
    str_fini(&text);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
}

static void test_words_and_lists_of_attributes(void **state)
{
    const frit_attrs_slice *slice;
    const frit_attrs_reduce *sum;
    struct graph graph;

    (void)state;
    must("input x : f32[9, n]\n"
         "a = slice x, slices=[-7::3, n::-1]\n"
         "b = sum x, axis=-1, keep=true\n"
         "c = full true, dtype=bool, dims=[n, 0]\n"
         "d = clamp x, -inf, -0.0\n",
         &graph);
    slice = graph.ops[0].attrs;
    assert_int_equal(slice->slices.dim[0].start, 2);
    assert_int_equal(slice->slices.dim[0].stop, 9);
    assert_int_equal(slice->slices.dim[0].step, 3);
    assert_int_equal(slice->slices.dim[1].start, 1);
    assert_true(slice->slices.dim[1].stop == FRIT_SLICE_END);
    sum = graph.ops[1].attrs;
    assert_int_equal(sum->keep, 1);
    assert_int_equal(sum->axes.axis[0], 1);
    graph_fini(&graph);
}

/* ---- binding ---- */

static frit_status bind(const char *text, const struct op_type *types, struct graph *graph,
                        frit_err *err)
{
    struct script *script;
    frit_status st;

    *graph = (struct graph){0};
    assert_int_equal(script_parse("t.frit", text, strlen(text), &script, err), FRIT_OK);
    st = script_bind(script, types, graph, err);
    script_destroy(script);
    return st;
}

static void test_named_dims_take_the_extents_of_values(void **state)
{
    const struct op_type types[] = {{0}, {FRIT_F32, 2, {500, 8}}, {FRIT_F32, 1, {8}}};
    struct graph graph;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(bind("input z : f32[n, ?]\ninput x : f32[n, m]\nconst w = \"w\"\n"
                          "y = reshape x, dims=[m, n]\n",
                          types, &graph, &err),
                     FRIT_OK);
    assert_int_equal(graph.values[0].type.dims[0], 500);
    assert_int_equal(graph.values[0].type.dims[1], 2);
    assert_int_equal(graph.values[3].type.dims[0], 8);
    assert_int_equal(graph.values[3].type.dims[1], 500);
    graph_fini(&graph);
}

static void assert_not_bound(const char *text, const struct op_type *types, const char *message)
{
    struct graph graph;
    frit_err err = ERR_INIT;

    assert_int_equal(bind(text, types, &graph, &err), FRIT_INVALID);
    assert_string_equal(err.text, message);
    graph_fini(&graph);
}

static void test_values_that_do_not_fit(void **state)
{
    const struct op_type types[] = {{FRIT_F32, 2, {500, 8}}, {FRIT_F32, 1, {400}}};

    (void)state;
    assert_not_bound("input x : f32[n, 8]\ninput  y : f32[n]\n", types,
                     "t.frit:2:16: dim n is 400 in y, but 500 in x (1:15)");
    assert_not_bound("input x : f32[?, n]\nconst y : f32[n] = \"f\"\n", types,
                     "t.frit:2:15: dim n is 400 in y, but 8 in x (1:18)");
    assert_not_bound("input x : f32[n, n]\n", types,
                     "t.frit:1:18: dim n is 8 in x, but 500 in x (1:15)");
    assert_not_bound("input x : f32[n, 7]\n", types,
                     "t.frit:1:7: x is declared f32[n, 7], its value is f32[500, 8]");
    assert_not_bound("input x : f64[?, 8]\n", types,
                     "t.frit:1:7: x is declared f64[?, 8], its value is f32[500, 8]");
    assert_not_bound("input x : f32[n]\n", types,
                     "t.frit:1:7: x is declared f32[n], its value is f32[500, 8]");
    assert_not_bound("const x = \"f\"\n", &(struct op_type){0},
                     "t.frit:1:7: x has no declared type, and its file was not read");
}

static void test_declarations(void **state)
{
    const char *text = "input x : f32[n, 3, ?] = \"x.npy\"\nconst w = \"w.npy\"\n";
    const struct script_input *input;
    struct script *script;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(script_parse("t.frit", text, strlen(text), &script, &err), FRIT_OK);
    assert_int_equal(script_n_inputs(script), 2);
    input = script_input_at(script, 0);
    assert_string_equal(input->file, "x.npy");
    assert_string_equal(input->dim_names[0], "n");
    assert_null(input->dim_names[1]);
    assert_int_equal(input->dims[1], 3);
    assert_int_equal(input->dims[2], -1);
    assert_false(input->is_const);
    input = script_input_at(script, 1);
    assert_true(input->is_const);
    assert_false(input->has_dims);
    assert_int_equal(input->dtype, FRIT_NO_DTYPE);
    assert_int_equal(input->line, 2);
    script_destroy(script);
}

/* ---- constants ---- */

/* Every pattern of the 16-bit floats but the NaNs, and integers at their ends. */
static void test_elements_survive(void **state)
{
    static const uint32_t floats[] = {FRIT_F16, FRIT_BF16};
    static const struct {
        uint32_t dtype;
        uint64_t bits;
    } others[] = {
        {FRIT_F32, 0x00000001},
        {FRIT_F32, 0x007fffff},
        {FRIT_F32, 0x80000000},
        {FRIT_F32, 0x7f7fffff},
        {FRIT_F32, 0xff800000},
        {FRIT_F64, 1},
        {FRIT_F64, 0x000fffffffffffff},
        {FRIT_F64, 0x7fefffffffffffff},
        {FRIT_I8, 0x80},
        {FRIT_U8, 0xff},
        {FRIT_I64, 1ull << 63},
        {FRIT_U64, UINT64_MAX},
        {FRIT_I16, 0xffff},
        {FRIT_BOOL, 1},
        {FRIT_U32, 0xffffffff},
    };

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        for (uint64_t bits = 0; bits < 0x10000; bits++) {
            frit_scalar scalar = scalar_of_bits(bits, floats[k]);

            if (!isnan(scalar_number(&scalar)))
                assert_int_equal(scalar_bits(&scalar, floats[k]), bits);
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        frit_scalar scalar = scalar_of_bits(others[i].bits, others[i].dtype);

        assert_int_equal(scalar_bits(&scalar, others[i].dtype), others[i].bits);
    }
}

static void test_elements_in_memory(void **state)
{
    static const float matrix[] = {1, 2.5f, -0.1f, 1e-45f};
    const struct script_input *input;
    struct script *script;
    struct graph graph;
    frit_err err = ERR_INIT;
    const char *text = "const w : f32[?, 2] = [[1, 2.5], [-0.1, 1e-45]]\n"
                       "const b : bool[3] = true\nconst h : f16[] = 65504\n";

    (void)state;
    assert_int_equal(script_parse("t.frit", text, strlen(text), &script, &err), FRIT_OK);
    input = script_input_at(script, 0);
    assert_memory_equal(input->data, matrix, sizeof(matrix));
    assert_int_equal(input->data_type.dims[0], 2);
    assert_memory_equal(script_input_at(script, 1)->data, "\1\1\1", 3);
    assert_memory_equal(script_input_at(script, 2)->data, "\xff\x7b", 2);
    script_destroy(script);
    must(text, &graph);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
}

static void test_extents_of_constants_are_learned(void **state)
{
    struct graph graph;

    (void)state;
    must("const k : i64[n] = [1, 2, 3]\ninput x : f32[n]\ny = reshape x, dims=[(n+1)/2*2-1, 1]\n",
         &graph);
    assert_int_equal(graph.values[1].type.dims[0], 3);
    assert_int_equal(graph.values[2].type.dims[0], 3);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
    assert_not_bound("const k : i64[?] = [1, 2, 3]\n",
                     &(struct op_type){.dtype = FRIT_I64, .rank = 1, .dims = {4}},
                     "t.frit:1:7: k is declared i64[?], its value is i64[4]");
}

/* ---- names elsewhere ---- */

/* What a hint names exists, and is not called so here already. */
static void test_foreign_names(void **state)
{
    const struct foreign *row;

    (void)state;
    for (size_t i = 0; (row = foreign_op_at(i)); i++) {
        if (strcmp(row->ours, row->theirs) == 0)
            continue;
        if (*row->ours && strcmp(row->ours, "const") != 0 && !op_find(str_of(row->ours)))
            fail_msg("%s: there is no op %s", row->theirs, row->ours);
        if (op_find(str_of(row->theirs)))
            fail_msg("%s is an op here", row->theirs);
        assert_true(*row->ours || *row->note);
    }
    for (size_t i = 0; (row = foreign_attr_at(i)); i++) {
        bool found = !*row->ours;

        for (uint32_t k = 0; k < FRIT_RECORD_COUNT && !found; k++) {
            const frit_record_info *record = frit_record_info_at(k);

            for (uint32_t f = 0; f < record->n_fields; f++)
                found |= strcmp(record->field[f].name, row->ours) == 0;
        }
        if (!found)
            fail_msg("%s: no op has the attribute %s", row->theirs, row->ours);
    }
    for (size_t i = 0; (row = foreign_dtype_at(i)); i++)
        assert_int_not_equal(dtype_find(str_of(row->ours)), FRIT_NO_DTYPE);
    assert_string_equal(foreign_op(str_of("GREATER"))->ours, "gt");
    assert_string_equal(foreign_op(str_of("Log_Soft_max"))->ours, "log_softmax");
    assert_null(foreign_op(str_of("greatest")));
    assert_null(foreign_op(str_of("")));
}

/* ---- hostile text ---- */

static void test_every_cut_of_a_program(void **state)
{
    static const char text[] =
        "input x : f32[n, 8] = \"a\\\"b\" # c\n"
        "output %1, _ = sort x, axis=-1, descending=1\r\n"
        "s = slice %1, slices=[::-1, 0:(n*2-1)/-1]\noutput \"s \\\" t\" = s\n"
        "const \"k\" : f16[?, 2] = [[1, -inf],\n [0x1p3, nan]]\n";

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        char *exact = malloc(n ? n : 1); /* so that a read beyond it shows */
        struct script *script;
        frit_err err = ERR_INIT;

        assert_non_null(exact);
        memcpy(exact, text, n);
        if (script_parse("t", exact, n, &script, &err) == FRIT_OK)
            script_destroy(script);
        else
            assert_int_equal(err.status, FRIT_INVALID);
        free(exact);
    }
}

static void test_too_many_values(void **state)
{
    struct str text = {0};
    struct script *script;
    frit_err err = ERR_INIT;

    (void)state;
    str_addf(&text, "input x : f32[]\n");
    for (int i = 0; i < TEXT_MAX_VALUES; i++)
        str_addf(&text, "v%d = neg x\n", i);
    assert_int_equal(script_parse("t", text.text, text.length, &script, &err), FRIT_INVALID);
    assert_string_equal(err.text, "t:1048577:1: more than 1048576 values");
    assert_null(script);
    str_fini(&text);
}

static frit_status whole_way(frit_err *err)
{
    struct graph graph;
    struct str text = {0};
    frit_status st = rig_graph("input x : f32[n, 8] = \"f\"\nconst k : f32[8] = \"g\"\n"
                               "a = add x, k\nb = reshape a, dims=[8, n]\n"
                               "c, i = sort b, axis=0\nd = layer_norm c, none, none, eps=1e-3\n"
                               "output e = cat d, d, d, axis=1\noutput i\n"
                               "const \"l l\" : i64[n] = [1, -2]\n"
                               "f = reshape a, dims=[n*16/2, 1]\noutput g = f\n",
                               &graph, err);

    if (st)
        return st;
    graph_print(&graph, &text);
    st = text.failed ? fail_memory(err, 1) : FRIT_OK;
    str_fini(&text);
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
        st = whole_way(&err);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
    }
    assert_true(n > 20);
}

/* A message must be complete even if its suggestions are out of memory. */
static void test_messages_without_memory(void **state)
{
    static const char *const broken[] = {
        "input abc : f32[2]\nx = neg abd\n",
        "input x : f32[2]\ny = sum x, axs=1\n",
        "input x : f32[1,1,4,4]\ny = interpolate x, size=[2,2], mode=linear\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        bool hit = true;

        for (long n = 0; hit; n++) {
            struct graph graph;
            frit_err err = ERR_INIT;
            frit_status st;

            failing_alloc_arm(n);
            st = rig_graph(broken[i], &graph, &err);
            hit = failing_alloc_disarm();
            assert_true(st == FRIT_INVALID || (hit && st == FRIT_NO_HOST_MEMORY));
            assert_true(err.text[0] != '\0');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_survive),
        cmocka_unit_test(test_spellings_of_numbers),
        cmocka_unit_test(test_digits_by_precision),
        cmocka_unit_test(test_inputs_are_numbered_first),
        cmocka_unit_test(test_results_are_wanted_if_named),
        cmocka_unit_test(test_results_left_out_in_the_middle),
        cmocka_unit_test(test_words_and_lists_of_attributes),
        cmocka_unit_test(test_named_dims_take_the_extents_of_values),
        cmocka_unit_test(test_values_that_do_not_fit),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_elements_survive),
        cmocka_unit_test(test_elements_in_memory),
        cmocka_unit_test(test_extents_of_constants_are_learned),
        cmocka_unit_test(test_foreign_names),
        cmocka_unit_test(test_every_cut_of_a_program),
        cmocka_unit_test(test_too_many_values),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_messages_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
