/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The pattern of element `i` in the low bits. */
static uint64_t bits_of(frit_dtype_info info, const void *data, uint64_t i)
{
    const unsigned char *bytes = data;
    uint64_t bits = 0;

    if (info.bits < 8) {
        uint64_t per_byte = 8u / info.bits, byte = bytes[i / per_byte];

        return byte >> (i % per_byte * info.bits) & ((UINT64_C(1) << info.bits) - 1);
    }
    memcpy(&bits, bytes + i * (info.bits / 8u), info.bits / 8u);
    return bits;
}

/* A float of any layout that dtypes.def can say. */
static double float_value(frit_dtype_info info, uint64_t bits)
{
    const bool is_scale = info.specials == FRIT_SPECIALS_SCALE;
    uint64_t sign = is_scale ? 0 : (uint64_t)1 << (info.bits - 1), size = bits & ~sign;
    uint64_t one = (uint64_t)1 << info.fraction, fraction = size & (one - 1);
    uint64_t ones = ((uint64_t)1 << (info.exponent + info.fraction)) - 1;
    int exponent = (int)(size >> info.fraction), top = (1 << info.exponent) - 1;
    int bias = frit_dtype_bias(info);
    double value;

    if (info.specials == FRIT_SPECIALS_IEEE && exponent == top)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if ((info.specials == FRIT_SPECIALS_NAN || is_scale) && size == ones)
        value = (double)NAN;
    else if (info.specials == FRIT_SPECIALS_FNUZ && bits == sign)
        value = (double)NAN;
    else if (exponent == 0 && !is_scale)
        value = ldexp((double)fraction, 1 - bias - info.fraction);
    else
        value = ldexp((double)(fraction | one), exponent - bias - info.fraction);
    return bits & sign ? -value : value;
}

/* Two's complement; packed types without an exponent are integers too. */
static int64_t signed_value(frit_dtype_info info, uint64_t bits)
{
    return (int64_t)(bits << (64 - info.bits)) >> (64 - info.bits);
}

frit_scalar element_scalar(uint32_t dtype, const void *data, uint64_t i)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    frit_scalar scalar = {.kind = FRIT_SCALAR_U64};
    double value;

    if (!info.bits)
        return (frit_scalar){.kind = FRIT_SCALAR_NONE};
    scalar.bits = bits_of(info, data, i);
    if (info.exponent) {
        value = float_value(info, scalar.bits);
        scalar.kind = FRIT_SCALAR_F64;
        memcpy(&scalar.bits, &value, sizeof(value));
    } else if (info.cls == FRIT_DTYPE_INT || info.cls == FRIT_DTYPE_PACKED) {
        scalar.kind = FRIT_SCALAR_I64;
        scalar.bits = (uint64_t)signed_value(info, scalar.bits);
    }
    return scalar;
}

double element_number(frit_scalar scalar)
{
    double value;

    switch (scalar.kind) {
    case FRIT_SCALAR_I64:
        return (double)(int64_t)scalar.bits;
    case FRIT_SCALAR_U64:
        return (double)scalar.bits;
    case FRIT_SCALAR_F64:
        memcpy(&value, &scalar.bits, sizeof(value));
        return value;
    default:
        return (double)NAN;
    }
}

double element_value(uint32_t dtype, const void *data, uint64_t i)
{
    return element_number(element_scalar(dtype, data, i));
}

/* ---- differences ---- */

/* The pattern of an element as a number that counts up with its value: floats of one sign are in
 * the order of their patterns, and so are integers; unsigned, the least is 0. */
static uint64_t rank_of(uint32_t dtype, const void *data, uint64_t i)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    uint64_t bits, sign;

    if (!info.bits)
        return 0;
    sign = (uint64_t)1 << (info.bits - 1);
    bits = bits_of(info, data, i);
    if (info.exponent && info.specials != FRIT_SPECIALS_SCALE)
        return bits & sign ? sign - (bits & (sign - 1)) : sign + bits;
    return info.cls == FRIT_DTYPE_INT || (info.cls == FRIT_DTYPE_PACKED && !info.exponent)
               ? bits ^ sign
               : bits;
}

void element_compare(uint32_t dtype, const void *a, const void *b, uint64_t count,
                     struct difference *out)
{
    *out = (struct difference){.count = count};
    for (uint64_t i = 0; i < count; i++) {
        double x = element_value(dtype, a, i), y = element_value(dtype, b, i);
        uint64_t from = rank_of(dtype, a, i), to = rank_of(dtype, b, i);
        uint64_t ulp = from < to ? to - from : from - to;
        double abs = isfinite(x) && isfinite(y) ? fabs(x - y) : (double)INFINITY;

        if (ulp == 0 || (isnan(x) && isnan(y)))
            continue;
        out->differ++;
        out->max_abs = abs > out->max_abs ? abs : out->max_abs;
        out->max_ulp = ulp > out->max_ulp ? ulp : out->max_ulp;
    }
}
