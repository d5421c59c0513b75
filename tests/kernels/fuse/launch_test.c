/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a launch: scalars as every type, and what is not a launch.  Its own schedule: a
 * module with a word of each type, all from scalar 0, and one that prepare gives. */
#include "kernels/fuse/rig.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "kernels/bits.h"
#include "lower/sched.h"

enum { GIVEN = 0, FIRST_LATE = 1, N_LATE = KIR_TYPES - 1, N_WORDS = FIRST_LATE + N_LATE };

static bool match(struct matcher *matcher, const struct block *block)
{
    (void)matcher, (void)block;
    return true;
}

static bool fits(const struct matcher *matcher, const struct block *block)
{
    (void)matcher, (void)block;
    return true;
}

static frit_status build(struct sched *s, frit_err *err)
{
    struct sched_numbers *n = s->numbers;

    n->words = arena_array(&n->arena, N_WORDS, sizeof(*n->words));
    n->late = arena_array(&n->arena, N_LATE, sizeof(*n->late));
    if (!n->words || !n->late)
        return fail_memory(err, N_WORDS);
    for (uint32_t i = 0; i < s->block->n_inputs + s->block->n_outputs; i++)
        kir_arg(s->module, FRIT_F32, i < s->block->n_inputs ? KIR_READ : KIR_WRITE);
    n->alias[s->block->n_outputs - 1] = 1ull << (s->block->n_inputs - 1);
    kir_phase(s->module, 1);
    kir_param(s->module, KIR_I64);
    n->words[GIVEN] = 77;
    n->n_words = s->block->n_scalars ? N_WORDS : 1;
    for (uint32_t i = 0; i < N_LATE && s->block->n_scalars; i++) {
        kir_param(s->module, (enum kir_type)(KIR_B + i));
        n->late[n->n_late++] = (struct sched_late){.word = FIRST_LATE + i, .type = KIR_B + i};
    }
    n->grid[0][0] = n->grid[0][1] = n->grid[0][2] = 1;
    return FRIT_OK;
}

static const struct schedule all_words = {
    .name = "words", .quality = 1, .match = match, .fits = fits, .build = build};
const struct schedule *const schedules[] = {&all_words};
const uint32_t n_schedules = 1;

struct state {
    struct rig rig;
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_launch launch;
    float x, y;
};

static void bind(struct state *s)
{
    const double scalar = 0;

    rig_bind(&s->launch, &s->program, &s->spec, (float *[]){&s->x, NULL, &s->y}, 3, 1, &scalar, 1);
}

static int setup(void **state)
{
    struct state *s = calloc(1, sizeof(*s));
    struct rig_ops ops = {0};
    struct rig_sig sig;

    assert_non_null(s);
    rig_init(&s->rig);
    rig_binary(&ops, FRIT_OP_add, rig_tensor(0, 0), rig_scalar(0), rig_tensor(1, 0), NULL);
    assert_int_equal(kernels_op(&s->rig.device, &ops.op[0], &s->program, NULL), FRIT_OK);
    rig_signature(&sig, 2, 1, 1, 0, NULL);
    sig.args[1] = (frit_arg_sig){0};
    rig_prepare(&s->program, &sig, &s->spec, &s->variant);
    bind(s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct state *s = *state;

    rig_destroy(&s->program);
    rig_fini(&s->rig);
    free(s);
    return 0;
}

/* One scalar, and the word that it is as each type. */
struct row {
    uint32_t kind;
    uint64_t bits;
    uint64_t b, i32, i64, f32, f64;
};

static void test_scalars_as_types(void **state)
{
    struct state *s = *state;
    const struct row rows[] = {
        {FRIT_SCALAR_F64, bits_of_f64(-2.5), 1, 0xfffffffe, (uint64_t)-2, bits_of_f32(-2.5f),
         bits_of_f64(-2.5)},
        {FRIT_SCALAR_F64, bits_of_f64(0.1), 1, 0, 0, bits_of_f32(0.1f), bits_of_f64(0.1)},
        {FRIT_SCALAR_F64, bits_of_f64(-0.0), 0, 0, 0, bits_of_f32(-0.0f), bits_of_f64(-0.0)},
        {FRIT_SCALAR_F64, bits_of_f64(1e30), 1, INT32_MAX, INT64_MAX, bits_of_f32(1e30f),
         bits_of_f64(1e30)},
        {FRIT_SCALAR_F64, bits_of_f64(-1e30), 1, 0x80000000, 1ull << 63, bits_of_f32(-1e30f),
         bits_of_f64(-1e30)},
        {FRIT_SCALAR_F64, bits_of_f64(NAN), 1, 0, 0, bits_of_f32(NAN), bits_of_f64(NAN)},
        {FRIT_SCALAR_I64, (uint64_t)-3, 1, 0xfffffffd, (uint64_t)-3, bits_of_f32(-3),
         bits_of_f64(-3)},
        {FRIT_SCALAR_I64, 0, 0, 0, 0, 0, 0},
        /* Rounded once: by way of f64 this would end at 2^54. */
        {FRIT_SCALAR_I64, (1ll << 54) + (1ll << 30) + 1, 1, (1u << 30) + 1,
         (1ll << 54) + (1ll << 30) + 1, bits_of_f32(0x1.000002p54f), bits_of_f64(0x1p54 + 0x1p30)},
        {FRIT_SCALAR_U64, (1ull << 63) + (1ull << 39) + 1, 1, 1, (1ull << 63) + (1ull << 39) + 1,
         bits_of_f32(0x1.000002p63f), bits_of_f64(0x1p63 + 0x1p39)},
        {FRIT_SCALAR_U64, UINT64_MAX, 1, UINT32_MAX, UINT64_MAX, bits_of_f32(0x1p64f),
         bits_of_f64(0x1p64)},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint64_t wanted[N_WORDS] = {77,          rows[i].b,   rows[i].i32,
                                          rows[i].i64, rows[i].f32, rows[i].f64};
        uint64_t words[N_WORDS] = {0};
        struct kernels_launch launch;

        s->launch.scalars[0] = (frit_scalar){.kind = rows[i].kind, .bits = rows[i].bits};
        assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS, &launch, NULL), FRIT_OK);
        assert_int_equal(launch.n_words, N_WORDS);
        assert_ptr_equal(launch.words, words);
        assert_memory_equal(launch.words, wanted, sizeof(wanted));
    }
}

static void test_what_a_launch_has(void **state)
{
    struct state *s = *state;
    uint64_t words[N_WORDS];
    struct kernels_launch launch;

    assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS, &launch, NULL), FRIT_OK);
    assert_non_null(launch.code);
    assert_string_equal(launch.name, "words.add");
    assert_int_equal(launch.n_phases, 1);
    assert_int_equal(launch.grid[0][2], 1);
    assert_int_equal(launch.n_args, 2);
    assert_int_equal(launch.args[0], 0);
    assert_int_equal(launch.args[1], 2);
}

/* Without late words no room is needed. */
static void test_words_without_scalars(void **state)
{
    struct state *s = *state;
    struct rig_ops ops = {0};
    struct rig_sig sig;
    frit_program program = {.struct_size = sizeof(program)};
    struct kernels_launch launch;

    rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 0), rig_tensor(1, 0), NULL);
    assert_int_equal(kernels_op(&s->rig.device, &ops.op[0], &program, NULL), FRIT_OK);
    rig_signature(&sig, 1, 1, 0, 0, NULL);
    rig_prepare(&program, &sig, &s->spec, &s->variant);
    rig_bind(&s->launch, &program, &s->spec, (float *[]){&s->x, &s->y}, 2, 1, NULL, 0);
    assert_int_equal(kernels_launch(&s->launch.launch, NULL, 0, &launch, NULL), FRIT_OK);
    assert_int_equal(launch.n_words, 1);
    assert_int_equal(launch.words[0], 77);
    rig_destroy(&program);
}

/* Operands and outputs that are not there keep their places, and so do those after them. */
enum { MASK = 3, DMASK = 9, N_IN = 6, N_OUT = 5 };

static void test_absent_arguments(void **state)
{
    struct state *s = *state;
    const int64_t dims[] = {2, 2, 2, 2};
    frit_operand operands[N_IN + N_OUT] = {{0}};
    const frit_op_desc op = {.struct_size = sizeof(op),
                             .id = FRIT_OP_deform_conv_backward,
                             .rev = 1,
                             .n_in = N_IN,
                             .n_out = N_OUT,
                             .operand_stride = sizeof(frit_operand),
                             .in = operands,
                             .out = operands + N_IN};
    const uint32_t places[] = {0, 1, 2, 4, 5, 6, 7, 8, 10};
    frit_program program = {.struct_size = sizeof(program)};
    struct kernels_launch launch;
    struct rig_sig sig;

    rig_signature(&sig, N_IN, N_OUT, 0, 4, dims);
    sig.args[MASK] = sig.args[DMASK] = (frit_arg_sig){0};
    for (uint32_t i = 0; i < N_IN + N_OUT; i++) {
        if (i != MASK && i != DMASK)
            operands[i] = rig_tensor(i, 4);
    }
    assert_int_equal(kernels_op(&s->rig.device, &op, &program, NULL), FRIT_OK);
    rig_prepare(&program, &sig, &s->spec, &s->variant);
    for (uint32_t i = 0; i < N_OUT; i++)
        assert_int_equal(rig_aliases(&s->spec, i), i == N_OUT - 1 ? 1u << (N_IN - 1) : 0);
    rig_bind(&s->launch, &program, &s->spec, NULL, 0, 0, NULL, 0);
    assert_int_equal(kernels_launch(&s->launch.launch, NULL, 0, &launch, NULL), FRIT_OK);
    assert_int_equal(launch.n_args, N_IN + N_OUT - 2);
    assert_memory_equal(launch.args, places, sizeof(places));
    rig_destroy(&program);
}

static void test_what_is_no_launch(void **state)
{
    struct state *s = *state;
    uint64_t words[N_WORDS];
    struct kernels_launch launch = {0};
    frit_program_table foreign = *s->program.table;
    frit_program other = {.struct_size = sizeof(other), .table = &foreign, .self = s->program.self};
    frit_launch_spec empty = {.struct_size = sizeof(empty)};

    assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS - 1, &launch, NULL),
                     FRIT_INTERNAL);
    assert_int_equal(launch.total_words, N_WORDS);
    assert_false(kernels_owns(&other));
    s->launch.launch.program = &other;
    assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS, &launch, NULL),
                     FRIT_INTERNAL);
    bind(s);
    s->launch.launch.spec = &empty;
    assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS, &launch, NULL),
                     FRIT_INTERNAL);
    bind(s);
    s->launch.launch.n_scalars = 0;
    assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS, &launch, NULL),
                     FRIT_INTERNAL);
}

static void test_not_compiled(void **state)
{
    struct state *s = *state;
    struct rig_ops ops = {0};
    uint64_t words[N_WORDS];
    struct kernels_launch launch;
    struct rig_sig sig;
    frit_program program = {.struct_size = sizeof(program)};
    frit_launch_spec spec = {.struct_size = sizeof(spec)};

    rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 0), rig_tensor(1, 0), NULL);
    assert_int_equal(kernels_op(&s->rig.device, &ops.op[0], &program, NULL), FRIT_OK);
    rig_signature(&sig, 1, 1, 0, 0, NULL);
    assert_int_equal(program.table->prepare(program.self, 0, &sig.sig, &spec, &s->variant, NULL),
                     FRIT_PREPARE_NEEDS_COMPILE);
    rig_bind(&s->launch, &program, &spec, (float *[]){&s->x, &s->y}, 2, 1, NULL, 0);
    assert_int_equal(kernels_launch(&s->launch.launch, words, N_WORDS, &launch, NULL),
                     FRIT_INTERNAL);
    rig_destroy(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scalars_as_types, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_a_launch_has, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words_without_scalars, setup, teardown),
        cmocka_unit_test_setup_teardown(test_absent_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_launch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_compiled, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
