/* SPDX-License-Identifier: Apache-2.0 */
/* The built plugin driven through its tables alone: its device, and what of the rows the contract
 * leaves to a driver (layouts, places, workspace). */
#include <math.h>
#include <string.h>

#include "run_op.h"

#include <frit/op_table.h>

static int open_rig(void **state)
{
    static struct rig rig;

    rig.memory_bytes = 0;
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    return 0;
}

/* ---- device ---- */

static void one_device(void **state)
{
    struct rig *rig = *state;
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver, .reason = 99};
    uint32_t count = 0;
    void *other;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 1);
    assert_int_equal(driver.reason, 0);
    assert_int_equal(info.type, FRIT_DEVICE_SOFTWARE);
    assert_int_equal(info.n_heaps, 1);
    assert_true(info.heaps->bytes > 0 && info.heaps->budget == info.heaps->bytes);
    assert_int_equal(info.dtype_use[FRIT_BF16], FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
    assert_int_equal(info.dtype_use[FRIT_Q4], FRIT_DTYPE_STORAGE);
    assert_int_equal(rig->backend->device_open(rig->instance, 1, &rig_params, &other, &rig->err),
                     FRIT_INVALID);
    assert_null(other);
}

/* Without room for an info only the count is returned. */
static void count_alone(void **state)
{
    struct rig *rig = *state;
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;

    assert_int_equal(rig->backend->enumerate(rig->instance, NULL, 0, 0, &count, &driver, &rig->err),
                     FRIT_OK);
    assert_int_equal(count, 1);
}

/* ---- programs ---- */

/* An element type that a letter of the table allows. */
static uint32_t some_type(uint32_t letter)
{
    static const uint32_t types[] = {
        [FRIT_LETTER_T] = FRIT_F16,   [FRIT_LETTER_N] = FRIT_I16, [FRIT_LETTER_F] = FRIT_F32,
        [FRIT_LETTER_Z] = FRIT_U8,    [FRIT_LETTER_L] = FRIT_I32, [FRIT_LETTER_R] = FRIT_BOOL,
        [FRIT_LETTER_I] = FRIT_I32,   [FRIT_LETTER_D] = FRIT_U32, [FRIT_LETTER_BOOL] = FRIT_BOOL,
        [FRIT_LETTER_I64] = FRIT_I64, [FRIT_LETTER_P] = FRIT_Q4};

    return types[letter];
}

static uint32_t describe_slots(const frit_slot_info *slots, frit_operand *operands)
{
    uint32_t n = 0;

    for (; slots[n].name; n++)
        operands[n] = (frit_operand){
            .kind = slots[n].role == FRIT_ROLE_NUM ? FRIT_OPERAND_SCALAR : FRIT_OPERAND_TENSOR,
            .dtype = some_type(slots[n].letter),
            .value = n,
        };
    return n;
}

static frit_op_desc describe_row(uint32_t id, frit_operand *in, frit_operand *out)
{
    const frit_op_info *info = frit_op_info_at(id);

    return (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, dead),
                          .id = id,
                          .rev = info->rev,
                          .n_in = describe_slots(info->in, in),
                          .n_out = describe_slots(info->out, out),
                          .operand_stride = sizeof(frit_operand),
                          .in = in,
                          .out = out};
}

static uint64_t claims(struct rig *rig, const frit_op_desc *desc)
{
    uint64_t bits = ~0ull;

    assert_int_equal(rig->backend->supports(rig->device, desc, 1, sizeof *desc, &bits, &rig->err),
                     FRIT_OK);
    return bits;
}

/* Every listed row is claimed and becomes a program that calls itself by the row's name. */
static void listed_rows_become_programs(void **state)
{
    static const uint32_t listed[] = {
#define REF_ROW(name, needs) FRIT_OP_##name,
#include "plugins/reference/rows.def"
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        frit_operand in[FRIT_OP_MAX_IN] = {0}, out[FRIT_OP_MAX_OUT] = {0};
        frit_op_desc desc = describe_row(listed[i], in, out);
        frit_program program = {.struct_size = sizeof program};
        frit_program_info info = {.struct_size = sizeof info};
        const char *name = frit_op_info_at(listed[i])->name;

        assert_int_equal(claims(rig, &desc), 1);
        assert_int_equal(rig->backend->op_program(rig->device, &desc, &program, &rig->err),
                         FRIT_OK);
        assert_int_equal(program.table->describe(program.self, &info, &rig->err), FRIT_OK);
        assert_int_equal(info.name.len, strlen(name));
        assert_memory_equal(info.name.ptr, name, info.name.len);
        assert_int_equal(info.n_candidates, 1);
        program.table->destroy(program.self);
    }
}

static void what_is_not_claimed(void **state)
{
    struct rig *rig = *state;
    frit_operand in[FRIT_OP_MAX_IN] = {0}, out[FRIT_OP_MAX_OUT] = {0};
    frit_op_desc desc = describe_row(FRIT_OP_add, in, out), other;
    frit_program program = {.struct_size = sizeof program};

    assert_int_equal(claims(rig, &desc), 1);
    other = desc;
    other.rev++;
    assert_int_equal(claims(rig, &other), 0);
    assert_int_equal(rig->backend->op_program(rig->device, &other, &program, &rig->err),
                     FRIT_UNSUPPORTED);
    assert_null(program.self);
    other = desc;
    other.flags = 1ull << 32;
    assert_int_equal(claims(rig, &other), 0);
    other = desc;
    other.n_in = 1;
    assert_int_equal(claims(rig, &other), 0);
    other.id = FRIT_OP_CUSTOM;
    assert_int_equal(claims(rig, &other), 0);
    in[1].dtype = FRIT_F8E4M3;
    assert_int_equal(claims(rig, &desc), 0);
}

/* a [2, 3] backwards in both dims, b [3] broadcast, y transposed. */
static void any_layout(void **state)
{
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30}, y[6] = {0};
    static const float expected[] = {16, 13, 25, 22, 34, 31}; /* [3, 2] in memory */
    const struct tensor ta = {FRIT_F32, 2, {2, 3}, {-3, -1}, 5, a, sizeof a};
    const struct tensor tb = {FRIT_F32, 1, {3}, {1}, 0, b, sizeof b};
    const struct tensor ty = {FRIT_F32, 2, {2, 3}, {1, 2}, 0, y, sizeof y};

    run_op(*state,
           &(struct op_run){
               .id = FRIT_OP_add, .n_in = 2, .in = {{.tensor = &ta}, {.tensor = &tb}}, .out = &ty});
    assert_memory_equal(y, expected, sizeof expected);
}

/* Longer than one piece of VALUE_LANES elements, with a scalar operand in front. */
static void long_rows(void **state)
{
    int16_t a[1000], y[1000];
    const struct tensor ta = {FRIT_I16, 1, {1000}, {1}, 0, a, sizeof a};
    const struct tensor ty = {FRIT_I16, 1, {1000}, {1}, 0, y, sizeof y};

    for (int i = 0; i < 1000; i++)
        a[i] = (int16_t)i;
    run_op(*state, &(struct op_run){.id = FRIT_OP_sub,
                                    .n_in = 2,
                                    .in = {{.dtype = FRIT_I16, .real = 7}, {.tensor = &ta}},
                                    .out = &ty});
    for (int i = 0; i < 1000; i++)
        assert_int_equal(y[i], 7 - i);
}

/* 2048 + 1 is 2048 in binary16, so only a sum that is rounded once gives 2050. */
static void updates_round_once(void **state)
{
    const frit_attrs_scatter attrs = {
        .struct_size = sizeof attrs, .axis = 0, .update = FRIT_CHOICE_update_add};
    uint16_t x[] = {0x6800, 0x3c00}, ones[] = {0x3c00, 0x3c00, 0x3c00}, y[2] = {0};
    int32_t index[] = {0, 0, 2}; /* the last is outside and writes nothing */
    const struct tensor tx = {FRIT_F16, 1, {2}, {1}, 0, x, sizeof x};
    const struct tensor ti = {FRIT_I32, 1, {3}, {1}, 0, index, sizeof index};
    const struct tensor tv = {FRIT_F16, 1, {3}, {1}, 0, ones, sizeof ones};
    const struct tensor ty = {FRIT_F16, 1, {2}, {1}, 0, y, sizeof y};

    run_op(*state, &(struct op_run){.id = FRIT_OP_scatter,
                                    .attrs = &attrs,
                                    .n_in = 3,
                                    .in = {{.tensor = &tx}, {.tensor = &ti}, {.tensor = &tv}},
                                    .out = &ty});
    assert_int_equal(y[0], 0x6801); /* 2050 */
    assert_int_equal(y[1], 0x3c00);
}

/* Windows of two in a row of five with padding 1: the element outside counts in the divisor. */
static void pools_count_padding(void **state)
{
    const frit_attrs_avg_pool attrs = {
        .struct_size = sizeof attrs, .kernel = {2}, .stride = {2}, .padding = {1}};
    float x[] = {1, 2, 3, 4, 5}, y[3] = {0};
    static const float expected[] = {0.5f, 2.5f, 4.5f};
    const struct tensor tx = {FRIT_F32, 3, {1, 1, 5}, {5, 5, 1}, 0, x, sizeof x};
    const struct tensor ty = {FRIT_F32, 3, {1, 1, 3}, {3, 3, 1}, 0, y, sizeof y};

    run_op(*state, &(struct op_run){.id = FRIT_OP_avg_pool,
                                    .attrs = &attrs,
                                    .n_in = 1,
                                    .in = {{.tensor = &tx}},
                                    .out = &ty});
    assert_memory_equal(y, expected, sizeof expected);
}

/* An operand without elements has no memory, its result has: the sum of nothing. */
static void nothing_to_add_up(void **state)
{
    const frit_attrs_reduce attrs = {.struct_size = sizeof attrs,
                                     .axes = {.count = 1, .axis = {0}}};
    float y[] = {1, 2, 3};
    static const float zeros[3];
    const struct tensor tx = {.dtype = FRIT_F32, .rank = 2, .dims = {0, 3}, .strides = {3, 1}};
    const struct tensor ty = {FRIT_F32, 1, {3}, {1}, 0, y, sizeof y};

    run_op(*state,
           &(struct op_run){
               .id = FRIT_OP_sum, .attrs = &attrs, .n_in = 1, .in = {{.tensor = &tx}}, .out = &ty});
    assert_memory_equal(y, zeros, sizeof zeros);
}

/* Key, counter and words as ops.def places them. */
static void random_words(void **state)
{
    uint32_t y[7] = {0}, other[7] = {0};
    const struct tensor ty = {FRIT_U32, 1, {7}, {1}, 0, y, sizeof y};
    const struct tensor to = {FRIT_U32, 1, {7}, {1}, 0, other, sizeof other};

    run_op(*state, &(struct op_run){.id = FRIT_OP_random_raw, .out = &ty});
    assert_int_equal(y[0], 0x6627e8d5);
    assert_int_equal(y[1], 0xe169c58d);
    assert_int_equal(y[2], 0xbc57ac4c);
    assert_int_equal(y[3], 0x9b00dbd8);
    run_op(*state, &(struct op_run){.id = FRIT_OP_random_raw, .out = &to, .words = {0, 1}});
    assert_true(other[0] != y[0] && other[6] != y[6]);
}

/* Only an operand that lies as the result will may give it its memory. */
static void places_that_may_be_shared(void **state)
{
    float data[6] = {0};
    int32_t ints[6] = {0};
    int16_t halves[6] = {0};
    const struct tensor dense = {FRIT_F32, 2, {2, 3}, {3, 1}, 0, data, sizeof data};
    const struct tensor turned = {FRIT_F32, 2, {2, 3}, {1, 2}, 0, data, sizeof data};
    const struct tensor row = {FRIT_F32, 1, {3}, {1}, 0, data, sizeof data};
    const struct tensor i32 = {FRIT_I32, 2, {2, 3}, {3, 1}, 0, ints, sizeof ints};
    const struct tensor f16 = {FRIT_F16, 2, {2, 3}, {3, 1}, 0, halves, sizeof halves};
    const struct tensor *firsts[] = {&dense, &turned, &row};
    uint64_t aliases, workspace;

    for (int i = 0; i < 3; i++) {
        prepare_op(*state,
                   &(struct op_run){.id = FRIT_OP_mul,
                                    .n_in = 2,
                                    .in = {{.tensor = firsts[i]}, {.tensor = &dense}},
                                    .out = &dense},
                   &aliases, &workspace);
        assert_int_equal(aliases, i == 0 ? 3 : 2);
    }
    prepare_op(*state,
               &(struct op_run){.id = FRIT_OP_mul,
                                .n_in = 2,
                                .in = {{.dtype = FRIT_F32, .real = 2}, {.tensor = &dense}},
                                .out = &dense},
               &aliases, &workspace);
    assert_int_equal(aliases, 2);
    prepare_op(
        *state,
        &(struct op_run){.id = FRIT_OP_cast, .n_in = 1, .in = {{.tensor = &f16}}, .out = &i32},
        &aliases, &workspace);
    assert_int_equal(aliases, 0);
    assert_int_equal(workspace, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device),
        cmocka_unit_test(count_alone),
        cmocka_unit_test(listed_rows_become_programs),
        cmocka_unit_test(what_is_not_claimed),
        cmocka_unit_test(any_layout),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(updates_round_once),
        cmocka_unit_test(pools_count_padding),
        cmocka_unit_test(nothing_to_add_up),
        cmocka_unit_test(random_words),
        cmocka_unit_test(places_that_may_be_shared),
    };

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
