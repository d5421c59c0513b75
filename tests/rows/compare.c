/* SPDX-License-Identifier: Apache-2.0 */
/* Floats are compared as the integers whose order is theirs: a step is one unit in the last place,
 * and both zeros are the same number. */
#include "rows/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_float(uint32_t dtype)
{
    return dtype == FRIT_F64 || dtype == FRIT_F32 || dtype == FRIT_F16 || dtype == FRIT_BF16;
}

static bool is_signed(uint32_t dtype)
{
    return dtype == FRIT_I64 || dtype == FRIT_I32 || dtype == FRIT_I16 || dtype == FRIT_I8;
}

static uint64_t bits_of(uint32_t dtype, const void *element)
{
    uint64_t bits = 0;

    memcpy(&bits, element, frit_storage_bytes(dtype, 1));
    return bits;
}

/* Of a float type with `mantissa` bits after the point. */
static double decode(uint64_t bits, int width, int mantissa)
{
    int exponent_bits = width - 1 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> mantissa) & ((1 << exponent_bits) - 1);
    double fraction = (double)(bits & ((1u << mantissa) - 1));
    double value;

    if (exponent == (1 << exponent_bits) - 1)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - mantissa);
    else
        value = ldexp(fraction + ldexp(1, mantissa), exponent - bias - mantissa);
    return bits >> (width - 1) & 1 ? -value : value;
}

double compare_number(uint32_t dtype, const void *element)
{
    uint64_t bits = bits_of(dtype, element);
    int width = (int)frit_dtype_bits(dtype);
    double value;
    float narrow;

    switch (dtype) {
    case FRIT_F64:
        memcpy(&value, element, sizeof(value));
        return value;
    case FRIT_F32:
        memcpy(&narrow, element, sizeof(narrow));
        return (double)narrow;
    case FRIT_F16:
        return decode(bits, 16, 10);
    case FRIT_BF16:
        return decode(bits, 16, 7);
    default:
        return is_signed(dtype) ? (double)((int64_t)(bits << (64 - width)) >> (64 - width))
                                : (double)bits;
    }
}

/* Place in the order of the type's numbers. */
static int64_t order_of(uint32_t dtype, const void *element)
{
    uint64_t sign = (uint64_t)1 << (frit_dtype_bits(dtype) - 1), bits = bits_of(dtype, element);

    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

bool compare_element(uint32_t dtype, const struct tolerance *tolerance, const void *want,
                     const void *got)
{
    double wanted, given;
    int64_t first, second;

    if (bits_of(dtype, want) == bits_of(dtype, got))
        return true;
    if (!is_float(dtype))
        return false;
    wanted = compare_number(dtype, want);
    given = compare_number(dtype, got);
    if (isnan(wanted) || isnan(given))
        return isnan(wanted) && isnan(given);
    if (tolerance->exact)
        return false;
    first = order_of(dtype, want);
    second = order_of(dtype, got);
    return (first < second ? (uint64_t)second - (uint64_t)first
                           : (uint64_t)first - (uint64_t)second) <= tolerance->ulp ||
           fabs(wanted - given) <= tolerance->absolute;
}

double compare_least(uint32_t dtype)
{
    switch (dtype) {
    case FRIT_F64:
        return 0x1p-1022;
    case FRIT_F32:
    case FRIT_BF16:
        return 0x1p-126;
    case FRIT_F16:
        return 0x1p-14;
    default:
        return 0;
    }
}

uint64_t compare_flush(uint32_t dtype, void *elements, uint64_t count)
{
    uint64_t size = frit_dtype_bits(dtype) / 8, n = 0;

    for (uint64_t i = 0; i < count && is_float(dtype); i++) {
        char *element = (char *)elements + i * size;
        double number = compare_number(dtype, element);

        if (!(fabs(number) < compare_least(dtype)) || number == 0)
            continue;
        element[size - 1] &= (char)0x80;
        memset(element, 0, size - 1);
        n++;
    }
    return n;
}

const char *compare_text(uint32_t dtype, const void *element, char *text, size_t size)
{
    if (dtype == FRIT_I64)
        snprintf(text, size, "%" PRId64, (int64_t)bits_of(dtype, element));
    else if (dtype == FRIT_U64)
        snprintf(text, size, "%" PRIu64, bits_of(dtype, element));
    else
        snprintf(text, size, "%.17g", compare_number(dtype, element));
    return text;
}
