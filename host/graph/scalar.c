/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/scalar.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/op.h"

frit_scalar scalar_f(double value)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

    memcpy(&scalar.bits, &value, sizeof(value));
    return scalar;
}

frit_scalar scalar_i(int64_t value)
{
    return (frit_scalar){.kind = FRIT_SCALAR_I64, .bits = (uint64_t)value};
}

frit_scalar scalar_u(uint64_t value)
{
    return (frit_scalar){.kind = FRIT_SCALAR_U64, .bits = value};
}

double scalar_number(const frit_scalar *scalar)
{
    double value;

    if (scalar->kind == FRIT_SCALAR_I64)
        return (double)(int64_t)scalar->bits;
    if (scalar->kind == FRIT_SCALAR_U64)
        return (double)scalar->bits;
    memcpy(&value, &scalar->bits, sizeof(value));
    return value;
}

/* 17 digits are enough for any double; most need fewer. */
static void shortest(double value, char *text, size_t size)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

const char *scalar_text(const frit_scalar *scalar, char *text, size_t size)
{
    if (scalar->kind == FRIT_SCALAR_I64)
        snprintf(text, size, "%lld", (long long)scalar->bits);
    else if (scalar->kind == FRIT_SCALAR_U64)
        snprintf(text, size, "%llu", (unsigned long long)scalar->bits);
    else
        shortest(scalar_number(scalar), text, size);
    return text;
}

/* The largest number of a float type. */
static double largest_float(uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    assert(info.exponent > 0);
    return ldexp(2 - ldexp(1, -info.fraction), (1 << (info.exponent - 1)) - 1);
}

/* Exact but for the last nearbyint: a quotient by a power of two that is the unit in the last
 * place. */
double scalar_round(double value, uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    int exponent, min_exponent = 2 - (1 << (info.exponent ? info.exponent - 1 : 0));
    double unit, rounded;

    if (info.cls != FRIT_DTYPE_FLOAT || info.bits == 64 || value == 0 || !isfinite(value))
        return value;
    frexp(value, &exponent);
    exponent = exponent - 1 < min_exponent ? min_exponent : exponent - 1;
    unit = ldexp(1, exponent - info.fraction);
    rounded = nearbyint(value / unit) * unit;
    return fabs(rounded) > largest_float(dtype) ? copysign(INFINITY, value) : rounded;
}

/* ---- elements in memory ---- */

/* Exponent and fraction of a finite number of the type, below the sign. */
static uint64_t finite_bits(double value, const frit_dtype_info *info)
{
    int least = 2 - (1 << (info->exponent - 1)), exponent;
    double unit;

    if (value == 0)
        return 0;
    frexp(value, &exponent);
    if (--exponent < least) /* the leading one is not there */
        return (uint64_t)ldexp(value, info->fraction - least);
    unit = ldexp(value, info->fraction - exponent); /* the leading one adds 1 to the exponent */
    return ((uint64_t)(exponent - least) << info->fraction) + (uint64_t)unit;
}

static uint64_t float_bits(double value, uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    uint64_t top = ((1ull << info.exponent) - 1) << info.fraction;
    double rounded = scalar_round(value, dtype);
    uint64_t sign = signbit(rounded) ? 1ull << (info.bits - 1) : 0;

    if (isnan(rounded))
        return top | 1ull << (info.fraction - 1);
    return sign | (isinf(rounded) ? top : finite_bits(fabs(rounded), &info));
}

static double float_of_bits(uint64_t bits, uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    uint64_t fraction = bits & ((1ull << info.fraction) - 1);
    int exponent = (int)(bits >> info.fraction & ((1ull << info.exponent) - 1));
    int least = 2 - (1 << (info.exponent - 1));
    double value;

    if (exponent == (1 << info.exponent) - 1)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp((double)fraction, least - info.fraction);
    else
        value =
            ldexp((double)(fraction | 1ull << info.fraction), exponent - 1 + least - info.fraction);
    return bits >> (info.bits - 1) & 1 ? -value : value;
}

uint64_t scalar_bits(const frit_scalar *scalar, uint32_t dtype)
{
    uint32_t bits = frit_dtype_bits(dtype);

    if (dtype_class(dtype) == FRIT_DTYPE_FLOAT)
        return float_bits(scalar_number(scalar), dtype);
    return scalar->bits & UINT64_MAX >> (64 - bits);
}

frit_scalar scalar_of_bits(uint64_t bits, uint32_t dtype)
{
    uint32_t unused = 64 - frit_dtype_bits(dtype);

    if (dtype_class(dtype) == FRIT_DTYPE_FLOAT)
        return scalar_f(float_of_bits(bits, dtype));
    if (dtype_class(dtype) == FRIT_DTYPE_UINT)
        return scalar_u(bits);
    if (dtype_class(dtype) == FRIT_DTYPE_BOOL)
        return scalar_i(bits != 0);
    return scalar_i((int64_t)(bits << unused) >> unused);
}

/* ---- what fits ---- */

/* The largest of the unsigned numbers of this many bits. */
static uint64_t largest_of(uint32_t bits)
{
    assert(bits >= 1 && bits <= 64);
    return UINT64_MAX >> (64 - bits);
}

const char *scalar_range(uint32_t dtype, char *text, size_t size)
{
    uint32_t bits = frit_dtype_bits(dtype);

    if (dtype_class(dtype) == FRIT_DTYPE_FLOAT)
        snprintf(text, size, "numbers up to %g in size", largest_float(dtype));
    else if (dtype_class(dtype) == FRIT_DTYPE_BOOL)
        snprintf(text, size, "0 and 1");
    else if (dtype_class(dtype) == FRIT_DTYPE_UINT)
        snprintf(text, size, "whole numbers from 0 to %llu", (unsigned long long)largest_of(bits));
    else
        snprintf(text, size, "whole numbers from %lld to %lld",
                 -(long long)largest_of(bits - 1) - 1, (long long)largest_of(bits - 1));
    return text;
}

/* An integer as sign and magnitude; false for a fraction, an infinity, NaN, or beyond 64 bits. */
static bool whole(const frit_scalar *scalar, bool *negative, uint64_t *magnitude)
{
    double value;

    if (scalar->kind != FRIT_SCALAR_F64) {
        *negative = scalar->kind == FRIT_SCALAR_I64 && (int64_t)scalar->bits < 0;
        *magnitude = *negative ? 0 - scalar->bits : scalar->bits;
        return true;
    }
    value = scalar_number(scalar);
    if (!(fabs(value) < 0x1p64) || value != trunc(value))
        return false;
    *negative = value < 0;
    *magnitude = (uint64_t)fabs(value);
    return true;
}

static const char *fit_integer(frit_scalar *scalar, uint32_t dtype)
{
    bool is_signed = dtype_class(dtype) == FRIT_DTYPE_INT, negative;
    uint32_t bits = frit_dtype_bits(dtype) - is_signed;
    uint64_t magnitude, max;

    if (!whole(scalar, &negative, &magnitude)) {
        bool beyond = scalar->kind == FRIT_SCALAR_F64 && isfinite(scalar_number(scalar)) &&
                      fabs(scalar_number(scalar)) >= 0x1p64;

        return beyond ? "is out of range" : "is not a whole number";
    }
    if (negative && !is_signed)
        return "is negative";
    max = dtype_class(dtype) == FRIT_DTYPE_BOOL ? 1 : largest_of(bits);
    if (magnitude > max + negative)
        return dtype == FRIT_BOOL ? "is neither 0 nor 1" : "is out of range";
    scalar->bits = negative ? 0 - magnitude : magnitude;
    scalar->kind = dtype_class(dtype) == FRIT_DTYPE_UINT ? FRIT_SCALAR_U64 : FRIT_SCALAR_I64;
    return NULL;
}

const char *scalar_fit(frit_scalar *scalar, uint32_t dtype)
{
    double value;

    if (scalar->kind != FRIT_SCALAR_F64 && scalar->kind != FRIT_SCALAR_I64 &&
        scalar->kind != FRIT_SCALAR_U64)
        return "is of no known kind";
    if (dtype_class(dtype) != FRIT_DTYPE_FLOAT)
        return fit_integer(scalar, dtype);
    value = scalar_number(scalar);
    if (isfinite(value) && !isfinite(scalar_round(value, dtype)))
        return "is out of range";
    *scalar = scalar_f(value);
    return NULL;
}
