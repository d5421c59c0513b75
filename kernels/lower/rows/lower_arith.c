/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of arithmetic, comparison and choice.  Small integers are extended in values of 32 bits;
 * where a result can leave its type, rows.def says that it wraps. */
#include <math.h>

#include "lower/rows/rows.h"

static uint32_t one(const struct lower *l, enum kir_op op)
{
    return kir_unary(l->m, op, l->in[0]);
}

static uint32_t two(const struct lower *l, enum kir_op op)
{
    return kir_binary(l->m, op, l->in[0], l->in[1]);
}

static uint32_t negated(const struct lower *l, uint32_t b)
{
    return kir_unary(l->m, KIR_not, b);
}

/* c ? a : b */
static uint32_t number(const struct lower *l, double value)
{
    return lower_const(l->m, l->in_dtype[0], value);
}

/* ---- one operand ---- */

uint32_t lower_abs(const struct lower *l)
{
    return lower_is_unsigned(l->dtype) ? l->in[0] : one(l, KIR_abs);
}

uint32_t lower_neg(const struct lower *l)
{
    return one(l, KIR_neg);
}

uint32_t lower_sign(const struct lower *l)
{
    uint32_t x = l->in[0], zero = number(l, 0), up = lower_less(l->m, l->dtype, zero, x);
    uint32_t sign = kir_select(l->m, up, number(l, 1), zero);

    if (lower_is_unsigned(l->dtype))
        return sign;
    sign = kir_select(l->m, lower_less(l->m, l->dtype, x, zero), number(l, -1), sign);
    return lower_is_float(l->dtype) ? kir_select(l->m, kir_binary(l->m, KIR_ne, x, x), x, sign)
                                    : sign;
}

/* a - b c, rounded once. */
static uint32_t less_product(const struct lower *l, uint32_t a, uint32_t b, uint32_t c)
{
    return kir_emit(l->m, KIR_fma, kir_unary(l->m, KIR_neg, b), c, a);
}

/* The positive number `steps` places from one. */
static uint32_t neighbour(const struct lower *l, uint32_t y, int64_t steps)
{
    enum kir_type real = kir_type_at(l->m, y), word = real == KIR_F32 ? KIR_I32 : KIR_I64;
    uint32_t bits = kir_emit_as(l->m, KIR_bits, word, 0, y, KIR_NONE, KIR_NONE);

    bits = kir_binary(l->m, KIR_add, bits, kir_const_i(l->m, word, steps));
    return kir_emit_as(l->m, KIR_bits, real, 0, bits, KIR_NONE, KIR_NONE);
}

/* Where the device's root y may be off by some units, z = y + (x - y^2) / 2 y is off by one at
 * most: with p before z and n after it, p is nearer if x <= z p, and n if x > z n (Tuckerman's
 * test). The test is skipped where the difference could be a denormal.  0, infinity and NaN have no
 * remainder. */
uint32_t lower_sqrt(const struct lower *l)
{
    uint32_t x = l->in[0], y = one(l, KIR_sqrt), zero = number(l, 0), z, p, n, half, best, ok;
    double least = kir_type_at(l->m, x) == KIR_F32 ? 0x1p-60 : 0x1p-900;

    if (l->target->exact_div || !l->target->fma)
        return y;
    half = kir_binary(l->m, KIR_div, kir_const_f(l->m, kir_type_at(l->m, x), 0.5), y);
    z = kir_emit(l->m, KIR_fma, less_product(l, x, y, y), half, y);
    p = neighbour(l, z, -1);
    n = neighbour(l, z, 1);
    best = kir_select(l->m, kir_binary(l->m, KIR_le, less_product(l, x, z, p), zero), p, z);
    best = kir_select(l->m, kir_binary(l->m, KIR_lt, zero, less_product(l, x, z, n)), n, best);
    best = kir_select(l->m, kir_binary(l->m, KIR_le, number(l, least), x), best, z);
    ok = kir_binary(l->m, KIR_and, kir_binary(l->m, KIR_lt, zero, x),
                    kir_binary(l->m, KIR_lt, x, number(l, INFINITY)));
    return kir_select(l->m, ok, best, y);
}

uint32_t lower_floor(const struct lower *l)
{
    return one(l, KIR_floor);
}

uint32_t lower_round(const struct lower *l)
{
    return one(l, KIR_rint);
}

uint32_t lower_ceil(const struct lower *l)
{
    return one(l, KIR_ceil);
}

uint32_t lower_trunc(const struct lower *l)
{
    return one(l, KIR_trunc);
}

uint32_t lower_not(const struct lower *l)
{
    return one(l, KIR_not);
}

uint32_t lower_recip(const struct lower *l)
{
    return kir_binary(l->m, KIR_div, number(l, 1), l->in[0]);
}

uint32_t lower_cross(const struct lower *l)
{
    return kir_binary(l->m, KIR_sub, kir_binary(l->m, KIR_mul, l->in[0], l->in[1]),
                      kir_binary(l->m, KIR_mul, l->in[2], l->in[3]));
}

uint32_t lower_square(const struct lower *l)
{
    return kir_binary(l->m, KIR_mul, l->in[0], l->in[0]);
}

uint32_t lower_is_nan(const struct lower *l)
{
    return kir_binary(l->m, KIR_ne, l->in[0], l->in[0]);
}

uint32_t lower_is_inf(const struct lower *l)
{
    return kir_binary(l->m, KIR_eq, one(l, KIR_abs), number(l, (double)INFINITY));
}

uint32_t lower_relu(const struct lower *l)
{
    return lower_max(l->m, l->dtype, l->in[0], number(l, 0));
}

/* ---- two ---- */

uint32_t lower_add(const struct lower *l)
{
    return two(l, KIR_add);
}

uint32_t lower_sub(const struct lower *l)
{
    return two(l, KIR_sub);
}

uint32_t lower_mul(const struct lower *l)
{
    return two(l, KIR_mul);
}

uint32_t lower_div(const struct lower *l)
{
    if (lower_is_float(l->dtype))
        return two(l, KIR_div);
    return two(l, lower_is_unsigned(l->dtype) ? KIR_udiv : KIR_sdiv);
}

uint32_t lower_maximum(const struct lower *l)
{
    return lower_max(l->m, l->dtype, l->in[0], l->in[1]);
}

uint32_t lower_minimum(const struct lower *l)
{
    return lower_min(l->m, l->dtype, l->in[0], l->in[1]);
}

uint32_t lower_and(const struct lower *l)
{
    return two(l, KIR_and);
}

uint32_t lower_or(const struct lower *l)
{
    return two(l, KIR_or);
}

uint32_t lower_xor(const struct lower *l)
{
    return two(l, KIR_xor);
}

/* 0 where b is not a number of bits of the type; no shift is by more than those. */
static uint32_t shifted(const struct lower *l, enum kir_op op)
{
    uint32_t b = l->in[1], zero = number(l, 0);
    uint32_t fits = kir_binary(l->m, KIR_ult, b, number(l, lower_bits(l->dtype)));

    return kir_select(l->m, fits, kir_binary(l->m, op, l->in[0], kir_select(l->m, fits, b, zero)),
                      zero);
}

uint32_t lower_shl(const struct lower *l)
{
    return shifted(l, KIR_shl);
}

uint32_t lower_shr(const struct lower *l)
{
    return shifted(l, lower_is_unsigned(l->dtype) ? KIR_shr : KIR_sar);
}

/* ---- truth values ---- */

uint32_t lower_eq(const struct lower *l)
{
    return two(l, KIR_eq);
}

uint32_t lower_ne(const struct lower *l)
{
    return two(l, KIR_ne);
}

uint32_t lower_lt(const struct lower *l)
{
    return lower_less(l->m, l->in_dtype[0], l->in[0], l->in[1]);
}

uint32_t lower_gt(const struct lower *l)
{
    return lower_less(l->m, l->in_dtype[0], l->in[1], l->in[0]);
}

static uint32_t not_above(const struct lower *l, uint32_t a, uint32_t b)
{
    if (l->in_dtype[0] == FRIT_BOOL)
        return kir_binary(l->m, KIR_or, negated(l, a), b);
    return kir_binary(l->m, lower_is_unsigned(l->in_dtype[0]) ? KIR_ule : KIR_le, a, b);
}

uint32_t lower_le(const struct lower *l)
{
    return not_above(l, l->in[0], l->in[1]);
}

uint32_t lower_ge(const struct lower *l)
{
    return not_above(l, l->in[1], l->in[0]);
}

/* ---- three ---- */

uint32_t lower_where(const struct lower *l)
{
    return kir_select(l->m, l->in[0], l->in[1], l->in[2]);
}

uint32_t lower_mask_fill(const struct lower *l)
{
    return kir_select(l->m, l->in[1], l->in[2], l->in[0]);
}

uint32_t lower_clamp(const struct lower *l)
{
    return lower_min(l->m, l->dtype, lower_max(l->m, l->dtype, l->in[0], l->in[1]), l->in[2]);
}

uint32_t lower_hard_sigmoid(const struct lower *l)
{
    uint32_t line =
        kir_binary(l->m, KIR_add, kir_binary(l->m, KIR_mul, l->in[1], l->in[0]), l->in[2]);

    line = kir_binary(l->m, KIR_fmax, line, number(l, 0));
    return kir_binary(l->m, KIR_fmin, line, number(l, 1));
}

uint32_t lower_leaky_relu(const struct lower *l)
{
    uint32_t up = kir_binary(l->m, KIR_lt, number(l, 0), l->in[0]);

    return kir_select(l->m, up, l->in[0], two(l, KIR_mul));
}
