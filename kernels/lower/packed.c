/* SPDX-License-Identifier: Apache-2.0 */
/* Small floats are made of integers: their fraction, with the leading one of a normal value, times
 * a power of two, which is made as bits of an F32.  The other way round a size is brought between 1
 * and 2 by factors that are powers of two, counting, and then rounded with as many bits as the
 * fraction has; what is below the least normal value stays below 1, so that subnormal values need
 * nothing of their own, and a fraction that is rounded up to 2 carries into the exponent. */
#include "lower/packed.h"

#include <math.h>

#include <frit/op.h>

#include "lower/rows.h"

enum { F32_FRACTION = 23, F32_BIAS = 127 };

/* A float type: fraction bits, exponent bias, the largest finite value, as bits too, the bits of
 * NaN (0: there is none). */
struct small {
    uint32_t dtype, fraction, bias;
    double largest;
    uint32_t largest_bits, nan;
    bool infinite; /* the bits behind the largest value's are infinity, not NaN */
};

static const struct small smalls[] = {{FRIT_F8E4M3, 3, 7, 448, 0x7e, 0x7f, false},
                                      {FRIT_F8E5M2, 2, 15, 57344, 0x7b, 0x7f, true},
                                      {FRIT_F4E2M1, 1, 1, 6, 0x7, 0, false}};

static const struct small *small_of(uint32_t dtype)
{
    for (uint32_t i = 0; i < sizeof(smalls) / sizeof(smalls[0]); i++)
        if (smalls[i].dtype == dtype)
            return &smalls[i];
    return NULL;
}

static uint32_t op1(struct kir_module *m, enum kir_op op, uint32_t a)
{
    return kir_emit(m, op, a, KIR_NONE, KIR_NONE);
}

static uint32_t op2(struct kir_module *m, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(m, op, a, b, KIR_NONE);
}

static uint32_t pick(struct kir_module *m, uint32_t a, uint32_t b, uint32_t condition)
{
    return kir_emit(m, KIR_select, a, b, condition);
}

static uint32_t int_of(struct kir_module *m, int64_t value)
{
    return kir_const_i(m, KIR_I32, value);
}

static uint32_t real_like(struct kir_module *m, uint32_t value, double number)
{
    return kir_const_f(m, kir_type_at(m, value), number);
}

static uint32_t as_f32(struct kir_module *m, uint32_t value)
{
    return kir_type_at(m, value) == KIR_F64 ? op1(m, KIR_f32, value) : value;
}

static uint32_t bits_of(struct kir_module *m, uint32_t real)
{
    return kir_emit_as(m, KIR_bits, KIR_I32, 0, real, KIR_NONE, KIR_NONE);
}

static uint32_t real_of(struct kir_module *m, uint32_t bits)
{
    return kir_emit_as(m, KIR_bits, KIR_F32, 0, bits, KIR_NONE, KIR_NONE);
}

/* Eight take as many bytes as one has bits. */
uint32_t packed_width(uint32_t dtype)
{
    return (uint32_t)frit_storage_bytes(dtype, 8);
}

uint32_t packed_stored(uint32_t dtype)
{
    return kir_type_of(dtype) == KIR_VOID && packed_width(dtype) ? FRIT_U8 : dtype;
}

/* ---- to floats ---- */

static uint32_t decode_integer(struct kir_module *m, uint32_t width, uint32_t bits, uint32_t at)
{
    uint32_t spare = int_of(m, 32 - width);

    bits = op2(m, KIR_shl, bits, at == KIR_NONE ? spare : op2(m, KIR_sub, spare, at));
    return op1(m, KIR_f32, op2(m, KIR_sar, bits, spare));
}

/* Of bits without a sign, not beyond the largest value's. */
static uint32_t small_value(struct kir_module *m, const struct small *type, uint32_t size)
{
    uint32_t one = int_of(m, 1 << type->fraction), exponent, fraction, normal;

    exponent = op2(m, KIR_shr, size, int_of(m, type->fraction));
    fraction = op2(m, KIR_and, size, int_of(m, (1 << type->fraction) - 1));
    normal = op2(m, KIR_le, one, size);
    fraction = pick(m, op2(m, KIR_or, fraction, one), fraction, normal);
    exponent = op2(m, KIR_smax, exponent, int_of(m, 1));
    exponent =
        op2(m, KIR_add, exponent, int_of(m, (int64_t)F32_BIAS - type->bias - type->fraction));
    exponent = real_of(m, op2(m, KIR_shl, exponent, int_of(m, F32_FRACTION)));
    return op2(m, KIR_mul, op1(m, KIR_f32, fraction), exponent);
}

static uint32_t decode_small(struct kir_module *m, const struct small *type, uint32_t bits)
{
    uint32_t width = packed_width(type->dtype), sign = 1u << (width - 1);
    uint32_t size = op2(m, KIR_and, bits, int_of(m, sign - 1)), value = small_value(m, type, size);
    uint32_t nan = kir_const_f(m, KIR_F32, (double)NAN), first = type->largest_bits + 1, beyond;

    if (type->nan) {
        beyond = op2(m, KIR_le, int_of(m, first), size);
        if (type->infinite)
            nan = pick(m, kir_const_f(m, KIR_F32, (double)INFINITY), nan,
                       op2(m, KIR_eq, size, int_of(m, first)));
        value = pick(m, nan, value, beyond);
    }
    sign = op2(m, KIR_ne, op2(m, KIR_and, bits, int_of(m, sign)), int_of(m, 0));
    return pick(m, op1(m, KIR_neg, value), value, sign);
}

uint32_t packed_decode(struct kir_module *m, uint32_t dtype, uint32_t bits, uint32_t at)
{
    const struct small *type = small_of(dtype);

    if (!type)
        return decode_integer(m, packed_width(dtype), bits, at);
    return decode_small(m, type, at == KIR_NONE ? bits : op2(m, KIR_shr, bits, at));
}

/* ---- to bits ---- */

/* The conversion makes 0 of NaN, which wins before. */
static uint32_t encode_integer(struct kir_module *m, uint32_t width, bool symmetric, uint32_t real)
{
    double high = (double)((1u << (width - 1)) - 1), low = symmetric ? -high : -high - 1;

    real = op2(m, KIR_fmax, real, real_like(m, real, low));
    real = op2(m, KIR_fmin, real, real_like(m, real, high));
    real = op1(m, KIR_i32, op1(m, KIR_rint, real));
    return op2(m, KIR_and, real, int_of(m, (int64_t)(1u << width) - 1));
}

/* The bits of the nearest to a size >= 0. */
static uint32_t small_nearest(struct kir_module *m, const struct small *type, uint32_t size)
{
    uint32_t steps = 1, exponent = int_of(m, 0);

    size = op2(m, KIR_fmin, size, real_like(m, size, type->largest));
    size = op2(m, KIR_mul, size, real_like(m, size, ldexp(1, (int)type->bias - 1)));
    while (2 * steps < 1u << (packed_width(type->dtype) - 1 - type->fraction))
        steps *= 2;
    for (; steps; steps /= 2) {
        uint32_t less = op2(m, KIR_mul, size, real_like(m, size, ldexp(1, -(int)steps)));
        uint32_t more = op2(m, KIR_add, exponent, int_of(m, steps));
        uint32_t large = op2(m, KIR_le, real_like(m, size, ldexp(1, (int)steps)), size);

        size = pick(m, less, size, large);
        exponent = pick(m, more, exponent, large);
    }
    size = op2(m, KIR_mul, size, real_like(m, size, (double)(1u << type->fraction)));
    size = op1(m, KIR_i32, op1(m, KIR_rint, size));
    return op2(m, KIR_add, size, op2(m, KIR_shl, exponent, int_of(m, type->fraction)));
}

static uint32_t encode_small(struct kir_module *m, const struct small *type, uint32_t real)
{
    uint32_t sign = int_of(m, (int64_t)1 << (packed_width(type->dtype) - 1));
    uint32_t bits = small_nearest(m, type, op1(m, KIR_abs, real)), zero = int_of(m, 0);
    uint32_t negative = op2(m, KIR_lt, bits_of(m, as_f32(m, real)), zero);

    bits = op2(m, KIR_or, bits, pick(m, sign, zero, negative));
    return pick(m, bits, int_of(m, type->nan), op2(m, KIR_eq, real, real));
}

uint32_t packed_encode(struct kir_module *m, uint32_t dtype, bool symmetric, uint32_t real)
{
    const struct small *type = small_of(dtype);

    return type ? encode_small(m, type, real)
                : encode_integer(m, packed_width(dtype), symmetric, real);
}

/* ---- scales ---- */

/* The least power of two from 2^-127 to 2^127 that is not below, as F32: the exponent's bits of the
 * nearest F32 that is not below, with a carry from its fraction.  2^-127 has no exponent's bits. */
static uint32_t power_above(struct kir_module *m, uint32_t scale)
{
    uint32_t single = as_f32(m, scale), bits = bits_of(m, single), half, power;

    if (single != scale) {
        uint32_t below = op2(m, KIR_lt, op1(m, KIR_f64, single), scale);

        bits = op2(m, KIR_add, bits, op1(m, KIR_i32, below));
    }
    half = int_of(m, (int64_t)1 << (F32_FRACTION - 1));
    bits = op2(m, KIR_smax, bits, int_of(m, 0));
    power = op2(m, KIR_add, bits, int_of(m, ((int64_t)1 << F32_FRACTION) - 1));
    power = op2(m, KIR_shr, power, int_of(m, F32_FRACTION));
    power = op2(m, KIR_smin, power, int_of(m, 2 * F32_BIAS));
    power = op2(m, KIR_shl, power, int_of(m, F32_FRACTION));
    power = real_of(m, pick(m, half, power, op2(m, KIR_le, bits, half)));
    return pick(m, power, single, op2(m, KIR_eq, single, single));
}

/* What is below 0, and NaN, is 0. */
static uint32_t small_scale(struct kir_module *m, uint32_t scale)
{
    uint32_t zero = real_like(m, scale, 0);

    scale = pick(m, scale, zero, op2(m, KIR_lt, zero, scale));
    return small_value(m, small_of(FRIT_F8E4M3), small_nearest(m, small_of(FRIT_F8E4M3), scale));
}

/* The types that tensors have too. */
static uint32_t scale_dtype(uint32_t dtype, int64_t type)
{
    switch (type) {
    case FRIT_CHOICE_quant_scale_f32:
        return FRIT_F32;
    case FRIT_CHOICE_quant_scale_f16:
        return FRIT_F16;
    case FRIT_CHOICE_quant_scale_bf16:
        return FRIT_BF16;
    default:
        return dtype;
    }
}

uint32_t packed_scale(struct kir_module *m, uint32_t dtype, int64_t type, uint32_t scale)
{
    if (type == FRIT_CHOICE_quant_scale_ue8m0)
        return power_above(m, scale);
    if (type == FRIT_CHOICE_quant_scale_ue4m3)
        return small_scale(m, scale);
    return lower_convert(m, dtype, scale_dtype(dtype, type), scale);
}

static uint32_t digits_of(uint32_t dtype)
{
    return dtype == FRIT_F64 ? 53 : dtype == FRIT_F32 ? 24 : dtype == FRIT_F16 ? 11 : 8;
}

uint32_t packed_digits(uint32_t dtype, int64_t type)
{
    uint32_t own = digits_of(dtype), rounded = digits_of(scale_dtype(dtype, type));

    if (type == FRIT_CHOICE_quant_scale_ue8m0 || type == FRIT_CHOICE_quant_scale_ue4m3)
        return type == FRIT_CHOICE_quant_scale_ue8m0 ? 1 : small_of(FRIT_F8E4M3)->fraction + 1;
    return own < rounded ? own : rounded;
}
