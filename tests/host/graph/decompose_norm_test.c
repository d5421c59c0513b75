/* SPDX-License-Identifier: Apache-2.0 */
/* Decompositions of reductions, the softmax family and normalisation against plain loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/scalar.h"
#include "host/graph/decomposed.h"
#include "unit.h"

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
            y[k] = decomposed(ops[k], operand, ATTRS(reduce, .axes = {1, {1}}), &x);
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
    y = decomposed("mean", "f32[2, 0]", ATTRS(reduce, .axes = {1, {1}}), &none);
    assert_true(isnan(y.cells[0].f) && isnan(y.cells[1].f));
    free(y.cells);
    y = decomposed("any", "f32[2, 0]", ATTRS(reduce, .axes = {1, {1}}, .keep = 1), &none);
    assert_int_equal(y.cells[0].i + y.cells[1].i, 0);
    free(y.cells);
    y = decomposed("all", "f32[2, 0]", NULL, &none);
    assert_int_equal(y.cells[0].i, 1);
    free(y.cells);
    y = decomposed("softmax", "f32[2, 0]", ATTRS(axis, .axis = 1), &none);
    assert_int_equal(op_elements(&y.type), 0);
    free(y.cells);
    free(none.cells);
    y = decomposed("random_normal", "0; 1", ATTRS(init, .dtype = FRIT_F32, .dims = {1, {0}}), NULL);
    assert_int_equal(op_elements(&y.type), 0);
    free(y.cells);
}

/* Rows of 4 in a narrow type, one of them far from 0. */
static void test_softmax(void **state)
{
    static const double values[] = {1, 2, 3, 4, 1000, 1001, 1002, 1003};
    struct array x = of_floats(FRIT_F16, 8, values), y[3];

    (void)state;
    y[0] = decomposed("softmax", "f16[2, 4]", ATTRS(axis, .axis = -1), &x);
    y[1] = decomposed("log_softmax", "f16[2, 4]", ATTRS(axis, .axis = -1), &x);
    y[2] = decomposed("softmin", "f16[2, 4]", ATTRS(axis, .axis = -1), &x);
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
    struct array y = decomposed(op, operands, attrs, in);
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
    struct array y = decomposed("batch_norm", "f64[2, 3, 4]; f64[3]; f64[3]; f64[3]; f64[3]",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_softmax),    cmocka_unit_test(test_norm),
        cmocka_unit_test(test_batch_norm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
