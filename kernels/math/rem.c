/* SPDX-License-Identifier: Apache-2.0 */
/* rem: long division of significands in integers, with a fixed number of bits per round.
 *
 * |x| = m 2^i and |y| = n 2^j, m and n integers below 2^24 (2^53), the top bit of n set.  Starting
 * with r = m mod n, each round replaces r by r 2^step mod n, until i - j bits are processed.  The
 * quotient of a round is computed in floats and may be off by one; the product with it wraps
 * around, the remainder does not. */
#include <math.h>

#include "math/kit.h"

enum { STEP_F32 = 20, STEP_F64 = 48 };

/* The magnitude of a float: an integer below 2^(man + 1) and an exponent. */
struct parts {
    uint32_t m, exponent;
};

/* Denormals are normalised by an exact multiplication. */
static struct parts parts_of(const struct kit *kit, uint32_t magnitude)
{
    int64_t one = INT64_C(1) << kit->man;
    int up = (int)kit->man + 1;
    uint32_t denormal = kit_lt(kit, magnitude, kit_per_type(kit, 0x1p-126, 0x1p-1022));
    uint32_t scaled = kit_mul(kit, magnitude, kit_f(kit, ldexp(1, up)));
    uint32_t bits = kit_bits(kit, kit_select(kit, denormal, scaled, magnitude));
    uint32_t exponent = kit_shr(kit, bits, kit->man);
    uint32_t m = kit_or(kit, kit_and(kit, bits, kit_i(kit, one - 1)), kit_i(kit, one));

    return (struct parts){
        m, kit_sub(kit, exponent, kit_select(kit, denormal, kit_i(kit, up), kit_i(kit, 0)))};
}

static uint32_t to_float(const struct kit *kit, uint32_t integer)
{
    return kit_unary(kit, kit->wide ? KIR_f64 : KIR_f32, integer);
}

/* r 2^step mod n, r < n. */
static uint32_t remainder_step(const struct kit *kit, uint32_t r, uint32_t step, uint32_t n,
                               uint32_t inverse)
{
    uint32_t about =
        kit_mul(kit, kit_mul(kit, to_float(kit, r), inverse), kit_power_of_2(kit, step));
    uint32_t q = kit_unary(kit, kit->wide ? KIR_i64 : KIR_i32, about);
    uint32_t left = kit_sub(kit, kit_binary(kit, KIR_shl, r, step), kit_mul(kit, q, n));
    uint32_t zero = kit_i(kit, 0);

    left = kit_add(kit, left, kit_select(kit, kit_lt(kit, left, zero), n, zero));
    return kit_sub(kit, left, kit_select(kit, kit_lt(kit, left, n), zero, n));
}

/* |x| mod |y|, both finite, y not 0. */
static uint32_t magnitude_rem(const struct kit *kit, uint32_t x, uint32_t y)
{
    struct parts a = parts_of(kit, x), b = parts_of(kit, y);
    uint32_t zero = kit_i(kit, 0), most = kit_i(kit, kit->wide ? STEP_F64 : STEP_F32);
    uint32_t inverse = kit_div(kit, kit_f(kit, 1), to_float(kit, b.m));
    uint32_t count = kit_smax(kit, kit_sub(kit, a.exponent, b.exponent), zero);
    uint32_t first = kit_sub(kit, a.m, kit_select(kit, kit_lt(kit, a.m, b.m), zero, b.m));
    uint32_t rounds = kir_const_i(kit->module, KIR_I32, kit->wide ? 44 : 14);
    uint32_t r, left, step, n, half;

    kir_for(kit->module, kir_const_i(kit->module, KIR_I32, 0), rounds, 1);
    r = kir_phi(kit->module, first);
    left = kir_phi(kit->module, count);
    step = kit_binary(kit, KIR_smin, left, most);
    n = kit_sub(kit, left, step);
    kir_next(kit->module, (const uint32_t[]){remainder_step(kit, r, step, b.m, inverse), n}, 2);
    n = kit_sub(kit, b.exponent, kit_i(kit, kit->bias + (int64_t)kit->man));
    half = kit_sar(kit, n, 1);
    r = kit_mul(kit, to_float(kit, r), kit_power_of_2(kit, half));
    r = kit_mul(kit, r, kit_power_of_2(kit, kit_sub(kit, n, half)));
    return kit_select(kit, kit_lt(kit, x, y), x, r);
}

/* If the signs differ, a remainder other than 0 is subtracted from |y|. */
uint32_t math_rem(struct kir_module *module, const struct kir_target *target, uint32_t x,
                  uint32_t y)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t a = kit_abs(&kit, x), b = kit_abs(&kit, y), zero = kit_f(&kit, 0);
    uint32_t sign = kit_sign(&kit, y);
    uint32_t r = magnitude_rem(&kit, a, b);
    uint32_t other = kit_ne(&kit, kit_sign(&kit, x), sign);
    uint32_t valid = kit_and(&kit, kit_lt(&kit, a, kit_f(&kit, INFINITY)), kit_lt(&kit, zero, b));

    other = kit_and(&kit, other, kit_lt(&kit, zero, r));
    r = kit_with_sign(&kit, kit_select(&kit, other, kit_sub(&kit, b, r), r), sign);
    return kit_select(&kit, valid, r, kit_f(&kit, NAN));
}
