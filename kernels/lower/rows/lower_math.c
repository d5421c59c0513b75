/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are a function of kernels/math, for floats at least. */
#include "lower/rows/rows.h"
#include "math/math.h"

#define MATH_1(name, cost, meaning)                    \
    uint32_t lower_##name(const struct lower *l)       \
    {                                                  \
        return math_##name(l->m, l->target, l->in[0]); \
    }
#define MATH_1_16(name, cost, meaning)                                                     \
    uint32_t lower_##name(const struct lower *l)                                           \
    {                                                                                      \
        return kir_is_16_bit_float(l->dtype) ? math_##name##_16(l->m, l->target, l->in[0]) \
                                             : math_##name(l->m, l->target, l->in[0]);     \
    }
#include "math/math.def"

uint32_t lower_atan2(const struct lower *l)
{
    return math_atan2(l->m, l->target, l->in[0], l->in[1]);
}

uint32_t lower_hypot(const struct lower *l)
{
    return math_hypot(l->m, l->target, l->in[0], l->in[1]);
}

/* ---- those that integers have too ---- */

/* c ? a : b */
static uint32_t number(const struct lower *l, double value)
{
    return lower_const(l->m, l->dtype, value);
}

/* The remainder toward 0 has the sign of a: one of the other sign than b is b off. */
static uint32_t rem_int(const struct lower *l)
{
    uint32_t b = l->in[1], zero = number(l, 0);
    uint32_t rest =
                 kir_binary(l->m, lower_is_unsigned(l->dtype) ? KIR_urem : KIR_srem, l->in[0], b),
             off;

    if (!lower_is_unsigned(l->dtype)) {
        off = kir_binary(l->m, KIR_lt, kir_binary(l->m, KIR_xor, rest, b), zero);
        off = kir_binary(l->m, KIR_and, off, kir_binary(l->m, KIR_ne, rest, zero));
        rest = kir_select(l->m, off, kir_binary(l->m, KIR_add, rest, b), rest);
    }
    return kir_select(l->m, kir_binary(l->m, KIR_eq, b, zero), zero, rest);
}

uint32_t lower_rem(const struct lower *l)
{
    if (lower_is_float(l->dtype))
        return math_rem(l->m, l->target, l->in[0], l->in[1]);
    return rem_int(l);
}

/* By squaring: a round per bit of the exponent.  A negative one leaves 1 and -1 alone. */
static uint32_t pow_int(const struct lower *l)
{
    struct kir_module *m = l->m;
    uint32_t a = l->in[0], b = l->in[1], zero = number(l, 0), unit = number(l, 1);
    uint32_t begin = kir_const_i(m, KIR_I32, 0), negative, odd, small, power, base, bits, next[3];
    uint32_t end = kir_const_i(m, KIR_I32, lower_bits(l->dtype));

    kir_for(m, begin, end, 1);
    power = kir_phi(m, unit);
    base = kir_phi(m, a);
    bits = kir_phi(m, b);
    odd = kir_binary(l->m, KIR_ne, kir_binary(l->m, KIR_and, bits, unit), zero);
    next[0] = kir_select(l->m, odd, kir_binary(l->m, KIR_mul, power, base), power);
    next[1] = kir_binary(l->m, KIR_mul, base, base);
    next[2] = kir_binary(l->m, KIR_shr, bits, unit);
    kir_next(m, next, 3);
    if (lower_is_unsigned(l->dtype))
        return power;
    negative = kir_binary(l->m, KIR_lt, b, zero);
    odd = kir_binary(l->m, KIR_ne, kir_binary(l->m, KIR_and, b, unit), zero);
    small = kir_select(l->m, odd, number(l, -1), unit);
    small = kir_select(l->m, kir_binary(l->m, KIR_eq, a, number(l, -1)), small, zero);
    small = kir_select(l->m, kir_binary(l->m, KIR_eq, a, unit), unit, small);
    return kir_select(l->m, negative, small, power);
}

uint32_t lower_pow(const struct lower *l)
{
    if (lower_is_float(l->dtype))
        return math_pow(l->m, l->target, l->in[0], l->in[1]);
    return pow_int(l);
}
