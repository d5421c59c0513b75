/* SPDX-License-Identifier: Apache-2.0 */
/* Maps over many tensors as one launch: steps of an optimiser on tensors of many shapes, in the
 * evaluator, against the same numbers in C. */
#include "kernels/fuse/rig.h"

#include <string.h>

enum { MAX_STEPS = 20, MOST = 2048, VALUES = 8 /* numbers of a step's values */ };

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig_init(rig);
    rig->device.target.lanes = rig->device.target.lanes_per_row = 256;
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    rig_fini(*state);
    free(*state);
    return 0;
}

/* ---- steps ---- */

/* speed = speed * s + slope; value = value - speed * s, of dims that only this tensor has. */
struct step {
    uint32_t rank;
    int64_t dims[3];
    bool across;    /* `speed` lies transposed */
    bool row_slope; /* `slope` has one row, for all of them */
    uint64_t n;
    float speed[MOST], slope[MOST], value[MOST], new_speed[MOST], new_value[MOST];
};

enum { SPEED, SLOPE, VALUE, SCALED, NEW_SPEED, SMALL, NEW_VALUE };

static frit_operand tensor(uint32_t step, uint32_t number, uint32_t rank)
{
    frit_operand operand = rig_tensor(step * VALUES + number, rank);

    for (uint32_t d = 0; d < rank; d++)
        operand.extent[d] = 2 + step * 3 + d;
    return operand;
}

static frit_operand slope_of(const struct step *steps, uint32_t i)
{
    frit_operand operand = tensor(i, SLOPE, steps[i].rank);

    if (steps[i].row_slope)
        operand.extent[0] = 1;
    return operand;
}

/* Op `number` of a step. */
static void add_op(struct rig_ops *ops, const struct step *steps, uint32_t i, uint32_t number)
{
    uint32_t rank = steps[i].rank, first = i * VALUES;

    if (number == 0)
        rig_binary(ops, FRIT_OP_mul, tensor(i, SPEED, rank), rig_scalar(0), tensor(i, SCALED, rank),
                   NULL);
    else if (number == 1)
        rig_binary(ops, FRIT_OP_add, tensor(i, SCALED, rank), slope_of(steps, i),
                   tensor(i, NEW_SPEED, rank), RIG_DEAD(first + SCALED));
    else if (number == 2)
        rig_binary(ops, FRIT_OP_mul, tensor(i, NEW_SPEED, rank), rig_scalar(1),
                   tensor(i, SMALL, rank), NULL);
    else
        rig_binary(ops, FRIT_OP_sub, tensor(i, VALUE, rank), tensor(i, SMALL, rank),
                   tensor(i, NEW_VALUE, rank), RIG_DEAD(first + SMALL));
}

static void add_steps(struct rig_ops *ops, const struct step *steps, uint32_t n)
{
    *ops = (struct rig_ops){0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t number = 0; number < 4; number++)
            add_op(ops, steps, i, number);
}

static void step_init(struct step *s, uint32_t rank, const int64_t *dims, uint32_t seed)
{
    s->rank = rank;
    s->n = 1;
    for (uint32_t d = 0; d < rank; d++) {
        s->dims[d] = dims[d];
        s->n *= (uint64_t)dims[d];
    }
    assert_true(s->n <= MOST);
    for (uint64_t i = 0; i < MOST; i++) {
        seed = seed * 1664525 + 1013904223;
        s->speed[i] = (float)(int32_t)seed * 0x1p-28f;
        s->slope[i] = (float)(int32_t)(seed * 7) * 0x1p-28f;
        s->value[i] = (float)(int32_t)(seed * 13) * 0x1p-28f;
        s->new_speed[i] = s->new_value[i] = -77;
    }
}

/* Three inputs a step, then two outputs a step: in order of first use and of making. */
static void sign(struct rig_sig *sig, const struct step *steps, uint32_t n)
{
    rig_signature(sig, 3 * n, 2 * n, 2 * n, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        struct rig_sig one;

        rig_signature(&one, 3, 2, 0, s->rank, s->dims);
        if (s->across) {
            one.args[0].strides[0] = 1;
            one.args[0].strides[1] = s->dims[0];
        }
        if (s->row_slope) {
            one.args[1].dims[0] = 1;
            one.args[1].strides[0] = s->dims[1];
        }
        memcpy(&sig->args[3 * i], one.args, 3 * sizeof(*one.args));
        memcpy(&sig->args[3 * n + 2 * i], one.args + 3, 2 * sizeof(*one.args));
    }
}

static void bind(struct rig_launch *launch, const frit_program *program,
                 const frit_launch_spec *spec, struct step *steps, uint32_t n, bool in_place)
{
    float *args[5 * MAX_STEPS] = {0};
    double scalars[2 * MAX_STEPS] = {0};

    for (uint32_t i = 0; i < n; i++) {
        args[3 * i] = steps[i].speed;
        args[3 * i + 1] = steps[i].slope;
        args[3 * i + 2] = steps[i].value;
        args[3 * n + 2 * i] = in_place ? steps[i].speed : steps[i].new_speed;
        args[3 * n + 2 * i + 1] = in_place ? steps[i].value : steps[i].new_value;
        scalars[2 * i] = 0.5 + i;
        scalars[2 * i + 1] = 0.25 * i;
    }
    rig_bind(launch, program, spec, args, 5 * n, 0, scalars, 2 * n);
    for (uint32_t i = 0; i < 5 * n; i++)
        launch->args[i].extent = steps[i < 3 * n ? i / 3 : (i - 3 * n) / 2].n * sizeof(float);
}

static void check_step(const struct step *s, uint32_t i, const float *speed, const float *value)
{
    for (uint64_t k = 0; k < s->n; k++) {
        int64_t row = s->rank > 1 ? (int64_t)k / s->dims[1] : 0;
        int64_t column = s->rank > 1 ? (int64_t)k % s->dims[1] : 0;
        float old = s->across ? s->speed[column * s->dims[0] + row] : s->speed[k];
        float scaled = old * (float)(0.5 + i);
        float sum = scaled + s->slope[s->row_slope ? (uint64_t)column : k];
        float small = sum * (float)(0.25 * i);

        assert_float_equal(speed[k], sum, 0);
        assert_float_equal(value[k], s->value[k] - small, 0);
    }
}

/* How many kernels a launch has. */
static uint32_t run_steps(frit_program *program, struct step *steps, uint32_t n)
{
    struct rig_launch *launch = calloc(1, sizeof(*launch));
    struct rig_sig *sig = calloc(1, sizeof(*sig));
    struct kernels_launch kernel;
    uint64_t words[RIG_WORDS];
    frit_launch_spec spec;
    frit_variant variant;
    uint32_t n_bodies;

    assert_true(launch && sig);
    sign(sig, steps, n);
    rig_prepare(program, sig, &spec, &variant);
    bind(launch, program, &spec, steps, n, false);
    rig_run(launch);
    for (uint32_t i = 0; i < n; i++)
        check_step(&steps[i], i, steps[i].new_speed, steps[i].new_value);
    assert_int_equal(kernels_launch(&launch->launch, words, RIG_WORDS, &kernel, NULL), FRIT_OK);
    n_bodies = kernel.n_bodies;
    free(launch);
    free(sig);
    return n_bodies;
}

static const struct {
    uint32_t rank;
    int64_t dims[3];
} shapes[] = {
    {1, {7}},         {1, {0}},       {0, {0}},    {2, {16, 16}}, {1, {256}},
    {1, {1}},         {3, {3, 5, 7}}, {1, {2000}}, {2, {1, 200}}, {2, {0, 5}},
    {3, {4, 1, 300}}, {1, {129}},     {1, {1024}}, {2, {40, 50}},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct step *all_shapes(void)
{
    struct step *steps = calloc(N_SHAPES, sizeof(*steps));

    assert_non_null(steps);
    for (uint32_t i = 0; i < N_SHAPES; i++)
        step_init(&steps[i], shapes[i].rank, shapes[i].dims, i);
    return steps;
}

/* ---- tests ---- */

/* Whatever the shapes, there are few kernels: small tensors and large ones, that fill groups or do
 * not, and tensors of one element. */
static void test_many_shapes(void **state)
{
    struct rig *rig = *state;
    struct step *steps = all_shapes();
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    frit_program program;

    assert_non_null(ops);
    add_steps(ops, steps, N_SHAPES);
    program = rig_program(rig, "foreach", ops);
    assert_in_range(run_steps(&program, steps, N_SHAPES), 1, 5);
    assert_in_range(atomic_load(&rig->n_compiles), 1, 5);
    rig_destroy(&program);
    free(ops);
    free(steps);
}

/* More tensors of other sizes need no other code. */
static void test_code_does_not_grow(void **state)
{
    struct rig *rig = *state;
    struct step *steps = calloc(MAX_STEPS, sizeof(*steps));
    struct rig_ops *ops = calloc(1, sizeof(*ops));

    assert_true(steps && ops);
    for (uint32_t n = 2; n <= MAX_STEPS; n += 6) {
        frit_program program;

        for (uint32_t i = 0; i < n; i++)
            step_init(&steps[i], 1, (const int64_t[]){201 + 2 * (int64_t)(n * i)}, i);
        add_steps(ops, steps, n);
        program = rig_program(rig, "foreach", ops);
        assert_int_equal(run_steps(&program, steps, n), 1);
        assert_int_equal(atomic_load(&rig->n_compiles), (n - 2) / 6 + 1);
        rig_destroy(&program);
    }
    free(ops);
    free(steps);
}

/* Operands that lie across, and such as broadcast. */
static void test_layouts(void **state)
{
    struct rig *rig = *state;
    struct step *steps = calloc(6, sizeof(*steps));
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    frit_program program;

    assert_true(steps && ops);
    for (uint32_t i = 0; i < 6; i++) {
        step_init(&steps[i], 2, (const int64_t[]){3 + i, 10 + 40 * (int64_t)i}, i);
        steps[i].across = i % 3 == 1;
        steps[i].row_slope = i % 3 == 2;
    }
    add_steps(ops, steps, 6);
    program = rig_program(rig, "foreach", ops);
    run_steps(&program, steps, 6);
    rig_destroy(&program);
    free(ops);
    free(steps);
}

/* All first ops, then all second ones, and so on. */
static void test_any_order(void **state)
{
    struct rig *rig = *state;
    struct step *steps = all_shapes();
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    frit_program_info info = {.struct_size = sizeof(info)};
    frit_program program;

    assert_non_null(ops);
    for (uint32_t number = 0; number < 4; number++)
        for (uint32_t i = 0; i < 10; i++)
            add_op(ops, steps, i, number);
    program = rig_program(rig, "foreach", ops);
    assert_int_equal(program.table->describe(program.self, &info, NULL), FRIT_OK);
    assert_int_equal(info.n_ops, 40);
    rig_destroy(&program);
    free(ops);
    free(steps);
}

/* Each output may take the memory of its step's operands that it is made of, whatever their
 * numbers. */
static void test_in_place(void **state)
{
    struct rig *rig = *state;
    struct step *steps = calloc(MAX_STEPS, sizeof(*steps)), *copies;
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    struct rig_launch *launch = calloc(1, sizeof(*launch));
    struct rig_sig *sig = calloc(1, sizeof(*sig));
    frit_launch_spec spec;
    frit_variant variant;
    frit_program program;

    assert_true(steps && ops && launch && sig);
    for (uint32_t i = 0; i < MAX_STEPS; i++)
        step_init(&steps[i], 1, (const int64_t[]){30 + i}, i);
    copies = calloc(MAX_STEPS, sizeof(*copies));
    assert_non_null(copies);
    memcpy(copies, steps, MAX_STEPS * sizeof(*copies));
    add_steps(ops, steps, MAX_STEPS);
    program = rig_program(rig, "foreach", ops);
    sign(sig, steps, MAX_STEPS);
    rig_prepare(&program, sig, &spec, &variant);
    assert_int_equal(spec.n_outputs, 2 * MAX_STEPS);
    for (uint32_t i = 0; i < MAX_STEPS; i++) {
        const frit_output_spec *speed = &spec.outputs[2 * i], *value = speed + 1;

        assert_int_equal(speed->n_alias, 3);
        assert_int_equal(value->n_alias, 3);
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(speed->alias[k], 3 * i + k);
            assert_int_equal(value->alias[k], 3 * i + k);
        }
    }
    bind(launch, &program, &spec, steps, MAX_STEPS, true);
    rig_run(launch);
    for (uint32_t i = 0; i < MAX_STEPS; i++)
        check_step(&copies[i], i, steps[i].speed, steps[i].value);
    rig_destroy(&program);
    free(copies);
    free(steps);
    free(ops);
    free(launch);
    free(sig);
}

/* What several components read none of them may overwrite. */
static void test_shared_operands(void **state)
{
    struct rig *rig = *state;
    static float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8], a[8], b[8];
    struct rig_ops ops = {0};
    struct rig_launch launch;
    struct rig_sig sig;
    frit_launch_spec spec;
    frit_variant variant;
    frit_program program;

    rig_binary(&ops, FRIT_OP_add, rig_tensor(0, 1), rig_tensor(1, 1), rig_tensor(2, 1), NULL);
    rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 1), rig_tensor(3, 1), NULL);
    program = rig_program(rig, "foreach", &ops);
    rig_signature(&sig, 2, 2, 0, 1, (const int64_t[]){8});
    rig_prepare(&program, &sig, &spec, &variant);
    assert_int_equal(spec.outputs[0].n_alias, 1);
    assert_int_equal(spec.outputs[0].alias[0], 1);
    assert_int_equal(spec.outputs[1].n_alias, 0);
    rig_bind(&launch, &program, &spec, (float *[]){x, y, a, b}, 4, 8, NULL, 0);
    rig_run(&launch);
    for (int i = 0; i < 8; i++) {
        assert_float_equal(a[i], x[i], 0);
        assert_float_equal(b[i], -x[i], 0);
    }
    rig_destroy(&program);
}

/* A launch of nothing but empty tensors has a kernel without groups. */
static void test_all_are_empty(void **state)
{
    struct rig *rig = *state;
    struct step *steps = calloc(2, sizeof(*steps));
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    frit_program program;

    assert_true(steps && ops);
    for (uint32_t i = 0; i < 2; i++)
        step_init(&steps[i], 1, (const int64_t[]){0}, i);
    add_steps(ops, steps, 2);
    program = rig_program(rig, "foreach", ops);
    assert_int_equal(run_steps(&program, steps, 2), 1);
    rig_destroy(&program);
    free(ops);
    free(steps);
}

/* Where the device takes few words, more kernels have the same code. */
static void test_words_are_limited(void **state)
{
    struct rig *rig = *state;
    struct step *steps = calloc(MAX_STEPS, sizeof(*steps));
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    frit_program program;

    assert_true(steps && ops);
    rig->device.target.launch_words = 40;
    for (uint32_t i = 0; i < 12; i++)
        step_init(&steps[i], 1, (const int64_t[]){131 + 2 * i}, i);
    add_steps(ops, steps, 12);
    program = rig_program(rig, "foreach", ops);
    assert_int_equal(run_steps(&program, steps, 12), 3); /* 5 arguments, 3 words */
    assert_int_equal(atomic_load(&rig->n_compiles), 1);
    rig_destroy(&program);
    free(ops);
    free(steps);
}

/* ---- what is taken ---- */

static uint32_t accepted(struct rig *rig, const struct rig_ops *ops)
{
    frit_fuser list[16] = {{0}};
    uint32_t count, found = 0;

    assert_int_equal(kernels_prototypes(&rig->device, list, sizeof(*list), 16, &count, NULL),
                     FRIT_OK);
    for (uint32_t i = 0; i < count; i++) {
        frit_fuser_state state = {.struct_size = sizeof(state)};

        if (list[i].name.len == 7 && memcmp(list[i].name.ptr, "foreach", 7) == 0) {
            kernels_push(list[i].prototype, ops->op, ops->n, sizeof(*ops->op));
            kernels_state(list[i].prototype, &state);
            found = state.accepted;
        }
        kernels_destroy(list[i].prototype);
    }
    return found;
}

/* One component is the map schedule's; of many kinds each would be a kernel. */
static void test_kinds_are_few(void **state)
{
    static const uint32_t kinds[] = {FRIT_OP_neg,  FRIT_OP_abs,   FRIT_OP_exp,
                                     FRIT_OP_sqrt, FRIT_OP_floor, FRIT_OP_ceil,
                                     FRIT_OP_tanh, FRIT_OP_sin,   FRIT_OP_cos};
    struct rig *rig = *state;
    struct rig_ops ops = {0};

    for (uint32_t i = 0; i < 9; i++) {
        rig_unary(&ops, kinds[i], rig_tensor(2 * i, 1), rig_tensor(2 * i + 1, 1), NULL);
        assert_int_equal(accepted(rig, &ops), i == 0 ? 0 : i < 8 ? i + 1 : 8);
    }
}

/* Results of other sizes in one component are no single space. */
static void test_components_are_maps(void **state)
{
    struct rig *rig = *state;
    struct rig_ops ops = {0};
    frit_operand wide = rig_tensor(2, 2);

    rig_unary(&ops, FRIT_OP_neg, rig_tensor(10, 1), rig_tensor(11, 1), NULL);
    rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 1), rig_tensor(1, 1), NULL);
    assert_int_equal(accepted(rig, &ops), 2);
    wide.extent[1] = 2;
    wide.extent[0] = 3;
    rig_binary(&ops, FRIT_OP_add, rig_tensor(1, 1), wide, rig_tensor(3, 2), NULL);
    ops.operand[2][2] = wide;
    ops.operand[2][2].value = 3;
    assert_int_equal(accepted(rig, &ops), 2);
}

/* As many arguments as the device takes. */
static void test_args_are_limited(void **state)
{
    struct rig *rig = *state;
    struct step *steps = calloc(MAX_STEPS, sizeof(*steps));
    struct rig_ops *ops = calloc(1, sizeof(*ops));

    assert_true(steps && ops);
    for (uint32_t i = 0; i < MAX_STEPS; i++)
        step_init(&steps[i], 1, (const int64_t[]){30 + i}, i);
    add_steps(ops, steps, MAX_STEPS);
    assert_int_equal(accepted(rig, ops), 4 * MAX_STEPS);
    rig->device.target.launch_args = 50;
    assert_in_range(accepted(rig, ops), 40, 44);
    free(ops);
    free(steps);
}

/* A program that was saved is the same one again. */
static void test_saved(void **state)
{
    struct rig *rig = *state;
    struct step *steps = all_shapes();
    struct rig_ops *ops = calloc(1, sizeof(*ops));
    frit_program program, loaded = {.struct_size = sizeof(loaded)};
    uint64_t n_bytes = 0;
    void *bytes;

    assert_non_null(ops);
    add_steps(ops, steps, N_SHAPES);
    program = rig_program(rig, "foreach", ops);
    assert_int_equal(program.table->to_state(program.self, NULL, &n_bytes, NULL), FRIT_OK);
    bytes = malloc(n_bytes);
    assert_non_null(bytes);
    assert_int_equal(program.table->to_state(program.self, bytes, &n_bytes, NULL), FRIT_OK);
    assert_int_equal(kernels_from_state(&rig->device, ops->op, ops->n, sizeof(ops->op[0]), bytes,
                                        n_bytes, &loaded, NULL),
                     FRIT_OK);
    run_steps(&loaded, steps, N_SHAPES);
    rig_destroy(&loaded);
    rig_destroy(&program);
    free(bytes);
    free(ops);
    free(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_code_does_not_grow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_layouts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared_operands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_are_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds_are_few, setup, teardown),
        cmocka_unit_test_setup_teardown(test_components_are_maps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_args_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_saved, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
