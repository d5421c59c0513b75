/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of eval.def with numbers whose results are known, one lane at a time. */
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ir/eval_rows.h"
#include "kernels/ir/rig.h"

struct row_case {
    uint32_t op, type;
    uint64_t a, b, c; /* c is the immediate too */
    uint64_t want;
};

#define F bits_f32
#define D bits_f64
#define U (uint32_t)

/* The bits of a signed number. */
static uint64_t L(int64_t value)
{
    return (uint64_t)value;
}

static void check_case(const struct row_case *row)
{
    uint64_t out = 0xeeeeeeeeeeeeeeee, a = row->a, b = row->b, c = row->c;
    struct eval_lanes lanes = {1, c, &out, &a, &b, &c};

    eval_row(row->op, row->type)(&lanes);
    if (out != row->want)
        fail_msg("%s of %s: %llx %llx %llx gives %llx, not %llx", kir_op_info(row->op)->name,
                 kir_type_name(row->type), (unsigned long long)a, (unsigned long long)b,
                 (unsigned long long)c, (unsigned long long)out, (unsigned long long)row->want);
}

static void check_all(const struct row_case *rows, size_t n, bool seen[KIR_OPS][KIR_TYPES])
{
    for (size_t i = 0; i < n; i++) {
        check_case(&rows[i]);
        seen[rows[i].op][rows[i].type] = true;
    }
}

#define CHECK(rows) check_all(rows, sizeof(rows) / sizeof(*(rows)), seen)
#define ROW(op, TYPE, ...)                \
    {                                     \
        KIR_##op, KIR_##TYPE, __VA_ARGS__ \
    }

static void check_arithmetic(bool seen[KIR_OPS][KIR_TYPES])
{
    const struct row_case rows[] = {
        ROW(add, I32, U - 1, 3, 0, 2),
        ROW(add, I64, L(-1), 3, 0, 2),
        ROW(add, F32, F(1), F(0x1p-24f), 0, F(1)),
        ROW(add, F64, D(1), D(0x1p-24), 0, D(1 + 0x1p-24)),
        ROW(sub, I32, 2, 3, 0, U - 1),
        ROW(sub, I64, 2, 3, 0, L(-1)),
        ROW(sub, F32, F(2), F(3), 0, F(-1)),
        ROW(sub, F64, D(2), D(3), 0, D(-1)),
        ROW(mul, I32, 0x10001, 0x10001, 0, 0x20001),
        ROW(mul, I64, 0x100000001, 0x100000001, 0, 0x200000001),
        ROW(mul, F32, F(3), F(-2), 0, F(-6)),
        ROW(mul, F64, D(3), D(-2), 0, D(-6)),
        ROW(div, F32, F(1), F(3), 0, F(0x1.555556p-2f)),
        ROW(div, F64, D(1), D(3), 0, D(0x1.5555555555555p-2)),
        ROW(div, F32, F(1), F(0), 0, F(INFINITY)),
        /* (1 + e)(1 - e) - 1 = -e^2, which is lost where the product rounds. */
        ROW(fma, F32, F(1 + 0x1p-20f), F(1 - 0x1p-20f), F(-1), F(-0x1p-40f)),
        ROW(fma, F64, D(1 + 0x1p-40), D(1 - 0x1p-40), D(-1), D(-0x1p-80)),
        ROW(sqrt, F32, F(2), 0, 0, F(0x1.6a09e6p0f)),
        ROW(sqrt, F64, D(2), 0, 0, D(0x1.6a09e667f3bcdp0)),
        ROW(floor, F32, F(-1.5f), 0, 0, F(-2)),
        ROW(floor, F64, D(-1.5), 0, 0, D(-2)),
        ROW(ceil, F32, F(-1.5f), 0, 0, F(-1)),
        ROW(ceil, F64, D(-1.5), 0, 0, D(-1)),
        ROW(trunc, F32, F(-1.5f), 0, 0, F(-1)),
        ROW(trunc, F64, D(1.5), 0, 0, D(1)),
        ROW(rint, F32, F(2.5f), 0, 0, F(2)),
        ROW(rint, F64, D(3.5), 0, 0, D(4)),
        ROW(rint, F32, F(-0.25f), 0, 0, F(-0.0f)),
        ROW(neg, I32, U INT32_MIN, 0, 0, U INT32_MIN),
        ROW(neg, I64, 5, 0, 0, L(-5)),
        ROW(neg, F32, F(0), 0, 0, F(-0.0f)),
        ROW(neg, F64, D(NAN), 0, 0, D(-NAN)),
        ROW(abs, I32, U - 7, 0, 0, 7),
        ROW(abs, I32, U INT32_MIN, 0, 0, U INT32_MIN),
        ROW(abs, I64, L(INT64_MIN), 0, 0, L(INT64_MIN)),
        ROW(abs, F32, F(-0.0f), 0, 0, F(0)),
        ROW(abs, F64, D(-NAN), 0, 0, D(NAN)),
        ROW(fmin, F32, F(1), F(NAN), 0, F(NAN)),
        ROW(fmin, F32, F(NAN), F(1), 0, F(NAN)),
        ROW(fmin, F64, D(1), D(2), 0, D(1)),
        ROW(scale, F32, F(3), F(-2), 0, F(0.75f)),
        ROW(scale, F32, F(0x1.8p0f), F(-149), 0, F(0x1p-148f)),
        ROW(scale, F32, F(0x1p-149f), F(276), 0, F(0x1p127f)),
        ROW(scale, F32, F(-1), F(128), 0, F(-INFINITY)),
        ROW(scale, F32, F(1), F(NAN), 0, F(NAN)),
        ROW(exp2, F32, F(3), 0, 0, F(8)),
        ROW(exp2, F32, F(-INFINITY), 0, 0, F(0)),
        ROW(exp2, F32, F(-127), 0, 0, F(0)),
        ROW(exp2, F32, F(NAN), 0, 0, F(NAN)),
        /* 2 * 3 + 1 * 5 + 1; the second product first: 2^24 + 1 is 2^24, then 2 more. */
        ROW(dot2, F32, 0x3f804000, 0x40a04040, F(1), F(12)),
        ROW(dot2, F32, 0x3f804000, 0x3f803f80, F(0x1p24f), F(0x1p24f + 2)),
        ROW(dot2, F32, 0x00010080, 0x7f003f80, F(0x1p-149f), F(0x1p-126f)),
        ROW(dot2, F32, 0x7fc00000, 0, 0, F(NAN)),
        ROW(fmax, F32, F(NAN), F(1), 0, F(NAN)),
        ROW(fmax, F64, D(1), D(NAN), 0, D(NAN)),
        ROW(fmax, F64, D(1), D(2), 0, D(2)),
    };

    CHECK(rows);
}

static void check_integers(bool seen[KIR_OPS][KIR_TYPES])
{
    const struct row_case rows[] = {
        ROW(sdiv, I32, U - 7, 2, 0, U - 3),
        ROW(sdiv, I32, U - 7, 0, 0, 0),
        ROW(sdiv, I32, U INT32_MIN, U - 1, 0, U INT32_MIN),
        ROW(sdiv, I64, L(INT64_MIN), L(-1), 0, L(INT64_MIN)),
        ROW(sdiv, I64, L(-7), 2, 0, L(-3)),
        ROW(udiv, I32, U - 1, 2, 0, INT32_MAX),
        ROW(udiv, I32, 1, 0, 0, 0),
        ROW(udiv, I64, L(-1), 2, 0, INT64_MAX),
        ROW(udiv, I64, 1, 0, 0, 0),
        ROW(srem, I32, U - 7, 2, 0, U - 1),
        ROW(srem, I32, U - 7, 0, 0, U - 7),
        ROW(srem, I64, L(INT64_MIN), L(-1), 0, 0),
        ROW(srem, I64, L(-7), 4, 0, L(-3)),
        ROW(urem, I32, U - 1, 16, 0, 15),
        ROW(urem, I32, 9, 0, 0, 9),
        ROW(urem, I64, L(-1), 16, 0, 15),
        ROW(urem, I64, 9, 0, 0, 9),
        ROW(mulhi, I32, U - 1, U - 1, 0, U - 2),
        ROW(and, B, 1, 0, 0, 0),
        ROW(and, I32, 12, 10, 0, 8),
        ROW(and, I64, 12, 10, 0, 8),
        ROW(or, B, 1, 0, 0, 1),
        ROW(or, I32, 12, 10, 0, 14),
        ROW(or, I64, 12, 10, 0, 14),
        ROW(xor, B, 1, 1, 0, 0),
        ROW(xor, I32, 12, 10, 0, 6),
        ROW(xor, I64, 12, 10, 0, 6),
        ROW(not, B, 1, 0, 0, 0),
        ROW(not, I32, 0, 0, 0, U - 1),
        ROW(not, I64, 0, 0, 0, L(-1)),
        ROW(shl, I32, 0xc0000001, 1, 0, 0x80000002),
        ROW(shl, I64, 1, 63, 0, L(INT64_MIN)),
        ROW(shr, I32, U - 1, 31, 0, 1),
        ROW(shr, I32, 1, 32, 0, U - 1),
        ROW(shr, I64, L(-1), 63, 0, 1),
        ROW(sar, I32, U - 8, 2, 0, U - 2),
        ROW(sar, I64, L(-8), 2, 0, L(-2)),
        ROW(smin, I32, U - 1, 1, 0, U - 1),
        ROW(smin, I64, L(-1), 1, 0, L(-1)),
        ROW(smax, I32, U - 1, 1, 0, 1),
        ROW(smax, I64, L(-1), 1, 0, 1),
        ROW(umin, I32, U - 1, 1, 0, 1),
        ROW(umin, I64, L(-1), 1, 0, 1),
        ROW(umax, I32, U - 1, 1, 0, U - 1),
        ROW(umax, I64, L(-1), 1, 0, L(-1)),
    };

    CHECK(rows);
}

static void check_comparisons(bool seen[KIR_OPS][KIR_TYPES])
{
    const struct row_case rows[] = {
        ROW(eq, B, 1, 1, 0, 1),
        ROW(eq, I32, 5, 6, 0, 0),
        ROW(eq, I64, 5, 5, 0, 1),
        ROW(eq, F32, F(0), F(-0.0f), 0, 1),
        ROW(eq, F64, D(NAN), D(NAN), 0, 0),
        ROW(ne, B, 1, 0, 0, 1),
        ROW(ne, I32, 5, 5, 0, 0),
        ROW(ne, I64, 5, 6, 0, 1),
        ROW(ne, F32, F(NAN), F(NAN), 0, 1),
        ROW(ne, F64, D(1), D(1), 0, 0),
        ROW(lt, I32, U - 1, 0, 0, 1),
        ROW(lt, I64, L(-1), 0, 0, 1),
        ROW(lt, F32, F(-1), F(0), 0, 1),
        ROW(lt, F64, D(NAN), D(0), 0, 0),
        ROW(le, I32, 5, 5, 0, 1),
        ROW(le, I64, 6, 5, 0, 0),
        ROW(le, F32, F(0), F(NAN), 0, 0),
        ROW(le, F64, D(1), D(1), 0, 1),
        ROW(ult, I32, U - 1, 0, 0, 0),
        ROW(ult, I64, 0, L(-1), 0, 1),
        ROW(ule, I32, 5, 5, 0, 1),
        ROW(ule, I64, L(-1), 5, 0, 0),
        ROW(select, B, 1, 0, 0, 0),
        ROW(select, I32, 5, 6, 1, 5),
        ROW(select, I64, 5, 6, 0, 6),
        ROW(select, F32, F(1), F(2), 1, F(1)),
        ROW(select, F64, D(1), D(2), 0, D(2)),
    };

    CHECK(rows);
}

static void check_conversions(bool seen[KIR_OPS][KIR_TYPES])
{
    const struct row_case rows[] = {
        ROW(wrap, I32, 0x1ff, 0, 8, U - 1),
        ROW(wrap, I32, 0x1ff, 0, L(-8), 0xff),
        ROW(wrap, I32, 0x18000, 0, 16, U - 0x8000),
        ROW(wrap, I32, 0x18000, 0, L(-16), 0x8000),
        ROW(round, F32, F(1 + 0x1p-11f), 0, FRIT_F16, F(1)),
        ROW(round, F32, F(1 + 0x3p-11f), 0, FRIT_F16, F(1 + 0x1p-9f)),
        ROW(round, F32, F(65520), 0, FRIT_F16, F(INFINITY)),
        ROW(round, F32, F(65520), 0, FRIT_BF16, F(65536)),
        ROW(i32, B, 1, 0, 0, 1),
        ROW(i32, I64, 0x1fffffffe, 0, 0, U - 2),
        ROW(i32, F32, F(-1.9f), 0, 0, U - 1),
        ROW(i32, F32, F(3e9f), 0, 0, INT32_MAX),
        ROW(i32, F32, F(NAN), 0, 0, 0),
        ROW(i32, F64, D(-3e9), 0, 0, U INT32_MIN),
        ROW(i32, F64, D(2147483647.5), 0, 0, INT32_MAX),
        ROW(i64, B, 1, 0, 0, 1),
        ROW(i64, I32, U - 1, 0, 0, L(-1)),
        ROW(i64, F32, F(1e19f), 0, 0, INT64_MAX),
        ROW(i64, F64, D(-1e19), 0, 0, L(INT64_MIN)),
        ROW(i64, F64, D(-1.5), 0, 0, L(-1)),
        ROW(u64, I32, U - 1, 0, 0, UINT32_MAX),
        ROW(u64, F32, F(1e19f), 0, 0, 9999999980506447872u),
        ROW(u64, F64, D(-1), 0, 0, 0),
        ROW(u64, F64, D(2e19), 0, 0, UINT64_MAX),
        ROW(u32, F32, F(3e9f), 0, 0, 3000000000u),
        ROW(u32, F64, D(5e9), 0, 0, UINT32_MAX),
        ROW(f32, B, 1, 0, 0, F(1)),
        ROW(f32, I32, U - 16777217, 0, 0, F(-16777216)),
        ROW(f32, I64, L(INT64_MIN), 0, 0, F(-0x1p63f)),
        ROW(f32, F64, D(1 + 0x1p-24), 0, 0, F(1)),
        ROW(f64, B, 1, 0, 0, D(1)),
        ROW(f64, I32, U - 3, 0, 0, D(-3)),
        ROW(f64, I64, L(-3), 0, 0, D(-3)),
        ROW(f64, F32, F(0.1f), 0, 0, D(0x1.99999ap-4)),
        ROW(uf32, I32, U - 1, 0, 0, F(0x1p32f)),
        ROW(uf32, I64, L(-1), 0, 0, F(0x1p64f)),
        ROW(uf64, I32, U - 1, 0, 0, D(4294967295.0)),
        ROW(uf64, I64, L(-1), 0, 0, D(0x1p64)),
        ROW(bits, I32, 0x3f800000, 0, 0, F(1)),
        ROW(bits, F32, F(2), 0, 0, 0x40000000),
        ROW(bits, I64, 0x3ff0000000000000, 0, 0, D(1)),
        ROW(bits, F64, D(2), 0, 0, 0x4000000000000000),
    };

    CHECK(rows);
}

static void test_rows(void **state)
{
    bool seen[KIR_OPS][KIR_TYPES] = {0};

    (void)state;
    check_arithmetic(seen);
    check_integers(seen);
    check_comparisons(seen);
    check_conversions(seen);
#define EVAL_ROW(op, TYPE, from, to, ...) \
    if (!seen[KIR_##op][KIR_##TYPE])      \
        fail_msg("%s of %s has no case", #op, #TYPE);
#include "ir/eval.def"
#undef EVAL_ROW
}

static bool takes(const struct kir_op_info *info, uint32_t type)
{
    switch (info->operands[0]) {
    case 'a':
        return type != KIR_B;
    case 'n':
        return type == KIR_I32 || type == KIR_I64;
    case 'f':
        return type == KIR_F32 || type == KIR_F64;
    case 'l':
        return type == KIR_B || type == KIR_I32 || type == KIR_I64;
    case 'v':
        return type == (uint32_t)info->type;
    default:
        return true;
    }
}

/* What verify lets pass has a row, but for what moves values between lanes. */
static void test_complete(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < KIR_OPS; op++) {
        const struct kir_op_info *info = kir_op_info(op);
        bool itself = op == KIR_exchange || op == KIR_shift || op == KIR_first;

        if (!info->n || info->result == KIR_RESULT_NONE || info->result == KIR_RESULT_FREE)
            continue;
        for (uint32_t type = KIR_B; type < KIR_TYPES; type++) {
            bool conversion = info->result == KIR_RESULT_TYPE && info->n == 1 &&
                              info->imm == KIR_IMM_NONE && type == (uint32_t)info->type &&
                              info->operands[0] != 'v';

            if ((eval_row(op, type) != NULL) != (takes(info, type) && !itself && !conversion))
                fail_msg("%s of %s", info->name, kir_type_name(type));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
