/* SPDX-License-Identifier: Apache-2.0 */
/* Decompositions that move elements, and of contractions, against plain loops over indices. */
#include <stdlib.h>

#include "host/graph/decomposed.h"
#include "unit.h"

/* ---- moving elements ---- */

static void test_views(void **state)
{
    struct array x = draw_array("i32[2, 3, 4]", 0, 99), y;

    (void)state;
    y = decomposed("transpose", "i32[2, 3, 4]", ATTRS(swap, .axis = 0, .with = 2), &x);
    for (int64_t i = 0; i < 24; i++)
        assert_int_equal(y.cells[i % 4 * 6 + i / 4 % 3 * 2 + i / 12].i, x.cells[i].i);
    free(y.cells);
    y = decomposed("unsqueeze", "i32[2, 3, 4]", ATTRS(axis, .axis = 1), &x);
    expect_cells(&y, x.cells);
    free(y.cells);
    y = decomposed("squeeze", "i32[2, 3, 1, 4]", NULL, &x);
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
        y = decomposed(ops[k], "", ATTRS(init, .dtype = FRIT_BF16, .dims = {1, {2}}), NULL);
        assert_true(y.cells[0].f == (k == 1) && y.cells[1].f == (k == 1));
        free(y.cells);
    }
    for (int64_t rows = 1; rows < 5; rows++) {
        y = decomposed("eye", "", ATTRS(init, .dtype = FRIT_U8, .dims = {3, {2, rows, 3}}), NULL);
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
        y = decomposed_run(&call, in);
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
        struct array y = decomposed("select_assign", "i64[3, 4]; i32[7]; i64[3, 7]",
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
        struct array got = decomposed("gather_nd", "i64[3, 4, 2]; i32[5, 2]", NULL, in);
        struct array put = decomposed("scatter_nd", "i64[3, 4, 2]; i32[5, 2]; i64[5, 2]",
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
    struct array y = decomposed("embedding", "f16[4, 3]; i64[2, 5]", NULL, in);
    struct array grad =
        decomposed("embedding_backward", "f16[4, 3]; f16[2, 5, 3]; i64[2, 5]", NULL, back);
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
    struct array y = decomposed("repeat", "u8[2, 3]", ATTRS(repeat, .axis = 1, .times = 4), in);

    (void)state;
    for (int64_t i = 0; i < 24; i++)
        assert_int_equal(y.cells[i].i, in[0].cells[i / 12 * 3 + i % 3].i);
    free(y.cells);
    y = decomposed("repeat", "u8[2, 3]", ATTRS(repeat, .axis = 0, .times = 2), in);
    for (int64_t i = 0; i < 12; i++)
        assert_int_equal(y.cells[i].i, in[0].cells[i % 6].i);
    free(y.cells);
    y = decomposed("stack", "u8[2, 3]; u8[2, 3]; u8[2, 3]", ATTRS(axis, .axis = 1), in);
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
    struct array y = decomposed("linear", "f32[2, 3, 4]; f32[4, 5]; f32[5]", NULL, in);
    struct array dx = decomposed("linear_backward_x", operands, NULL, back);
    struct array dw = decomposed("linear_backward_w", operands, NULL, back);
    struct array db = decomposed("linear_backward_bias", "f32[2, 3, 5]", NULL, &back[2]);
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
    row = decomposed("linear", "f32[4]; f32[4, 5]; none", NULL, in); /* the first row of x */
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
    struct array y = decomposed("conv_backward_bias", "f32[2, 3, 4, 5]", NULL, &grad);
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
    struct array y = decomposed("cross", "i32[2, 3, 2]; i32[3, 1]", ATTRS(axis, .axis = 1), in);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),        cmocka_unit_test(test_init),
        cmocka_unit_test(test_slice_assign), cmocka_unit_test(test_select_assign),
        cmocka_unit_test(test_nd),           cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_join),         cmocka_unit_test(test_linear),
        cmocka_unit_test(test_conv_bias),    cmocka_unit_test(test_cross),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
