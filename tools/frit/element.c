/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"

#include <math.h>
#include <string.h>

/* A binary16 pattern as a number: sign, 5 bits of exponent with bias 15, 10 of fraction. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double size;

    if (exponent == 31)
        size = fraction > 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        size = ldexp(fraction, -24);
    else
        size = ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static double bfloat_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof(value));
    return (double)value;
}

double element_value(uint32_t dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case FRIT_F64:
        return ((const double *)data)[i];
    case FRIT_F32:
        return (double)((const float *)data)[i];
    case FRIT_F16:
        return half_value(((const uint16_t *)data)[i]);
    case FRIT_BF16:
        return bfloat_value(((const uint16_t *)data)[i]);
    case FRIT_I64:
        return (double)((const int64_t *)data)[i];
    case FRIT_I32:
        return ((const int32_t *)data)[i];
    case FRIT_I16:
        return ((const int16_t *)data)[i];
    case FRIT_I8:
        return ((const int8_t *)data)[i];
    case FRIT_U64:
        return (double)((const uint64_t *)data)[i];
    case FRIT_U32:
        return ((const uint32_t *)data)[i];
    case FRIT_U16:
        return ((const uint16_t *)data)[i];
    case FRIT_U8:
    case FRIT_BOOL:
        return ((const uint8_t *)data)[i];
    default:
        return (double)NAN;
    }
}

/* ---- differences ---- */

/* The pattern of an element as a number that counts up with its value: floats of one sign are in
 * the order of their patterns, and so are integers; unsigned, the least is 0. */
static uint64_t rank_of(uint32_t dtype, const void *data, uint64_t i)
{
    uint32_t bytes = (uint32_t)frit_storage_bytes(dtype, 1);
    uint64_t bits = 0, sign;

    if (bytes == 0 || bytes > sizeof(bits))
        return 0;
    sign = (uint64_t)1 << (8 * bytes - 1);
    memcpy(&bits, (const unsigned char *)data + i * bytes, bytes);
    switch (dtype) {
    case FRIT_F64:
    case FRIT_F32:
    case FRIT_F16:
    case FRIT_BF16:
        return bits & sign ? sign - (bits & (sign - 1)) : sign + bits;
    case FRIT_I64:
    case FRIT_I32:
    case FRIT_I16:
    case FRIT_I8:
        return bits ^ sign;
    default:
        return bits;
    }
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
