/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize among elementwise ops, and the quantize schedule, against plain loops in double over
 * lists of all values of a type: every packed type, scale type and block, NaN and ties, elements
 * that do not fill the last byte. */
#include <math.h>
#include <string.h>

#include "ir/verify.h"
#include "kernels/lower/fail_allocations.h"
#include "unit.h"

static const uint32_t packed_types[] = {FRIT_F8E4M3,     FRIT_F8E5M2, FRIT_F8E4M3FNUZ,
                                        FRIT_F8E5M2FNUZ, FRIT_F8E8M0, FRIT_F4E2M1,
                                        FRIT_Q8,         FRIT_Q4,     FRIT_Q2};

enum { N_TYPES = sizeof(packed_types) / sizeof(packed_types[0]), SCALE_TYPES = 6 };

/* ---- packed values ---- */

static bool is_whole(uint32_t dtype)
{
    return dtype == FRIT_Q8 || dtype == FRIT_Q4 || dtype == FRIT_Q2;
}

static bool is_fnuz(uint32_t dtype)
{
    return dtype == FRIT_F8E4M3FNUZ || dtype == FRIT_F8E5M2FNUZ;
}

static double small_value(uint32_t fraction, int bias, uint32_t code)
{
    double one = (double)(1u << fraction), part = (double)(code & ((1u << fraction) - 1));
    int exponent = (int)(code >> fraction);

    return exponent ? ldexp(part + one, exponent - bias - (int)fraction)
                    : ldexp(part, 1 - bias - (int)fraction);
}

static double value_of(uint32_t dtype, uint32_t code)
{
    uint32_t width = frit_dtype_bits(dtype), sign = 1u << (width - 1), size = code & (sign - 1);
    double value;

    if (is_whole(dtype))
        return (double)size - (code & sign ? (double)sign : 0);
    if (dtype == FRIT_F8E8M0)
        return code == 0xff ? (double)NAN : ldexp(1, (int)code - 127);
    if (is_fnuz(dtype) && code == sign)
        return (double)NAN;
    if (dtype == FRIT_F8E4M3FNUZ)
        value = small_value(3, 8, size);
    else if (dtype == FRIT_F8E5M2FNUZ)
        value = small_value(2, 16, size);
    else if (dtype == FRIT_F8E4M3)
        value = size == 0x7f ? (double)NAN : small_value(3, 7, size);
    else if (dtype == FRIT_F8E5M2)
        value = size > 0x7c ? (double)NAN
                            : (size == 0x7c ? (double)INFINITY : small_value(2, 15, size));
    else
        value = small_value(1, 1, size);
    return code & sign ? -value : value;
}

static bool may_be(uint32_t dtype, bool symmetric, uint32_t code)
{
    double lowest = -(double)(1u << (frit_dtype_bits(dtype) - 1));

    return isfinite(value_of(dtype, code)) &&
           (!is_whole(dtype) || !symmetric || value_of(dtype, code) > lowest);
}

/* The nearest of all, of two the even one. */
static uint32_t code_of(uint32_t dtype, bool symmetric, double real)
{
    uint32_t n = 1u << frit_dtype_bits(dtype), best = UINT32_MAX;

    if (isnan(real))
        return dtype == FRIT_F8E8M0                           ? 0xff
               : is_fnuz(dtype)                               ? 0x80
               : dtype == FRIT_F8E4M3 || dtype == FRIT_F8E5M2 ? 0x7f
                                                              : 0;
    real = dtype == FRIT_F8E8M0 ? fmin(fmax(real, 0), 1e39) : fmin(fmax(real, -1e9), 1e9);
    for (uint32_t code = 0; code < n; code++) {
        double value = value_of(dtype, code), far, least;

        if (!may_be(dtype, symmetric, code) ||
            (!is_whole(dtype) && dtype != FRIT_F8E8M0 && !(is_fnuz(dtype) && !code) &&
             !signbit(real) != !(code & n / 2)))
            continue;
        far = fabs(value - real);
        least = best == UINT32_MAX ? (double)INFINITY : fabs(value_of(dtype, best) - real);
        if (far < least || (far == least && code % 2 == 0))
            best = code;
    }
    return best;
}

static uint32_t get_code(const struct rig *rig, uint32_t value, int64_t i)
{
    uint32_t width = frit_dtype_bits(rig->values[value].dtype), per = 8 / width;
    uint32_t byte = (uint8_t)rig->values[value].data[i / per];

    return byte >> (i % per * width) & ((1u << width) - 1);
}

/* `real` as an F32 rounded to odd: the last bit is set if the conversion is inexact. */
static double odd_single(double real)
{
    float single = (float)real;
    uint32_t bits;

    if ((double)single == real || isnan(real) || isinf(single))
        return (double)single;
    if (fabs((double)single) > fabs(real))
        single = nextafterf(single, 0);
    memcpy(&bits, &single, sizeof(bits));
    bits |= 1;
    memcpy(&single, &bits, sizeof(bits));
    return (double)single;
}

/* Rounded once. */
static double rounded(uint32_t dtype, double real)
{
    const int64_t none = 1;
    struct rig rig;
    double value;

    rig_init(&rig);
    rig_input(&rig, dtype, 0, &none);
    if (dtype == FRIT_F16 || dtype == FRIT_BF16)
        real = odd_single(real);
    rig_set_real(&rig, 0, 0, real);
    value = rig_get_real(&rig, 0, 0);
    rig_fini(&rig);
    return value;
}

static double scale_of(int64_t type, double scale)
{
    double power = 0x1p-127;

    switch (type) {
    case FRIT_CHOICE_quant_scale_f32:
        return rounded(FRIT_F32, scale);
    case FRIT_CHOICE_quant_scale_f16:
        return rounded(FRIT_F16, scale);
    case FRIT_CHOICE_quant_scale_bf16:
        return rounded(FRIT_BF16, scale);
    case FRIT_CHOICE_quant_scale_ue8m0:
        while (power < scale && power < 0x1p127)
            power *= 2;
        return isnan(scale) ? scale : power;
    case FRIT_CHOICE_quant_scale_ue4m3:
        return value_of(FRIT_F8E4M3, code_of(FRIT_F8E4M3, false, scale > 0 ? scale : 0));
    default:
        return scale;
    }
}

/* ---- programs ---- */

struct quant {
    uint32_t packed, real, scales, rank; /* types of values, of scales */
    int64_t dims[FRIT_MAX_RANK], block[FRIT_MAX_RANK];
    bool blocks, global, symmetric;
    int64_t scale;
};

static void scale_dims(const struct quant *q, int64_t *dims)
{
    for (uint32_t d = 0; d < q->rank; d++)
        dims[d] = (q->dims[d] + q->block[d] - 1) / q->block[d];
}

/* Few digits where the type has few, so that products are exact. */
static void fill_scales(struct rig *rig, uint32_t value, bool exact)
{
    static const double odd[] = {1, 0x1p-126, 3e5, 0.1, 448, 3e38, 1 + 0x1p-40, -1,
                                 /* five times as much is near the middle between two F16 */
                                 2049. / 10240, 2051. / 10240, 2053. / 10240, 2055. / 10240};
    uint64_t state = 99;

    for (int64_t i = 0; i < rig_count(rig, value); i++)
        rig_set_real(rig, value, i,
                     exact    ? (double)(rig_random(&state, 7) + 1) / 4
                     : i < 12 ? odd[i]
                              : (double)(rig_random(&state, 1u << 20) + 1) / 100003);
}

static frit_dims block_of(const struct quant *q)
{
    frit_dims block = {.rank = q->blocks ? q->rank : 0};

    for (uint32_t d = 0; d < q->rank; d++)
        block.dim[d] = q->block[d];
    return block;
}

/* The operands after the first. */
static void add_scales(struct rig *rig, const struct quant *q, bool exact, struct rig_in in[3])
{
    int64_t dims[FRIT_MAX_RANK] = {0};

    scale_dims(q, dims);
    in[1] = rig_value(rig_input(rig, q->scales, q->blocks ? q->rank : 0, dims));
    fill_scales(rig, in[1].value, exact);
    in[2] = (struct rig_in){.value = RIG_ABSENT};
    if (!q->global)
        return;
    in[2] = rig_value(rig_input(rig, FRIT_F32, 0, dims));
    rig_set_real(rig, in[2].value, 0, exact ? 0.5 : -0.3);
}

/* scale * global of element `i`. */
static double factor_of(const struct rig *rig, const struct quant *q, const struct rig_in in[3],
                        int64_t i)
{
    int64_t dims[FRIT_MAX_RANK] = {0}, at = 0, stride = 1;
    double factor;

    scale_dims(q, dims);
    for (uint32_t d = q->rank; q->blocks && d-- > 0; i /= q->dims[d]) {
        at += i % q->dims[d] / q->block[d] * stride;
        stride *= dims[d];
    }
    factor = scale_of(q->scale, rig_get_real(rig, in[1].value, at));
    return q->global ? factor * rig_get_real(rig, in[2].value, 0) : factor;
}

static void check_real(const struct quant *q, int64_t i, double got, double want)
{
    if (isnan(want) ? !isnan(got) : got != want || !signbit(got) != !signbit(want))
        fail_msg("type %u, scale %lld: element %lld is %.9g, not %.9g", q->packed,
                 (long long)q->scale, (long long)i, got, want);
}

/* -dequantize(x). */
static void run_dequantize(const struct quant *q, const struct kir_target *target)
{
    frit_attrs_dequantize attrs = {
        .struct_size = sizeof(attrs), .block = block_of(q), .scale = q->scale};
    struct rig_in in[3];
    struct rig rig;
    uint32_t y, z;

    attrs.global = q->global ? FRIT_CHOICE_quant_scale_f32 : FRIT_CHOICE_quant_scale_none;
    rig_init(&rig);
    if (target)
        rig.target = *target;
    in[0] = rig_value(rig_input(&rig, q->packed, q->rank, q->dims));
    for (int64_t i = 0; i < (int64_t)frit_storage_bytes(q->packed, rig_count(&rig, 0)); i++)
        rig.values[0].data[i] = (char)(i * 37);
    add_scales(&rig, q, false, in);
    y = rig_op(&rig, FRIT_OP_dequantize, 3, in, &attrs, q->real, q->rank, q->dims);
    z = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(y)}, NULL, q->real, q->rank,
               q->dims);
    rig_run(&rig, &sched_map);
    for (int64_t i = 0; i < rig_count(&rig, z); i++) {
        double value = value_of(q->packed, get_code(&rig, 0, i)) * factor_of(&rig, q, in, i);

        check_real(q, i, rig_get_real(&rig, z, i), -rounded(q->real, value));
    }
    rig_fini(&rig);
}

static void test_dequantize(void **state)
{
    static const uint32_t reals[] = {FRIT_F64, FRIT_F32, FRIT_F16, FRIT_BF16};

    (void)state;
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t r = 0; r < 4; r++)
            for (int64_t scale = 0; scale < SCALE_TYPES; scale++)
                for (uint32_t how = 0; how < 4; how++) {
                    struct quant q = {.packed = packed_types[t],
                                      .real = reals[r],
                                      .scales = reals[r],
                                      .rank = 2,
                                      .dims = {5, 71},
                                      .block = {2, how & 1 ? 8 : 5},
                                      .blocks = how > 0,
                                      .global = how & 2,
                                      .scale = scale};

                    run_dequantize(&q, NULL);
                    q.scales = FRIT_F32;
                    run_dequantize(&q, NULL);
                }
}

/* Without F64; where the block and the dims show no quotients; of one element, and none. */
static void test_dequantize_forms(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.target.f64 = false;
    for (uint32_t t = 0; t < N_TYPES; t++) {
        struct quant q = {.packed = packed_types[t],
                          .real = FRIT_F32,
                          .scales = FRIT_F32,
                          .rank = 3,
                          .dims = {4, 8, 64},
                          .block = {1, 1, 32},
                          .blocks = true};

        run_dequantize(&q, &rig.target);
        q.dims[1] = 0;
        run_dequantize(&q, NULL);
        q.rank = 0;
        run_dequantize(&q, NULL);
    }
    rig_fini(&rig);
}

static void fill_reals(struct rig *rig, uint32_t value)
{
    static const double odd[] = {0, -0.0, 0.5, 1.5, -2.5, 5, -5, 7, 1e6, -1e6, 0x1p-10, 0x1p-16};
    const int64_t n = sizeof(odd) / sizeof(odd[0]);
    uint64_t state = 5;

    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        double real = i < n ? odd[i] : (double)rig_random(&state, 4001) / 64 - 31;

        if (i == n)
            real = (double)NAN;
        if (i == n + 1)
            real = (double)INFINITY;
        rig_set_real(rig, value, i, i % 3 ? real : ldexp(real, -4));
    }
}

/* quantize(-x): the schedule and the loop. */
static void run_quantize(const struct quant *q)
{
    frit_attrs_quantize attrs = {.struct_size = sizeof(attrs),
                                 .dtype = q->packed,
                                 .block = block_of(q),
                                 .scale = q->scale,
                                 .symmetric = q->symmetric};
    struct rig_in in[3];
    struct rig rig;
    uint32_t x, y;

    attrs.global = q->global ? FRIT_CHOICE_quant_scale_f32 : FRIT_CHOICE_quant_scale_none;
    rig_init(&rig);
    x = rig_input(&rig, q->real, q->rank, q->dims);
    fill_reals(&rig, x);
    add_scales(&rig, q, q->scale == FRIT_CHOICE_quant_scale_none, in);
    in[0] = rig_value(rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(x)}, NULL, q->real,
                             q->rank, q->dims));
    y = rig_op(&rig, FRIT_OP_quantize, 3, in, &attrs, q->packed, q->rank, q->dims);
    rig_run(&rig, &sched_quantize);
    for (int64_t i = 0; i < rig_count(&rig, y); i++) {
        double real = -rig_get_real(&rig, x, i) / factor_of(&rig, q, in, i);
        uint32_t want = code_of(q->packed, q->symmetric, real), got = get_code(&rig, y, i);

        if (got != want)
            fail_msg("type %u, scale %lld: element %lld, %.17g, is %#x, not %#x", q->packed,
                     (long long)q->scale, (long long)i, real, got, want);
    }
    for (int64_t i = rig_count(&rig, y); i % (8 / frit_dtype_bits(q->packed)); i++)
        assert_int_equal(get_code(&rig, y, i), 0);
    rig_fini(&rig);
}

static void test_quantize(void **state)
{
    static const uint32_t reals[] = {FRIT_F64, FRIT_F32, FRIT_F16};

    (void)state;
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t r = 0; r < 3; r++)
            for (int64_t scale = 0; scale < SCALE_TYPES; scale++)
                for (uint32_t how = 0; how < 4; how++) {
                    struct quant q = {.packed = packed_types[t],
                                      .real = reals[r],
                                      .scales = FRIT_F32,
                                      .rank = 3,
                                      .dims = {3, 5, 7},
                                      .block = {2, 1, 4},
                                      .blocks = how > 0,
                                      .global = how & 2,
                                      .symmetric = how == 1,
                                      .scale = scale};

                    run_quantize(&q);
                    q.dims[2] = 8;
                    run_quantize(&q);
                }
}

static void test_quantize_few(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < N_TYPES; t++) {
        struct quant q = {
            .packed = packed_types[t], .real = FRIT_F32, .scales = FRIT_F32, .block = {1}};

        run_quantize(&q);
        q.rank = 1;
        run_quantize(&q);
    }
}

/* What is left is quantize alone, or the block ends before. */
static void test_accepts(void **state)
{
    const frit_attrs_quantize attrs = {.struct_size = sizeof(attrs), .dtype = FRIT_Q8};
    const int64_t dims[] = {6};
    struct rig_in in[3] = {{0}, {0}, {.value = RIG_ABSENT}};
    struct rig rig;
    bool open;

    (void)state;
    rig_init(&rig);
    in[0] = rig_value(rig_input(&rig, FRIT_F32, 1, dims));
    in[1] = rig_value(rig_input(&rig, FRIT_F32, 0, dims));
    in[0] = rig_value(rig_op(&rig, FRIT_OP_neg, 1, in, NULL, FRIT_F32, 1, dims));
    rig_push(&rig);
    assert_int_equal(rig_match(&sched_quantize, &rig.block, &open), 0);
    assert_true(open);
    rig_op(&rig, FRIT_OP_quantize, 3, in, &attrs, FRIT_Q8, 1, dims);
    rig_push(&rig);
    assert_int_equal(rig_match(&sched_quantize, &rig.block, &open), 2);
    assert_false(open);
    rig_keep(&rig, in[0].value);
    rig_push(&rig);
    assert_int_equal(rig_match(&sched_quantize, &rig.block, &open), 0);
    rig_fini(&rig);
}

/* Packed values and scales that the block makes are not taken. */
static void test_made(void **state)
{
    const frit_attrs_quantize attrs = {.struct_size = sizeof(attrs), .dtype = FRIT_Q8};
    const frit_attrs_dequantize back = {.struct_size = sizeof(back)};
    const int64_t dims[] = {6};
    struct rig_in in[3] = {{0}, {0}, {.value = RIG_ABSENT}};
    struct rig rig;
    bool open;

    (void)state;
    rig_init(&rig);
    in[0] = rig_value(rig_input(&rig, FRIT_F32, 1, dims));
    in[1] = rig_value(rig_input(&rig, FRIT_F32, 0, dims));
    in[0] = rig_value(rig_op(&rig, FRIT_OP_quantize, 3, in, &attrs, FRIT_Q8, 1, dims));
    rig_op(&rig, FRIT_OP_dequantize, 3, in, &back, FRIT_F32, 1, dims);
    rig_push(&rig);
    for (uint32_t i = 0; i < n_schedules; i++)
        assert_true(rig_match(schedules[i], &rig.block, &open) < 2);
    rig_fini(&rig);
}

static void no_memory(struct rig *rig, const struct schedule *schedule)
{
    rig_run(rig, schedule);
    rig_fail_allocations(rig, schedule, 5);
    rig_fini(rig);
}

static void test_no_memory(void **state)
{
    const frit_attrs_quantize attrs = {
        .struct_size = sizeof(attrs), .dtype = FRIT_Q4, .block = {.rank = 2, .dim = {2, 2}}};
    const frit_attrs_dequantize back = {.struct_size = sizeof(back), .block = attrs.block};
    const int64_t dims[] = {6, 5}, blocks[] = {3, 3};
    struct rig_in in[3] = {{0}, {0}, {.value = RIG_ABSENT}};
    struct rig rig;

    (void)state;
    rig_init(&rig);
    in[0] = rig_value(rig_input(&rig, FRIT_F32, 2, dims));
    in[1] = rig_value(rig_input(&rig, FRIT_F32, 2, blocks));
    rig_op(&rig, FRIT_OP_quantize, 3, in, &attrs, FRIT_Q4, 2, dims);
    no_memory(&rig, &sched_quantize);
    rig_init(&rig);
    in[0] = rig_value(rig_input(&rig, FRIT_Q4, 2, dims));
    in[1] = rig_value(rig_input(&rig, FRIT_F32, 2, blocks));
    rig_op(&rig, FRIT_OP_dequantize, 3, in, &back, FRIT_F32, 2, dims);
    no_memory(&rig, &sched_map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dequantize), cmocka_unit_test(test_dequantize_forms),
        cmocka_unit_test(test_quantize),   cmocka_unit_test(test_quantize_few),
        cmocka_unit_test(test_accepts),    cmocka_unit_test(test_made),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
