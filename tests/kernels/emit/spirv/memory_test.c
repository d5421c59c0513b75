/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of every element type, read and written in every manner, on a device against eval. */
#include <stdio.h>
#include <string.h>

#include "kernels/emit/spirv/rig.h"
#include "unit.h"

enum { LANES = 128, GROUPS = 4, COUNT = LANES * GROUPS, LONG = 3 * COUNT };

static struct vulkan_rig *rig;

static const uint32_t dtypes[] = {FRIT_BOOL, FRIT_I8,  FRIT_U8,  FRIT_I16, FRIT_U16,
                                  FRIT_I32,  FRIT_U32, FRIT_I64, FRIT_U64, FRIT_F16,
                                  FRIT_BF16, FRIT_F32, FRIT_F64};

#define SIZE(array) (sizeof(array) / sizeof(*(array)))

/* How an element is found from the number of the lane in the launch. */
enum way {
    WAY_PLAIN,   /* n */
    WAY_ONE_ON,  /* n + 1: not aligned */
    WAY_FOUR_ON, /* n + 4 * parameter */
    WAY_APART,   /* 2 n */
    WAY_BACK,    /* COUNT - 1 - n */
    WAY_SAME,    /* the group */
    WAY_GATHER,  /* what another argument says */
    WAYS
};

enum mask { MASK_NONE, MASK_TAIL, MASK_HOLES, MASK_GROUP, MASKS };

struct build {
    struct kir_module m;
    uint32_t index; /* type of offsets */
    uint32_t lane, group, n;
};

static uint32_t number(struct build *b, int64_t value)
{
    return kir_const_i(&b->m, (enum kir_type)b->index, value);
}

static uint32_t op2(struct build *b, enum kir_op op, uint32_t x, uint32_t y)
{
    return kir_emit(&b->m, op, x, y, KIR_NONE);
}

static uint32_t as_index(struct build *b, uint32_t i32)
{
    return b->index == KIR_I64 ? kir_emit(&b->m, KIR_i64, i32, KIR_NONE, KIR_NONE) : i32;
}

static void begin(struct build *b, const char *name, bool wide)
{
    kir_init(&b->m, name);
    b->m.wide = wide;
    b->index = wide ? KIR_I64 : KIR_I32;
}

static void begin_phase(struct build *b)
{
    kir_phase(&b->m, LANES);
    b->lane = as_index(b, kir_emit(&b->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    b->group = as_index(b, kir_emit_imm(&b->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    b->n = op2(b, KIR_add, op2(b, KIR_mul, b->group, number(b, LANES)), b->lane);
}

static uint32_t offset(struct build *b, enum way way, uint32_t gather)
{
    switch (way) {
    case WAY_ONE_ON:
        return op2(b, KIR_add, b->n, number(b, 1));
    case WAY_FOUR_ON:
        return op2(b, KIR_add, b->n,
                   op2(b, KIR_mul, kir_param(&b->m, (enum kir_type)b->index), number(b, 4)));
    case WAY_APART:
        return op2(b, KIR_mul, b->n, number(b, 2));
    case WAY_BACK:
        return op2(b, KIR_sub, number(b, COUNT - 1), b->n);
    case WAY_SAME:
        return b->group;
    case WAY_GATHER:
        return as_index(b, kir_emit_as(&b->m, KIR_load, KIR_I32, gather, b->n, KIR_NONE, KIR_NONE));
    default:
        return b->n;
    }
}

static uint32_t condition(struct build *b, enum mask mask)
{
    if (mask == MASK_TAIL)
        return op2(b, KIR_lt, b->n, number(b, COUNT - 37));
    if (mask == MASK_HOLES)
        return op2(b, KIR_ne, op2(b, KIR_urem, b->n, number(b, 5)), number(b, 3));
    return op2(b, KIR_ne, b->group, number(b, 2));
}

static void fill(void *data, uint64_t bytes, uint32_t dtype)
{
    uint8_t *to = data;
    uint32_t x = 12345;

    for (uint64_t i = 0; i < bytes; i++) {
        x = x * 1664525 + 1013904223;
        to[i] = dtype == FRIT_BOOL ? x >> 30 & 1 : (uint8_t)(x >> 24);
    }
}

/* Subnormal floats are left out where a device does not keep them. */
static void without_subnormals(void *data, uint64_t count, uint32_t dtype)
{
    uint32_t *f32 = data;
    uint64_t *f64 = data;
    uint16_t *bf16 = data;

    for (uint64_t i = 0; i < count; i++) {
        if (dtype == FRIT_F32 && !(f32[i] & 0x7f800000))
            f32[i] = 0;
        if (dtype == FRIT_F64 && !(f64[i] & 0x7ff0000000000000))
            f64[i] = 0;
        if (dtype == FRIT_BF16 && !(bf16[i] & 0x7f80))
            bf16[i] = 0;
    }
}

/* out[offset] = in[offset], with or without conditions. */
static void check_copy(uint32_t dtype, enum way from, enum way to, enum mask mask, bool wide)
{
    static uint64_t in[LONG], out[LONG];
    static uint32_t gather[COUNT];
    uint32_t bytes = frit_dtype_bits(dtype) / 8, at, value, type = kir_type_of(dtype), test;
    const uint32_t grid[1][3] = {{GROUPS, 1, 1}};
    const uint64_t words[2] = {3, 5};
    struct spirv_rig_arg args[3] = {
        {in, LONG * bytes}, {out, LONG * bytes}, {gather, sizeof(gather)}};
    struct build b;
    char name[64];

    snprintf(name, sizeof(name), "copy.%u.%d.%d.%d.%d", dtype, (int)from, (int)to, (int)mask,
             (int)wide);
    fill(in, sizeof(in), dtype);
    without_subnormals(in, LONG, dtype);
    fill(out, sizeof(out), dtype);
    for (uint32_t i = 0; i < COUNT; i++)
        gather[i] = i * 77 % COUNT;
    begin(&b, name, wide);
    kir_arg(&b.m, dtype, KIR_READ);
    kir_arg(&b.m, dtype, KIR_WRITE);
    kir_arg(&b.m, FRIT_I32, KIR_READ);
    begin_phase(&b);
    test = mask == MASK_NONE ? KIR_NONE : condition(&b, mask);
    at = offset(&b, from, 2);
    if (mask == MASK_NONE)
        value = kir_emit_as(&b.m, KIR_load, (enum kir_type)type, 0, at, KIR_NONE, KIR_NONE);
    else
        value = kir_emit_as(
            &b.m, KIR_load_if, (enum kir_type)type, 0, at, test,
            kir_emit_as(&b.m, KIR_const, (enum kir_type)type, 1, KIR_NONE, KIR_NONE, KIR_NONE));
    at = offset(&b, to, 2);
    kir_emit_imm(&b.m, mask == MASK_NONE ? KIR_store : KIR_store_if, 1, at, value, test);
    assert_false(b.m.failed);
    spirv_rig_check(
        rig, &(struct spirv_rig_run){.module = &b.m, .words = words, .args = args, .grid = grid});
    kir_fini(&b.m);
}

static void test_copies(void **state)
{
    (void)state;
    for (uint32_t d = 0; d < SIZE(dtypes); d++) {
        for (int way = 0; way < WAYS; way++) {
            bool wide = (d + (uint32_t)way) % 2;

            check_copy(dtypes[d], (enum way)way, WAY_PLAIN, MASK_NONE, wide);
            if (way != WAY_SAME)
                check_copy(dtypes[d], WAY_PLAIN, (enum way)way, MASK_NONE, !wide);
        }
        for (int mask = MASK_TAIL; mask < MASKS; mask++) {
            check_copy(dtypes[d], WAY_PLAIN, WAY_PLAIN, (enum mask)mask, false);
            check_copy(dtypes[d], WAY_SAME, WAY_BACK, (enum mask)mask, true);
        }
    }
}

/* ---- conversions that loads and stores make ---- */

static void check_cast(uint32_t from, uint32_t to, const void *in, uint64_t count)
{
    const uint32_t grid[1][3] = {{(uint32_t)(count / LANES), 1, 1}};
    uint64_t bytes = count * frit_dtype_bits(to) / 8;
    void *out = calloc(1, bytes);
    struct spirv_rig_arg args[2] = {{in, count * frit_dtype_bits(from) / 8}, {out, bytes}};
    struct build b;

    assert_non_null(out);
    begin(&b, "cast", false);
    kir_arg(&b.m, from, KIR_READ);
    kir_arg(&b.m, to, KIR_WRITE);
    begin_phase(&b);
    kir_emit_imm(&b.m, KIR_store, 1, b.n,
                 kir_emit_as(&b.m, KIR_load, kir_type_of(from), 0, b.n, KIR_NONE, KIR_NONE),
                 KIR_NONE);
    spirv_rig_check(rig, &(struct spirv_rig_run){.module = &b.m, .args = args, .grid = grid});
    kir_fini(&b.m);
    free(out);
}

static void test_halves(void **state)
{
    enum { ALL = 65536, CLOSE = 8 * ALL };
    static uint16_t halves[ALL];
    static uint32_t floats[CLOSE];

    (void)state;
    for (uint32_t i = 0; i < ALL; i++)
        halves[i] = (uint16_t)i;
    check_cast(FRIT_F16, FRIT_F32, halves, ALL);
    check_cast(FRIT_BF16, FRIT_F32, halves, ALL);
    check_cast(FRIT_F16, FRIT_BF16, halves, ALL);
    /* Floats around each that has 16 bits, and half way between two. */
    for (uint32_t i = 0; i < CLOSE; i++)
        floats[i] = (i >> 3) << 16 | ((i & 4 ? 0x8000u : 0x1000u) + (i & 3) - 1);
    check_cast(FRIT_F32, FRIT_BF16, floats, CLOSE);
    for (uint32_t i = 0; i < CLOSE; i++)
        floats[i] =
            (i & 0x40000 ? 0x80000000 : 0) | ((i & 0x3ffff) * 0x400 + 0x33000000 + (i % 3) - 1);
    check_cast(FRIT_F32, FRIT_F16, floats, CLOSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_halves)};
    int result;

    rig = vulkan_open();
    if (!rig)
        return 1;
    result = cmocka_run_group_tests(tests, NULL, NULL);
    vulkan_close(rig);
    return result;
}
