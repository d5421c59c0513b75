/* SPDX-License-Identifier: Apache-2.0 */
/* A small float is found by a linear search for the nearest of the at most 255 finite values of one
 * sign.  Integers are two's complement. */
#include "packed.h"

#include <math.h>

#include <frit/op.h>
#include <frit/types.h>

#include "value.h"

/* A float type: its fraction bits and exponent bias, the bits of its largest finite value and of
 * NaN (0: there is none).  `sign` is 0 for a type without negative numbers, `largest` without it.
 */
struct small {
    unsigned fraction, sign;
    int bias;
    uint8_t largest, nan;
    bool infinite;  /* the bits after the largest value's are infinity */
    bool subnormal; /* exponent bits of 0 are the least exponent, without the leading one */
};

/* False for a type that is not a packed float. */
static bool small_of(uint32_t dtype, struct small *out)
{
    static const uint8_t beyond[] = {
        [FRIT_SPECIALS_NONE] = 0, [FRIT_SPECIALS_NAN] = 1,   [FRIT_SPECIALS_IEEE] = 0,
        [FRIT_SPECIALS_FNUZ] = 0, [FRIT_SPECIALS_SCALE] = 1,
    };
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    const bool is_scale = info.specials == FRIT_SPECIALS_SCALE;
    const unsigned sign = is_scale ? 0 : 1u << (info.bits - 1u);
    const unsigned ones = (is_scale ? 1u << info.bits : sign) - 1;

    if (info.cls != FRIT_DTYPE_PACKED || !info.exponent)
        return false;
    *out = (struct small){.fraction = info.fraction,
                          .sign = sign,
                          .bias = frit_dtype_bias(info),
                          .largest = (uint8_t)(ones - beyond[info.specials]),
                          .nan = (uint8_t)(info.specials == FRIT_SPECIALS_FNUZ   ? sign
                                           : info.specials == FRIT_SPECIALS_NONE ? 0
                                                                                 : ones),
                          .infinite = info.specials == FRIT_SPECIALS_IEEE,
                          .subnormal = !is_scale};
    if (out->infinite)
        out->largest = (uint8_t)(ones - (1u << info.fraction));
    return true;
}

bool packed_has(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_PACKED;
}

/* Of finite bits without a sign. */
static double small_value(const struct small *type, unsigned bits)
{
    int exponent = (int)(bits >> type->fraction);
    double fraction = (double)(bits & ((1u << type->fraction) - 1));
    double one = (double)(1u << type->fraction);

    if (exponent > 0 || !type->subnormal)
        fraction += one;
    else
        exponent = 1;
    return ldexp(fraction / one, exponent - type->bias);
}

/* Bits of the nearest to a size >= 0; the values rise with their bits, and of two neighbours one is
 * even. */
static uint8_t small_nearest(const struct small *type, double size)
{
    uint8_t bits = 0;

    while (bits < type->largest) {
        double middle = (small_value(type, bits) + small_value(type, bits + 1u)) / 2;

        if (size < middle || (size == middle && bits % 2 == 0))
            break;
        bits++;
    }
    return bits;
}

/* The range of an integer type of this many bits. */
static uint8_t encode_integer(unsigned width, bool symmetric, double real)
{
    double high = (double)((1u << (width - 1)) - 1), low = symmetric ? -high : -high - 1;

    if (isnan(real))
        return 0;
    return (uint8_t)((unsigned)(int)rint(fmin(fmax(real, low), high)) & ((1u << width) - 1));
}

uint8_t packed_encode(uint32_t dtype, bool symmetric, double real)
{
    struct small type;
    uint8_t bits;

    if (!small_of(dtype, &type))
        return encode_integer(frit_dtype_bits(dtype), symmetric, real);
    if (isnan(real))
        return type.nan;
    if (!type.sign)
        return small_nearest(&type, fmax(real, 0));
    bits = small_nearest(&type, fabs(real));
    if (!bits && type.nan == type.sign) /* there is no -0 */
        return 0;
    return (uint8_t)((signbit(real) ? type.sign : 0) | bits);
}

double packed_decode(uint32_t dtype, uint8_t bits)
{
    unsigned width = frit_dtype_bits(dtype), sign = 1u << (width - 1), size = bits & (sign - 1);
    struct small type;
    double value;

    if (!small_of(dtype, &type))
        return (double)size - (bits & sign ? (double)sign : 0);
    size = bits & ~type.sign;
    if (size > type.largest || (type.nan && bits == type.nan))
        value = type.infinite && size == type.largest + 1u ? (double)INFINITY : (double)NAN;
    else
        value = small_value(&type, size);
    return bits & type.sign ? -value : value;
}

uint8_t packed_get(uint32_t dtype, const char *data, int64_t i)
{
    unsigned width = frit_dtype_bits(dtype), per_byte = 8 / width;
    unsigned shift = (unsigned)(i % per_byte) * width;
    unsigned byte = (unsigned char)data[i / per_byte];

    return (uint8_t)(byte >> shift & ((1u << width) - 1));
}

/* The first element of a byte clears what follows it. */
void packed_put(uint32_t dtype, char *data, int64_t i, uint8_t bits)
{
    unsigned width = frit_dtype_bits(dtype), per_byte = 8 / width;
    unsigned shift = (unsigned)(i % per_byte) * width;
    unsigned char *byte = (unsigned char *)&data[i / per_byte];

    *byte = (unsigned char)((*byte & ((1u << shift) - 1)) | (unsigned)bits << shift);
}

/* The least power of two from 2^-127 to 2^127 that is not below. */
static double power_above(double scale)
{
    int exponent;
    double half = frexp(scale, &exponent); /* from 0.5 up to 1 */

    if (isnan(scale))
        return scale;
    if (isinf(scale))
        return 0x1p127;
    exponent -= half == 0.5;
    return scale > 0x1p-127 ? ldexp(1, exponent < 127 ? exponent : 127) : 0x1p-127;
}

double packed_scale(int64_t type, double scale)
{
    switch (type) {
    case FRIT_CHOICE_quant_scale_f32:
        return (double)(float)scale;
    case FRIT_CHOICE_quant_scale_f16:
        return value_round(FRIT_F16, (union value){.real = scale}).real;
    case FRIT_CHOICE_quant_scale_bf16:
        return value_round(FRIT_BF16, (union value){.real = scale}).real;
    case FRIT_CHOICE_quant_scale_ue8m0:
        return power_above(scale);
    case FRIT_CHOICE_quant_scale_ue4m3:
        return packed_decode(FRIT_F8E4M3, packed_encode(FRIT_F8E4M3, false, fmax(scale, 0)));
    default:
        return scale;
    }
}
