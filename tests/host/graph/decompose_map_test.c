/* SPDX-License-Identifier: Apache-2.0 */
/* Decompositions of elementwise rows against the functions in long double, and their gradients
 * against difference quotients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/scalar.h"
#include "host/graph/decomposed.h"
#include "unit.h"

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
    y = decomposed(functions[f].op, operand, NULL, &x);
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
    struct array x = of_floats(FRIT_F32, 3, zeros), y = decomposed("ceil", "f32[3]", NULL, &x);

    (void)state;
    assert_true(signbit(y.cells[0].f) && !signbit(y.cells[1].f) && signbit(y.cells[2].f));
    free(y.cells);
    y = decomposed("trunc", "f32[3]", NULL, &x);
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
        struct array y = decomposed(ops[k], "f16[5]", NULL, &x);

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
        struct array tensor = decomposed(ops[k], "f32[4]; f32[4]", NULL, in);
        struct array scalar = decomposed(ops[k], "f32[4]; 2", NULL, in);

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
            decomposed("clamp", cases[k].operands, NULL, (const struct array[]){x, x, x});

        for (int i = 0; i < 3; i++)
            assert_int_equal(y.cells[i].i, cases[k].expected[i]);
        free(y.cells);
    }
    free(x.cells);
}

static void expect_floats(const char *op, const char *operands, const struct array *inputs,
                          const double *expected)
{
    struct array y = decomposed(op, operands, NULL, inputs);
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
            struct array y = decomposed(cases[k].op, "f64[1]; f64[1]", NULL, in);
            wide slope = (cases[k].fn(at + 1e-6L) - cases[k].fn(at - 1e-6L)) / 2e-6L;

            assert_true(fabsl(y.cells[0].f - 2 * slope) < 1e-9L);
            free(in[0].cells);
            free(in[1].cells);
            free(y.cells);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions), cmocka_unit_test(test_signs),
        cmocka_unit_test(test_tests),     cmocka_unit_test(test_compare),
        cmocka_unit_test(test_clamp),     cmocka_unit_test(test_choices),
        cmocka_unit_test(test_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
