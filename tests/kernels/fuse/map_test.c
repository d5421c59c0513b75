/* SPDX-License-Identifier: Apache-2.0 */
/* The real schedules under programs: fused = one by one, bit for bit, whatever the sizes. */
#include "kernels/fuse/rig.h"

#include <math.h>
#include <string.h>

enum { MOST = 4096 };

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
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

static void fill(float *to, uint64_t n, uint32_t seed)
{
    for (uint64_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        to[i] = (float)(int32_t)seed * 0x1p-28f;
    }
}

/* Replaces argument `i` by a dense one of these dims. */
static void resize(struct rig_sig *sig, uint32_t i, uint32_t rank, const int64_t *dims)
{
    struct rig_sig other;

    rig_signature(&other, 1, 0, 0, rank, dims);
    other.args[0].flags = sig->args[i].flags;
    sig->args[i] = other.args[0];
}

static void run(const frit_program *program, const struct rig_sig *sig, float *const *args,
                uint64_t n, double scalar)
{
    const double scalars[] = {scalar};
    struct rig_launch launch;
    frit_launch_spec spec;
    frit_variant variant;

    rig_prepare(program, sig, &spec, &variant);
    rig_bind(&launch, program, &spec, args, sig->sig.n_in + sig->sig.n_out, n, scalars,
             sig->sig.n_scalars);
    rig_run(&launch);
}

/* One op by its own program; operand `absent` is the scalar, UINT32_MAX: there is none. */
static void run_op(struct rig *rig, const frit_op_desc *op, struct rig_sig *sig, uint32_t absent,
                   float *const *args, uint64_t n, double scalar)
{
    frit_program program = {.struct_size = sizeof(program)};
    frit_err err = {.struct_size = sizeof(err)};

    assert_true(rig_has_op(&rig->device, op));
    if (kernels_op(&rig->device, op, &program, &err))
        fail_msg("op %u: %s", op->id, err.text);
    if (absent != UINT32_MAX)
        sig->args[absent] = (frit_arg_sig){0};
    run(&program, sig, args, n, scalar);
    rig_destroy(&program);
}

static frit_program fuse(struct rig *rig, const struct rig_ops *ops)
{
    frit_program program = rig_program(rig, "map", ops);
    frit_program_info info = {.struct_size = sizeof(info)};

    assert_int_equal(program.table->describe(program.self, &info, NULL), FRIT_OK);
    assert_int_equal(info.n_ops, ops->n);
    return program;
}

/* -((x + s) * y), y of the same dims or of the last one alone. */
static void check_chain(struct rig *rig, uint32_t rank, const int64_t *dims, bool broadcast)
{
    static float x[MOST], y[MOST], fused[MOST], sum[MOST], product[MOST], apart[MOST];
    struct rig_ops ops;
    struct rig_sig sig;
    frit_program program;
    uint64_t n = 1;

    for (uint32_t d = 0; d < rank; d++)
        n *= (uint64_t)dims[d];
    assert_true(n <= MOST);
    fill(x, n, 1);
    fill(y, n, 2);
    rig_chain(&ops, rank);
    if (broadcast) {
        ops.operand[1][1] = rig_tensor(1, 1);
        ops.operand[1][1].extent[0] = 2 + rank - 1;
    }
    program = fuse(rig, &ops);
    rig_signature(&sig, 2, 1, 1, rank, dims);
    if (broadcast)
        resize(&sig, 1, 1, dims + rank - 1);
    run(&program, &sig, (float *[]){x, y, fused}, n, 0.3f);
    rig_destroy(&program);

    rig_signature(&sig, 2, 1, 1, rank, dims);
    run_op(rig, &ops.op[0], &sig, 1, (float *[]){x, NULL, sum}, n, 0.3f);
    rig_signature(&sig, 2, 1, 0, rank, dims);
    if (broadcast)
        resize(&sig, 1, 1, dims + rank - 1);
    run_op(rig, &ops.op[1], &sig, UINT32_MAX, (float *[]){sum, y, product}, n, 0);
    rig_signature(&sig, 1, 1, 0, rank, dims);
    run_op(rig, &ops.op[2], &sig, UINT32_MAX, (float *[]){product, apart}, n, 0);
    assert_memory_equal(fused, apart, n * sizeof(float));
    for (uint64_t i = 0; i < n; i++)
        assert_float_equal(fused[i],
                           -((x[i] + 0.3f) * y[broadcast ? i % (uint64_t)dims[rank - 1] : i]), 0);
}

static void test_chains(void **state)
{
    const int64_t flat[] = {1000}, one[] = {1}, two[] = {17, 9}, rows[] = {7, 130},
                  three[] = {3, 4, 70};

    check_chain(*state, 1, flat, false);
    check_chain(*state, 1, one, false);
    check_chain(*state, 0, NULL, false);
    check_chain(*state, 2, two, false);
    check_chain(*state, 2, rows, false);
    check_chain(*state, 2, rows, true);
    check_chain(*state, 2, two, true);
    check_chain(*state, 3, three, true);
}

/* exp((x * s) + y) of a row y, near what the library gives. */
static void test_functions(void **state)
{
    struct rig *rig = *state;
    static float x[MOST], y[MOST], fused[MOST], product[MOST], sum[MOST], apart[MOST];
    const int64_t dims[] = {13, 100};
    struct rig_ops ops = {0};
    struct rig_sig sig;
    frit_program program;

    rig_binary(&ops, FRIT_OP_mul, rig_tensor(0, 2), rig_scalar(0), rig_tensor(2, 2), NULL);
    rig_binary(&ops, FRIT_OP_add, rig_tensor(2, 2), rig_tensor(1, 1), rig_tensor(3, 2),
               RIG_DEAD(2));
    ops.operand[1][1].extent[0] = 3;
    rig_unary(&ops, FRIT_OP_exp, rig_tensor(3, 2), rig_tensor(4, 2), RIG_DEAD(3));
    fill(x, 1300, 5);
    fill(y, 100, 6);
    program = fuse(rig, &ops);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    resize(&sig, 1, 1, dims + 1);
    run(&program, &sig, (float *[]){x, y, fused}, 1300, 0.75f);
    rig_destroy(&program);

    rig_signature(&sig, 2, 1, 1, 2, dims);
    run_op(rig, &ops.op[0], &sig, 1, (float *[]){x, NULL, product}, 1300, 0.75f);
    rig_signature(&sig, 2, 1, 0, 2, dims);
    resize(&sig, 1, 1, dims + 1);
    run_op(rig, &ops.op[1], &sig, UINT32_MAX, (float *[]){product, y, sum}, 1300, 0);
    rig_signature(&sig, 1, 1, 0, 2, dims);
    run_op(rig, &ops.op[2], &sig, UINT32_MAX, (float *[]){sum, apart}, 1300, 0);
    assert_memory_equal(fused, apart, 1300 * sizeof(float));
    for (int i = 0; i < 1300; i++) {
        double wanted = exp((double)(x[i] * 0.75f + y[i % 100]));

        assert_true(fabs((double)fused[i] - wanted) <= 2 * wanted * 0x1p-23);
    }
}

/* Dims that are all alike, however many, make one module. */
static void test_sizes_share_code(void **state)
{
    struct rig *rig = *state;
    static float x[MOST], y[MOST], out[MOST];
    const int64_t sizes[][2] = {{1, 1033}, {31, 33}, {20, 51}};
    struct rig_ops ops;
    struct rig_sig sig;
    frit_program program;

    rig_chain(&ops, 2);
    program = fuse(rig, &ops);
    for (int k = 0; k < 3; k++) {
        rig_signature(&sig, 2, 1, 1, 2, sizes[k]);
        run(&program, &sig, (float *[]){x, y, out}, (uint64_t)(sizes[k][0] * sizes[k][1]), 1);
        assert_int_equal(atomic_load(&rig->n_compiles), 1);
    }
    rig_destroy(&program);
}

/* Operands that lie otherwise, and a view between two ops: neg(permute(x + s)). */
static void test_views(void **state)
{
    struct rig *rig = *state;
    static float x[MOST], fused[MOST];
    const int64_t dims[] = {40, 12}, turned[] = {12, 40};
    const frit_attrs_order order = {.struct_size = sizeof(order),
                                    .order = {.count = 2, .axis = {1, 0}}};
    frit_operand view = rig_tensor(3, 2), out = rig_tensor(4, 2);
    struct rig_ops ops = {0};
    struct rig_sig sig;
    frit_program program;

    view.extent[0] = out.extent[0] = 3;
    view.extent[1] = out.extent[1] = 2;
    rig_binary(&ops, FRIT_OP_add, rig_tensor(0, 2), rig_scalar(0), rig_tensor(2, 2), NULL);
    rig_unary(&ops, FRIT_OP_permute, rig_tensor(2, 2), view, RIG_DEAD(2));
    ops.op[1].attrs = &order;
    rig_unary(&ops, FRIT_OP_neg, view, out, RIG_DEAD(3));
    program = fuse(rig, &ops);
    fill(x, 480, 3);
    rig_signature(&sig, 1, 1, 1, 2, dims);
    resize(&sig, 1, 2, turned);
    sig.args[0].strides[0] = 1; /* columns lie together */
    sig.args[0].strides[1] = 40;
    run(&program, &sig, (float *[]){x, fused}, 480, 0.7f);
    rig_destroy(&program);
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 40; k++)
            assert_float_equal(fused[i * 40 + k], -(x[i * 40 + k] + 0.7f), 0);
}

/* A program from saved bytes does the same. */
static void test_saved(void **state)
{
    struct rig *rig = *state;
    static float x[64], y[64], first[64], second[64];
    const int64_t dims[] = {8, 8};
    frit_program loaded = {.struct_size = sizeof(loaded)}, program;
    unsigned char bytes[1024];
    uint64_t n = sizeof(bytes);
    struct rig_ops ops;
    struct rig_sig sig;

    rig_chain(&ops, 2);
    program = fuse(rig, &ops);
    assert_int_equal(program.table->to_state(program.self, bytes, &n, NULL), FRIT_OK);
    assert_int_equal(
        kernels_from_state(&rig->device, ops.op, ops.n, sizeof(ops.op[0]), bytes, n, &loaded, NULL),
        FRIT_OK);
    fill(x, 64, 1);
    fill(y, 64, 2);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    run(&program, &sig, (float *[]){x, y, first}, 64, 0.5);
    run(&loaded, &sig, (float *[]){x, y, second}, 64, 0.5);
    assert_memory_equal(first, second, sizeof(first));
    assert_int_equal(atomic_load(&rig->n_compiles), 1);
    rig_destroy(&program);
    rig_destroy(&loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chains, setup, teardown),
        cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes_share_code, setup, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_saved, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
