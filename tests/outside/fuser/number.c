/* SPDX-License-Identifier: Apache-2.0 */
/* Elements are moved by memcpy, so no alignment is assumed. */
#include "number.h"

#include <math.h>
#include <string.h>

enum number_kind number_kind(uint32_t dtype)
{
    switch (dtype) {
    case FRIT_F64:
    case FRIT_F32:
        return NUMBER_REAL;
    case FRIT_I64:
    case FRIT_I32:
    case FRIT_I16:
    case FRIT_I8:
        return NUMBER_SINT;
    case FRIT_U64:
    case FRIT_U32:
    case FRIT_U16:
    case FRIT_U8:
    case FRIT_BOOL:
        return NUMBER_UINT;
    default:
        return NUMBER_NONE;
    }
}

#define LOAD(type, member)                          \
    do {                                            \
        type element;                               \
        memcpy(&element, from, sizeof(element));    \
        return (union number){.member = (element)}; \
    } while (0)

union number number_load(uint32_t dtype, const char *from)
{
    switch (dtype) {
    case FRIT_F64:
        LOAD(double, real);
    case FRIT_F32:
        LOAD(float, real);
    case FRIT_I64:
        LOAD(int64_t, sint);
    case FRIT_I32:
        LOAD(int32_t, sint);
    case FRIT_I16:
        LOAD(int16_t, sint);
    case FRIT_I8:
        LOAD(int8_t, sint);
    case FRIT_U64:
        LOAD(uint64_t, uint);
    case FRIT_U32:
        LOAD(uint32_t, uint);
    case FRIT_U16:
        LOAD(uint16_t, uint);
    default:
        LOAD(uint8_t, uint);
    }
}
#undef LOAD

/* The low bytes come first, as everywhere in the contract. */
void number_store(uint32_t dtype, char *to, union number number)
{
    if (dtype == FRIT_F32) {
        float narrow = (float)number.real;

        memcpy(to, &narrow, sizeof(narrow));
        return;
    }
    memcpy(to, &number, frit_dtype_bits(dtype) / 8);
}

/* ---- conversion ---- */

static int64_t to_signed(double real, uint32_t bits)
{
    double limit = ldexp(1, (int)bits - 1);

    if (isnan(real))
        return 0;
    if (real >= limit)
        return INT64_MAX >> (64 - bits);
    return real < -limit ? INT64_MIN >> (64 - bits) : (int64_t)real;
}

static uint64_t to_unsigned(double real, uint32_t bits)
{
    if (real >= ldexp(1, (int)bits))
        return UINT64_MAX >> (64 - bits);
    return real > 0 ? (uint64_t)real : 0;
}

/* To f32 in one rounding. */
static double to_real(union number number, enum number_kind kind, uint32_t to)
{
    if (kind == NUMBER_SINT)
        return to == FRIT_F32 ? (double)(float)number.sint : (double)number.sint;
    return to == FRIT_F32 ? (double)(float)number.uint : (double)number.uint;
}

union number number_cast(union number number, uint32_t from, uint32_t to)
{
    enum number_kind kind = number_kind(from), wanted = number_kind(to);
    uint32_t bits = frit_dtype_bits(to);

    if (to == FRIT_BOOL)
        return (union number){.uint = kind == NUMBER_REAL ? number.real != 0 : number.uint != 0};
    if (wanted == NUMBER_REAL)
        return kind == NUMBER_REAL ? number : (union number){.real = to_real(number, kind, to)};
    if (kind != NUMBER_REAL)
        return number;
    if (wanted == NUMBER_SINT)
        return (union number){.sint = to_signed(number.real, bits)};
    return (union number){.uint = to_unsigned(number.real, bits)};
}
