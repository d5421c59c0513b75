/* SPDX-License-Identifier: Apache-2.0 */
/* Which products go to a vendor's library and with which numbers, and that those describe what a
 * kernel computes. */
#include "kernels/fuse/product_rig.h"

#include <string.h>

enum { ELEMENTS_BEFORE = 4096 /* of element 0 */ };

/* ---- numbers ---- */

static void expect_step(const struct row *row, const char *what, int64_t extent, int64_t got,
                        int64_t want)
{
    if (extent > 1 && got != want)
        fail_msg("%s: %s is %lld, not %lld", row->name, what, (long long)got, (long long)want);
}

static void expect_product(const struct row *row, const struct kernels_product *got)
{
    const struct kernels_product *want = &row->want;
    const int64_t batch[KERNELS_BATCHES] = {want->batch[0] ? want->batch[0] : 1,
                                            want->batch[1] ? want->batch[1] : 1};

    if (got->m != want->m || got->n != want->n || got->k != want->k || got->batch[0] != batch[0] ||
        got->batch[1] != batch[1])
        fail_msg("%s: %lld x %lld x %lld, %lld x %lld batches", row->name, (long long)got->m,
                 (long long)got->n, (long long)got->k, (long long)got->batch[0],
                 (long long)got->batch[1]);
    expect_step(row, "a.row", got->m, got->a.row, want->a.row);
    expect_step(row, "a.column", got->k, got->a.column, want->a.column);
    expect_step(row, "b.row", got->k, got->b.row, want->b.row);
    expect_step(row, "b.column", got->n, got->b.column, want->b.column);
    expect_step(row, "c.row", got->m, got->c.row, want->c.row);
    expect_step(row, "c.column", got->n, got->c.column, want->c.column);
    for (uint32_t i = 0; i < KERNELS_BATCHES; i++) {
        expect_step(row, "a.batch", batch[i], got->a.batch[i], want->a.batch[i]);
        expect_step(row, "b.batch", batch[i], got->b.batch[i], want->b.batch[i]);
        expect_step(row, "c.batch", batch[i], got->c.batch[i], want->c.batch[i]);
    }
    assert_int_equal(got->has_bias, want->has_bias);
    assert_int_equal(got->result, got->dtype);
    if (want->align)
        assert_int_equal(got->align, want->align);
    assert_int_equal(got->dtype,
                     row->tensor[row->n_in].dtype ? row->tensor[row->n_in].dtype : FRIT_F32);
}

static float *at(const struct op_program *p, const struct kernels_place *place)
{
    return (float *)(void *)((char *)p->launch.args[place->arg].memory + place->first);
}

/* One product of f32, as kernels.h defines it. */
static void run_product(const struct op_program *p)
{
    const struct kernels_product_launch *l = p->kernel.product;
    const struct kernels_product *q = &l->product;
    const float *a = at(p, &l->a), *b = at(p, &l->b), *bias = q->has_bias ? at(p, &l->bias) : NULL;
    float *c = at(p, &l->c);

    for (int64_t y = 0; y < q->batch[0]; y++)
        for (int64_t x = 0; x < q->batch[1]; x++)
            for (int64_t i = 0; i < q->m; i++)
                for (int64_t j = 0; j < q->n; j++) {
                    float sum = 0;

                    for (int64_t k = 0; k < q->k; k++)
                        sum += a[y * q->a.batch[0] + x * q->a.batch[1] + i * q->a.row +
                                 k * q->a.column] *
                               b[y * q->b.batch[0] + x * q->b.batch[1] + k * q->b.row +
                                 j * q->b.column];
                    c[y * q->c.batch[0] + x * q->c.batch[1] + i * q->c.row + j * q->c.column] =
                        bias ? sum + bias[j] : sum;
                }
}

static float numbers[4][PRODUCT_ELEMENTS];

/* The first candidate's kernel and the library's product compute the same. */
static void compare(const struct row *row, struct op_program *p, uint32_t candidate)
{
    static float by_kernel[PRODUCT_ELEMENTS];
    float *args[4];

    for (uint32_t i = 0; i <= row->n_in; i++) {
        for (uint32_t k = 0; k < PRODUCT_ELEMENTS; k++)
            numbers[i][k] = i == row->n_in ? -777 : (float)((k * 37 + i * 11) % 41) - 20;
        args[i] = row->tensor[i].rank ? numbers[i] + ELEMENTS_BEFORE : NULL;
    }
    assert_int_equal(product_prepare(p, 0), FRIT_OK);
    product_launch(p, args);
    for (uint32_t i = 0; i <= row->n_in; i++)
        p->launch.args[i].extent =
            args[i] ? (PRODUCT_ELEMENTS - ELEMENTS_BEFORE) * sizeof(float) : 0;
    rig_run(&p->launch);
    memcpy(by_kernel, numbers[row->n_in], sizeof(by_kernel));
    for (uint32_t k = 0; k < PRODUCT_ELEMENTS; k++)
        numbers[row->n_in][k] = -777;
    assert_int_equal(product_prepare(p, candidate), FRIT_OK);
    product_launch(p, args);
    run_product(p);
    for (uint32_t k = 0; k < PRODUCT_ELEMENTS; k++) /* whole numbers: sums are exact */
        if (by_kernel[k] != numbers[row->n_in][k])
            fail_msg("%s: element %u is %g, not %g", row->name, k, (double)numbers[row->n_in][k],
                     (double)by_kernel[k]);
}

static bool has_negative(const struct row *row)
{
    for (uint32_t i = 0; i < row->n_in; i++)
        for (uint32_t d = 0; d < row->tensor[i].rank; d++)
            if (row->tensor[i].strides[d] < 0)
                return true;
    return false;
}

static bool is_f32(const struct row *row)
{
    bool is = true;

    for (uint32_t i = 0; i <= row->n_in; i++)
        is &= !row->tensor[i].dtype || row->tensor[i].dtype == FRIT_F32;
    return is;
}

static void check(struct library *library, const struct row *row)
{
    struct op_program p;
    uint32_t candidate;
    const uint32_t n_calls = library->n_calls;
    frit_status st = product_make(library, row, &p);

    if (st)
        fail_msg("%s: no program, status %d", row->name, st);
    candidate = product_candidate(&p.program);
    if (candidate == UINT32_MAX)
        fail_msg("%s: no candidate", row->name);
    st = product_prepare(&p, candidate);
    if (st)
        fail_msg("%s: prepare returns %d", row->name, st);
    product_launch(&p, NULL);
    if (!p.kernel.product != !row->is_product)
        fail_msg("%s: %s", row->name, row->is_product ? "no product" : "a product");
    if (row->is_product) {
        assert_int_equal(p.spec.workspace_bytes, PRODUCT_WORKSPACE_BYTES);
        assert_int_equal(p.spec.n_phases, 0);
        assert_int_equal(p.kernel.n_bodies, 1);
        expect_product(row, &p.kernel.product->product);
        assert_int_equal(p.kernel.flops,
                         2 * p.kernel.product->product.m * p.kernel.product->product.n *
                             p.kernel.product->product.k * p.kernel.product->product.batch[0] *
                             p.kernel.product->product.batch[1]);
        if (is_f32(row) && !has_negative(row))
            compare(row, &p, candidate);
    } else { /* the first schedule's kernel, of which the library does not hear */
        assert_non_null(p.kernel.code);
        assert_int_equal(library->n_calls, n_calls);
    }
    rig_destroy(&p.program);
}

#define A(...)                             \
    {                                      \
        .rank = 2, .dims = { __VA_ARGS__ } \
    }
#define A3(...)                            \
    {                                      \
        .rank = 3, .dims = { __VA_ARGS__ } \
    }
#define A4(...)                            \
    {                                      \
        .rank = 4, .dims = { __VA_ARGS__ } \
    }
#define STEPS(...) .strides = {__VA_ARGS__}
#define MATRIX(r, c) \
    {                \
        r, c,        \
        {            \
            0, 0     \
        }            \
    }

static const struct row matmuls[] = {
    {"dense",
     FRIT_OP_matmul,
     2,
     {A(32, 48), A(48, 16), A(32, 16)},
     true,
     {.m = 32,
      .n = 16,
      .k = 48,
      .align = 64,
      .a = MATRIX(48, 1),
      .b = MATRIX(16, 1),
      .c = MATRIX(16, 1)}},
    {"leading dims",
     FRIT_OP_matmul,
     2,
     {{2, 0, {32, 48}, STEPS(100, 1)}, {2, 0, {48, 16}, STEPS(40, 1)}, A(32, 16)},
     true,
     {.m = 32, .n = 16, .k = 48, .a = MATRIX(100, 1), .b = MATRIX(40, 1), .c = MATRIX(16, 1)}},
    {"transposed",
     FRIT_OP_matmul,
     2,
     {{2, 0, {32, 48}, STEPS(1, 33)}, {2, 0, {48, 16}, STEPS(1, 50)}, A(32, 16)},
     true,
     {.m = 32, .n = 16, .k = 48, .a = MATRIX(1, 33), .b = MATRIX(1, 50), .c = MATRIX(16, 1)}},
    {"every second element",
     FRIT_OP_matmul,
     2,
     {{2, 0, {8, 24}, STEPS(50, 2)}, A(24, 16), A(8, 16)},
     true,
     {.m = 8, .n = 16, .k = 24, .a = MATRIX(50, 2), .b = MATRIX(16, 1), .c = MATRIX(16, 1)}},
    {"backwards",
     FRIT_OP_matmul,
     2,
     {{2, 0, {8, 24}, STEPS(-24, 1)}, A(24, 16), A(8, 16)},
     true,
     {.m = 8, .n = 16, .k = 24, .a = MATRIX(-24, 1), .b = MATRIX(16, 1), .c = MATRIX(16, 1)}},
    {"one row for all",
     FRIT_OP_matmul,
     2,
     {{2, 0, {8, 24}, STEPS(0, 1)}, A(24, 16), A(8, 16)},
     true,
     {.m = 8, .n = 16, .k = 24, .a = MATRIX(0, 1), .b = MATRIX(16, 1), .c = MATRIX(16, 1)}},
    {"batches",
     FRIT_OP_matmul,
     2,
     {A3(5, 8, 24), A3(5, 24, 16), A3(5, 8, 16)},
     true,
     {.m = 8,
      .n = 16,
      .k = 24,
      .batch = {5},
      .a = {24, 1, {192}},
      .b = {16, 1, {384}},
      .c = {16, 1, {128}}}},
    {"more rows",
     FRIT_OP_matmul,
     2,
     {A3(5, 8, 24), A(24, 16), A3(5, 8, 16)},
     true,
     {.m = 40, .n = 16, .k = 24, .a = MATRIX(24, 1), .b = MATRIX(16, 1), .c = MATRIX(16, 1)}},
    {"rows that do not merge",
     FRIT_OP_matmul,
     2,
     {{3, 0, {5, 8, 24}, STEPS(200, 24, 1)}, A(24, 16), A3(5, 8, 16)},
     true,
     {.m = 8,
      .n = 16,
      .k = 24,
      .batch = {5},
      .a = {24, 1, {200}},
      .b = {16, 1, {0}},
      .c = {16, 1, {128}}}},
    {"one a for all",
     FRIT_OP_matmul,
     2,
     {A(8, 24), A3(5, 24, 16), A3(5, 8, 16)},
     true,
     {.m = 8,
      .n = 16,
      .k = 24,
      .batch = {5},
      .a = {24, 1, {0}},
      .b = {16, 1, {384}},
      .c = {16, 1, {128}}}},
    {"batches that merge",
     FRIT_OP_matmul,
     2,
     {A4(2, 3, 8, 24), A4(2, 3, 24, 16), A4(2, 3, 8, 16)},
     true,
     {.m = 8,
      .n = 16,
      .k = 24,
      .batch = {6},
      .a = {24, 1, {192}},
      .b = {16, 1, {384}},
      .c = {16, 1, {128}}}},
    {"batches that do not",
     FRIT_OP_matmul,
     2,
     {{4, 0, {2, 3, 8, 24}, STEPS(700, 200, 24, 1)}, A4(2, 3, 24, 16), A4(2, 3, 8, 16)},
     true,
     {.m = 8,
      .n = 16,
      .k = 24,
      .batch = {2, 3},
      .a = {24, 1, {700, 200}},
      .b = {16, 1, {1152, 384}},
      .c = {16, 1, {384, 128}}}},
    {"heads between rows",
     FRIT_OP_matmul,
     2,
     {{4, 0, {2, 3, 8, 24}, STEPS(576, 24, 72, 1)},
      {4, 0, {2, 3, 24, 8}, STEPS(576, 24, 1, 72)},
      A4(2, 3, 8, 8)},
     true,
     {.m = 8,
      .n = 8,
      .k = 24,
      .batch = {2, 3},
      .a = {72, 1, {576, 24}},
      .b = {1, 72, {576, 24}},
      .c = {8, 1, {192, 64}}}},
    {"three kinds of batches",
     FRIT_OP_matmul,
     2,
     {{5, 0, {2, 3, 2, 8, 8}, STEPS(900, 250, 100, 8, 1)},
      {5, 0, {2, 3, 2, 8, 8}, {0}},
      {5, 0, {2, 3, 2, 8, 8}, {0}}},
     false,
     {0}},
    {"one row",
     FRIT_OP_matmul,
     2,
     {A(1, 48), A(48, 16), A(1, 16)},
     true,
     {.m = 1, .n = 16, .k = 48, .a = MATRIX(0, 1), .b = MATRIX(16, 1), .c = MATRIX(0, 1)}},
    {"one column",
     FRIT_OP_matmul,
     2,
     {A(32, 48), A(48, 1), A(32, 1)},
     true,
     {.m = 32, .n = 1, .k = 48, .a = MATRIX(48, 1), .b = MATRIX(1, 0), .c = MATRIX(1, 0)}},
    {"an outer product",
     FRIT_OP_matmul,
     2,
     {A(32, 1), A(1, 16), A(32, 16)},
     true,
     {.m = 32, .n = 16, .k = 1, .a = MATRIX(1, 0), .b = MATRIX(0, 1), .c = MATRIX(16, 1)}},
    {"a number", FRIT_OP_matmul, 2, {A(1, 1), A(1, 1), A(1, 1)}, true, {.m = 1, .n = 1, .k = 1}},
    {"no sums", FRIT_OP_matmul, 2, {A(32, 0), A(0, 16), A(32, 16)}, false, {0}},
    {"no rows", FRIT_OP_matmul, 2, {A(0, 48), A(48, 16), A(0, 16)}, false, {0}},
    {"no batches", FRIT_OP_matmul, 2, {A3(0, 8, 24), A3(0, 24, 16), A3(0, 8, 16)}, false, {0}},
    {"a result with gaps",
     FRIT_OP_matmul,
     2,
     {A(32, 48), A(48, 16), {2, 0, {32, 16}, STEPS(20, 1)}},
     false,
     {0}},
    {"a result by columns",
     FRIT_OP_matmul,
     2,
     {A(32, 48), A(48, 16), {2, 0, {32, 16}, STEPS(1, 32)}},
     false,
     {0}},
    {"f64",
     FRIT_OP_matmul,
     2,
     {{2, FRIT_F64, {4, 8}, {0}}, {2, FRIT_F64, {8, 2}, {0}}, {2, FRIT_F64, {4, 2}, {0}}},
     true,
     {.m = 4, .n = 2, .k = 8, .a = MATRIX(8, 1), .b = MATRIX(2, 1), .c = MATRIX(2, 1)}},
    {"bf16",
     FRIT_OP_matmul,
     2,
     {{3, FRIT_BF16, {2, 4, 5}, {0}},
      {3, FRIT_BF16, {2, 5, 3}, {0}},
      {3, FRIT_BF16, {2, 4, 3}, {0}}},
     true, /* 15 elements of 2 bytes between batches of b */
     {.m = 4,
      .n = 3,
      .k = 5,
      .batch = {2},
      .align = 2,
      .a = {5, 1, {20}},
      .b = {3, 1, {15}},
      .c = {3, 1, {12}}}},
};

static const struct row linears[] = {
    {"without bias",
     FRIT_OP_linear,
     3,
     {A(32, 48), A(48, 16), {0}, A(32, 16)},
     true,
     {.m = 32, .n = 16, .k = 48, .a = MATRIX(48, 1), .b = MATRIX(16, 1), .c = MATRIX(16, 1)}},
    {"with bias",
     FRIT_OP_linear,
     3,
     {A(32, 48), A(48, 16), {.rank = 1, .dims = {16}}, A(32, 16)},
     true,
     {.has_bias = true,
      .m = 32,
      .n = 16,
      .k = 48,
      .a = MATRIX(48, 1),
      .b = MATRIX(16, 1),
      .c = MATRIX(16, 1)}},
    {"rank 3",
     FRIT_OP_linear,
     3,
     {A3(4, 8, 24), A(24, 16), {.rank = 1, .dims = {16}}, A3(4, 8, 16)},
     true,
     {.has_bias = true,
      .m = 32,
      .n = 16,
      .k = 24,
      .a = MATRIX(24, 1),
      .b = MATRIX(16, 1),
      .c = MATRIX(16, 1)}},
    {"rows that do not merge",
     FRIT_OP_linear,
     3,
     {{3, 0, {4, 8, 24}, STEPS(24, 96, 1)}, A(24, 16), {.rank = 1, .dims = {16}}, A3(4, 8, 16)},
     true,
     {.has_bias = true,
      .m = 8,
      .n = 16,
      .k = 24,
      .batch = {4},
      .a = {96, 1, {24}},
      .b = {16, 1, {0}},
      .c = {16, 1, {128}}}},
    {"a bias of one element",
     FRIT_OP_linear,
     3,
     {A(32, 48), A(48, 1), {.rank = 1, .dims = {1}}, A(32, 1)},
     true,
     {.has_bias = true,
      .m = 32,
      .n = 1,
      .k = 48,
      .a = MATRIX(48, 1),
      .b = MATRIX(1, 0),
      .c = MATRIX(1, 0)}},
    {"a bias with gaps",
     FRIT_OP_linear,
     3,
     {A(32, 48), A(48, 16), {1, 0, {16}, STEPS(2)}, A(32, 16)},
     false,
     {0}},
    {"no sums",
     FRIT_OP_linear,
     3,
     {A(32, 0), A(0, 16), {.rank = 1, .dims = {16}}, A(32, 16)},
     false,
     {0}},
    {"bf16",
     FRIT_OP_linear,
     3,
     {{2, FRIT_BF16, {4, 8}, {0}},
      {2, FRIT_BF16, {8, 2}, {0}},
      {1, FRIT_BF16, {2}, {0}},
      {2, FRIT_BF16, {4, 2}, {0}}},
     true,
     {.has_bias = true,
      .m = 4,
      .n = 2,
      .k = 8,
      .a = MATRIX(8, 1),
      .b = MATRIX(2, 1),
      .c = MATRIX(2, 1)}},
};

static void test_matmuls(void **state)
{
    for (size_t i = 0; i < sizeof(matmuls) / sizeof(*matmuls); i++)
        check(*state, &matmuls[i]);
}

static void test_linears(void **state)
{
    for (size_t i = 0; i < sizeof(linears) / sizeof(*linears); i++)
        check(*state, &linears[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_matmuls, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_linears, product_setup, product_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
