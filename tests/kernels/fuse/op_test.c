/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops, whose arguments keep the places of the row's operands. */
#include "kernels/fuse/rig.h"

#include <string.h>

#include "kernels/fuse/toy.h"

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    toy_exact = false;
    rig_init(rig);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    rig_fini(*state);
    free(*state);
    return 0;
}

static frit_program program_of(struct rig *rig, const frit_op_desc *op)
{
    frit_program program = {.struct_size = sizeof(program)};

    assert_true(rig_has_op(&rig->device, op));
    assert_int_equal(kernels_op(&rig->device, op, &program, NULL), FRIT_OK);
    assert_true(kernels_owns(&program));
    return program;
}

static void mark_absent(struct rig_sig *sig, uint32_t place)
{
    sig->args[place] = (frit_arg_sig){0};
}

/* s + x: the scalar keeps place 0. */
static void test_scalars_keep_places(void **state)
{
    struct rig *rig = *state;
    const int64_t dims[] = {6};
    float x[6] = {0, 1, 2, 3, 4, 5}, out[6];
    const double scalar = 1.5;
    struct rig_ops ops = {0};
    struct rig_launch launch;
    frit_launch_spec spec;
    frit_variant variant;
    frit_program program;
    struct rig_sig sig;

    rig_binary(&ops, FRIT_OP_add, rig_scalar(0), rig_tensor(0, 1), rig_tensor(1, 1), NULL);
    program = program_of(rig, &ops.op[0]);
    rig_signature(&sig, 2, 1, 1, 1, dims);
    mark_absent(&sig, 0);
    rig_prepare(&program, &sig, &spec, &variant);
    assert_int_equal(rig_aliases(&spec, 0), 1u << 1);
    rig_bind(&launch, &program, &spec, (float *[]){NULL, x, out}, 3, 6, &scalar, 1);
    rig_run(&launch);
    for (int i = 0; i < 6; i++)
        assert_float_equal(out[i], x[i] + 1.5f, 0);
    rig_destroy(&program);
}

/* x * x as one value: both operands are arguments, one of them is read. */
static void test_same_value_twice(void **state)
{
    struct rig *rig = *state;
    const int64_t dims[] = {6};
    float x[6] = {0, 1, 2, 3, 4, 5}, out[6];
    struct rig_ops ops = {0};
    struct rig_launch launch;
    frit_launch_spec spec;
    frit_variant variant;
    frit_program program;
    struct rig_sig sig;

    rig_binary(&ops, FRIT_OP_mul, rig_tensor(3, 1), rig_tensor(3, 1), rig_tensor(4, 1),
               RIG_DEAD(3, 4));
    program = program_of(rig, &ops.op[0]);
    rig_signature(&sig, 2, 1, 0, 1, dims);
    rig_prepare(&program, &sig, &spec, &variant);
    rig_bind(&launch, &program, &spec, (float *[]){x, x, out}, 3, 6, NULL, 0);
    rig_run(&launch);
    for (int i = 0; i < 6; i++)
        assert_float_equal(out[i], x[i] * x[i], 0);
    rig_destroy(&program);
}

static void test_describes_itself_by_the_row(void **state)
{
    struct rig *rig = *state;
    frit_program_info info = {.struct_size = sizeof(info)};
    struct rig_ops ops = {0};
    frit_program program;

    rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 2), rig_tensor(1, 2), NULL);
    program = program_of(rig, &ops.op[0]);
    assert_int_equal(program.table->describe(program.self, &info, NULL), FRIT_OK);
    assert_int_equal(info.n_ops, 1);
    assert_int_equal(info.n_candidates, 1);
    assert_int_equal(info.name.len, 3);
    assert_memory_equal(info.name.ptr, "neg", 3);
    assert_null(program.table->to_state);
    rig_destroy(&program);
}

static void test_refuses_what_no_schedule_takes(void **state)
{
    struct rig *rig = *state;
    frit_program program = {.struct_size = sizeof(program)};
    frit_err err = {.struct_size = sizeof(err)};
    struct rig_ops ops = {0};

    rig_unary(&ops, FRIT_OP_sqrt, rig_tensor(0, 2), rig_tensor(1, 2), NULL);
    assert_false(rig_has_op(&rig->device, &ops.op[0]));
    assert_int_equal(kernels_op(&rig->device, &ops.op[0], &program, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "sqrt"));
    ops.op[0].id = FRIT_OP_neg;
    assert_true(rig_has_op(&rig->device, &ops.op[0]));
    ops.op[0].rev = 2;
    assert_false(rig_has_op(&rig->device, &ops.op[0]));
    assert_int_equal(kernels_op(&rig->device, &ops.op[0], &program, NULL), FRIT_UNSUPPORTED);
    ops.op[0].id = FRIT_OP_CUSTOM;
    assert_int_equal(kernels_op(&rig->device, &ops.op[0], &program, NULL), FRIT_UNSUPPORTED);
    assert_null(program.table);
}

static void test_types_of_the_device(void **state)
{
    struct rig *rig = *state;
    frit_program program = {.struct_size = sizeof(program)};
    struct rig_ops ops = {0};
    uint64_t bits[2];

    for (uint32_t i = 0; i < 3; i++)
        rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 1), rig_tensor(1, 1), NULL);
    rig_unary(&ops, FRIT_OP_sqrt, rig_tensor(0, 1), rig_tensor(1, 1), NULL);
    ops.operand[1][0].dtype = ops.operand[1][1].dtype = FRIT_F64;
    ops.operand[2][0].dtype = ops.operand[2][1].dtype = FRIT_U64;
    bits[0] = bits[1] = UINT64_MAX;
    assert_int_equal(kernels_supports(&rig->device, ops.op, 4, sizeof(*ops.op), bits, NULL),
                     FRIT_OK);
    assert_int_equal(bits[0], 7);
    assert_true(bits[1] == UINT64_MAX);
    rig->device.target.f64 = false;
    assert_int_equal(kernels_supports(&rig->device, ops.op, 4, sizeof(*ops.op), bits, NULL),
                     FRIT_OK);
    assert_int_equal(bits[0], 5);
    assert_int_equal(kernels_op(&rig->device, &ops.op[1], &program, NULL), FRIT_UNSUPPORTED);
    rig->device.target.f64 = true;
    rig->device.target.i64 = false;
    assert_int_equal(kernels_supports(&rig->device, ops.op, 4, sizeof(*ops.op), bits, NULL),
                     FRIT_OK);
    assert_int_equal(bits[0], 3);
    assert_int_equal(kernels_op(&rig->device, &ops.op[2], &program, NULL), FRIT_UNSUPPORTED);
    ops.op[0].n_extra = 2;
    assert_int_equal(kernels_supports(&rig->device, ops.op, 4, sizeof(*ops.op), bits, NULL),
                     FRIT_OK);
    assert_int_equal(bits[0], 2);
    assert_null(program.table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scalars_keep_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_value_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_describes_itself_by_the_row, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_what_no_schedule_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_types_of_the_device, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
