/* SPDX-License-Identifier: Apache-2.0 */
/* What the kit makes of a driver's tables, through the tables of the contract. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "steps.h"

static int open_rig(void **state)
{
    memset(&seen, 0, sizeof seen);
    return steps_open(state);
}

/* ---- instance and devices ---- */

static void devices_are_the_table(void **state)
{
    struct rig *rig = *state;
    frit_device_info info[2] = {{.struct_size = sizeof *info}, {.struct_size = sizeof *info}};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;
    void *none;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, info, sizeof *info, 2, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 2);
    assert_int_equal(driver.reason, 0);
    assert_int_equal(info[1].index, 1);
    assert_int_equal(info[1].type, FRIT_DEVICE_INTEGRATED);
    assert_true(plug_is(info[0].fingerprint, FRIT_STR("7")));
    assert_true(plug_is(info[1].fingerprint, FRIT_STR("its own")));
    assert_int_equal(info[0].caps, FRIT_CAP_INLINE_QUEUE | FRIT_CAP_HOST_VISIBLE);
    assert_int_equal(info[0].dtype_use[FRIT_F32], FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
    assert_int_equal(info[0].dtype_use[FRIT_Q4], FRIT_DTYPE_STORAGE);
    assert_int_equal(info[0].n_heaps, 1);
    assert_int_equal(info[0].heaps->kind, FRIT_HEAP_DEVICE);
    assert_true(info[0].heaps->bytes > 0);
    assert_int_equal(rig->backend->device_open(rig->instance, 2, &rig_params, &none, &rig->err),
                     FRIT_INVALID);
    assert_non_null(strstr(rig->err.text, "noting: there is no device 2"));
    info[0].struct_size = 8;
    assert_int_equal(
        rig->backend->enumerate(rig->instance, info, sizeof *info, 1, &count, &driver, &rig->err),
        FRIT_INCOMPATIBLE);
}

/* A driver's mistake, a refused option, and each allocation of opening, leave nothing behind. */
static void what_cannot_open_is_reported(void **state)
{
    static const struct kit_row row = {FRIT_OP_add, 1, KIT_COMPILED, NULL, NULL};
    const struct kit_driver driver = {.name = FRIT_STR_INIT("lacking"), .rows = &row, .n_rows = 1};
    struct rig rig = {0};
    void *none;

    (void)state;
    assert_int_equal(rig_load(&rig), FRIT_OK);
    assert_int_equal(kit_open(&driver, &rig.root, &none, &rig.err), FRIT_INTERNAL);
    assert_string_equal(rig.err.text,
                        "lacking: KIT_COMPILED without a compiler in the struct kit_driver");
    rig.plugin->close(rig.instance);
    assert_int_equal(rig.live, 0);
    rig = (struct rig){.memory_bytes = -1};
    assert_int_equal(rig_load(&rig), FRIT_INVALID);
    assert_string_equal(rig.err.text, "noting: memory_bytes is below 0");
    assert_int_equal(rig.live, 0);
    rig = (struct rig){.refuse = 1};
    assert_int_equal(rig_load(&rig), FRIT_NO_HOST_MEMORY);
    assert_int_equal(rig.live, 0);
}

/* ---- rows ---- */

static bool supported(struct rig *rig, const frit_op_desc *op)
{
    uint64_t bits = 0;

    assert_int_equal(rig->backend->supports(rig->device, op, 1, sizeof *op, &bits, &rig->err),
                     FRIT_OK);
    return bits & 1;
}

static void rows_are_taken_as_they_are(void **state)
{
    struct rig *rig = *state;
    frit_program program = {.struct_size = sizeof program};
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    assert_true(supported(rig, &op.desc));
    op.in[1].dtype = FRIT_F64;
    assert_false(supported(rig, &op.desc));
    op.in[1].dtype = 77;
    assert_false(supported(rig, &op.desc));
    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    op.desc.rev++;
    assert_false(supported(rig, &op.desc));
    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    op.desc.flags = 1ull << 50;
    assert_false(supported(rig, &op.desc));
    op_of(&op, FRIT_OP_cat, 1, 2, 3, 0); /* of any number of tensors */
    assert_false(supported(rig, &op.desc));
    op_of(&op, FRIT_OP_sub, 1, 2, 3, 0);
    assert_false(supported(rig, &op.desc));
    assert_int_equal(rig->backend->op_program(rig->device, &op.desc, &program, &rig->err),
                     FRIT_UNSUPPORTED);
    assert_non_null(strstr(rig->err.text, "sub"));
}

/* ---- programs ---- */

static void results_take_the_memory_of_what_lies_alike(void **state)
{
    struct rig *rig = *state;
    frit_arg_sig args[3] = {sig_of(4, 5, false), sig_of(4, 5, true), sig_of(4, 5, false)};
    frit_launch_spec spec;
    frit_variant variant;
    frit_program program;
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    program = program_for(rig, &op);
    assert_int_equal(prepare(rig, &program, args, 2, &spec, &variant), FRIT_OK);
    assert_int_equal(rig_aliases(&spec, 0), 1);
    program.table->spec_release(program.self, &spec);
    args[0] = sig_of(1, 5, false); /* stretched */
    args[1] = sig_of(4, 5, false);
    assert_int_equal(prepare(rig, &program, args, 2, &spec, &variant), FRIT_OK);
    assert_int_equal(rig_aliases(&spec, 0), 2);
    assert_int_equal(prepare(rig, &program, args, 1, &spec, &variant), FRIT_INVALID);
    assert_non_null(strstr(rig->err.text, "add has candidates up to 0, 2 inputs, 1 outputs"));
    program.table->destroy(program.self);
    op_of(&op, FRIT_OP_exp, 1, 0, 3, 0);
    program = program_for(rig, &op);
    assert_int_equal(prepare(rig, &program, args + 1, 1, &spec, &variant), FRIT_OK);
    assert_int_equal(rig_aliases(&spec, 0), 0); /* its row does not say so */
    program.table->destroy(program.self);
}

/* This driver has no row `copy`; the template has one, and its tests cover dense operands. */
static void dense_operands_want_a_copy(void **state)
{
    struct rig *rig = *state;
    frit_arg_sig args[3] = {sig_of(4, 4, false), sig_of(4, 4, true), sig_of(4, 4, false)};
    frit_launch_spec spec;
    frit_variant variant;
    frit_program program;
    struct op op;

    op_of(&op, FRIT_OP_matmul, 1, 2, 3, 0);
    program = program_for(rig, &op);
    assert_int_equal(prepare(rig, &program, args, 2, &spec, &variant), FRIT_UNSUPPORTED);
    assert_non_null(strstr(rig->err.text, "no row `copy`"));
    args[1] = sig_of(4, 4, false);
    assert_int_equal(prepare(rig, &program, args, 2, &spec, &variant), FRIT_OK);
    program.table->destroy(program.self);
}

/* ---- launches ---- */

static void launches_bring_what_the_op_has(void **state)
{
    struct rig *rig = *state;
    frit_failure failure;
    frit_program program;
    struct launch l;
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 0, 3, 0); /* x + scalar */
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 3);
    l.args[1] = (frit_arg){0};
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_INVALID);
    assert_non_null(strstr(rig->err.text, "add takes 1 scalars, not 0"));
    l.launch.n_scalars = 1;
    set_scalar(&l, 0, 2.5);
    l.launch.n_args = 2;
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_INVALID);
    assert_int_equal(seen.n_launches, 0);
    l.launch.n_args = 3;
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    assert_true(seen.scalars[0] == 2.5);
    assert_int_equal(seen.elements, 6);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);

    op_of(&op, FRIT_OP_clamp, 1, 0, 3, 0);
    op.in[2] = op.in[1];
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 4);
    l.args[1] = l.args[2] = (frit_arg){0};
    l.launch.n_scalars = 2;
    set_scalar(&l, 0, -1);
    set_scalar(&l, 1, 1);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_true(seen.scalars[0] == -1 && seen.last == 1);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);

    op_of(&op, FRIT_OP_slice_assign, 1, 2, 3, 0); /* its slices come as 3 x 2 bounds */
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 3);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_INVALID);
    assert_non_null(strstr(rig->err.text, "slice_assign takes 6 bounds, not 0"));
    l.launch.n_bounds = 6;
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);

    op_of(&op, FRIT_OP_layer_norm, 1, 2, 3, 0); /* eps is a scalar of the launch */
    op.in[2] = (frit_operand){.kind = FRIT_OPERAND_ABSENT};
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 4);
    l.args[2] = (frit_arg){0};
    l.launch.n_scalars = 1;
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_int_equal(seen.n_args, 4);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

static void a_row_that_fails_is_reported_by_wait(void **state)
{
    struct rig *rig = *state;
    frit_failure failure;
    frit_program program;
    struct launch l;
    struct op op;

    op_of(&op, FRIT_OP_neg, 1, 0, 3, 0);
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 2);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_int_equal(failure.status, FRIT_IO);
    assert_int_equal(failure.cookie, 9);
    assert_string_equal(rig->err.text, "noting: the row that fails");
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* A driver that says nothing of variants has one code for all signatures of a program. */
static void code_comes_with_the_launch(void **state)
{
    struct rig *rig = *state;
    frit_arg_sig args[3] = {sig_of(4, 5, true), sig_of(4, 5, false), sig_of(4, 5, false)};
    frit_launch_spec spec;
    frit_failure failure;
    frit_program program;
    frit_variant variant;
    struct launch l;
    struct op op;

    op_of(&op, FRIT_OP_maximum, 1, 2, 3, 0);
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 3);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_INVALID);
    assert_string_equal(rig->err.text, "noting: maximum is launched before it is compiled");
    assert_int_equal(prepare(rig, &program, args, 2, &spec, &variant), FRIT_PREPARE_NEEDS_COMPILE);
    assert_int_equal(rig_aliases(&spec, 0), 2); /* as if it were ready */
    assert_int_equal(program.table->compile(program.self, 1, &variant, NULL, &rig->err),
                     FRIT_INVALID);
    assert_int_equal(program.table->compile(program.self, 0, &variant, NULL, &rig->err), FRIT_OK);
    args[0] = sig_of(4, 5, false);
    assert_int_equal(prepare(rig, &program, args, 2, &spec, &variant), FRIT_OK);
    assert_int_equal(rig_aliases(&spec, 0), 3);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_ptr_equal(seen.code, kit_program_of(&l.launch)->block);
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* ---- scalars ---- */

static void scalars_are_exact(void **state)
{
    static const struct {
        uint32_t kind;
        uint64_t bits;
        double real;
        int64_t whole;
        uint64_t natural;
    } cases[] = {
        {FRIT_SCALAR_I64, 1, 1, 1, 1}, /* of bool too */
        {FRIT_SCALAR_I64, (uint64_t)-7, -7, -7, 0},
        {FRIT_SCALAR_I64, INT64_MAX, 0x1p63, INT64_MAX, INT64_MAX},
        {FRIT_SCALAR_I64, (1ull << 62) + 1, 0x1p62, (1ll << 62) + 1, (1ull << 62) + 1},
        {FRIT_SCALAR_I64, 1ull << 63, -0x1p63, INT64_MIN, 0},
        {FRIT_SCALAR_U64, UINT64_MAX, 0x1p64, INT64_MAX, UINT64_MAX},
        {FRIT_SCALAR_U64, INT64_MAX - 1ull, 0x1p63, INT64_MAX - 1, INT64_MAX - 1ull},
        {FRIT_SCALAR_U64, (1ull << 63) + 1, 0x1p63, INT64_MAX, (1ull << 63) + 1},
        {FRIT_SCALAR_F64, 0x4004000000000000, 2.5, 2, 2},
        {FRIT_SCALAR_F64, 0xc004000000000000, -2.5, -2, 0},
        {FRIT_SCALAR_F64, 0x43e0000000000000, 0x1p63, INT64_MAX, 1ull << 63},
        {FRIT_SCALAR_F64, 0xc3e0000000000000, -0x1p63, INT64_MIN, 0},
        {FRIT_SCALAR_F64, 0x43f0000000000000, 0x1p64, INT64_MAX, UINT64_MAX},
        {FRIT_SCALAR_F64, 0xfff0000000000000, -INFINITY, INT64_MIN, 0},
        {FRIT_SCALAR_F64, 0x7ff0000000000000, INFINITY, INT64_MAX, UINT64_MAX},
        {FRIT_SCALAR_F64, 0x7ff8000000000000, NAN, 0, 0},
    };
    static struct kit_block block;
    frit_scalar scalars[3] = {{FRIT_SCALAR_I64, 0, 99}, {FRIT_SCALAR_I64, 0, 98}};
    const frit_launch launch = {.scalars = scalars};
    const struct kit_call call = {.block = &block, .launch = &launch};

    (void)state;
    block.ops[1].first_scalar = 1; /* of op 1 operands 0 and 2 are scalars: words 1 and 2 */
    block.ops[1].in[0].kind = block.ops[1].in[2].kind = FRIT_OPERAND_SCALAR;
    block.ops[1].in[1].kind = FRIT_OPERAND_TENSOR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double real;

        scalars[2] = (frit_scalar){cases[i].kind, 0, cases[i].bits};
        real = kit_scalar(&call, 1, 2);
        assert_true(real == cases[i].real || (isnan(real) && isnan(cases[i].real)));
        assert_true(kit_scalar_i64(&call, 1, 2) == cases[i].whole);
        assert_true(kit_scalar_u64(&call, 1, 2) == cases[i].natural);
    }
    assert_int_equal(kit_scalar_i64(&call, 1, 0), 98);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_rig, steps_close)
    const struct CMUnitTest tests[] = {
        CASE(devices_are_the_table),
        cmocka_unit_test(what_cannot_open_is_reported),
        CASE(rows_are_taken_as_they_are),
        CASE(results_take_the_memory_of_what_lies_alike),
        CASE(dense_operands_want_a_copy),
        CASE(launches_bring_what_the_op_has),
        CASE(a_row_that_fails_is_reported_by_wait),
        CASE(code_comes_with_the_launch),
        cmocka_unit_test(scalars_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
