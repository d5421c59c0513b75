/* SPDX-License-Identifier: Apache-2.0 */
/* What decompositions compute, in the interpreter of eval.h, against the meaning of their rows
 * written down directly: functions in long double, words of the generator, plain loops over
 * indices. */
#include "graph/decompose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "graph/scalar.h"
#include "host/graph/calls.h"
#include "host/graph/eval.h"
#include "unit.h"

/* ---- running a decomposition ---- */

static struct array run(struct call *call, const struct array *inputs)
{
    struct graph graph = {0};
    struct array result;

    assert_int_equal(call->status, FRIT_OK);
    if (decompose(&call->call, &graph, &call->err))
        fail_msg("%s", call->err.text);
    assert_int_equal(graph_verify(&graph, &call->err), FRIT_OK);
    assert_int_equal(graph.n_outputs, 1);
    assert_true(op_type_equal(&graph.values[graph.outputs[0]].type, &call->out[0]));
    result = eval_graph(&graph, inputs);
    graph_fini(&graph);
    return result;
}

static struct array call_run(const char *op, const char *operands, const void *attrs,
                             const struct array *inputs)
{
    struct call call;

    call_check(&call, op, operands, attrs);
    if (call.status)
        fail_msg("%s", call.text);
    return run(&call, inputs);
}

static struct array of_floats(uint32_t dtype, int64_t n, const double *values)
{
    struct array array = {.type = {dtype, 1, {n}}, .cells = calloc((size_t)n, sizeof(union cell))};

    for (int64_t i = 0; i < n; i++)
        array.cells[i].f = scalar_round(values[i], dtype);
    return array;
}

static uint32_t seed = 7;

static int64_t draw(int64_t low, int64_t high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)(seed >> 8) % (high - low + 1);
}

/* Numbers that all types hold and sums of which are exact. */
static struct array draw_array(const char *type, int64_t low, int64_t high)
{
    struct array array = {.type = type_of(type)};
    int64_t n = op_elements(&array.type);

    array.cells = calloc((size_t)n + 1, sizeof(union cell));
    for (int64_t i = 0; i < n; i++) {
        if (eval_is_float(array.type.dtype))
            array.cells[i].f = (double)draw(low, high);
        else
            array.cells[i].i = draw(low, high);
    }
    return array;
}

static void expect_cells(const struct array *got, const union cell *expected)
{
    int64_t n = op_elements(&got->type);

    for (int64_t i = 0; i < n; i++)
        assert_int_equal(got->cells[i].i, expected[i].i);
}

/* ---- the list ---- */

/* The exact set of composite rows without a decomposition. */
static void test_list(void **state)
{
    static const char missing[] =
        " conv_transpose deform_conv attention adaptive_avg_pool interpolate grid_sample unfold4d"
        " argsort topk conv_backward_x conv_backward_w conv_transpose_backward_w"
        " deform_conv_backward avg_pool_backward max_pool_backward adaptive_avg_pool_backward"
        " interpolate_backward";
    char found[sizeof(missing) + 400] = "";
    struct op_call call = {.op = FRIT_OP_add};
    struct graph graph = {0};

    (void)state;
    for (uint32_t op = 0; op < FRIT_OP_LIMIT; op++) {
        const frit_op_info *row = op_row(op);

        if (decompose_has(op))
            assert_int_equal(row->level, FRIT_LEVEL_COMPOSITE);
        else if (row && row->level == FRIT_LEVEL_COMPOSITE)
            snprintf(found + strlen(found), sizeof(found) - strlen(found), " %s", row->name);
    }
    assert_string_equal(found, missing);
    assert_false(decompose_has(FRIT_OP_CUSTOM));
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
        {"layer_norm", "f32[2, 3]; f32[3]; f32[3]", " sum div sub mul sum div add sqrt div mul add",
         NULL},
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
        {"eye", "", " arange slice reshape slice eq cast",
         ATTRS(init, .dtype = FRIT_F32, .dims = {2, {2, 3}})},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char names[400] = "";
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

/* ---- functions ---- */

typedef long double wide;

static wide f_ceil(wide x)
{
    return ceill(x);
}
static wide f_trunc(wide x)
{
    return truncl(x);
}
static wide f_recip(wide x)
{
    return 1 / x;
}
static wide f_rsqrt(wide x)
{
    return 1 / sqrtl(x);
}
static wide f_square(wide x)
{
    return x * x;
}
static wide f_sigmoid(wide x)
{
    return 1 / (1 + expl(-x));
}
static wide f_gelu(wide x)
{
    return x / 2 * erfcl(-x / sqrtl(2));
}
static wide f_silu(wide x)
{
    return x * f_sigmoid(x);
}
static wide f_softplus(wide x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static wide f_log_sigmoid(wide x)
{
    return -f_softplus(-x);
}
static wide f_relu(wide x)
{
    return isnan(x) || x > 0 ? x : 0;
}

/* `floor` times |x| is what the error of the result is measured by where the result is smaller: one
 * plus erf keeps no more of a small gelu. */
static const struct {
    const char *op;
    wide (*fn)(wide);
    wide ulps, floor;
} functions[] = {
    {"ceil", f_ceil, 0, 0},
    {"trunc", f_trunc, 0, 0},
    {"recip", f_recip, 0.5, 0},
    {"rsqrt", f_rsqrt, 1.5, 0},
    {"square", f_square, 0.5, 0},
    {"tan", tanl, 2, 0},
    {"asin", asinl, 2.5, 0},
    {"acos", acosl, 2.5, 0},
    {"atan", atanl, 1, 0},
    {"sinh", sinhl, 4, 0},
    {"cosh", coshl, 4, 0},
    {"asinh", asinhl, 4, 0},
    {"acosh", acoshl, 4, 0},
    {"atanh", atanhl, 4, 0},
    {"relu", f_relu, 0, 0},
    {"gelu", f_gelu, 3, 1},
    {"silu", f_silu, 3.5, 0},
    {"sigmoid", f_sigmoid, 3, 0},
    {"log_sigmoid", f_log_sigmoid, 3, 0},
    {"softplus", f_softplus, 3, 0},
};

/* Places where forms change or overflow, and an even spread of sizes. */
static int64_t fill_places(double *x, double low, double high)
{
    static const double special[] = {3e38,     1.7e308, 0,     1,     0.5,   2,    0.999999,
                                     1.000001, 16383,   16384, 16385, 88,    88.7, 89,
                                     89.4,     90,      104,   709,   709.5, 710,  711,
                                     745,      1e-5,    0.125, 0.9,   1.1,   3,    20};
    int64_t n = 0;

    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        x[n++] = special[i];
        x[n++] = -special[i];
    }
    x[n++] = NAN;
    x[n++] = INFINITY;
    x[n++] = -INFINITY;
    for (double size = low; size < high; size *= 1.37) {
        x[n++] = size;
        x[n++] = -size;
    }
    for (double at = -10; at < 10; at += 0.0173)
        x[n++] = at;
    return n;
}

/* The error in units of the last place of the expected value; below the normal range the unit
 * stays. */
static wide error_in_ulps(double got, wide expected, uint32_t dtype, wide scale)
{
    int digits = dtype == FRIT_F64 ? 53 : dtype == FRIT_F32 ? 24 : dtype == FRIT_F16 ? 11 : 8;
    int least = dtype == FRIT_F64 ? -1022 : dtype == FRIT_F16 ? -14 : -126, exponent;
    double nearest = scalar_round((double)expected, dtype);

    if (isnan(nearest) || isinf(nearest) || isnan(got) || isinf(got))
        return (isnan(nearest) && isnan(got)) || nearest == got ? 0 : 1e9L;
    frexpl(fmaxl(fabsl(expected), scale), &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    return fabsl(got - expected) / ldexpl(1, exponent - digits + 1);
}

/* Where these two rows, computed as they are written, have no digits left: e^-x is infinite, or
 * -inf meets a factor of 0. */
static bool nothing_left(size_t f, double x, double got, uint32_t dtype)
{
    bool by_sigmoid = functions[f].fn == f_silu || functions[f].fn == f_sigmoid;
    bool infinite = isinf(scalar_round(exp(-x), dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32));

    if (x == -INFINITY && (functions[f].fn == f_silu || functions[f].fn == f_gelu))
        return isnan(got);
    return by_sigmoid && infinite && got == 0;
}

static void check_function(size_t f, uint32_t dtype, wide allowed)
{
    static double places[12000];
    int64_t n = fill_places(places,
                            dtype == FRIT_F64   ? 1e-300
                            : dtype == FRIT_F16 ? 1e-7
                                                : 1e-37,
                            dtype == FRIT_F64   ? 1e300
                            : dtype == FRIT_F16 ? 6e4
                                                : 1e38);
    struct array x = of_floats(dtype, n, places), y;
    char operand[64];

    op_type_text(&x.type, operand, sizeof(operand));
    y = call_run(functions[f].op, operand, NULL, &x);
    for (int64_t i = 0; i < n; i++) {
        double at = x.cells[i].f, got = y.cells[i].f;
        wide expected = functions[f].fn(at);
        wide off = error_in_ulps(got, expected, dtype, functions[f].floor * fabsl(at));

        if (nothing_left(f, at, got, dtype))
            continue;
        if (off > allowed)
            fail_msg("%s(%.17g) in %s: %.17g, expected %.17Lg, off by %.3Lg", functions[f].op, at,
                     dtype_name(dtype), got, expected, off);
    }
    free(x.cells);
    free(y.cells);
}

static void test_functions(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
        check_function(f, FRIT_F32, functions[f].ulps + 0.01L);
        check_function(f, FRIT_F64, functions[f].ulps + 1);
        /* narrow types are computed wide and rounded once */
        check_function(f, FRIT_F16, 0.502L);
        check_function(f, FRIT_BF16, 0.502L);
    }
}

static void test_signs(void **state)
{
    static const double zeros[] = {-0.0, 0.0, -0.25};
    struct array x = of_floats(FRIT_F32, 3, zeros), y = call_run("ceil", "f32[3]", NULL, &x);

    (void)state;
    assert_true(signbit(y.cells[0].f) && !signbit(y.cells[1].f) && signbit(y.cells[2].f));
    free(y.cells);
    y = call_run("trunc", "f32[3]", NULL, &x);
    assert_true(signbit(y.cells[0].f) && !signbit(y.cells[1].f) && signbit(y.cells[2].f));
    free(y.cells);
    free(x.cells);
}

/* ---- comparing, choosing ---- */

static void test_tests(void **state)
{
    static const double values[] = {1, NAN, INFINITY, -INFINITY, 0};
    static const char *const ops[] = {"is_nan", "is_inf"};
    static const int64_t expected[2][5] = {{0, 1, 0, 0, 0}, {0, 0, 1, 1, 0}};
    struct array x = of_floats(FRIT_F16, 5, values);

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct array y = call_run(ops[k], "f16[5]", NULL, &x);

        for (int i = 0; i < 5; i++)
            assert_int_equal(y.cells[i].i, expected[k][i]);
        free(y.cells);
    }
    free(x.cells);
}

static void test_compare(void **state)
{
    static const char *const ops[] = {"ne", "gt", "ge"};
    static const double left[] = {1, 2, 3, NAN}, right[] = {2, 2, 2, 2};
    static const int64_t expected[3][4] = {{1, 0, 1, 1}, {0, 0, 1, 0}, {0, 1, 1, 0}};
    struct array in[2] = {of_floats(FRIT_F32, 4, left), of_floats(FRIT_F32, 4, right)};

    (void)state;
    for (int k = 0; k < 3; k++) {
        struct array tensor = call_run(ops[k], "f32[4]; f32[4]", NULL, in);
        struct array scalar = call_run(ops[k], "f32[4]; 2", NULL, in);

        for (int i = 0; i < 4; i++) {
            assert_int_equal(tensor.cells[i].i, expected[k][i]);
            assert_int_equal(scalar.cells[i].i, expected[k][i]);
        }
        free(tensor.cells);
        free(scalar.cells);
    }
    free(in[0].cells);
    free(in[1].cells);
}

/* Scalars in every place, also where the core rows would get scalars alone. */
static void test_clamp(void **state)
{
    static const struct {
        const char *operands;
        int64_t expected[3];
    } cases[] = {
        {"i32[3]; 2; 4", {2, 3, 4}},
        {"3; i32[3]; 9", {3, 3, 5}},
        {"3; 1; i32[3]", {1, 3, 3}},
        {"i32[3]; i32[3]; i32[3]", {1, 3, 5}},
    };
    static const int64_t values[] = {1, 3, 5};
    struct array x = {.type = type_of("i32[3]"), .cells = calloc(3, sizeof(union cell))};

    (void)state;
    for (int i = 0; i < 3; i++)
        x.cells[i].i = values[i];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct array y =
            call_run("clamp", cases[k].operands, NULL, (const struct array[]){x, x, x});

        for (int i = 0; i < 3; i++)
            assert_int_equal(y.cells[i].i, cases[k].expected[i]);
        free(y.cells);
    }
    free(x.cells);
}

static void expect_floats(const char *op, const char *operands, const struct array *inputs,
                          const double *expected)
{
    struct array y = call_run(op, operands, NULL, inputs);
    int64_t n = op_elements(&y.type);

    for (int64_t i = 0; i < n; i++)
        assert_true(fabs(y.cells[i].f - expected[i]) <= 1e-6 * (1 + fabs(expected[i])));
    free(y.cells);
}

static void test_choices(void **state)
{
    static const double x_values[] = {-2, 0, 4}, grad_values[] = {3, 5, 7};
    struct array x = of_floats(FRIT_F32, 3, x_values), g = of_floats(FRIT_F32, 3, grad_values);
    struct array mask = {.type = type_of("bool[3]"), .cells = calloc(3, sizeof(union cell))};
    const struct array xg[2] = {x, g}, masked[2] = {x, mask};

    (void)state;
    mask.cells[1].i = 1;
    expect_floats("mask_fill", "f32[3]; bool[3]; 9", masked, (const double[]){-2, 9, 4});
    expect_floats("leaky_relu", "f32[3]; 0.5", &x, (const double[]){-1, 0, 4});
    expect_floats("leaky_relu", "-2; f32[3]", &g, (const double[]){-6, -10, -14});
    expect_floats("hard_sigmoid", "f32[3]; 0.25; 0.25", &x, (const double[]){0, 0.25, 1});
    expect_floats("hard_sigmoid", "2; 0.25; f32[3]", &x, (const double[]){0, 0.5, 1});
    expect_floats("relu_backward", "f32[3]; f32[3]", xg, (const double[]){0, 0, 7});
    expect_floats("sigmoid_backward", "f32[3]; f32[3]", xg, (const double[]){-18, 0, -84});
    free(x.cells);
    free(g.cells);
    free(mask.cells);
}

/* Gradients against the difference quotient of the functions above. */
static void test_gradients(void **state)
{
    static const struct {
        const char *op;
        wide (*fn)(wide);
    } cases[] = {{"gelu_backward", f_gelu}, {"log_sigmoid_backward", f_log_sigmoid}};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        for (double at = -6; at < 6; at += 0.37) {
            const double grad = 2;
            const struct array in[2] = {of_floats(FRIT_F64, 1, &at), of_floats(FRIT_F64, 1, &grad)};
            struct array y = call_run(cases[k].op, "f64[1]; f64[1]", NULL, in);
            wide slope = (cases[k].fn(at + 1e-6L) - cases[k].fn(at - 1e-6L)) / 2e-6L;

            assert_true(fabsl(y.cells[0].f - 2 * slope) < 1e-9L);
            free(in[0].cells);
            free(in[1].cells);
            free(y.cells);
        }
    }
}

/* ---- random numbers ---- */

#define DRAWN(type) ATTRS(init, .dtype = (type), .dims = {2, {3, 5}})

static void test_uniform(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F32, FRIT_F16, FRIT_BF16, FRIT_F64};
    volatile float low = 0.1f, span = 7.3f - low; /* each step is an f32 */

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct array y = call_run("random_uniform", "0.1; 7.3", DRAWN(dtypes[k]), NULL);

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
    struct array y = call_run("random_normal", "10; 0.5", DRAWN(FRIT_F64), NULL);
    struct array f16 = call_run("random_normal", "0; 1", DRAWN(FRIT_F16), NULL);

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
    struct array b = call_run("random_bernoulli", "0.3", DRAWN(FRIT_BOOL), NULL);
    struct array f = call_run("random_bernoulli", "0.3", DRAWN(FRIT_F64), NULL);

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
        struct array y = call_run("random_int", cases[k].operands, DRAWN(cases[k].dtype), NULL);

        for (int64_t i = 0; i < 15; i++)
            assert_int_equal(y.cells[i].i,
                             (int64_t)((uint64_t)cases[k].low + eval_word64(i) % cases[k].span));
        free(y.cells);
    }
}

/* ---- along axes ---- */

/* mean, var, max_abs, any, all over axis 1 of [4, n, 2], as 8 rows of n elements. */
static void test_reductions(void **state)
{
    static const char *const ops[] = {"mean", "var", "max_abs", "any", "all"};

    (void)state;
    for (int64_t n = 1; n < 6; n++) {
        char operand[64];
        struct array x, y[5];

        snprintf(operand, sizeof(operand), "f32[4, %lld, 2]", (long long)n);
        x = draw_array(operand, -1, 2);
        for (int k = 0; k < 5; k++)
            y[k] = call_run(ops[k], operand, ATTRS(reduce, .axes = {1, {1}}), &x);
        for (int64_t i = 0; i < 8; i++) {
            double sum = 0, square = 0, largest = 0;
            int64_t nonzero = 0;

            for (int64_t j = 0; j < n; j++) {
                double value = x.cells[i / 2 * n * 2 + j * 2 + i % 2].f;

                sum += value;
                square += value * value;
                largest = fmax(largest, fabs(value));
                nonzero += value != 0;
            }
            sum /= (double)n;
            assert_true(fabs(y[0].cells[i].f - sum) < 1e-6);
            assert_true(fabs(y[1].cells[i].f - (square / (double)n - sum * sum)) < 1e-6);
            assert_true(y[2].cells[i].f == largest);
            assert_int_equal(y[3].cells[i].i, nonzero > 0);
            assert_int_equal(y[4].cells[i].i, nonzero == n);
        }
        for (int k = 0; k < 5; k++)
            free(y[k].cells);
        free(x.cells);
    }
}

static void test_empty(void **state)
{
    struct array none = draw_array("f32[2, 0]", 0, 0), y;

    (void)state;
    y = call_run("mean", "f32[2, 0]", ATTRS(reduce, .axes = {1, {1}}), &none);
    assert_true(isnan(y.cells[0].f) && isnan(y.cells[1].f));
    free(y.cells);
    y = call_run("any", "f32[2, 0]", ATTRS(reduce, .axes = {1, {1}}, .keep = 1), &none);
    assert_int_equal(y.cells[0].i + y.cells[1].i, 0);
    free(y.cells);
    y = call_run("all", "f32[2, 0]", NULL, &none);
    assert_int_equal(y.cells[0].i, 1);
    free(y.cells);
    y = call_run("softmax", "f32[2, 0]", ATTRS(axis, .axis = 1), &none);
    assert_int_equal(op_elements(&y.type), 0);
    free(y.cells);
    free(none.cells);
    y = call_run("random_normal", "0; 1", ATTRS(init, .dtype = FRIT_F32, .dims = {1, {0}}), NULL);
    assert_int_equal(op_elements(&y.type), 0);
    free(y.cells);
}

/* Rows of 4 in a narrow type, one of them far from 0. */
static void test_softmax(void **state)
{
    static const double values[] = {1, 2, 3, 4, 1000, 1001, 1002, 1003};
    struct array x = of_floats(FRIT_F16, 8, values), y[3];

    (void)state;
    y[0] = call_run("softmax", "f16[2, 4]", ATTRS(axis, .axis = -1), &x);
    y[1] = call_run("log_softmax", "f16[2, 4]", ATTRS(axis, .axis = -1), &x);
    y[2] = call_run("softmin", "f16[2, 4]", ATTRS(axis, .axis = -1), &x);
    for (int i = 0; i < 8; i++) {
        double sum = exp(-3) + exp(-2) + exp(-1) + 1, p = exp(i % 4 - 3) / sum;

        assert_true(y[0].cells[i].f == scalar_round(p, FRIT_F16));
        assert_true(fabs(y[1].cells[i].f - log(p)) < 2e-3);
        assert_true(y[2].cells[i].f == scalar_round(exp(-i % 4) / sum, FRIT_F16));
    }
    for (int k = 0; k < 3; k++)
        free(y[k].cells);
    free(x.cells);
}

/* x [2, 3, 4] with element (i, j, k): which elements share statistics, and which gamma is theirs.
 */
static void expect_norm(const char *op, const char *operands, const void *attrs,
                        int64_t (*group)(int64_t), int64_t (*channel)(int64_t))
{
    struct array in[3] = {draw_array("f64[2, 3, 4]", -9, 9), draw_array("f64[12]", 1, 5),
                          draw_array("f64[12]", -5, 5)};
    struct array y = call_run(op, operands, attrs, in);
    bool centred = strcmp(op, "rms_norm") != 0;

    for (int64_t i = 0; i < 24; i++) {
        double n = 0, mean = 0, square = 0, expected;

        for (int64_t k = 0; k < 24; k++) {
            if (group(k) == group(i)) {
                n += 1;
                mean += in[0].cells[k].f;
                square += in[0].cells[k].f * in[0].cells[k].f;
            }
        }
        mean = centred ? mean / n : 0;
        expected = (in[0].cells[i].f - mean) / sqrt(square / n - mean * mean + 0.25);
        expected *= in[1].cells[channel(i)].f;
        expected += centred ? in[2].cells[channel(i)].f : 0;
        assert_true(fabs(y.cells[i].f - expected) < 1e-12);
    }
    for (int k = 0; k < 3; k++)
        free(in[k].cells);
    free(y.cells);
}

static int64_t by_row(int64_t i)
{
    return i / 4;
}
static int64_t by_column(int64_t i)
{
    return i % 4;
}
static int64_t by_image(int64_t i)
{
    return i / 12;
}
static int64_t in_image(int64_t i)
{
    return i % 12;
}
static int64_t by_middle(int64_t i)
{
    return i / 12 * 4 + i % 4;
}
static int64_t by_channel(int64_t i)
{
    return i / 4 % 3;
}

static void test_norm(void **state)
{
    (void)state;
    expect_norm("layer_norm", "f64[2, 3, 4]; f64[4]; f64[4]", ATTRS(norm_axes, .eps = 0.25), by_row,
                by_column);
    expect_norm("layer_norm", "f64[2, 3, 4]; f64[3, 4]; f64[3, 4]",
                ATTRS(norm_axes, .axes = {2, {1, 2}}, .eps = 0.25), by_image, in_image);
    expect_norm("layer_norm", "f64[2, 3, 4]; f64[3]; f64[3]",
                ATTRS(norm_axes, .axes = {1, {1}}, .eps = 0.25), by_middle, by_channel);
    expect_norm("rms_norm", "f64[2, 3, 4]; f64[4]", ATTRS(norm_axes, .eps = 0.25), by_row,
                by_column);
    expect_norm("group_norm", "f64[2, 3, 4]; f64[3]; f64[3]",
                ATTRS(norm_groups, .groups = 3, .eps = 0.25), by_row, by_channel);
    expect_norm("group_norm", "f64[2, 3, 4]; f64[3]; f64[3]", ATTRS(norm_groups, .eps = 0.25),
                by_image, by_channel);
}

static void test_batch_norm(void **state)
{
    struct array in[5] = {draw_array("f64[2, 3, 4]", -9, 9), draw_array("f64[3]", 1, 5),
                          draw_array("f64[3]", -5, 5), draw_array("f64[3]", -5, 5),
                          draw_array("f64[3]", 1, 5)};
    struct array y = call_run("batch_norm", "f64[2, 3, 4]; f64[3]; f64[3]; f64[3]; f64[3]",
                              ATTRS(norm, .eps = 0.25), in);

    (void)state;
    for (int64_t i = 0; i < 24; i++) {
        int64_t c = by_channel(i);
        double d = (in[0].cells[i].f - in[3].cells[c].f) / sqrt(in[4].cells[c].f + 0.25);

        assert_true(fabs(y.cells[i].f - (d * in[1].cells[c].f + in[2].cells[c].f)) < 1e-12);
    }
    for (int k = 0; k < 5; k++)
        free(in[k].cells);
    free(y.cells);
}

/* ---- moving elements ---- */

static void test_views(void **state)
{
    struct array x = draw_array("i32[2, 3, 4]", 0, 99), y;

    (void)state;
    y = call_run("transpose", "i32[2, 3, 4]", ATTRS(swap, .axis = 0, .with = 2), &x);
    for (int64_t i = 0; i < 24; i++)
        assert_int_equal(y.cells[i % 4 * 6 + i / 4 % 3 * 2 + i / 12].i, x.cells[i].i);
    free(y.cells);
    y = call_run("unsqueeze", "i32[2, 3, 4]", ATTRS(axis, .axis = 1), &x);
    expect_cells(&y, x.cells);
    free(y.cells);
    y = call_run("squeeze", "i32[2, 3, 1, 4]", NULL, &x);
    expect_cells(&y, x.cells);
    free(y.cells);
    free(x.cells);
}

static void test_init(void **state)
{
    static const char *const ops[] = {"zeros", "ones", "empty"};
    struct array y;

    (void)state;
    for (int k = 0; k < 3; k++) {
        y = call_run(ops[k], "", ATTRS(init, .dtype = FRIT_BF16, .dims = {1, {2}}), NULL);
        assert_true(y.cells[0].f == (k == 1) && y.cells[1].f == (k == 1));
        free(y.cells);
    }
    for (int64_t rows = 1; rows < 5; rows++) {
        y = call_run("eye", "", ATTRS(init, .dtype = FRIT_U8, .dims = {3, {2, rows, 3}}), NULL);
        for (int64_t i = 0; i < 2 * rows * 3; i++)
            assert_int_equal(y.cells[i].i, i / 3 % rows == i % 3);
        free(y.cells);
    }
}

/* Every slice of [4, 5] by bounds -1..5 and steps that reach, values by their own numbers. */
static void test_slice_assign(void **state)
{
    (void)state;
    for (int n = 0; n < 3000; n++) {
        frit_attrs_slice a = {.struct_size = sizeof(a), .slices = {.count = 2}};
        struct array in[2], y;
        const frit_range *range = a.slices.dim;
        struct call call;
        char values[64];

        in[0] = draw_array("i16[4, 5]", 100, 999);
        for (int d = 0; d < 2; d++)
            a.slices.dim[d] =
                (frit_range){draw(-1, 5), draw(0, 3) ? draw(-1, 5) : FRIT_SLICE_END, draw(-3, 3)};
        call_check(&call, "slice", "i16[4, 5]", &a);
        a = call.attrs.slice;
        op_type_text(&call.out[0], values, sizeof(values));
        in[1] = draw_array(values, 1, 99);
        call_fill(&call, "slice_assign", "i16[4, 5]; none", &a);
        call.in[1] = (struct op_input){.kind = FRIT_OPERAND_TENSOR, .type = type_of(values)};
        call.status = op_check(&call.call, call.out, &call.err);
        y = run(&call, in);
        for (int64_t i = 0; i < in[1].type.dims[0]; i++) {
            for (int64_t j = 0; j < in[1].type.dims[1]; j++)
                in[0].cells[(range[0].start + i * range[0].step) * 5 + range[1].start +
                            j * range[1].step] = in[1].cells[i * in[1].type.dims[1] + j];
        }
        expect_cells(&y, in[0].cells);
        free(in[0].cells);
        free(in[1].cells);
        free(y.cells);
    }
}

static void update(union cell *to, int64_t how, int64_t value)
{
    to->i = how == FRIT_CHOICE_update_assign ? value
            : how == FRIT_CHOICE_update_add  ? to->i + value
            : how == FRIT_CHOICE_update_mul  ? to->i * value
            : how == FRIT_CHOICE_update_min  ? (value < to->i ? value : to->i)
                                             : (value > to->i ? value : to->i);
}

/* x [3, 4], numbers along axis 1 with repeats and some outside. */
static void test_select_assign(void **state)
{
    (void)state;
    for (int64_t how = 0; how < 5; how++) {
        struct array in[3] = {draw_array("i64[3, 4]", 1, 9), draw_array("i32[7]", -1, 4),
                              draw_array("i64[3, 7]", 1, 9)};
        struct array y = call_run("select_assign", "i64[3, 4]; i32[7]; i64[3, 7]",
                                  ATTRS(scatter, .axis = 1, .update = how), in);

        for (int64_t i = 0; i < 21; i++) {
            int64_t at = in[1].cells[i % 7].i;

            if (at >= 0 && at < 4)
                update(&in[0].cells[i / 7 * 4 + at], how, in[2].cells[i].i);
        }
        expect_cells(&y, in[0].cells);
        for (int k = 0; k < 3; k++)
            free(in[k].cells);
        free(y.cells);
    }
}

static int64_t clip(int64_t value, int64_t high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

/* x [3, 4, 2], two coordinates each, some outside. */
static void test_nd(void **state)
{
    (void)state;
    for (int64_t how = 0; how < 5; how++) {
        struct array in[3] = {draw_array("i64[3, 4, 2]", 1, 9), draw_array("i32[5, 2]", -1, 4),
                              draw_array("i64[5, 2]", 1, 9)};
        struct array got = call_run("gather_nd", "i64[3, 4, 2]; i32[5, 2]", NULL, in);
        struct array put = call_run("scatter_nd", "i64[3, 4, 2]; i32[5, 2]; i64[5, 2]",
                                    ATTRS(update, .update = how), in);

        for (int64_t i = 0; i < 10; i++) {
            int64_t row = in[1].cells[i / 2 * 2].i, column = in[1].cells[i / 2 * 2 + 1].i;
            int64_t near = (clip(row, 2) * 4 + clip(column, 3)) * 2 + i % 2;

            assert_int_equal(got.cells[i].i, in[0].cells[near].i);
        }
        for (int64_t i = 0; i < 10; i++) {
            int64_t row = in[1].cells[i / 2 * 2].i, column = in[1].cells[i / 2 * 2 + 1].i;

            if (row >= 0 && row < 3 && column >= 0 && column < 4)
                update(&in[0].cells[(row * 4 + column) * 2 + i % 2], how, in[2].cells[i].i);
        }
        expect_cells(&put, in[0].cells);
        for (int k = 0; k < 3; k++)
            free(in[k].cells);
        free(got.cells);
        free(put.cells);
    }
}

static void test_embedding(void **state)
{
    const struct array in[2] = {draw_array("f16[4, 3]", -9, 9), draw_array("i64[2, 5]", -1, 4)};
    const struct array back[3] = {in[0], draw_array("f16[2, 5, 3]", -9, 9), in[1]};
    struct array y = call_run("embedding", "f16[4, 3]; i64[2, 5]", NULL, in);
    struct array grad =
        call_run("embedding_backward", "f16[4, 3]; f16[2, 5, 3]; i64[2, 5]", NULL, back);
    double sums[12] = {0};

    (void)state;
    for (int64_t i = 0; i < 30; i++) {
        int64_t row = in[1].cells[i / 3].i;

        assert_true(y.cells[i].f == in[0].cells[clip(row, 3) * 3 + i % 3].f);
        if (row >= 0 && row < 4)
            sums[row * 3 + i % 3] += back[1].cells[i].f;
    }
    for (int i = 0; i < 12; i++)
        assert_true(grad.cells[i].f == sums[i]);
    free(in[0].cells);
    free(in[1].cells);
    free(back[1].cells);
    free(y.cells);
    free(grad.cells);
}

static void test_join(void **state)
{
    const struct array in[3] = {draw_array("u8[2, 3]", 0, 9), draw_array("u8[2, 3]", 0, 9),
                                draw_array("u8[2, 3]", 0, 9)};
    struct array y = call_run("repeat", "u8[2, 3]", ATTRS(repeat, .axis = 1, .times = 4), in);

    (void)state;
    for (int64_t i = 0; i < 24; i++)
        assert_int_equal(y.cells[i].i, in[0].cells[i / 12 * 3 + i % 3].i);
    free(y.cells);
    y = call_run("repeat", "u8[2, 3]", ATTRS(repeat, .axis = 0, .times = 2), in);
    for (int64_t i = 0; i < 12; i++)
        assert_int_equal(y.cells[i].i, in[0].cells[i % 6].i);
    free(y.cells);
    y = call_run("stack", "u8[2, 3]; u8[2, 3]; u8[2, 3]", ATTRS(axis, .axis = 1), in);
    for (int64_t i = 0; i < 18; i++)
        assert_int_equal(y.cells[i].i, in[i / 3 % 3].cells[i / 9 * 3 + i % 3].i);
    free(y.cells);
    for (int k = 0; k < 3; k++)
        free(in[k].cells);
}

/* ---- contractions ---- */

/* Sum over k of a at (i, k) and b at (k, j) by strides of matrices. */
static double dot(const union cell *a, int64_t step_a, const union cell *b, int64_t step_b,
                  int64_t n)
{
    double sum = 0;

    for (int64_t k = 0; k < n; k++)
        sum += a[k * step_a].f * b[k * step_b].f;
    return sum;
}

/* x [2, 3, 4], w [4, 5], bias [5], grad [2, 3, 5]. */
static void test_linear(void **state)
{
    const struct array in[3] = {draw_array("f32[2, 3, 4]", -9, 9), draw_array("f32[4, 5]", -9, 9),
                                draw_array("f32[5]", -9, 9)};
    const struct array back[3] = {in[0], in[1], draw_array("f32[2, 3, 5]", -9, 9)};
    const char *operands = "f32[2, 3, 4]; f32[4, 5]; f32[2, 3, 5]";
    struct array y = call_run("linear", "f32[2, 3, 4]; f32[4, 5]; f32[5]", NULL, in);
    struct array dx = call_run("linear_backward_x", operands, NULL, back);
    struct array dw = call_run("linear_backward_w", operands, NULL, back);
    struct array db = call_run("linear_backward_bias", "f32[2, 3, 5]", NULL, &back[2]);
    const union cell *x = in[0].cells, *w = in[1].cells, *g = back[2].cells;
    struct array row;

    (void)state;
    for (int64_t i = 0; i < 30; i++)
        assert_true(y.cells[i].f == dot(x + i / 5 * 4, 1, w + i % 5, 5, 4) + in[2].cells[i % 5].f);
    for (int64_t i = 0; i < 24; i++)
        assert_true(dx.cells[i].f == dot(g + i / 4 * 5, 1, w + i % 4 * 5, 1, 5));
    for (int64_t i = 0; i < 20; i++)
        assert_true(dw.cells[i].f == dot(x + i / 5, 4, g + i % 5, 5, 6));
    for (int64_t i = 0; i < 5; i++)
        assert_true(db.cells[i].f == dot(g + i, 5, (const union cell[]){{.f = 1}}, 0, 6));
    row = call_run("linear", "f32[4]; f32[4, 5]; none", NULL, in); /* the first row of x */
    for (int64_t i = 0; i < 5; i++)
        assert_true(row.cells[i].f == y.cells[i].f - in[2].cells[i].f);
    free(row.cells);
    free(y.cells);
    free(dx.cells);
    free(dw.cells);
    free(db.cells);
    for (int k = 0; k < 3; k++)
        free(in[k].cells);
    free(back[2].cells);
}

static void test_conv_bias(void **state)
{
    struct array grad = draw_array("f32[2, 3, 4, 5]", -9, 9);
    struct array y = call_run("conv_backward_bias", "f32[2, 3, 4, 5]", NULL, &grad);
    double sums[3] = {0};

    (void)state;
    for (int64_t i = 0; i < 120; i++)
        sums[i / 20 % 3] += grad.cells[i].f;
    for (int i = 0; i < 3; i++)
        assert_true(y.cells[i].f == sums[i]);
    free(grad.cells);
    free(y.cells);
}

/* a [2, 3, 2] and b [3, 1]: axis 1 of the result is axis 0 of b. */
static void test_cross(void **state)
{
    const struct array in[2] = {draw_array("i32[2, 3, 2]", -9, 9), draw_array("i32[3, 1]", -9, 9)};
    struct array y = call_run("cross", "i32[2, 3, 2]; i32[3, 1]", ATTRS(axis, .axis = 1), in);

    (void)state;
    for (int64_t i = 0; i < 12; i++) {
        int64_t c = i / 2 % 3, p = (c + 1) % 3, q = (c + 2) % 3;
        const union cell *a = in[0].cells + i / 6 * 6 + i % 2, *b = in[1].cells;

        assert_int_equal(y.cells[i].i, a[p * 2].i * b[q].i - a[q * 2].i * b[p].i);
    }
    free(in[0].cells);
    free(in[1].cells);
    free(y.cells);
}

/* ---- memory ---- */

static void test_memory(void **state)
{
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct graph graph = {0};
        struct call call;
        frit_status status;

        call_check(&call, "layer_norm", "f16[2, 3]; f16[3]; f16[3]", NULL);
        failing_alloc_arm(n);
        status = decompose(&call.call, &graph, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        graph_fini(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),         cmocka_unit_test(test_order),
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_signs),
        cmocka_unit_test(test_tests),        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_clamp),        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_gradients),    cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),       cmocka_unit_test(test_bernoulli),
        cmocka_unit_test(test_int),          cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_norm),         cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_views),        cmocka_unit_test(test_init),
        cmocka_unit_test(test_slice_assign), cmocka_unit_test(test_select_assign),
        cmocka_unit_test(test_nd),           cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_join),         cmocka_unit_test(test_linear),
        cmocka_unit_test(test_conv_bias),    cmocka_unit_test(test_cross),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
