/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, storing and rounding.  The element type is looked at once per run of elements; the loops
 * below it are one line per type.  Elements are moved by memcpy, so no alignment is assumed. */
#include "value.h"

#include <string.h>

bool value_has(uint32_t dtype)
{
    switch (dtype) {
#define FRIT_DTYPE(id, NAME, name, bits, cls, npy, meaning) \
    case id:                                                \
        return FRIT_DTYPE_##cls != FRIT_DTYPE_PACKED;
#include <frit/dtypes.def>
    default:
        return false;
    }
}

enum value_kind value_kind(uint32_t dtype)
{
    switch (dtype) {
    case FRIT_F64:
    case FRIT_F32:
    case FRIT_F16:
    case FRIT_BF16:
        return VALUE_REAL;
    case FRIT_I64:
    case FRIT_I32:
    case FRIT_I16:
    case FRIT_I8:
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

double value_from_f16(uint16_t bits)
{
    return widen(bits, 10);
}

double value_from_bf16(uint16_t bits)
{
    return widen(bits, 7);
}

uint16_t value_to_f16(double real)
{
    return narrow(real, 10);
}

uint16_t value_to_bf16(double real)
{
    return narrow(real, 7);
}

/* ---- runs of elements ---- */

#define LOAD(type, member, convert)                 \
    for (int64_t i = 0; i < n; i++, from += step) { \
        type element;                               \
        memcpy(&element, from, sizeof element);     \
        out[i].member = convert(element);           \
    }                                               \
    return

void value_load(uint32_t dtype, const char *from, int64_t step, int64_t n, union value *out)
{
    switch (dtype) {
    case FRIT_F64:
        LOAD(double, real, );
    case FRIT_F32:
        LOAD(float, real, (double));
    case FRIT_F16:
        LOAD(uint16_t, real, value_from_f16);
    case FRIT_BF16:
        LOAD(uint16_t, real, value_from_bf16);
    case FRIT_I64:
        LOAD(int64_t, sint, );
    case FRIT_I32:
        LOAD(int32_t, sint, );
    case FRIT_I16:
        LOAD(int16_t, sint, );
    case FRIT_I8:
        LOAD(int8_t, sint, (int64_t));
    case FRIT_U64:
        LOAD(uint64_t, uint, );
    case FRIT_U32:
        LOAD(uint32_t, uint, );
    case FRIT_U16:
        LOAD(uint16_t, uint, );
    default:
        LOAD(uint8_t, uint, );
    }
}
#undef LOAD

#define STORE(type, convert, member)              \
    for (int64_t i = 0; i < n; i++, to += step) { \
        type element = convert(in[i].member);     \
        memcpy(to, &element, sizeof element);     \
    }                                             \
    return

/* Integers of either sign are stored by their low bits. */
void value_store(uint32_t dtype, char *to, int64_t step, int64_t n, const union value *in)
{
    switch (dtype) {
    case FRIT_F64:
        STORE(double, , real);
    case FRIT_F32:
        STORE(float, (float), real);
    case FRIT_F16:
        STORE(uint16_t, value_to_f16, real);
    case FRIT_BF16:
        STORE(uint16_t, value_to_bf16, real);
    case FRIT_I64:
    case FRIT_U64:
        STORE(uint64_t, , uint);
    case FRIT_I32:
    case FRIT_U32:
        STORE(uint32_t, (uint32_t), uint);
    case FRIT_I16:
    case FRIT_U16:
        STORE(uint16_t, (uint16_t), uint);
    default:
        STORE(uint8_t, (uint8_t), uint);
    }
}
#undef STORE

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
