/* SPDX-License-Identifier: Apache-2.0 */
/* copy and cast.
 *
 * A conversion rounds once, to nearest.  A conversion to a narrow float is done in two steps, by
 * way of F32.  The first step rounds to odd (an inexact value is truncated, and its last bit set);
 * the second step to nearest is then correct if the first one keeps at least two bits more than the
 * result has (Boldo and Melquiond, IEEE Trans. Comp. 2008). */
#include "lower/rows/lower_cast.h"

#include "lower/rows/rows.h"

enum { F32_DIGITS = 24 };

/* ---- to floats ---- */

/* Rounds to nearest; if that is inexact, steps back towards 0 if it is beyond x, and sets the last
 * bit. */
uint32_t lower_narrow_odd(struct kir_module *m, uint32_t x)
{
    uint32_t near, back, one, bits, beyond;

    if (kir_type_at(m, x) == KIR_F32)
        return x;
    near = kir_unary(m, KIR_f32, x);
    back = kir_unary(m, KIR_f64, near);
    one = kir_const_i(m, KIR_I32, 1);
    bits = kir_emit_as(m, KIR_bits, KIR_I32, 0, near, KIR_NONE, KIR_NONE);
    beyond = kir_binary(m, KIR_lt, kir_unary(m, KIR_abs, x), kir_unary(m, KIR_abs, back));
    bits = kir_binary(m, KIR_sub, bits, kir_unary(m, KIR_i32, beyond));
    bits = kir_binary(m, KIR_or, bits, one);
    bits = kir_emit_as(m, KIR_bits, KIR_F32, 0, bits, KIR_NONE, KIR_NONE);
    beyond = kir_binary(m, KIR_lt, back, x);
    beyond = kir_binary(m, KIR_or, beyond, kir_binary(m, KIR_lt, x, back));
    return kir_select(m, beyond, bits, near);
}

static uint32_t float_to_float(struct kir_module *m, uint32_t from, uint32_t to, uint32_t x)
{
    if (from == FRIT_F64 && to != FRIT_F64)
        x = kir_is_16_bit_float(to) ? lower_narrow_odd(m, x) : kir_unary(m, KIR_f32, x);
    else if (from != FRIT_F64 && to == FRIT_F64)
        return kir_unary(m, KIR_f64, x);
    return lower_fit(m, to, x);
}

/* By how many bits magnitude_odd shifts at a step.  An integer of 25 bits keeps the rest, which
 * must be enough to round to the type; if the type's range ends below 2^24, the result is infinite
 * in any case. */
static uint32_t dropped_bits(uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);
    const bool is_beyond = 1u << (info.exponent - 1) <= F32_DIGITS;
    const uint32_t fewest = 11, enough = info.fraction + 3u;

    return F32_DIGITS + 1 - (is_beyond || enough < fewest ? fewest : enough);
}

/* An unsigned magnitude as F32, rounded to odd.  A magnitude of 2^24 or more is shifted down in
 * steps: one with more than 24 + drop bits by the next larger `drop`, so that at most 24 bits are
 * left. */
static uint32_t magnitude_odd(struct kir_module *m, uint32_t dtype, uint32_t magnitude)
{
    enum kir_type type = kir_type_at(m, magnitude);
    uint32_t zero = kir_const_i(m, type, 0), shift = zero, scale = kir_const_f(m, KIR_F32, 1);
    uint32_t lost = zero, kept, inexact, width = type == KIR_I32 ? 32 : 64;
    uint32_t step = dropped_bits(dtype), drop = 0;

    for (uint32_t limit_log2 = F32_DIGITS; limit_log2 < width; limit_log2 = F32_DIGITS + drop) {
        uint32_t large =
            kir_binary(m, KIR_ule, kir_const_i(m, type, (int64_t)1 << limit_log2), magnitude);

        drop = drop + step < width - F32_DIGITS ? drop + step : width - F32_DIGITS;
        shift = kir_select(m, large, kir_const_i(m, type, drop), shift);
        lost = kir_select(m, large, kir_const_i(m, type, ((int64_t)1 << drop) - 1), lost);
        scale = kir_select(m, large, kir_const_f(m, KIR_F32, (double)((int64_t)1 << drop)), scale);
    }
    inexact = kir_binary(m, KIR_ne, kir_binary(m, KIR_and, magnitude, lost), zero);
    kept = kir_binary(m, KIR_shr, magnitude, shift);
    kept = kir_binary(m, KIR_or, kept, kir_unary(m, type == KIR_I32 ? KIR_i32 : KIR_i64, inexact));
    return kir_binary(m, KIR_mul, kir_unary(m, KIR_f32, kept), scale);
}

static uint32_t int_to_16_bits(struct kir_module *m, uint32_t from, uint32_t to, uint32_t x)
{
    uint32_t negative, real;

    if (lower_bits(from) < 32)
        return lower_fit(m, to, kir_unary(m, KIR_f32, x));
    if (lower_is_unsigned(from))
        return lower_fit(m, to, magnitude_odd(m, to, x));
    negative = kir_binary(m, KIR_lt, x, lower_const(m, from, 0));
    real = magnitude_odd(m, to, kir_unary(m, KIR_abs, x));
    real = kir_select(m, negative, kir_unary(m, KIR_neg, real), real);
    return lower_fit(m, to, real);
}

static uint32_t int_to_float(struct kir_module *m, uint32_t from, uint32_t to, uint32_t x)
{
    bool is_unsigned = lower_is_unsigned(from);

    if (from == FRIT_BOOL)
        return kir_unary(m, to == FRIT_F64 ? KIR_f64 : KIR_f32, x);
    if (kir_is_16_bit_float(to))
        return int_to_16_bits(m, from, to, x);
    if (to == FRIT_F64)
        return kir_unary(m, is_unsigned ? KIR_uf64 : KIR_f64, x);
    return kir_unary(m, is_unsigned ? KIR_uf32 : KIR_f32, x);
}

/* ---- to integers ---- */

static uint32_t float_to_int(struct kir_module *m, uint32_t to, uint32_t x)
{
    uint32_t bits = lower_bits(to);
    bool is_unsigned = lower_is_unsigned(to);

    if (bits == 64)
        return kir_unary(m, is_unsigned ? KIR_u64 : KIR_i64, x);
    x = kir_unary(m, is_unsigned ? KIR_u32 : KIR_i32, x);
    if (bits == 32)
        return x;
    if (is_unsigned)
        return kir_binary(m, KIR_umin, x, kir_const_i(m, KIR_I32, (1 << bits) - 1));
    x = kir_binary(m, KIR_smin, x, kir_const_i(m, KIR_I32, (1 << (bits - 1)) - 1));
    return kir_binary(m, KIR_smax, x, kir_const_i(m, KIR_I32, -(1 << (bits - 1))));
}

static uint32_t int_to_int(struct kir_module *m, uint32_t from, uint32_t to, uint32_t x)
{
    enum kir_type type = kir_type_of(from), wanted = kir_type_of(to);

    if (type == wanted)
        return from == to ? x : lower_fit(m, to, x);
    if (wanted == KIR_I64)
        return kir_unary(m, lower_is_unsigned(from) ? KIR_u64 : KIR_i64, x);
    return lower_fit(m, to, kir_unary(m, KIR_i32, x));
}

uint32_t lower_convert(struct kir_module *m, uint32_t from, uint32_t to, uint32_t value)
{
    if (from == to)
        return value;
    if (to == FRIT_BOOL)
        return kir_binary(m, KIR_ne, value, lower_const(m, from, 0));
    if (lower_is_float(from))
        return lower_is_float(to) ? float_to_float(m, from, to, value) : float_to_int(m, to, value);
    return lower_is_float(to) ? int_to_float(m, from, to, value) : int_to_int(m, from, to, value);
}

uint32_t lower_cast(const struct lower *l)
{
    return lower_convert(l->m, l->in_dtype[0], l->dtype, l->in[0]);
}

uint32_t lower_copy(const struct lower *l)
{
    return l->in[0];
}
