/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows have a decomposition, that the order of its ops is fixed, the random rows word for
 * word, and what happens if out of memory. */
#include "graph/decompose/decompose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "graph/scalar.h"
#include "host/graph/decomposed.h"
#include "unit.h"

/* ---- the list ---- */

/* Every composite row has a decomposition. */
static void test_list(void **state)
{
    char missing[400] = "";
    struct op_call call = {.op = FRIT_OP_add};
    struct graph graph = {0};

    (void)state;
    for (uint32_t op = 0; op < FRIT_OP_LIMIT; op++) {
        const frit_op_info *row = op_row(op);

        if (decompose_has(op, 1))
            assert_int_equal(row->level, FRIT_LEVEL_COMPOSITE);
        else if (row && row->level == FRIT_LEVEL_COMPOSITE)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), " %s",
                     row->name);
    }
    assert_string_equal(missing, "");
    assert_false(decompose_has(FRIT_OP_CUSTOM, 1));
    assert_false(decompose_has(FRIT_OP_cat, FRIT_OP_MAX_IN));
    assert_true(decompose_has(FRIT_OP_cat, FRIT_OP_MAX_IN + 1));
    assert_int_equal(decompose(&call, &graph, NULL), FRIT_UNSUPPORTED);
}

/* C does not say in which order arguments are evaluated; the order of ops must not depend on it. */
static void test_order(void **state)
{
    const struct {
        const char *op, *operands, *ops;
        const void *attrs;
    } cases[] = {
        {"trunc", "f32[2]", " neg floor neg floor lt where", NULL},
        {"sinh", "f32[2]", " expm1 add div add mul mul exp mul mul div div add abs lt where", NULL},
        {"asinh", "f32[2]", " abs hypot add div mul add log1p log add lt where neg lt where", NULL},
        {"softplus", "f16[2]", " cast maximum abs neg exp log1p add cast", NULL},
        {"gelu_backward", "f32[2]; f32[2]", " mul mul exp mul mul mul erf add mul add mul", NULL},
        {"layer_norm", "f32[2, 3]; f32[3]; f32[3]",
         " sum div sub mul sum div add sqrt div mul mul add", NULL},
        {"cross", "f32[3]; f32[3]",
         " slice slice slice slice mul mul sub slice slice slice slice mul mul sub"
         " slice slice slice slice mul mul sub cat",
         NULL},
        {"linear_backward_w", "f32[2, 5]; f32[5, 6]; f32[2, 6]", " reshape permute reshape matmul",
         NULL},
        {"scatter_nd", "f32[2, 3]; i64[5, 1]; f32[5, 3]",
         " reshape reshape slice reshape le lt and where reshape reshape expand scatter reshape",
         NULL},
        {"random_normal", "0; 1",
         " random_raw shr cast mul slice slice neg log1p mul sqrt mul cos mul sin mul cat reshape"
         " slice mul add reshape",
         ATTRS(init, .dtype = FRIT_F32, .dims = {1, {3}})},
        {"topk", "f32[5]", " sort slice slice", ATTRS(topk, .axis = 0, .k = 2)},
        {"attention", "f32[4, 3, 2]; f32[2, 5, 2]; f32[2, 5, 2]; bool[5]; none",
         " reshape permute matmul mul div tanh mul reshape arange reshape add arange lt or where "
         "max eq where sub exp sum eq where div mul reshape matmul reshape",
         ATTRS(attention, .softcap = 3, .causal = 1)},
        {"conv_transpose", "f16[2, 4, 3]; f16[4, 3, 2]; f16[6]",
         " pad reshape permute reshape flip conv", ATTRS(conv_transpose, .groups = 2)},
        {"conv_backward_w", "f32[2, 4, 5]; f32[6, 2, 3]; f32[2, 6, 3]",
         " reshape permute reshape permute conv slice permute", ATTRS(conv, .groups = 2)},
        {"adaptive_avg_pool", "f32[1, 2, 5]",
         " arange reshape mul add div arange reshape mul add div arange reshape add minimum lt le "
         "and minimum maximum sub cast reshape select reshape reshape where sum reshape div "
         "reshape",
         ATTRS(adaptive, .size = {3})},
        {"interpolate", "f32[1, 2, 2, 3]",
         " reshape expand reshape arange reshape mul add div reshape select",
         ATTRS(interpolate, .size = {6, 4}, .mode = FRIT_CHOICE_resample_nearest)},
        {"interpolate_backward", "f32[1, 2, 2, 3]; f32[1, 2, 6, 3]", " reshape sum reshape",
         ATTRS(interpolate, .size = {6, 3}, .mode = FRIT_CHOICE_resample_nearest)},
        {"interpolate_backward", "f32[1, 2, 1, 5]; f32[1, 2, 1, 3]",
         " arange reshape mul add arange reshape sub rem sub div add minimum maximum cast div cast "
         "sub abs mul div sin sin mul mul div eq where sum div reshape reshape mul full reshape "
         "reshape expand expand reshape scatter arange reshape mul add arange reshape sub rem sub "
         "div add minimum maximum cast div cast sub abs mul div sin sin mul mul div eq where sum "
         "div reshape reshape mul full reshape reshape expand expand reshape scatter",
         ATTRS(interpolate, .size = {1, 3}, .mode = FRIT_CHOICE_resample_lanczos3)},
        {"grid_sample", "f32[1, 2, 3, 4]; f32[1, 2, 2, 2]",
         " slice reshape add mul sub mul eq where maximum minimum arange reshape sub floor cast "
         "add sub cast sub abs sub lt le and maximum minimum cast slice reshape add mul sub mul eq "
         "where maximum minimum arange reshape sub floor cast add sub cast sub abs sub lt le and "
         "maximum minimum cast reshape mul reshape reshape add reshape reshape expand gather "
         "reshape reshape reshape and reshape where reshape reshape mul reshape mul sum reshape",
         ATTRS(grid_sample, .mode = FRIT_CHOICE_resample_bilinear)},
        {"deform_conv_backward",
         "f32[1, 2, 3, 4]; f32[1, 4, 3, 3]; f32[2, 2, 1, 2]; f32[1, 2, 3, 3]; f32[2];"
         "f32[1, 2, 3, 3]",
         " arange mul arange mul reshape reshape sub reshape add slice reshape cast add reshape eq "
         "where maximum minimum arange reshape sub floor cast add sub cast sub abs sub lt le and "
         "maximum minimum cast arange mul arange mul reshape reshape sub reshape add slice reshape "
         "cast add reshape eq where maximum minimum arange reshape sub floor cast add sub cast sub "
         "abs sub lt le and maximum minimum cast reshape mul reshape reshape add reshape reshape "
         "expand gather reshape reshape reshape and reshape where reshape reshape mul reshape mul "
         "sum reshape mul reshape reshape reshape permute matmul reshape permute matmul sum "
         "reshape mul sum reshape sum mul arange mul sub cast expand reshape reshape mul reshape "
         "mul sum mul sum reshape arange mul sub cast expand reshape reshape mul reshape mul sum "
         "mul sum reshape cat reshape reshape reshape mul reshape reshape mul full mul reshape "
         "reshape add reshape reshape reshape and reshape where reshape expand reshape scatter "
         "reshape",
         ATTRS(deform, .stride = {1, 1})},
        {"unfold4d", "f32[1, 2, 3, 4]", " pad unfold slice unfold slice permute reshape",
         ATTRS(window, .kernel = {2, 2})},
        {"eye", "", " arange slice reshape slice eq cast",
         ATTRS(init, .dtype = FRIT_F32, .dims = {2, {2, 3}})},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char names[1600] = "";
        struct call call;
        struct graph graph = {0};

        call_check(&call, cases[i].op, cases[i].operands, cases[i].attrs);
        assert_int_equal(decompose(&call.call, &graph, NULL), FRIT_OK);
        for (uint32_t k = 0; k < graph.n_ops; k++)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
                     op_row(graph.ops[k].op)->name);
        assert_string_equal(names, cases[i].ops);
        graph_fini(&graph);
    }
}

/* Rows three times, columns at floor(i * 3 / 4); the gradients of what was read three times, added.
 */
static void test_nearest(void **state)
{
    static const double x[] = {1, 2, 3, 4, 5, 6}, columns[] = {0, 0, 1, 2};
    struct array in = of_floats(FRIT_F32, 6, x), in2[2], y, grad;
    struct array ones = of_floats(FRIT_F32, 6, x);

    (void)state;
    in.type = (struct op_type){FRIT_F32, 4, {1, 1, 2, 3}};
    y = decomposed("interpolate", "f32[1, 1, 2, 3]",
                   ATTRS(interpolate, .size = {6, 4}, .mode = FRIT_CHOICE_resample_nearest), &in);
    for (uint32_t i = 0; i < 24; i++)
        assert_true(y.cells[i].f == x[i / 12 * 3 + (uint32_t)columns[i % 4]]);
    in2[0] = in;
    ones.type = (struct op_type){FRIT_F32, 4, {1, 1, 6, 1}};
    in2[1] = ones;
    in2[0].type.dims[3] = 1;
    grad =
        decomposed("interpolate_backward", "f32[1, 1, 2, 1]; f32[1, 1, 6, 1]",
                   ATTRS(interpolate, .size = {6, 1}, .mode = FRIT_CHOICE_resample_nearest), in2);
    assert_true(grad.cells[0].f == 6 && grad.cells[1].f == 15);
    free(grad.cells);
    free(y.cells);
    free(in.cells);
    free(ones.cells);
}

/* ---- random numbers ---- */

#define DRAWN(type) ATTRS(init, .dtype = (type), .dims = {2, {3, 5}})

static void test_uniform(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F16, FRIT_BF16, FRIT_F64};
    volatile float low = 0.1f, span = 7.3f - low; /* each step is an f32 */

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct array y = decomposed("random_uniform", "0.1; 7.3", DRAWN(dtypes[k]), NULL);

        for (int64_t i = 0; i < 15; i++) {
            volatile float u = (float)(eval_word32(i) >> 8) * 0x1p-24f, step = u * span;
            volatile double u64 = (double)(eval_word64(i) >> 11) * 0x1p-53,
                            step64 = u64 * (7.3 - 0.1);
            volatile float y32 = step + low;
            double expected = dtypes[k] == FRIT_F64 ? step64 + 0.1 : (double)y32;

            assert_true(y.cells[i].f == scalar_round(expected, dtypes[k]));
        }
        free(y.cells);
    }
}

static void test_normal(void **state)
{
    struct array y = decomposed("random_normal", "10; 0.5", DRAWN(FRIT_F64), NULL);
    struct array f16 = decomposed("random_normal", "0; 1", DRAWN(FRIT_F16), NULL);

    (void)state;
    for (int64_t i = 0; i < 15; i++) {
        int64_t pair = i / 2 * 2;
        double u = (double)(eval_word64(pair) >> 11) * 0x1p-53;
        double v = (double)(eval_word64(pair + 1) >> 11) * 0x1p-53;
        double r = sqrt(-2 * log1p(-u)), angle = 2 * acos(-1) * v;

        assert_true(fabs(y.cells[i].f - (10 + 0.5 * r * (i % 2 ? sin(angle) : cos(angle)))) <
                    1e-12);
        u = (double)(eval_word32(pair) >> 8) * 0x1p-24;
        v = (double)(eval_word32(pair + 1) >> 8) * 0x1p-24;
        r = sqrt(-2 * log1p(-u)) * (i % 2 ? sin(2 * acos(-1) * v) : cos(2 * acos(-1) * v));
        assert_true(fabs(f16.cells[i].f - r) < 2e-3);
    }
    free(y.cells);
    free(f16.cells);
}

static void test_bernoulli(void **state)
{
    struct array b = decomposed("random_bernoulli", "0.3", DRAWN(FRIT_BOOL), NULL);
    struct array f = decomposed("random_bernoulli", "0.3", DRAWN(FRIT_F64), NULL);

    (void)state;
    for (int64_t i = 0; i < 15; i++) {
        bool expected = (float)(eval_word32(i) >> 8) * 0x1p-24f < 0.3f;

        assert_int_equal(b.cells[i].i, expected);
        assert_true(f.cells[i].f == expected);
    }
    free(b.cells);
    free(f.cells);
}

static void test_int(void **state)
{
    static const struct {
        const char *operands;
        uint32_t dtype;
        int64_t low;
        uint64_t span;
    } cases[] = {
        {"-5; 12", FRIT_I8, -5, 17},
        {"250; 255", FRIT_U8, 250, 5},
        {"-9223372036854775808; 9223372036854775807", FRIT_I64, INT64_MIN, UINT64_MAX},
        {"7; 8", FRIT_U64, 7, 1},
    };

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct array y = decomposed("random_int", cases[k].operands, DRAWN(cases[k].dtype), NULL);

        for (int64_t i = 0; i < 15; i++)
            assert_int_equal(y.cells[i].i,
                             (int64_t)((uint64_t)cases[k].low + eval_word64(i) % cases[k].span));
        free(y.cells);
    }
}

/* ---- memory ---- */

static void fail_each(const char *op, const char *operands, const void *attrs)
{
    bool hit = true;

    for (long n = 0; hit; n++) {
        struct graph graph = {0};
        struct call call;
        frit_status status;

        call_check(&call, op, operands, attrs);
        failing_alloc_arm(n);
        status = decompose(&call.call, &graph, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        graph_fini(&graph);
    }
}

static void test_memory(void **state)
{
    (void)state;
    fail_each("layer_norm", "f16[2, 3]; f16[3]; f16[3]", NULL);
    fail_each("topk", "f32[5]", ATTRS(topk, .axis = 0, .k = 2));
    fail_each("topk", "f32[0, 5]", ATTRS(topk, .axis = 1, .k = 2));
    fail_each("grid_sample", "f16[1, 2, 3, 4]; f16[1, 2, 2, 2]",
              ATTRS(grid_sample, .mode = FRIT_CHOICE_resample_bicubic));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),   cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_order),  cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal), cmocka_unit_test(test_bernoulli),
        cmocka_unit_test(test_int),    cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
