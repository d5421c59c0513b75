/* SPDX-License-Identifier: Apache-2.0 */
/* Small floats become an F32 by moving their bits, where only subnormal values, infinity and NaN
 * need more.  The other way round a size is brought between 1
 * and 2 by factors that are powers of two, counting, and then rounded with as many bits as the
 * fraction has; what is below the least normal value stays below 1, so that subnormal values need
 * nothing of their own, and a fraction that is rounded up to 2 carries into the exponent. */
#include "lower/rows/packed.h"

#include <assert.h>
#include <math.h>

#include <frit/op.h>

#include "lower/rows/lower_cast.h"
#include "lower/rows/rows.h"

enum { F32_FRACTION = 23, F32_BIAS = 127, NAN_SCALE = 255 };

/* A packed float type with a sign.  Behind the bits of its largest value are those of infinity, if
 * it has one, and NaN, or -0 is NaN. */
struct small {
    uint32_t width, fraction;
    int32_t bias;
    uint32_t largest_bits; /* of the largest finite value */
    uint32_t nan;          /* bits that NaN becomes; 0: it has none */
    double largest;
    bool nan_is_minus_zero;
};

/* False for a type that is no such float. */
static bool small_of(uint32_t dtype, struct small *out)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    const uint32_t ones = (1u << (info.bits - 1)) - 1, one = 1u << info.fraction;
    const bool is_fnuz = info.specials == FRIT_SPECIALS_FNUZ;

    if (info.cls != FRIT_DTYPE_PACKED || !info.exponent || info.specials == FRIT_SPECIALS_SCALE)
        return false;
    *out = (struct small){.width = info.bits,
                          .fraction = info.fraction,
                          .bias = frit_dtype_bias(info),
                          .largest_bits = info.specials == FRIT_SPECIALS_IEEE  ? ones - one
                                          : info.specials == FRIT_SPECIALS_NAN ? ones - 1
                                                                               : ones,
                          .nan = is_fnuz                               ? ones + 1
                                 : info.specials == FRIT_SPECIALS_NONE ? 0
                                                                       : ones,
                          .nan_is_minus_zero = is_fnuz};
    out->largest =
        ldexp((double)(one + out->largest_bits % one),
              (int)(out->largest_bits >> info.fraction) - (out->bias + (int)info.fraction));
    return true;
}

/* Whether it is an exponent without sign and fraction. */
static bool is_scale(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).specials == FRIT_SPECIALS_SCALE;
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
    return kir_type_at(m, value) == KIR_F64 ? kir_unary(m, KIR_f32, value) : value;
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

/* Where the position is a constant, so is the shift: emitters know such fields. */
static uint32_t shift_up(struct kir_module *m, uint32_t spare, uint32_t at)
{
    uint64_t position;

    if (at == KIR_NONE)
        return int_of(m, spare);
    if (kir_is_const(m, at, &position))
        return int_of(m, (int64_t)spare - (int64_t)position);
    return kir_binary(m, KIR_sub, int_of(m, spare), at);
}

static uint32_t decode_integer(struct kir_module *m, uint32_t width, uint32_t bits, uint32_t at)
{
    uint32_t spare = int_of(m, 32 - width);

    bits = kir_binary(m, KIR_shl, bits, shift_up(m, 32 - width, at));
    return kir_unary(m, KIR_f32, kir_binary(m, KIR_sar, bits, spare));
}

/* Bits without a sign as those of an F32 whose exponent has their bias. */
static uint32_t widened_bits(struct kir_module *m, const struct small *type, uint32_t size)
{
    uint32_t bits = kir_binary(m, KIR_shl, size, int_of(m, F32_FRACTION - type->fraction));

    return kir_binary(m, KIR_add, bits,
                      int_of(m, ((int64_t)F32_BIAS - type->bias) << F32_FRACTION));
}

/* The value of bits without a sign, not beyond the largest value's, and of what they widened to: a
 * subnormal one became half its value and the least normal value's half. */
static uint32_t finite_value(struct kir_module *m, const struct small *type, uint32_t size,
                             uint32_t widened)
{
    uint32_t value = real_of(m, widened), normal, twice;

    normal = kir_binary(m, KIR_le, int_of(m, 1 << type->fraction), size);
    twice = kir_binary(m, KIR_sub, value, real_like(m, value, ldexp(1, -type->bias)));
    twice = kir_binary(m, KIR_add, twice, twice);
    return kir_select(m, normal, value, twice);
}

static uint32_t small_value(struct kir_module *m, const struct small *type, uint32_t size)
{
    return finite_value(m, type, size, widened_bits(m, type, size));
}

/* Beyond the largest value all bits of an F32's exponent are set, with the fraction of infinity or
 * NaN. */
static uint32_t decode_small(struct kir_module *m, const struct small *type, uint32_t bits)
{
    int64_t sign = (int64_t)1 << (type->width - 1), exponent = (int64_t)0xff << F32_FRACTION;
    uint32_t size = kir_binary(m, KIR_and, bits, int_of(m, sign - 1));
    uint32_t widened = widened_bits(m, type, size), beyond;
    uint32_t value = bits_of(m, finite_value(m, type, size, widened));

    if (type->nan && !type->nan_is_minus_zero) {
        beyond = kir_binary(m, KIR_le, int_of(m, type->largest_bits + 1), size);
        value = kir_select(m, beyond, kir_binary(m, KIR_or, widened, int_of(m, exponent)), value);
    }
    bits = kir_binary(m, KIR_and, bits, int_of(m, sign));
    if (type->nan_is_minus_zero) {
        beyond = kir_binary(m, KIR_eq, kir_binary(m, KIR_or, bits, size), int_of(m, type->nan));
        value = kir_select(m, beyond, int_of(m, exponent | exponent >> 1), value);
    }
    bits = kir_binary(m, KIR_shl, bits, int_of(m, 32 - type->width));
    return real_of(m, kir_binary(m, KIR_or, value, bits));
}

/* An exponent as that of an F32; 0 is below its normal numbers, and all ones with a fraction NaN.
 */
static uint32_t decode_scale(struct kir_module *m, uint32_t bits)
{
    uint32_t exponent = kir_binary(m, KIR_shl, bits, int_of(m, F32_FRACTION));
    uint32_t half = int_of(m, (int64_t)1 << (F32_FRACTION - 1));
    uint32_t is_end = kir_binary(m, KIR_eq, bits, int_of(m, 0));

    is_end = kir_binary(m, KIR_or, is_end, kir_binary(m, KIR_eq, bits, int_of(m, NAN_SCALE)));
    return real_of(m, kir_select(m, is_end, kir_binary(m, KIR_or, exponent, half), exponent));
}

static uint32_t decode_single(struct kir_module *m, uint32_t dtype, uint32_t bits, uint32_t at)
{
    struct small type;

    if (is_scale(dtype))
        return decode_scale(m, bits);
    if (!small_of(dtype, &type))
        return decode_integer(m, packed_width(dtype), bits, at);
    return decode_small(m, &type, at == KIR_NONE ? bits : kir_binary(m, KIR_shr, bits, at));
}

/* Of all values only the least scale is below F32's normal numbers, which targets may take for 0.
 */
uint32_t packed_decode(struct kir_module *m, bool wide, uint32_t dtype, uint32_t bits, uint32_t at)
{
    uint32_t value = decode_single(m, dtype, bits, at), is_least;

    if (!wide)
        return value;
    value = kir_unary(m, KIR_f64, value);
    if (!is_scale(dtype))
        return value;
    is_least = kir_binary(m, KIR_eq, bits, int_of(m, 0));
    return kir_select(m, is_least, real_like(m, value, ldexp(1, -F32_BIAS)), value);
}

uint32_t packed_top(uint32_t dtype)
{
    return 8 - packed_width(dtype);
}

uint32_t packed_decode_top(struct kir_module *m, uint32_t dtype, uint32_t byte)
{
    uint32_t top = packed_top(dtype);

    if (top)
        byte = kir_binary(m, KIR_and, byte, int_of(m, -((int64_t)1 << top)));
    return kir_unary(m, KIR_f32, byte);
}

/* ---- to bits ---- */

/* The conversion makes 0 of NaN, which wins before. */
static uint32_t encode_integer(struct kir_module *m, uint32_t width, bool symmetric, uint32_t real)
{
    double high = (double)((1u << (width - 1)) - 1), low = symmetric ? -high : -high - 1;

    real = kir_binary(m, KIR_fmax, real, real_like(m, real, low));
    real = kir_binary(m, KIR_fmin, real, real_like(m, real, high));
    real = kir_unary(m, KIR_i32, kir_unary(m, KIR_rint, real));
    return kir_binary(m, KIR_and, real, int_of(m, (int64_t)(1u << width) - 1));
}

/* The bits of the nearest to a size >= 0. */
static uint32_t small_nearest(struct kir_module *m, const struct small *type, uint32_t size)
{
    uint32_t steps = 1, exponent = int_of(m, 0);

    size = kir_binary(m, KIR_fmin, size, real_like(m, size, type->largest));
    size = kir_binary(m, KIR_mul, size, real_like(m, size, ldexp(1, type->bias - 1)));
    while (2 * steps < 1u << (type->width - 1 - type->fraction))
        steps *= 2;
    for (; steps; steps /= 2) {
        uint32_t less = kir_binary(m, KIR_mul, size, real_like(m, size, ldexp(1, -(int)steps)));
        uint32_t more = kir_binary(m, KIR_add, exponent, int_of(m, steps));
        uint32_t large = kir_binary(m, KIR_le, real_like(m, size, ldexp(1, (int)steps)), size);

        size = kir_select(m, large, less, size);
        exponent = kir_select(m, large, more, exponent);
    }
    size = kir_binary(m, KIR_mul, size, real_like(m, size, (double)(1u << type->fraction)));
    size = kir_unary(m, KIR_i32, kir_unary(m, KIR_rint, size));
    return kir_binary(m, KIR_add, size,
                      kir_binary(m, KIR_shl, exponent, int_of(m, type->fraction)));
}

static uint32_t encode_small(struct kir_module *m, const struct small *type, uint32_t real)
{
    uint32_t sign = int_of(m, (int64_t)1 << (type->width - 1));
    uint32_t bits = small_nearest(m, type, kir_unary(m, KIR_abs, real)), zero = int_of(m, 0);
    uint32_t negative = kir_binary(m, KIR_lt, bits_of(m, as_f32(m, real)), zero);

    if (type->nan_is_minus_zero)
        negative = kir_binary(m, KIR_and, negative, kir_binary(m, KIR_ne, bits, zero));
    bits = kir_binary(m, KIR_or, bits, kir_select(m, negative, sign, zero));
    return kir_select(m, kir_binary(m, KIR_eq, real, real), bits, int_of(m, type->nan));
}

/* The exponent of the nearest power of two: the bits of an F32 with a carry from its fraction,
 * which is half an exponent's step, but at the end below the normal numbers, where the leading bit
 * is among the fraction's. */
static uint32_t encode_scale(struct kir_module *m, uint32_t real)
{
    const int64_t half = (int64_t)1 << (F32_FRACTION - 1);
    uint32_t zero = int_of(m, 0), bits, odd, carry, tiny;

    bits = bits_of(m, lower_narrow_odd(m, real));
    bits = kir_binary(m, KIR_smax, bits, zero);
    odd =
        kir_binary(m, KIR_and, kir_binary(m, KIR_shr, bits, int_of(m, F32_FRACTION)), int_of(m, 1));
    carry = kir_binary(m, KIR_add, int_of(m, half - 1), odd);
    tiny = kir_binary(m, KIR_lt, bits, int_of(m, 2 * half));
    carry = kir_select(m, tiny, int_of(m, half / 2 - 1), carry);
    bits = kir_binary(m, KIR_shr, kir_binary(m, KIR_add, bits, carry), int_of(m, F32_FRACTION));
    bits = kir_binary(m, KIR_smin, bits, int_of(m, NAN_SCALE - 1));
    return kir_select(m, kir_binary(m, KIR_eq, real, real), bits, int_of(m, NAN_SCALE));
}

uint32_t packed_encode(struct kir_module *m, uint32_t dtype, bool symmetric, uint32_t real)
{
    struct small type;

    if (is_scale(dtype))
        return encode_scale(m, real);
    return small_of(dtype, &type) ? encode_small(m, &type, real)
                                  : encode_integer(m, packed_width(dtype), symmetric, real);
}

/* ---- scales ---- */

/* The least power of two from 2^-127 to 2^127 that is not below, as F32: the exponent's bits of the
 * nearest F32 that is not below, with a carry from its fraction.  2^-127 has no exponent's bits. */
static uint32_t power_above(struct kir_module *m, uint32_t scale)
{
    uint32_t single = as_f32(m, scale), bits = bits_of(m, single), half, power;

    if (single != scale) {
        uint32_t below = kir_binary(m, KIR_lt, kir_unary(m, KIR_f64, single), scale);

        bits = kir_binary(m, KIR_add, bits, kir_unary(m, KIR_i32, below));
    }
    half = int_of(m, (int64_t)1 << (F32_FRACTION - 1));
    bits = kir_binary(m, KIR_smax, bits, int_of(m, 0));
    power = kir_binary(m, KIR_add, bits, int_of(m, ((int64_t)1 << F32_FRACTION) - 1));
    power = kir_binary(m, KIR_shr, power, int_of(m, F32_FRACTION));
    power = kir_binary(m, KIR_smin, power, int_of(m, 2 * F32_BIAS));
    power = kir_binary(m, KIR_shl, power, int_of(m, F32_FRACTION));
    power = real_of(m, kir_select(m, kir_binary(m, KIR_le, bits, half), half, power));
    return kir_select(m, kir_binary(m, KIR_eq, single, single), power, single);
}

/* What is below 0, and NaN, is 0. */
static uint32_t small_scale(struct kir_module *m, uint32_t scale)
{
    uint32_t zero = real_like(m, scale, 0);
    struct small type;
    const bool is_small = small_of(FRIT_F8E4M3, &type);

    assert(is_small);
    (void)is_small;
    scale = kir_select(m, kir_binary(m, KIR_lt, zero, scale), scale, zero);
    return small_value(m, &type, small_nearest(m, &type, scale));
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
    return frit_dtype_info_of(dtype).fraction + 1u;
}

uint32_t packed_digits(uint32_t dtype, int64_t type)
{
    uint32_t own = digits_of(dtype), rounded = digits_of(scale_dtype(dtype, type));

    if (type == FRIT_CHOICE_quant_scale_ue8m0 || type == FRIT_CHOICE_quant_scale_ue4m3)
        return type == FRIT_CHOICE_quant_scale_ue8m0 ? 1 : digits_of(FRIT_F8E4M3);
    return own < rounded ? own : rounded;
}
