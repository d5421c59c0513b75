/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with products by a vendor's library, and the life of the library's plans. */
#include "kernels/fuse/product_rig.h"

#include <string.h>

#include "failing_alloc.h"

static const struct row dense = {
    .id = FRIT_OP_matmul,
    .n_in = 2,
    .tensor = {{2, 0, {32, 48}, {0}}, {2, 0, {48, 16}, {0}}, {2, 0, {32, 16}, {0}}}};
static const struct row with_gaps = {
    .id = FRIT_OP_matmul,
    .n_in = 2,
    .tensor = {{2, 0, {32, 48}, {50, 1}}, {2, 0, {48, 16}, {0}}, {2, 0, {32, 16}, {0}}}};
static const struct row with_bias = {
    .id = FRIT_OP_linear,
    .n_in = 3,
    .tensor = {
        {2, 0, {32, 48}, {0}}, {2, 0, {48, 16}, {0}}, {1, 0, {16}, {0}}, {2, 0, {32, 16}, {0}}}};

/* ---- blocks ---- */

static const int64_t square[] = {24, 24};

static frit_operand matrix(uint32_t value)
{
    frit_operand operand = rig_tensor(value, 2);

    operand.extent[1] = operand.extent[0];
    return operand;
}

/* %2 = transpose %1, %3 = %0 * %2, and with `negated` %4 = -%3. */
static void views_and_product(struct rig_ops *ops, bool negated)
{
    static const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 0, .with = 1};

    *ops = (struct rig_ops){0};
    rig_unary(ops, FRIT_OP_transpose, matrix(1), matrix(2), NULL);
    ops->op[0].attrs = &swap;
    rig_binary(ops, FRIT_OP_matmul, matrix(0), matrix(2), matrix(3), RIG_DEAD(2));
    if (negated)
        rig_unary(ops, FRIT_OP_neg, matrix(3), matrix(4), RIG_DEAD(3));
}

/* A view within the block is a part of the product. */
static void test_a_view_in_the_block(void **state)
{
    struct library *library = *state;
    struct op_program p = {0};
    struct rig_ops ops;
    uint32_t first, second;

    views_and_product(&ops, false);
    p.program = rig_program(&library->rig, "contract", &ops);
    rig_signature(&p.sig, 2, 1, 0, 2, square);
    assert_int_equal(product_prepare(&p, product_candidate(&p.program)), FRIT_OK);
    product_launch(&p, NULL);
    assert_non_null(p.kernel.product);
    first = p.kernel.product->a.arg;
    second = p.kernel.product->b.arg;
    assert_true(first < 2 && second < 2 && first != second);
    assert_int_equal(p.kernel.product->product.a.row, 24);
    assert_int_equal(p.kernel.product->product.b.row, 1);
    assert_int_equal(p.kernel.product->product.b.column, 24);
    assert_int_equal(p.kernel.product->c.arg, 2);
    assert_int_equal(p.kernel.product->workspace.arg, KERNELS_WORKSPACE);
    rig_destroy(&p.program);
}

/* Casts of narrow operands to f32, too: the library reads what is narrow. */
static void test_casts_in_the_block(void **state)
{
    static const frit_attrs_cast to_f32 = {.struct_size = sizeof(to_f32), .dtype = FRIT_F32};
    struct library *library = *state;
    struct op_program p = {0};
    struct rig_ops ops = {0};

    library->rig.device.reduced_library = REDUCED_LIBRARY;
    for (uint32_t i = 0; i < 2; i++) {
        frit_operand narrow = matrix(i);

        narrow.dtype = FRIT_BF16;
        rig_unary(&ops, FRIT_OP_cast, narrow, matrix(i + 2), NULL);
        ops.op[i].attrs = &to_f32;
    }
    rig_binary(&ops, FRIT_OP_matmul, matrix(2), matrix(3), matrix(4), RIG_DEAD(2, 3));
    p.program = rig_program(&library->rig, "contract", &ops);
    rig_signature(&p.sig, 2, 1, 0, 2, square);
    p.sig.args[0].dtype = p.sig.args[1].dtype = FRIT_BF16;
    assert_int_equal(product_prepare(&p, product_candidate(&p.program)), FRIT_OK);
    product_launch(&p, NULL);
    assert_non_null(p.kernel.product);
    assert_int_equal(p.kernel.product->product.dtype, FRIT_BF16);
    assert_int_equal(p.kernel.product->product.result, FRIT_F32);
    assert_int_equal(product_prepare(&p, product_reduced_candidate(&p.program)), FRIT_OK);
    product_launch(&p, NULL);
    assert_false(p.kernel.product->product.is_reduced);
    rig_destroy(&p.program);
}

static uint32_t accepted_by(struct rig *rig, const struct rig_ops *ops)
{
    enum { CAPACITY = 16 };
    frit_fuser list[CAPACITY] = {{0}};
    frit_fuser_state got = {.struct_size = sizeof(got)};
    uint32_t count, accepted = UINT32_MAX;

    assert_int_equal(kernels_prototypes(&rig->device, list, sizeof(*list), CAPACITY, &count, NULL),
                     FRIT_OK);
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].name.len == 8 && memcmp(list[i].name.ptr, "contract", 8) == 0) {
            void *clone = NULL;

            assert_int_equal(kernels_clone(list[i].prototype, &clone, NULL), FRIT_OK);
            kernels_push(clone, ops->op, ops->n, sizeof(*ops->op));
            kernels_state(clone, &got);
            accepted = got.accepted;
            kernels_destroy(clone);
        }
        kernels_destroy(list[i].prototype);
    }
    return accepted;
}

/* A product of the library is a program of its own, and is fused with what follows without it. */
static void test_what_is_fused(void **state)
{
    struct library *library = *state;
    struct rig_ops ops;

    views_and_product(&ops, true);
    assert_int_equal(accepted_by(&library->rig, &ops), 2);
    library->rig.device.library = NULL;
    assert_int_equal(accepted_by(&library->rig, &ops), 3);
}

static void test_without_a_library(void **state)
{
    struct library *library = *state;
    struct op_program p;

    library->rig.device.library = NULL;
    assert_int_equal(product_make(library, &dense, &p), FRIT_OK);
    assert_int_equal(product_candidate(&p.program), UINT32_MAX);
    assert_true(p.program.table->priority(p.program.self, 0, &p.sig.sig) > 0);
    assert_int_equal(product_prepare(&p, 0), FRIT_OK);
    product_launch(&p, NULL);
    assert_null(p.kernel.product);
    rig_destroy(&p.program);
    assert_int_equal(library->n_calls, 0);
}

/* Whole numbers are no products of the library, nor are other ops. */
static void test_other_programs(void **state)
{
    struct library *library = *state;
    const struct row whole = {.id = FRIT_OP_matmul,
                              .n_in = 2,
                              .tensor = {{2, FRIT_I32, {4, 8}, {0}},
                                         {2, FRIT_I32, {8, 2}, {0}},
                                         {2, FRIT_I32, {4, 2}, {0}}}};
    const struct row sum = {
        .id = FRIT_OP_add,
        .n_in = 2,
        .tensor = {{2, 0, {4, 8}, {0}}, {2, 0, {4, 8}, {0}}, {2, 0, {4, 8}, {0}}}};
    const struct row *const rows[] = {&whole, &sum};
    struct op_program p;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(product_make(library, rows[i], &p), FRIT_OK);
        assert_int_equal(product_candidate(&p.program), UINT32_MAX);
        rig_destroy(&p.program);
    }
}

static void test_priority(void **state)
{
    struct op_program p;
    uint32_t library;

    assert_int_equal(product_make(*state, &dense, &p), FRIT_OK);
    library = product_candidate(&p.program);
    assert_true(library > 0);
    for (uint32_t i = 0; i < library; i++)
        assert_true(p.program.table->priority(p.program.self, i, &p.sig.sig) <
                    p.program.table->priority(p.program.self, library, &p.sig.sig));
    rig_destroy(&p.program);
}

/* ---- plans ---- */

/* What the library leaves to kernels is prepared as the first schedule's kernel; other errors of it
 * are errors. */
static void test_refusals(void **state)
{
    struct library *library = *state;
    struct op_program p;
    uint32_t candidate;

    assert_int_equal(product_make(library, &dense, &p), FRIT_OK);
    candidate = product_candidate(&p.program);
    library->refusal = FRIT_UNSUPPORTED;
    assert_int_equal(product_prepare(&p, candidate), FRIT_OK);
    product_launch(&p, NULL);
    assert_null(p.kernel.product);
    assert_non_null(p.kernel.code);
    p.program.table->spec_release(p.program.self, &p.spec);
    library->refusal = FRIT_INTERNAL;
    assert_int_equal(product_prepare(&p, candidate), FRIT_INTERNAL);
    library->refusal = FRIT_OK;
    assert_int_equal(product_prepare(&p, candidate), FRIT_OK);
    product_launch(&p, NULL);
    assert_non_null(p.kernel.product);
    rig_destroy(&p.program);
    assert_int_equal(library->n_plans, 1);
}

/* A plan lives as long as the last spec that has it. */
static void test_specs(void **state)
{
    struct library *library = *state;
    struct op_program p;
    frit_launch_spec first;
    uint32_t candidate;

    assert_int_equal(product_make(library, &dense, &p), FRIT_OK);
    candidate = product_candidate(&p.program);
    assert_int_equal(product_prepare(&p, candidate), FRIT_OK);
    first = p.spec;
    assert_int_equal(product_prepare(&p, candidate), FRIT_OK);
    assert_int_equal(library->n_plans, 1);
    p.program.table->spec_release(p.program.self, &first);
    assert_int_equal(library->n_released, 0);
    p.program.table->spec_release(p.program.self, &p.spec);
    assert_int_equal(library->n_released, 1);
    assert_int_equal(product_prepare(&p, candidate), FRIT_OK);
    assert_int_equal(library->n_plans, 2);
    rig_destroy(&p.program); /* with a spec that was not released */
    assert_int_equal(library->n_released, 2);
}

/* The variant of a product depends on its numbers only. */
static void test_variants(void **state)
{
    const struct row *const rows[] = {&dense, &with_gaps};
    struct op_program p, other;

    assert_int_equal(product_make(*state, &dense, &p), FRIT_OK);
    assert_int_equal(product_prepare(&p, product_candidate(&p.program)), FRIT_OK);
    assert_int_equal(p.program.table->compile(p.program.self, 0, &p.variant, NULL, NULL), FRIT_OK);
    assert_int_equal(p.program.table->generation(p.program.self, 0, &p.variant), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(product_make(*state, rows[i], &other), FRIT_OK);
        assert_int_equal(product_prepare(&other, product_candidate(&other.program)), FRIT_OK);
        assert_int_equal(
            memcmp(p.variant.bytes, other.variant.bytes, (size_t)p.variant.n_bytes) == 0, i == 0);
        rig_destroy(&other.program);
    }
    rig_destroy(&p.program);
}

/* And on the library's algorithm. */
static void test_algorithms(void **state)
{
    struct library *library = *state;
    struct op_program p[2];

    for (uint32_t i = 0; i < 2; i++) {
        library->algorithm = 7 + i;
        assert_int_equal(product_make(library, &dense, &p[i]), FRIT_OK);
        assert_int_equal(product_prepare(&p[i], product_candidate(&p[i].program)), FRIT_OK);
    }
    assert_memory_not_equal(p[0].variant.bytes, p[1].variant.bytes, p[0].variant.n_bytes);
    for (uint32_t i = 0; i < 2; i++)
        rig_destroy(&p[i].program);
}

/* ---- reduced products ---- */

/* A candidate of its own, preferred to the exact one, whose variants are never the exact one's. */
static void test_reduced(void **state)
{
    struct library *library = *state;
    uint32_t exact, reduced;
    frit_variant variant;
    struct op_program p;

    library->rig.device.reduced_library = REDUCED_LIBRARY;
    assert_int_equal(product_make(library, &dense, &p), FRIT_OK);
    exact = product_candidate(&p.program);
    reduced = product_reduced_candidate(&p.program);
    assert_int_not_equal(reduced, UINT32_MAX);
    assert_true(p.program.table->priority(p.program.self, reduced, &p.sig.sig) >
                p.program.table->priority(p.program.self, exact, &p.sig.sig));
    assert_int_equal(product_prepare(&p, exact), FRIT_OK);
    product_launch(&p, NULL);
    assert_false(p.kernel.product->product.is_reduced);
    variant = p.variant;
    assert_int_equal(product_prepare(&p, reduced), FRIT_OK);
    product_launch(&p, NULL);
    assert_true(p.kernel.product->product.is_reduced);
    assert_int_equal(library->n_plans, 2);
    assert_memory_not_equal(variant.bytes, p.variant.bytes, variant.n_bytes);
    rig_destroy(&p.program);
}

/* Where the library does not reduce a product it computes the exact one. */
static void test_reduced_refusals(void **state)
{
    static const frit_status refusals[] = {FRIT_UNSUPPORTED, FRIT_INTERNAL};
    struct library *library = *state;
    struct op_program p;

    library->rig.device.reduced_library = REDUCED_LIBRARY;
    for (int i = 0; i < 2; i++) {
        library->reduced_refusal = refusals[i];
        assert_int_equal(product_make(library, &dense, &p), FRIT_OK);
        assert_int_equal(product_prepare(&p, product_reduced_candidate(&p.program)),
                         i ? FRIT_INTERNAL : FRIT_OK);
        if (!i) {
            product_launch(&p, NULL);
            assert_non_null(p.kernel.product);
            assert_false(p.kernel.product->product.is_reduced);
        }
        rig_destroy(&p.program);
    }
}

/* Only operands of f32 can be reduced. */
static void test_reduced_dtypes(void **state)
{
    static const uint32_t dtypes[] = {FRIT_F64, FRIT_BF16, FRIT_F16, FRIT_F32};
    struct library *library = *state;

    library->rig.device.reduced_library = REDUCED_LIBRARY;
    for (int i = 0; i < 4; i++) {
        struct row row = dense;
        struct op_program p;

        for (int k = 0; k < 3; k++)
            row.tensor[k].dtype = dtypes[i];
        assert_int_equal(product_make(library, &row, &p), FRIT_OK);
        assert_int_not_equal(product_candidate(&p.program), UINT32_MAX);
        assert_int_equal(product_reduced_candidate(&p.program) != UINT32_MAX,
                         dtypes[i] == FRIT_F32);
        rig_destroy(&p.program);
    }
}

static void test_no_memory(void **state)
{
    struct library *library = *state;
    bool hit = true;
    long n = 0;

    for (; hit; n++) {
        struct op_program p;
        frit_status st;

        assert_int_equal(product_make(library, &with_bias, &p), FRIT_OK);
        failing_alloc_arm(n);
        st = product_prepare(&p, product_candidate(&p.program));
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        rig_destroy(&p.program);
        assert_int_equal(library->n_plans, library->n_released);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_view_in_the_block, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_casts_in_the_block, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_fused, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_without_a_library, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_other_programs, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_priority, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_specs, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_variants, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_algorithms, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_reduced, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_reduced_refusals, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_reduced_dtypes, product_setup, product_teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, product_setup, product_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
