/* SPDX-License-Identifier: Apache-2.0 */
/* pow: 2^(y log2 |x|), with the logarithm as a pair.
 *
 * |x| = 2^k m with m from sqrt 1/2 to sqrt 2; s = (m - 1) / (m + 1) as a pair, and log(m) = 2 s +
 * s^3 (2/3 + s^2 P(s^2)), where only the innermost term is a single float. */
#include <math.h>

#include "math/kit.h"

static struct pair constant(const struct kit *kit, const struct split split[2])
{
    return (struct pair){kit_f(kit, split[kit->wide].hi), kit_f(kit, split[kit->wide].lo)};
}

/* (m - 1) / (m + 1) */
static struct pair ratio(const struct kit *kit, uint32_t m)
{
    uint32_t one = kit_f(kit, 1);
    uint32_t above = kit_sub(kit, m, one);
    struct pair below = kit_sum_fast(kit, one, m), product;
    uint32_t s = kit_div(kit, above, below.hi), left;

    product = kit_product(kit, s, below.hi);
    left = kit_sub(kit, kit_sub(kit, above, product.hi), product.lo);
    left = kit_sub(kit, left, kit_mul(kit, s, below.lo));
    return (struct pair){s, kit_div(kit, left, below.hi)};
}

/* log2(x) + exponent; x is positive and normal. */
static struct pair log2_pair(const struct kit *kit, uint32_t x, uint32_t exponent)
{
    int64_t root = kit->wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3; /* sqrt(1/2) */
    uint32_t bits = kit_bits(kit, x);
    uint32_t k = kit_sar(kit, kit_sub(kit, bits, kit_i(kit, root)), kit->man);
    uint32_t m = kit_float(kit, kit_sub(kit, bits, kit_shl(kit, k, kit->man)));
    struct pair s = ratio(kit, m), z = kit_pair_product(kit, s, s), rest, sum;
    uint32_t inner = kit_mul(kit, z.hi, kit_poly(kit, poly_pow, z.hi));

    rest = constant(kit, split_2_3);
    sum = kit_sum_fast(kit, rest.hi, inner);
    rest = (struct pair){sum.hi, kit_add(kit, sum.lo, rest.lo)};
    rest = kit_pair_product(kit, kit_pair_product(kit, s, z), rest);
    s = (struct pair){kit_add(kit, s.hi, s.hi), kit_add(kit, s.lo, s.lo)};
    sum = kit_pair_product(kit, kit_pair_sum(kit, s, rest), constant(kit, split_log2e));
    k = kit_add(kit, kit_unary(kit, kit->wide ? KIR_f64 : KIR_f32, k), exponent);
    return kit_pair_sum(kit, (struct pair){k, kit_f(kit, 0)}, sum);
}

/* 2^x.hi 2^x.lo, x.hi at most twice the type's exponents. */
static uint32_t exp2_pair(const struct kit *kit, struct pair x)
{
    uint32_t whole = kit_rint(kit, x.hi);
    uint32_t r = kit_add(kit, kit_sub(kit, x.hi, whole), x.lo);
    uint32_t n = kit_unary(kit, kit->wide ? KIR_i64 : KIR_i32, whole), half, y;

    r = kit_mul(kit, r, kit_f(kit, M_LN2));
    y = kit_mad(kit, kit_mul(kit, r, r), kit_poly(kit, poly_expm1, r), r);
    y = kit_add(kit, y, kit_f(kit, 1));
    half = kit_sar(kit, n, 1);
    y = kit_mul(kit, y, kit_power_of_2(kit, half));
    return kit_mul(kit, y, kit_power_of_2(kit, kit_sub(kit, n, half)));
}

/* |x|^y without the special cases of y; 0 and infinity are 2^-infinity and 2^infinity. */
static uint32_t power(const struct kit *kit, uint32_t x, uint32_t y)
{
    uint32_t zero = kit_f(kit, 0), infinity = kit_f(kit, INFINITY);
    uint32_t denormal = kit_lt(kit, x, kit_per_type(kit, 0x1p-126, 0x1p-1022));
    uint32_t in = kit_select(kit, denormal, kit_mul(kit, x, kit_f(kit, 0x1p60)), x);
    struct pair l = log2_pair(kit, in, kit_select(kit, denormal, kit_f(kit, -60), zero)), p;
    uint32_t most = kit_per_type(kit, 250, 2000), finite;

    l.hi = kit_select(kit, kit_eq(kit, x, infinity), infinity, l.hi);
    l.hi = kit_select(kit, kit_eq(kit, x, zero), kit_f(kit, -INFINITY), l.hi);
    p = kit_product(kit, y, l.hi);
    p.lo = kit_mad(kit, y, l.lo, p.lo);
    finite = kit_lt(kit, kit_abs(kit, p.hi), most);
    p.lo = kit_select(kit, finite, p.lo, zero);
    p.hi = kit_select(kit, kit_eq(kit, l.hi, zero), zero, p.hi);
    p.hi = kit_fmax(kit, kit_fmin(kit, p.hi, most), kit_neg(kit, most));
    return exp2_pair(kit, p);
}

uint32_t math_pow(struct kir_module *module, const struct kir_target *target, uint32_t x,
                  uint32_t y)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t magnitude = kit_abs(&kit, x), zero = kit_f(&kit, 0), one = kit_f(&kit, 1);
    uint32_t nan = kit_f(&kit, NAN), infinity = kit_f(&kit, INFINITY);
    uint32_t half = kit_mul(&kit, y, kit_f(&kit, 0.5));
    uint32_t whole = kit_eq(&kit, kit_trunc(&kit, y), y);
    uint32_t odd = kit_and(&kit, whole, kit_ne(&kit, kit_trunc(&kit, half), half));
    uint32_t sign = kit_select(&kit, odd, kit_sign(&kit, x), kit_i(&kit, 0));
    uint32_t negative = kit_and(&kit, kit_lt(&kit, x, zero), kit_lt(&kit, magnitude, infinity));
    uint32_t result = kit_with_sign(&kit, power(&kit, magnitude, y), sign);
    uint32_t is_1 = kit_or(&kit, kit_eq(&kit, x, one), kit_eq(&kit, y, zero));
    uint32_t is_nan = kit_or(&kit, kit_ne(&kit, x, x), kit_ne(&kit, y, y));

    is_nan = kit_or(&kit, is_nan, kit_and(&kit, negative, kit_not(&kit, whole)));
    result = kit_select(&kit, is_nan, nan, result);
    return kit_select(&kit, is_1, one, result);
}
