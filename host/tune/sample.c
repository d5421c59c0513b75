/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/sample.h"

#include <math.h>
#include <string.h>

#include <frit/program.h>
#include <frit/types.h>

/* xorshift64* (Vigna 2016) */
static uint64_t next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* ---- elements ---- */

static bool is_float(const frit_dtype_info *info)
{
    return info->exponent && info->bits >= 8;
}

static bool has_sign(const frit_dtype_info *info)
{
    return info->specials != FRIT_SPECIALS_SCALE;
}

/* Sign and fraction as they come; the exponent is that of 1 or of 1/2. */
static uint64_t float_bits(const frit_dtype_info *info, uint64_t random)
{
    const uint64_t bias = (uint64_t)frit_dtype_bias(*info);
    const uint64_t fraction = info->fraction ? random >> (64 - info->fraction) : 0;
    const uint64_t sign = has_sign(info) ? (random & 1) << (info->bits - 1) : 0;

    return sign | (bias - (random >> 1 & 1)) << info->fraction | fraction;
}

static uint64_t element(const frit_dtype_info *info, uint64_t below, uint64_t random)
{
    if (is_float(info))
        return float_bits(info, random);
    if (info->cls == FRIT_DTYPE_BOOL)
        return random >> 63;
    return (random >> 32) % (below ? below : 1);
}

void sample_fill(void *to, uint32_t dtype, int64_t count, uint64_t below, uint64_t *state)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    const uint64_t one = frit_storage_bytes(dtype, 1);
    unsigned char *bytes = to;

    *state |= 1;
    if (info.cls == FRIT_DTYPE_PACKED && !is_float(&info)) {
        for (uint64_t i = 0; i < frit_storage_bytes(dtype, count); i++)
            bytes[i] = (unsigned char)(next(state) >> 56);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = element(&info, below, next(state));

        memcpy(bytes + (uint64_t)i * one, &bits, one);
    }
}

/* ---- comparison ---- */

static uint64_t bits_at(const void *from, uint32_t dtype, int64_t i)
{
    const uint64_t one = frit_storage_bytes(dtype, 1);
    uint64_t bits = 0;

    memcpy(&bits, (const char *)from + (uint64_t)i * one, one);
    return bits;
}

static double decode_f32(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float number;

    memcpy(&number, &low, sizeof(number));
    return (double)number;
}

static bool is_nan(const frit_dtype_info *info, uint64_t bits)
{
    const uint64_t sign = has_sign(info) ? UINT64_C(1) << (info->bits - 1) : 0;
    const uint64_t ones = (UINT64_C(1) << (info->exponent + info->fraction)) - 1;
    const uint64_t size = bits & ~sign, infinity = ones - (UINT64_C(1) << info->fraction) + 1;

    switch (info->specials) {
    case FRIT_SPECIALS_IEEE:
        return size > infinity;
    case FRIT_SPECIALS_FNUZ:
        return bits == sign;
    default:
        return size == ones;
    }
}

/* Of 8 or 16 bits. */
static double decode_small(const frit_dtype_info *info, uint64_t bits)
{
    const uint64_t one = UINT64_C(1) << info->fraction, fraction = bits & (one - 1);
    const int exponent = (int)(bits >> info->fraction & ((UINT64_C(1) << info->exponent) - 1));
    const bool last = exponent == (1 << info->exponent) - 1;
    const bool leading = exponent || !has_sign(info); /* without sign no number is subnormal */
    const double sign = has_sign(info) && bits >> (info->bits - 1) ? -1 : 1;

    if (is_nan(info, bits))
        return NAN;
    if (last && info->specials == FRIT_SPECIALS_IEEE)
        return sign * INFINITY;
    return sign * ldexp((double)(fraction + (leading ? one : 0)),
                        (leading ? exponent : 1) - frit_dtype_bias(*info) - info->fraction);
}

static double decode(const frit_dtype_info *info, uint64_t bits)
{
    double number;

    if (info->bits == 32)
        return decode_f32(bits);
    if (info->bits != 64)
        return decode_small(info, bits);
    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* Of the largest expected magnitude.  Sums of 2^k terms of either sign differ between orders by
 * some 2^(k/2) roundings, so that wide types may lose nine bits; a narrow type is rounded at the
 * end, where two roundings may fall apart. */
static double tolerance(const frit_dtype_info *info, uint32_t numeric_class)
{
    static const int bits[] = {[FRIT_NUMERIC_REDUCED] = 6, [FRIT_NUMERIC_RELAXED] = 4};
    const int kept = info->fraction > 16 ? info->fraction - 9 : info->fraction - 1;

    if (numeric_class == FRIT_NUMERIC_REORDERED)
        return ldexp(1, -kept);
    return ldexp(1, -(numeric_class > FRIT_NUMERIC_RELAXED || bits[numeric_class] > kept
                          ? kept
                          : bits[numeric_class]));
}

static double largest(const void *elements, uint32_t dtype, int64_t count)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    double most = 0;

    for (int64_t i = 0; i < count; i++) {
        const double one = fabs(decode(&info, bits_at(elements, dtype, i)));

        if (isfinite(one) && one > most)
            most = one;
    }
    return most;
}

static bool are_near(double got, double expected, double allowed)
{
    if (isnan(got) || isnan(expected))
        return isnan(got) && isnan(expected);
    if (isinf(got) || isinf(expected))
        return got == expected;
    return fabs(got - expected) <= allowed;
}

static void note(struct sample_difference *out, int64_t index, double got, double expected)
{
    if (!out->count++) {
        out->index = index;
        out->got = got;
        out->expected = expected;
    }
}

static void compare_bytes(const void *got, const void *expected, uint64_t n_bytes,
                          struct sample_difference *out)
{
    const unsigned char *a = got, *b = expected;

    for (uint64_t i = 0; i < n_bytes; i++)
        if (a[i] != b[i])
            note(out, (int64_t)i, a[i], b[i]);
}

void sample_compare(const void *got, const void *expected, uint32_t dtype, int64_t count,
                    uint32_t numeric_class, struct sample_difference *out)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    const bool exact = numeric_class == FRIT_NUMERIC_EXACT;
    double allowed = 0;

    *out = (struct sample_difference){.index = -1};
    if (!is_float(&info)) {
        compare_bytes(got, expected, frit_storage_bytes(dtype, count), out);
        return;
    }
    if (!exact)
        allowed = tolerance(&info, numeric_class) * largest(expected, dtype, count);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t a = bits_at(got, dtype, i), b = bits_at(expected, dtype, i);
        double x, y;

        if (a == b)
            continue;
        x = decode(&info, a);
        y = decode(&info, b);
        if (exact ? !isnan(x) || !isnan(y) : !are_near(x, y, allowed))
            note(out, i, x, y);
    }
}

bool sample_is_untouched(const void *bytes, uint64_t n_bytes, uint8_t filled)
{
    const unsigned char *at = bytes;

    for (uint64_t i = 0; i < n_bytes; i++)
        if (at[i] != filled)
            return false;
    return true;
}
