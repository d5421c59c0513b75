/* SPDX-License-Identifier: Apache-2.0 */
/* Every instruction whose lanes are independent, with each type that it takes, over the values at
 * which such things break, on a device against eval. */
#include "kernels/emit/spirv/rig.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/emit/row_types.h"
#include "unit.h"

enum { LANES = 64, GROUPS = 16, COUNT = LANES * GROUPS, SPECIALS = 32 };

static struct vulkan_rig *rig;

/* ---- values ---- */

static const uint64_t words_32[] = {
    0,          1,          2,          3,          7,          31,         32,
    100,        127,        128,        255,        256,        32767,      32768,
    65535,      65536,      0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe,
    0xffffff80, 0xffff8000, 0x55555555, 0x12345678, 0xdeadbeef, 16777217,   33554433};
static const uint64_t words_64[] = {0,
                                    1,
                                    2,
                                    3,
                                    7,
                                    63,
                                    255,
                                    65536,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    0x7fffffffffffffff,
                                    0x8000000000000000,
                                    0x8000000000000001,
                                    0xffffffffffffffff,
                                    0xfffffffffffffffe,
                                    0xffffffff80000000,
                                    0xffffffff7fffffff,
                                    0x20000000000001,
                                    0x1000001,
                                    0x7fffffbfffffffff,
                                    0x7fffffc000000000,
                                    0xffffff7fffffffff,
                                    0x123456789abcdef0};
static const double reals[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               0.5,
                               -0.5,
                               1.5,
                               2.5,
                               -2.5,
                               3.7,
                               255.5,
                               65504,
                               65520,
                               65519,
                               1e-5,
                               6e-8,
                               2.9e-8,
                               16777217,
                               3e9,
                               -3e9,
                               2147483648.0,
                               4294967296.0,
                               9.3e18,
                               1.9e19,
                               -9.3e18,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               FLT_MAX,
                               FLT_MIN,
                               -3.14159265358979,
                               1e30};

#define SIZE(array) (sizeof(array) / sizeof(*(array)))

static uint64_t special(uint32_t type, uint32_t i)
{
    double real = reals[i % SIZE(reals)];
    float narrow = (float)real;
    uint64_t bits = 0;

    switch (type) {
    case KIR_B:
        return i & 1;
    case KIR_I32:
        return words_32[i % SIZE(words_32)];
    case KIR_I64:
        return words_64[i % SIZE(words_64)];
    case KIR_F32:
        memcpy(&bits, &narrow, sizeof(narrow));
        return bits;
    default:
        memcpy(&bits, &real, sizeof(real));
        return bits;
    }
}

static uint32_t dtype_of(uint32_t type)
{
    static const uint32_t dtypes[KIR_TYPES] = {0,        FRIT_BOOL, FRIT_I32,
                                               FRIT_I64, FRIT_F32,  FRIT_F64};

    return dtypes[type];
}

/* Operand `which` of each element: all pairs of the first two, thirds in between. */
static uint32_t pattern(uint32_t which, uint32_t i)
{
    return which == 0 ? i % SPECIALS : which == 1 ? i / SPECIALS : i / 3;
}

static void fill(void *data, uint32_t type, uint32_t which)
{
    uint32_t bytes = frit_dtype_bits(dtype_of(type)) / 8;

    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t bits = special(type, pattern(which, i));

        memcpy((uint8_t *)data + (size_t)i * bytes, &bits, bytes);
    }
}

/* ---- one row ---- */

struct row_case {
    uint32_t op, type, result;
    uint64_t imm;
    uint32_t ulps;
};

static uint32_t place(struct kir_module *m)
{
    uint32_t group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    uint32_t first = kir_emit(m, KIR_mul, group, kir_const_i(m, KIR_I32, LANES), KIR_NONE);

    return kir_emit(m, KIR_add, first, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE),
                    KIR_NONE);
}

static bool shifts(uint32_t op)
{
    return op == KIR_shl || op == KIR_shr || op == KIR_sar;
}

static void check_row(const struct row_case *c)
{
    static uint64_t data[4][COUNT];
    const struct kir_op_info *info = kir_op_info(c->op);
    struct spirv_rig_arg args[4] = {{0}};
    uint32_t grid[1][3] = {{GROUPS, 1, 1}}, v[3] = {KIR_NONE, KIR_NONE, KIR_NONE}, at, out;
    struct kir_module m;
    char name[64];

    snprintf(name, sizeof(name), "%s.%s.%s", info->name, kir_type_name(c->type),
             kir_type_name(c->result));
    kir_init(&m, name);
    kir_phase(&m, LANES);
    for (uint32_t i = 0; i < info->n; i++) {
        kir_arg(&m, dtype_of(row_operand(c->op, c->type, i)), KIR_READ);
        fill(data[i], row_operand(c->op, c->type, i), i);
        args[i] = (struct spirv_rig_arg){
            data[i], COUNT * frit_dtype_bits(dtype_of(row_operand(c->op, c->type, i))) / 8};
    }
    out = kir_arg(&m, dtype_of(c->result), KIR_WRITE);
    memset(data[3], 0x77, sizeof(data[3]));
    args[out] = (struct spirv_rig_arg){data[3], COUNT * frit_dtype_bits(dtype_of(c->result)) / 8};
    at = place(&m);
    for (uint32_t i = 0; i < info->n; i++)
        v[i] = kir_emit_as(&m, KIR_load, (enum kir_type)row_operand(c->op, c->type, i), i, at,
                           KIR_NONE, KIR_NONE);
    if (shifts(c->op))
        v[1] = kir_emit(&m, KIR_and, v[1],
                        kir_const_i(&m, (enum kir_type)c->type, c->type == KIR_I32 ? 31 : 63),
                        KIR_NONE);
    at = place(&m);
    kir_emit_imm(
        &m, KIR_store, out, at,
        kir_emit_as(&m, (enum kir_op)c->op, (enum kir_type)c->result, c->imm, v[0], v[1], v[2]),
        KIR_NONE);
    assert_false(m.failed);
    spirv_rig_check(
        rig, &(struct spirv_rig_run){
                 .module = &m, .args = args, .grid = (const uint32_t(*)[3])grid, .ulps = c->ulps});
    kir_fini(&m);
}

/* ---- all rows ---- */

/* What the device may round otherwise. */
static uint32_t ulps_of(uint32_t op)
{
    bool exact = vulkan_is_software(rig);

    return !exact && (op == KIR_div || op == KIR_sqrt) ? 3 : 0;
}

/* ---- a test per row ---- */

enum { MAX_CASES = 256 };

struct list {
    struct row_case cases[MAX_CASES];
    struct CMUnitTest tests[MAX_CASES];
    char names[MAX_CASES][64];
    uint32_t n;
};

static void test_row(void **state)
{
    check_row(*state);
}

static void add(struct list *list, struct row_case c, uint64_t imm)
{
    char *name = list->names[list->n];

    if (list->n == MAX_CASES)
        return;
    c.imm = imm;
    snprintf(name, sizeof(list->names[0]), "%s.%s.%s.%lld", kir_op_info(c.op)->name,
             kir_type_name(c.type), kir_type_name(c.result), (long long)imm);
    list->cases[list->n] = c;
    list->tests[list->n] = (struct CMUnitTest){
        .name = name, .test_func = test_row, .initial_state = &list->cases[list->n]};
    list->n++;
}

static void add_row(struct list *list, const struct row_case *c)
{
    static const int64_t wraps[] = {8, 16, -8, -16};

    if (c->op == KIR_wrap) {
        for (uint32_t i = 0; i < SIZE(wraps); i++)
            add(list, *c, (uint64_t)wraps[i]);
    } else if (c->op == KIR_round) {
        add(list, *c, FRIT_F16);
        add(list, *c, FRIT_BF16);
    } else {
        add(list, *c, 0);
    }
}

static void add_all(struct list *list)
{
    for (uint32_t op = 0; op < KIR_OPS; op++) {
        for (uint32_t type = KIR_B; type <= KIR_F64; type++) {
            struct row_case c = {op, type, row_result(op, type), 0, ulps_of(op)};

            if (c.result == KIR_VOID || op == KIR_scale || op == KIR_dot2 || op == KIR_exp2 ||
                (op == KIR_fma && vulkan_is_software(rig)))
                continue;
            if ((type == KIR_F64 || c.result == KIR_F64) && !vulkan_target(rig)->float64)
                continue;
            add_row(list, &c);
        }
    }
}

int main(void)
{
    struct list *list = calloc(1, sizeof(*list));
    int result = 1;

    rig = vulkan_open();
    if (list && rig) {
        add_all(list);
        printf("%u rows on %s\n", list->n, vulkan_name(rig));
        result = _cmocka_run_group_tests("rows", list->tests, list->n, NULL, NULL);
    }
    if (rig)
        vulkan_close(rig);
    free(list);
    return result;
}
