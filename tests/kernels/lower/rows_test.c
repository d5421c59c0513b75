/* SPDX-License-Identifier: Apache-2.0 */
/* Every elementwise row and element type against a C expression: all pairs of special values, or
 * triples by chance.  The expressions are those of the reference driver (maps.def). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/half.h"
#include "kernels/lower/rig.h"
#include "lower/rows/cost.h"
#include "lower/rows/rows.h"
#include "unit.h"

/* What the expressions see as `l`. */
struct lanes {
    uint32_t dtype;
    int64_t bits;
};

/* ---- what the expressions use ---- */

static double larger(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}

static double smaller(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
}

static uint64_t div_sint(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static double rem_real(double a, double b)
{
    double rest = fmod(a, b);

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t rem_sint(int64_t a, int64_t b)
{
    int64_t rest = b == 0 || b == -1 ? 0 : a % b;

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static uint64_t pow_uint(uint64_t a, uint64_t b)
{
    uint64_t power = 1;

    for (; b; b >>= 1, a *= a)
        power *= b & 1 ? a : 1;
    return power;
}

static uint64_t pow_sint(int64_t a, int64_t b)
{
    if (b >= 0)
        return pow_uint((uint64_t)a, (uint64_t)b);
    if (a == -1)
        return b & 1 ? UINT64_MAX : 1;
    return a == 1;
}

/* ---- a function per row and kind ---- */

typedef double (*real_fn)(const struct lanes *l, double a, double b, double c);
typedef uint64_t (*sint_fn)(const struct lanes *l, int64_t a, int64_t b, int64_t c);
typedef uint64_t (*uint_fn)(const struct lanes *l, uint64_t a, uint64_t b, uint64_t c);

#define USE (void)l, (void)a, (void)b, (void)c
#define REAL_FN(name, r)                                                           \
    static double real_##name(const struct lanes *l, double a, double b, double c) \
    {                                                                              \
        USE;                                                                       \
        return (double)(r);                                                        \
    }
#define SINT_FN(name, s)                                                                \
    static uint64_t sint_##name(const struct lanes *l, int64_t a, int64_t b, int64_t c) \
    {                                                                                   \
        USE;                                                                            \
        return (uint64_t)(s);                                                           \
    }
#define UINT_FN(name, u)                                                                   \
    static uint64_t uint_##name(const struct lanes *l, uint64_t a, uint64_t b, uint64_t c) \
    {                                                                                      \
        USE;                                                                               \
        return (uint64_t)(u);                                                              \
    }
#define MAP_REAL(n, name, r)      REAL_FN(name, r)
#define MAP_INT(n, name, s, u)    SINT_FN(name, s) UINT_FN(name, u)
#define MAP_ALL(n, name, r, s, u) REAL_FN(name, r) SINT_FN(name, s) UINT_FN(name, u)
#define MAP_TEST_REAL(n, name, r) REAL_FN(name, r)
#define MAP_TEST(n, name, any)    REAL_FN(name, any) SINT_FN(name, any) UINT_FN(name, any)
#include "maps.def"

struct row {
    const char *name;
    uint32_t id, n;
    bool test; /* the result is bool */
    real_fn real;
    sint_fn sint;
    uint_fn uint;
};

static const struct row rows[] = {
#define MAP_REAL(n, name, r)   {#name, FRIT_OP_##name, n, false, real_##name, NULL, NULL},
#define MAP_INT(n, name, s, u) {#name, FRIT_OP_##name, n, false, NULL, sint_##name, uint_##name},
#define MAP_ALL(n, name, r, s, u) \
    {#name, FRIT_OP_##name, n, false, real_##name, sint_##name, uint_##name},
#define MAP_TEST_REAL(n, name, r) {#name, FRIT_OP_##name, n, true, real_##name, NULL, NULL},
#define MAP_TEST(n, name, any) \
    {#name, FRIT_OP_##name, n, true, real_##name, sint_##name, uint_##name},
#include "maps.def"
};

/* How far results of functions may be off: ulp, or absolute parts of the least normal step at 1. */
static const struct allowed {
    uint32_t id;
    int64_t ulp;
    double absolute;
} allowed[] = {
#define MATH_1(name, cost, meaning) {FRIT_OP_##name, 3, 0},
#define MATH_2(name, cost, meaning) {FRIT_OP_##name, 3, 0},
#include "math/math.def"
    {FRIT_OP_leaky_relu, 1, 0},
    {FRIT_OP_hard_sigmoid, 1, 1},
};

/* ---- values ---- */

static const double reals[] = {0,
                               -0.0,
                               1,
                               -1,
                               0.5,
                               -0.5,
                               2,
                               -2,
                               3,
                               -3,
                               7.25,
                               -7.25,
                               0.1,
                               -0.1,
                               1e-3,
                               88.5,
                               -88.5,
                               1000.25,
                               -1000.25,
                               3e4,
                               1.0000001,
                               0.9999,
                               6e-5,
                               -2.5,
                               1.5,
                               0x1.fffffep+127, /* roots that lie next to a tie */
                               0x1.fffffffffffffp-1,
                               (double)INFINITY,
                               -(double)INFINITY,
                               (double)NAN};
static const int64_t integers[] = {
    0,     1,     -1,     2,     -2,      3,         -3,        5,         7,        -7,  8,
    15,    16,    31,     32,    63,      64,        127,       128,       -128,     255, 256,
    32767, 32768, -32768, 65535, 1000003, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};

enum {
    N_REALS = sizeof(reals) / sizeof(reals[0]),
    N_INTEGERS = sizeof(integers) / sizeof(integers[0])
};

static void set_special(struct rig *rig, uint32_t value, int64_t number, uint32_t which)
{
    uint32_t dtype = rig->values[value].dtype;

    if (rig_is_real(dtype))
        rig_set_real(rig, value, number, reals[which % N_REALS]);
    else if (dtype == FRIT_BOOL)
        rig_set_int(rig, value, number, which & 1);
    else
        rig_set_int(rig, value, number, integers[which % N_INTEGERS]);
}

static bool type_fits(uint32_t letter, uint32_t dtype)
{
    bool real = rig_is_real(dtype), truth = dtype == FRIT_BOOL;

    switch (letter) {
    case FRIT_LETTER_F:
        return real;
    case FRIT_LETTER_N:
        return !truth;
    case FRIT_LETTER_Z:
        return !truth && !real;
    case FRIT_LETTER_L:
        return !real;
    default:
        return true;
    }
}

static const uint32_t dtypes[] = {FRIT_F64, FRIT_F32, FRIT_F16, FRIT_BF16, FRIT_I64,
                                  FRIT_I32, FRIT_I16, FRIT_I8,  FRIT_U64,  FRIT_U32,
                                  FRIT_U16, FRIT_U8,  FRIT_BOOL};

/* ---- comparing ---- */

/* Numbers in the order of the reals, neighbours one apart. */
static int64_t order_of(uint32_t dtype, double real)
{
    float single = (float)real;
    int64_t bits = 0, sign;
    uint16_t half;

    if (dtype == FRIT_F64) {
        memcpy(&bits, &real, sizeof(real));
        return bits < 0 ? INT64_MIN - bits : bits;
    }
    if (dtype == FRIT_F32) {
        bits = half_bits_of(single);
        sign = bits >> 31;
        bits &= 0x7fffffff;
        return sign ? -bits : bits;
    }
    half = half_store(single, frit_dtype_info_of(dtype).fraction);
    bits = half & 0x7fff;
    return half >> 15 ? -bits : bits;
}

static bool near(const struct row *row, uint32_t dtype, double found, double wanted)
{
    static const double steps[] = {
        [FRIT_F64] = 0x1p-52, [FRIT_F32] = 0x1p-23, [FRIT_F16] = 0x1p-10, [FRIT_BF16] = 0x1p-7};
    int64_t ulp = dtype == FRIT_F16 || dtype == FRIT_BF16 ? 1 : 0, apart;
    double absolute = 0;

    if (isnan(found) || isnan(wanted))
        return isnan(found) && isnan(wanted);
    for (uint32_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (allowed[i].id == row->id) {
            ulp = allowed[i].ulp;
            absolute = allowed[i].absolute * steps[dtype];
        }
    if (row->id == FRIT_OP_gelu) /* cancels where the expression does not */
        absolute = 4 * steps[dtype];
    apart = order_of(dtype, found) - order_of(dtype, wanted);
    return (apart <= ulp && apart >= -ulp) || fabs(found - wanted) <= absolute;
}

static double expected_real(const struct row *row, const struct lanes *l, const struct rig *rig,
                            const uint32_t *in, int64_t i)
{
    double x[3] = {0};

    for (uint32_t k = 0; k < row->n; k++)
        x[k] = rig_get_real(rig, in[k], i);
    return row->real(l, x[0], x[1], x[2]);
}

static int64_t expected_int(const struct row *row, const struct lanes *l, const struct rig *rig,
                            const uint32_t *in, int64_t i)
{
    int64_t x[3] = {0};

    for (uint32_t k = 0; k < row->n; k++)
        x[k] = rig_get_int(rig, in[k], i);
    if (l->dtype >= FRIT_U64)
        return (int64_t)row->uint(l, (uint64_t)x[0], (uint64_t)x[1], (uint64_t)x[2]);
    return (int64_t)row->sint(l, x[0], x[1], x[2]);
}

/* Values that the row does not promise. */
static bool is_open(const struct row *row, const struct rig *rig, const uint32_t *in, int64_t i)
{
    double x;

    if (!rig_is_real(rig->values[in[0]].dtype))
        return false;
    x = rig_get_real(rig, in[0], i);
    return (row->id == FRIT_OP_gelu || row->id == FRIT_OP_silu) && isinf(x) && x < 0;
}

static void check_row(const struct row *row, const struct lanes *l, const struct rig *rig,
                      const uint32_t *in, uint32_t out)
{
    for (int64_t i = 0; i < rig_count(rig, out); i++) {
        if (is_open(row, rig, in, i))
            continue;
        if (rig_is_real(l->dtype)) {
            double wanted = expected_real(row, l, rig, in, i);
            double found = row->test ? (double)rig_get_int(rig, out, i) : rig_get_real(rig, out, i);

            if (row->test ? found != wanted : !near(row, l->dtype, found, wanted))
                fail_msg("%s, type %u: of %.9g, %.9g it is %.17g, not %.17g", row->name, l->dtype,
                         rig_get_real(rig, in[0], i), row->n > 1 ? rig_get_real(rig, in[1], i) : 0,
                         found, wanted);
        } else {
            uint64_t mask = l->bits == 64 ? UINT64_MAX : (1ull << l->bits) - 1;
            uint64_t wanted = (uint64_t)expected_int(row, l, rig, in, i);
            uint64_t found = (uint64_t)rig_get_int(rig, out, i);

            if ((found ^ wanted) & (row->test ? 0xff : mask))
                fail_msg("%s, type %u: of %lld, %lld it is %lld, not %lld", row->name, l->dtype,
                         (long long)rig_get_int(rig, in[0], i),
                         row->n > 1 ? (long long)rig_get_int(rig, in[1], i) : 0, (long long)found,
                         (long long)wanted);
        }
    }
}

/* The value as it is before it is stored, seen by another op, is the same. */
static void check_kept(const struct row *row, const struct rig *rig, uint32_t out, uint32_t wide)
{
    bool is_unsigned = rig->values[out].dtype >= FRIT_U64;
    int64_t mask = INT64_MAX;

    if (is_unsigned)
        mask = (int64_t)(UINT64_MAX >> (64 - frit_dtype_bits(rig->values[out].dtype)));
    for (int64_t i = 0; i < rig_count(rig, out); i++) {
        bool same;

        if (rig_is_real(rig->values[out].dtype)) {
            double kept = rig_get_real(rig, wide, i), found = rig_get_real(rig, out, i);

            same = kept == found || (isnan(kept) && isnan(found));
        } else {
            same = rig_get_int(rig, wide, i) ==
                   (is_unsigned ? rig_get_int(rig, out, i) & mask : rig_get_int(rig, out, i));
        }
        if (!same)
            fail_msg("%s: element %d is not what is stored, type %u", row->name, (int)i,
                     rig->values[out].dtype);
    }
}

/* What rows.def says of the number of instructions, beside those that every kernel has. */
static void check_cost(const struct row *row, const struct rig *rig)
{
    uint32_t n = rig->module.phases[0].n, cost = lower_cost(row->id);

    if (n > cost + cost / 4 + 20 || n + 4 < cost)
        fail_msg("%s: %u instructions, %u in rows.def", row->name, n, cost);
}

static void run_row(const struct row *row, uint32_t dtype, bool exact)
{
    const struct lanes l = {dtype, frit_dtype_bits(dtype)};
    const int64_t n = rig_is_real(dtype) ? N_REALS : N_INTEGERS, dims = row->n == 1 ? n : n * n;
    const uint32_t result = row->test ? FRIT_BOOL : dtype;
    const frit_attrs_cast widen = {.struct_size = sizeof(widen),
                                   .dtype = rig_is_real(result) ? FRIT_F64 : FRIT_I64};
    uint32_t in[3], out, wide;
    struct rig_in operands[3];
    uint64_t chance = 1;
    struct rig rig;

    rig_init(&rig);
    rig.target.exact_div = exact;
    for (uint32_t k = 0; k < row->n; k++) {
        in[k] = rig_input(&rig, dtype, 1, &dims);
        operands[k] = rig_value(in[k]);
        for (int64_t i = 0; i < dims; i++)
            set_special(&rig, in[k], i,
                        k == 0   ? (uint32_t)(i % n)
                        : k == 1 ? (uint32_t)(i / n)
                                 : rig_random(&chance, 1000));
    }
    out = rig_op(&rig, row->id, row->n, operands, NULL, result, 1, &dims);
    wide = rig_op(&rig, FRIT_OP_cast, 1, (struct rig_in[]){rig_value(out)}, &widen,
                  (uint32_t)widen.dtype, 1, &dims);
    rig_keep(&rig, out);
    rig_run(&rig, &sched_map);
    check_row(row, &l, &rig, in, out);
    check_kept(row, &rig, out, wide);
    if (dtype == FRIT_F32 && !exact)
        check_cost(row, &rig);
    rig_fini(&rig);
}

static void test_maps(void **state)
{
    uint32_t n = 0;

    (void)state;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
            if (!lower_row_of(rows[i].id) ||
                !type_fits(frit_op_info_at(rows[i].id)->in[0].letter, dtypes[k]))
                continue;
            run_row(&rows[i], dtypes[k], true);
            run_row(&rows[i], dtypes[k], false);
            n++;
        }
    assert_true(n > 100);
}

/* ---- casts ---- */

static void expect_cast(uint32_t from, uint32_t to, const struct rig *rig, uint32_t x, uint32_t y,
                        int64_t i)
{
    bool from_real = rig_is_real(from), from_unsigned = from >= FRIT_U64 && from != FRIT_BOOL;
    int64_t whole = from_real ? 0 : rig_get_int(rig, x, i), bits = frit_dtype_bits(to);
    double real = from_real       ? rig_get_real(rig, x, i)
                  : from_unsigned ? (double)(uint64_t)whole
                                  : (double)whole;

    if (rig_is_real(to)) {
        long double exact = from_real       ? (long double)real
                            : from_unsigned ? (long double)(uint64_t)whole
                                            : (long double)whole;
        double found = rig_get_real(rig, y, i), wide = (double)exact;

        if (isnan(real)) {
            assert_true(isnan(found));
            return;
        }
        if (to == FRIT_F64)
            assert_true(found == wide);
        else if (to == FRIT_F32)
            assert_true(found == (double)(float)exact);
        else /* nearest: no neighbour is nearer, and of two the even one */
            for (int step = -1; step <= 1; step += 2) {
                int64_t order = order_of(to, found);
                uint16_t bits16 =
                    (uint16_t)((order < 0 ? -order : order) + (order < 0 ? -step : step));
                double next = (double)half_load(bits16, frit_dtype_info_of(to).fraction);
                long double here, there;

                if (isinf(found) || isinf(next) || bits16 > 0x7fff)
                    continue;
                next = order < 0 ? -next : next;
                here = fabsl(exact - (long double)found);
                there = fabsl(exact - (long double)next);
                assert_true(here < there || (here == there && !(order & 1)));
            }
        return;
    }
    if (to == FRIT_BOOL) {
        assert_int_equal(rig_get_int(rig, y, i), from_real ? real != 0 || isnan(real) : whole != 0);
        return;
    }
    if (from_real) {
        bool is_unsigned = to >= FRIT_U64;
        double high = ldexp(1, (int)bits - !is_unsigned), low = is_unsigned ? 0 : -high;

        real = trunc(real);
        if (isnan(real))
            whole = 0;
        else if (real >= high)
            whole = is_unsigned ? (int64_t)(UINT64_MAX >> (64 - bits)) : INT64_MAX >> (64 - bits);
        else if (real <= low)
            whole = is_unsigned ? 0 : INT64_MIN >> (64 - bits);
        else
            whole = is_unsigned ? (int64_t)(uint64_t)real : (int64_t)real;
    }
    assert_true(((rig_get_int(rig, y, i) ^ whole) & (bits == 64 ? -1 : (1ll << bits) - 1)) == 0);
}

static void run_cast(uint32_t from, uint32_t to)
{
    static const double more[] = {
        65504,        65519.999,     65520,        2049.0000001, 1.00048828125, 3.4e38,
        1e300,        -1e-300,       127.5,        -128.9,       255.5,         256,
        2147483647.5, -2147483648.5, 4294967295.5, 9.3e18,       1.9e19,        1.0019531250000002,
        5.96e-8,      2.98e-8};
    const int64_t dims = 700;
    const frit_attrs_cast attrs = {.struct_size = sizeof(attrs), .dtype = to};
    uint64_t chance = from * 32 + to;
    uint32_t x, y;
    struct rig rig;

    rig_init(&rig);
    x = rig_input(&rig, from, 1, &dims);
    for (int64_t i = 0; i < dims; i++) {
        int64_t near = (int64_t)1 << rig_random(&chance, 63);

        if (i < 64)
            set_special(&rig, x, i, (uint32_t)i);
        else if (i < 84 && rig_is_real(from))
            rig_set_real(&rig, x, i, more[i - 64]);
        else if (rig_is_real(from))
            rig_set_real(
                &rig, x, i,
                ldexp((double)rig_random(&chance, 1u << 30), (int)rig_random(&chance, 60) - 50) *
                    (i & 1 ? -1 : 1));
        else if (from == FRIT_BOOL)
            rig_set_int(&rig, x, i, i & 1);
        else /* near powers of two, where the last bits decide how a half rounds */
            rig_set_int(&rig, x, i,
                        (near + near / 512 * rig_random(&chance, 4) + rig_random(&chance, 3) - 1) *
                            (i & 1 ? -1 : 1));
    }
    y = rig_op(&rig, FRIT_OP_cast, 1, (struct rig_in[]){rig_value(x)}, &attrs, to, 1, &dims);
    rig_run(&rig, &sched_map);
    for (int64_t i = 0; i < dims; i++)
        expect_cast(from, to, &rig, x, y, i);
    rig_fini(&rig);
}

static void test_casts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        for (uint32_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++)
            run_cast(dtypes[i], dtypes[k]);
}

/* ---- choosing and copying ---- */

static void test_choices(void **state)
{
    const int64_t dims = 40;

    (void)state;
    for (uint32_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
        uint32_t mask, a, b, where, fill, copy;
        struct rig rig;

        rig_init(&rig);
        mask = rig_input(&rig, FRIT_BOOL, 1, &dims);
        a = rig_input(&rig, dtypes[k], 1, &dims);
        b = rig_input(&rig, dtypes[k], 1, &dims);
        for (int64_t i = 0; i < dims; i++) {
            rig_set_int(&rig, mask, i, i % 3 == 0);
            set_special(&rig, a, i, (uint32_t)i % 20);
            set_special(&rig, b, i, (uint32_t)i % 20 + 3);
        }
        where = rig_op(&rig, FRIT_OP_where, 3,
                       (struct rig_in[]){rig_value(mask), rig_value(a), rig_value(b)}, NULL,
                       dtypes[k], 1, &dims);
        fill = rig_op(&rig, FRIT_OP_mask_fill, 3,
                      (struct rig_in[]){rig_value(a), rig_value(mask),
                                        rig_is_real(dtypes[k]) ? rig_real(dtypes[k], 1)
                                                               : rig_int(dtypes[k], 1)},
                      NULL, dtypes[k], 1, &dims);
        copy = rig_op(&rig, FRIT_OP_copy, 1, (struct rig_in[]){rig_value(b)}, NULL, dtypes[k], 1,
                      &dims);
        rig_run(&rig, &sched_map);
        for (int64_t i = 0; i < dims; i++) {
            bool set = i % 3 == 0;

            assert_int_equal(rig_get_int(&rig, where, i), rig_get_int(&rig, set ? a : b, i));
            assert_int_equal(rig_get_int(&rig, copy, i), rig_get_int(&rig, b, i));
            if (!set)
                assert_int_equal(rig_get_int(&rig, fill, i), rig_get_int(&rig, a, i));
            else if (rig_is_real(dtypes[k]))
                assert_true(rig_get_real(&rig, fill, i) == 1);
            else
                assert_int_equal(rig_get_int(&rig, fill, i), 1);
        }
        rig_fini(&rig);
    }
}

/* ---- the list ---- */

/* The rows of the elementwise classes and views are all there, but a view that the host alone
 * makes: its elements are of another type. */
static void test_list(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *info = frit_op_info_at(id);
        bool known = lower_row_of(id) || view_row_of(id);

        if (!info || info->cls < FRIT_CLASS_VIEW || info->cls > FRIT_CLASS_MAP ||
            id == FRIT_OP_bitcast)
            continue;
        if (!known)
            fail_msg("%s is missing", info->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
