/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: numbering, deaths, cutting, bytes, extents, no memory. */
#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "kernels/lower/rig.h"
#include "lower/block/block.h"
#include "unit.h"

static const int64_t matrix[] = {6, 4}, row[] = {4}, wide[] = {1, 4};

/* y = a + b; z = y * 0.5, y forgotten; m = max(z); u = uniform. */
struct values {
    uint32_t a, b, y, z, m, u;
};

static const frit_attrs_reduce over_rows = {
    .struct_size = sizeof(over_rows), .axes = {1, {0}}, .keep = 1};
static const frit_attrs_init as_f32 = {.struct_size = sizeof(as_f32), .dtype = FRIT_F32};

/* With this many values before them. */
static struct values make_behind(struct rig *rig, uint32_t n)
{
    struct values v;

    rig_init(rig);
    while (n-- > 0)
        rig_input(rig, FRIT_F32, 1, row);
    v.a = rig_input(rig, FRIT_F32, 2, matrix);
    v.b = rig_input(rig, FRIT_F32, 1, row);
    v.y = rig_op(rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(v.a), rig_value(v.b)}, NULL,
                 FRIT_F32, 2, matrix);
    v.z = rig_op(rig, FRIT_OP_mul, 2, (struct rig_in[]){rig_value(v.y), rig_real(FRIT_F32, 0.5)},
                 NULL, FRIT_F32, 2, matrix);
    v.m = rig_op(rig, FRIT_OP_max, 1, (struct rig_in[]){rig_value(v.z)}, &over_rows, FRIT_F32, 2,
                 wide);
    v.u = rig_op(rig, FRIT_OP_random_uniform, 2,
                 (struct rig_in[]){rig_real(FRIT_F32, 0), rig_real(FRIT_F32, 1)}, &as_f32, FRIT_F32,
                 2, matrix);
    rig_keep(rig, v.z);
    rig_push(rig);
    return v;
}

static struct values make(struct rig *rig)
{
    return make_behind(rig, 0);
}

static void check_closed(const struct block *block)
{
    assert_int_equal(block->n_ops, 4);
    assert_int_equal(block->n_values, 6);
    assert_int_equal(block->n_inputs, 2);
    assert_int_equal(block->inputs[0], 0);
    assert_int_equal(block->inputs[1], 1);
    assert_int_equal(block->n_outputs, 3); /* z, m, u; y died */
    assert_int_equal(block->outputs[0], 3);
    assert_int_equal(block->outputs[1], 4);
    assert_int_equal(block->outputs[2], 5);
    assert_int_equal(block->values[2].dies, 1);
    assert_int_equal(block->values[3].dies, BLOCK_NONE);
    assert_int_equal(block->values[2].maker, 0);
    assert_int_equal(block->values[0].maker, BLOCK_NONE);
    assert_int_equal(block->values[3].n_uses, 1);
    assert_int_equal(block->n_extents, 2);
    assert_int_equal(block->values[4].extent[0], 1);
    assert_int_equal(block->values[4].extent[1], block->values[1].extent[0]);
    assert_int_equal(block->n_scalars, 1 + 4);
    assert_int_equal(block->ops[1].in[1].kind, FRIT_OPERAND_SCALAR);
    assert_int_equal(block->ops[1].in[1].scalar, 0);
    assert_int_equal(block->ops[3].first_scalar, 1);
    assert_int_equal(block->ops[3].n_scalars, 4);
    assert_int_equal(block->ops[3].n_extra, 2);
    assert_int_equal(((const frit_attrs_reduce *)block->ops[2].attrs)->keep, 1);
    assert_int_equal(((const frit_attrs_reduce *)block->ops[2].attrs)->axes.axis[0], 0);
}

static void test_numbers(void **state)
{
    struct rig rig;

    (void)state;
    make(&rig);
    assert_int_equal(block_close(&rig.block, 4, NULL), FRIT_OK);
    check_closed(&rig.block);
    rig_fini(&rig);
}

static void test_cut(void **state)
{
    const struct block *block;
    struct rig rig;

    (void)state;
    make(&rig);
    block = &rig.block;
    assert_int_equal(block_close(&rig.block, 1, NULL), FRIT_OK);
    assert_int_equal(block->n_ops, 1);
    assert_int_equal(block->n_values, 3);
    assert_int_equal(block->n_outputs, 1); /* y lives: what forgets it is cut off */
    assert_int_equal(block->outputs[0], 2);
    assert_int_equal(block->values[2].n_uses, 0);
    assert_int_equal(block->n_scalars, 0);
    assert_int_equal(block->n_extents, 2);
    block_reset(&rig.block);
    assert_int_equal(block->n_ops + block->n_values + block->n_extents + block->n_scalars, 0);
    rig_fini(&rig);
}

/* A block of new extents after the cut forgets them. */
static void test_cut_extents(void **state)
{
    const int64_t other[] = {7};
    struct rig rig;
    uint32_t a, b;

    (void)state;
    rig_init(&rig);
    a = rig_input(&rig, FRIT_F32, 1, row);
    b = rig_input(&rig, FRIT_F32, 1, other);
    rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(a)}, NULL, FRIT_F32, 1, row);
    rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(b)}, NULL, FRIT_F32, 1, other);
    rig_push(&rig);
    assert_int_equal(rig.block.n_extents, 2);
    assert_int_equal(block_close(&rig.block, 1, NULL), FRIT_OK);
    assert_int_equal(rig.block.n_extents, 1);
    rig_fini(&rig);
}

static void test_copy(void **state)
{
    struct block copy;
    struct rig rig;

    (void)state;
    make(&rig);
    assert_int_equal(block_copy(&rig.block, &copy, NULL), FRIT_OK);
    block_reset(&rig.block);
    assert_int_equal(block_close(&copy, 4, NULL), FRIT_OK);
    check_closed(&copy);
    block_fini(&copy);
    rig_fini(&rig);
}

/* The bytes of the first `n_ops` ops; the caller frees them. */
static struct str bytes_of(struct rig *rig, uint32_t n_ops)
{
    struct str bytes = {0};

    assert_int_equal(block_close(&rig->block, n_ops, NULL), FRIT_OK);
    block_write(&rig->block, &bytes);
    assert_false(bytes.failed);
    rig_fini(rig);
    return bytes;
}

static bool bytes_equal(const struct str *a, const struct str *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* Equal for equal ops, whatever numbers the host gives values and extents. */
static void test_bytes(void **state)
{
    struct str bytes, again, shorter, kept;
    struct values v;
    struct rig rig;

    (void)state;
    make(&rig);
    bytes = bytes_of(&rig, 4);
    make_behind(&rig, 3);
    again = bytes_of(&rig, 4);
    make(&rig);
    shorter = bytes_of(&rig, 3);
    v = make(&rig);
    rig_keep(&rig, v.y);
    rig_push(&rig);
    kept = bytes_of(&rig, 4);
    assert_true(bytes_equal(&bytes, &again));
    assert_false(bytes_equal(&bytes, &shorter));
    assert_false(bytes_equal(&bytes, &kept));
    str_fini(&bytes);
    str_fini(&again);
    str_fini(&shorter);
    str_fini(&kept);
}

static void test_extents(void **state)
{
    frit_arg_sig args[5] = {{.dtype = FRIT_F32, .rank = 2, .dims = {9, 5}},
                            {.dtype = FRIT_F32, .rank = 1, .dims = {5}},
                            {.dtype = FRIT_F32, .rank = 2, .dims = {9, 5}},
                            {.dtype = FRIT_F32, .rank = 2, .dims = {1, 5}},
                            {.dtype = FRIT_F32, .rank = 2, .dims = {9, 5}}};
    frit_signature sig = {.n_in = 2, .n_out = 3, .arg_stride = sizeof(args[0]), .args = args};
    int64_t extents[4];
    struct rig rig;

    (void)state;
    make(&rig);
    assert_int_equal(block_close(&rig.block, 4, NULL), FRIT_OK);
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_OK);
    assert_int_equal(extents[0], 0);
    assert_int_equal(extents[1], 1);
    assert_int_equal(extents[2], 9);
    assert_int_equal(extents[3], 5);
    args[1].dims[0] = 4;
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_INVALID);
    args[1].dims[0] = 5;
    args[3].dims[0] = 2;
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_INVALID);
    args[3].dims[0] = 1;
    args[4].dtype = FRIT_I32;
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_INVALID);
    args[4].dtype = FRIT_F32;
    sig.n_out = 2;
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_INVALID);
    rig_fini(&rig);
}

/* y = reshape(x); z = y + y; x and y forgotten: nobody says how y is split. */
static void test_unknown_extent(void **state)
{
    const int64_t line[] = {24}, split[] = {8, 3};
    frit_arg_sig args[2] = {{.dtype = FRIT_F32, .rank = 1, .dims = {24}},
                            {.dtype = FRIT_F32, .rank = 1, .dims = {24}}};
    frit_signature sig = {.n_in = 1, .n_out = 1, .arg_stride = sizeof(args[0]), .args = args};
    int64_t extents[5];
    struct rig rig;
    uint32_t x, y, z;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 1, line);
    y = rig_op(&rig, FRIT_OP_reshape, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 2, split);
    z = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, split);
    z = rig_op(&rig, FRIT_OP_reshape, 1, (struct rig_in[]){rig_value(z)}, NULL, FRIT_F32, 1, line);
    rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(z)}, NULL, FRIT_F32, 1, line);
    assert_int_equal(rig_try(&rig, &sched_map), FRIT_UNSUPPORTED);
    rig_push(&rig);
    assert_int_equal(block_close(&rig.block, 4, NULL), FRIT_OK);
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_UNSUPPORTED);
    rig_fini(&rig);
}

/* y = neg(reshape(z, [2, 6, 4]))[transposed] back to a line of z [.., 6 * 4]: only the last dim of
 * the reshape is in no argument, and follows. */
static void test_solved_extent(void **state)
{
    const int64_t line[] = {5, 24}, split[] = {5, 6, 4}, turned[] = {5, 4, 6};
    const frit_attrs_swap swap = {.struct_size = sizeof(swap), .axis = 1, .with = 2};
    frit_arg_sig args[3] = {{.dtype = FRIT_F32, .rank = 2, .dims = {5, 24}},
                            {.dtype = FRIT_F32, .rank = 1, .dims = {6}},
                            {.dtype = FRIT_F32, .rank = 2, .dims = {5, 24}}};
    frit_signature sig = {.n_in = 2, .n_out = 1, .arg_stride = sizeof(args[0]), .args = args};
    int64_t extents[8];
    struct rig rig;
    uint32_t x, w, y;

    (void)state;
    rig_init(&rig);
    x = rig_input(&rig, FRIT_F32, 2, line);
    w = rig_input(&rig, FRIT_F32, 1, split + 1);
    y = rig_op(&rig, FRIT_OP_reshape, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_F32, 3, split);
    y = rig_op(&rig, FRIT_OP_transpose, 1, (struct rig_in[]){rig_value(y)}, &swap, FRIT_F32, 3,
               turned);
    y = rig_op(&rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(y), rig_value(w)}, NULL, FRIT_F32,
               3, turned);
    y = rig_op(&rig, FRIT_OP_reshape, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, line);
    rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(y)}, NULL, FRIT_F32, 2, line);
    rig_run(&rig, &sched_map);
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_OK);
    assert_int_equal(extents[rig.block.values[1].extent[2]], 4);
    args[0].dims[1] = args[2].dims[1] = 25;
    assert_int_equal(block_extents(&rig.block, &sig, extents, NULL), FRIT_INVALID);
    rig_fini(&rig);
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
    frit_operand in[2] = {{.kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .rank = 0},
                          {.kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .rank = 0, .value = 1}};
    frit_operand out = {.kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .rank = 0, .value = 2};
    const frit_op_desc good = {.struct_size = sizeof(good),
                               .id = FRIT_OP_add,
                               .rev = 1,
                               .n_in = 2,
                               .n_out = 1,
                               .operand_stride = sizeof(out),
                               .in = in,
                               .out = &out};
    struct block block;

    (void)state;
    block_init(&block);
    for (uint32_t i = 0; i < 8; i++) {
        frit_op_desc op = good;

        in[1].dtype = i == 0 ? (uint32_t)FRIT_Q8 : FRIT_F32;
        in[1].rank = i == 1 ? FRIT_MAX_RANK + 1 : 0;
        in[1].kind = i == 2 ? FRIT_OPERAND_SCALAR + 1 : FRIT_OPERAND_TENSOR;
        out.kind = i == 7 ? FRIT_OPERAND_ABSENT : FRIT_OPERAND_TENSOR;
        op.rev = i == 3 ? 99 : 1;
        op.id = i == 4 ? FRIT_OP_CUSTOM : FRIT_OP_add;
        op.n_in = i == 5 ? 1 : 2;
        op.flags = i == 6 ? FRIT_MUST_UNDERSTAND : 0;
        assert_int_equal(block_push(&block, &op, NULL), FRIT_UNSUPPORTED);
        assert_int_equal(block.n_ops + block.n_values, 0);
    }
    out.kind = FRIT_OPERAND_TENSOR;
    assert_int_equal(block_push(&block, &good, NULL), FRIT_OK);
    block_fini(&block);
}

/* ---- out of memory ---- */

static frit_status everything(struct block *from)
{
    struct block copy;
    struct str bytes = {0};
    frit_status status = block_copy(from, &copy, NULL);

    if (status)
        return status;
    status = block_close(&copy, 4, NULL);
    if (!status) {
        check_closed(&copy);
        block_write(&copy, &bytes);
        status = bytes.failed ? FRIT_NO_HOST_MEMORY : FRIT_OK;
        str_fini(&bytes);
    }
    block_fini(&copy);
    return status;
}

static void test_no_memory(void **state)
{
    struct rig rig;
    uint32_t failed = 0;
    bool hit = true;

    (void)state;
    make(&rig);
    for (long n = 0; hit; n++) {
        frit_status status;

        failing_alloc_arm(n);
        status = everything(&rig.block);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        failed += hit;
    }
    assert_true(failed > 5);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_extents),    cmocka_unit_test(test_copy),
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_extents),
        cmocka_unit_test(test_unknown_extent), cmocka_unit_test(test_solved_extent),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
