/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, storing and rounding.  The element type is looked at once per run of elements; the loops
 * below it are one line per type.  Elements are moved by memcpy, so no alignment is assumed. */
#include "value.h"

#include <string.h>

bool value_has(uint32_t dtype)
{
    uint32_t cls = frit_dtype_info_of(dtype).cls;

    return cls && cls != FRIT_DTYPE_PACKED;
}

enum value_kind value_kind(uint32_t dtype)
{
    switch (frit_dtype_info_of(dtype).cls) {
    case FRIT_DTYPE_FLOAT:
        return VALUE_REAL;
    case FRIT_DTYPE_INT:
        return VALUE_SINT;
    default:
        return VALUE_UINT;
    }
}

int64_t value_size(uint32_t dtype)
{
    return (int64_t)frit_storage_bytes(dtype, 1);
}

/* ---- 16-bit floats ---- */

static double double_of(uint64_t bits)
{
    double real;

    memcpy(&real, &bits, sizeof real);
    return real;
}

/* A float of 16 bits with `frac` fraction bits, widened: the exponent gets the bias of a double. */
static double widen(uint16_t bits, unsigned frac)
{
    unsigned top = (1u << (15 - frac)) - 1; /* exponent field of infinity and NaN */
    unsigned bias = top >> 1;
    uint64_t wide = bits;
    uint64_t exponent = wide >> frac & top;
    uint64_t fraction = wide & ((1u << frac) - 1);
    uint64_t sign = wide >> 15 << 63;
    uint64_t wide_exponent = exponent == top ? 0x7ff : exponent + 1023 - bias;

    if (exponent == 0) {
        double unit = double_of((uint64_t)(1024 - bias - frac) << 52); /* the smallest subnormal */
        double real = (double)fraction * unit;

        return sign ? -real : real;
    }
    return double_of(sign | wide_exponent << 52 | fraction << (52 - frac));
}

/* The nearest float of 16 bits with `frac` fraction bits, ties to even.  Rounding up may carry into
 * the exponent, which is then the right one, infinity included. */
static uint16_t narrow(double real, unsigned frac)
{
    int top = (1 << (15 - frac)) - 1;
    uint64_t bits, fraction, kept, rest, half;
    uint16_t sign, infinity = (uint16_t)(top << frac);
    int exponent, shift = 52 - (int)frac;

    memcpy(&bits, &real, sizeof bits);
    sign = (uint16_t)(bits >> 63 << 15);
    fraction = bits & ((1ull << 52) - 1);
    exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024 && fraction) /* NaN, made quiet */
        return (uint16_t)(sign | infinity | 1u << (frac - 1) | (uint16_t)(fraction >> shift));
    exponent += top >> 1;
    if (exponent >= top)
        return sign | infinity;
    fraction |= 1ull << 52;
    if (exponent < 1) { /* subnormal: fewer bits are kept */
        shift += 1 - exponent;
        exponent = 1;
        if (shift > 54)
            return sign;
    }
    kept = fraction >> shift;
    half = 1ull << (shift - 1);
    rest = fraction & (2 * half - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)(sign | (((uint64_t)(exponent - 1) << frac) + kept));
}

/* ---- runs of elements ---- */

#define LOAD(type, member, convert)                 \
    for (int64_t i = 0; i < n; i++, from += step) { \
        type element;                               \
        memcpy(&element, from, sizeof element);     \
        out[i].member = convert;                    \
    }                                               \
    return

static void load_floats(frit_dtype_info info, const char *from, int64_t step, int64_t n,
                        union value *out)
{
    switch (info.bits) {
    case 64:
        LOAD(double, real, element);
    case 32:
        LOAD(float, real, (double)element);
    default:
        LOAD(uint16_t, real, widen(element, info.fraction));
    }
}

static void load_signed(frit_dtype_info info, const char *from, int64_t step, int64_t n,
                        union value *out)
{
    switch (info.bits) {
    case 64:
        LOAD(int64_t, sint, element);
    case 32:
        LOAD(int32_t, sint, element);
    case 16:
        LOAD(int16_t, sint, element);
    default:
        LOAD(int8_t, sint, (int64_t)element);
    }
}

static void load_unsigned(frit_dtype_info info, const char *from, int64_t step, int64_t n,
                          union value *out)
{
    switch (info.bits) {
    case 64:
        LOAD(uint64_t, uint, element);
    case 32:
        LOAD(uint32_t, uint, element);
    case 16:
        LOAD(uint16_t, uint, element);
    default:
        LOAD(uint8_t, uint, element);
    }
}
#undef LOAD

void value_load(uint32_t dtype, const char *from, int64_t step, int64_t n, union value *out)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_FLOAT)
        load_floats(info, from, step, n, out);
    else if (info.cls == FRIT_DTYPE_INT)
        load_signed(info, from, step, n, out);
    else
        load_unsigned(info, from, step, n, out);
}

#define STORE(type, convert)                      \
    for (int64_t i = 0; i < n; i++, to += step) { \
        type element = convert;                   \
        memcpy(to, &element, sizeof element);     \
    }                                             \
    return

static void store_floats(frit_dtype_info info, char *to, int64_t step, int64_t n,
                         const union value *in)
{
    switch (info.bits) {
    case 64:
        STORE(double, in[i].real);
    case 32:
        STORE(float, (float)in[i].real);
    default:
        STORE(uint16_t, narrow(in[i].real, info.fraction));
    }
}

/* Integers of either sign are stored by their low bits. */
static void store_integers(frit_dtype_info info, char *to, int64_t step, int64_t n,
                           const union value *in)
{
    switch (info.bits) {
    case 64:
        STORE(uint64_t, in[i].uint);
    case 32:
        STORE(uint32_t, (uint32_t)in[i].uint);
    case 16:
        STORE(uint16_t, (uint16_t)in[i].uint);
    default:
        STORE(uint8_t, (uint8_t)in[i].uint);
    }
}
#undef STORE

void value_store(uint32_t dtype, char *to, int64_t step, int64_t n, const union value *in)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_FLOAT)
        store_floats(info, to, step, n, in);
    else
        store_integers(info, to, step, n, in);
}

union value value_get(uint32_t dtype, const char *from)
{
    union value value;

    value_load(dtype, from, 0, 1, &value);
    return value;
}

void value_put(uint32_t dtype, char *to, union value value)
{
    value_store(dtype, to, 0, 1, &value);
}

union value value_round(uint32_t dtype, union value value)
{
    char element[8];

    value_put(dtype, element, value);
    return value_get(dtype, element);
}

#define MOVE(bytes)                                                   \
    for (int64_t i = 0; i < n; i++, to += to_step, from += from_step) \
        memcpy(to, from, bytes);                                      \
    return

void value_move(int64_t size, char *to, int64_t to_step, const char *from, int64_t from_step,
                int64_t n)
{
    if (to_step == size && from_step == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 8:
        MOVE(8);
    case 4:
        MOVE(4);
    case 2:
        MOVE(2);
    default:
        MOVE(1);
    }
}
#undef MOVE
