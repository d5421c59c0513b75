/* SPDX-License-Identifier: Apache-2.0 */
/* erf, gelu.
 *
 * gelu(x) is x - x T(x) for x > 0 and x T(-x) for x < 0.  T is the upper tail of the normal
 * distribution, T(a) = e^(-a^2 / 2) q P(q - 5/8) with q = 4 / (a + 4) and P a polynomial. */
#include <math.h>

#include "math/exp.h"
#include "math/kit.h"

/* An odd polynomial up to 1, then 1 - e^P(|x|) until that rounds to 1. */
uint32_t math_erf(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t a = kit_abs(&kit, x), one = kit_f(&kit, 1);
    uint32_t square = kit_mul(&kit, a, a);
    uint32_t near = kit_mad(&kit, a, kit_poly(&kit, poly_erf, square), a);
    uint32_t in = kit_fmin(&kit, a, kit_per_type(&kit, 3.95, 5.95));
    uint32_t far = kit_sub(&kit, one, kit_exp(&kit, kit_poly(&kit, poly_erf_log, in)));
    uint32_t y = kit_select(&kit, kit_lt(&kit, a, one), near, far);

    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}

/* q P as a pair, a >= 0. */
static struct pair mills(const struct kit *kit, uint32_t a)
{
    const struct poly *poly = &poly_mills[kit->wide];
    uint32_t four = kit_f(kit, 4);
    struct pair below = kit_sum(kit, four, a);
    uint32_t q = kit_div(kit, four, below.hi);
    struct pair product = kit_product(kit, q, below.hi), p;
    uint32_t left = kit_sub(kit, kit_sub(kit, four, product.hi), product.lo), low;
    uint32_t t = kit_sub(kit, q, kit_f(kit, 0.625)), slope = kit_slope(kit, poly_mills, t);

    left = kit_sub(kit, left, kit_mul(kit, q, below.lo));
    low = kit_mul(kit, kit_mul(kit, left, q), kit_f(kit, 0.25));
    product = kit_product(kit, slope, t);
    p = kit_sum_fast(kit, kit_f(kit, poly->c[0]), product.hi);
    p.lo = kit_add(kit, p.lo, kit_mad(kit, slope, low, product.lo));
    return kit_pair_product(kit, (struct pair){q, low}, p);
}

/* For x < 0 the exponential's scale is multiplied last, since it may be denormal where the result
 * is not. */
uint32_t math_gelu(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t magnitude = kit_abs(&kit, x);
    uint32_t a = kit_fmin(&kit, magnitude, kit_per_type(&kit, 15, 39));
    struct pair square = kit_product(&kit, a, kit_mul(&kit, a, kit_f(&kit, -0.5)));
    struct exp_parts parts = kit_exp_parts(&kit, square.hi);
    uint32_t about = kit_add(&kit, parts.r, parts.more);
    uint32_t more = kit_add(&kit, kit_mad(&kit, square.lo, about, square.lo), parts.more);
    uint32_t rest = kit_add(&kit, parts.r, more);
    struct pair tail = mills(&kit, a);
    struct pair scaled = kit_sum_fast(&kit, tail.hi, kit_mad(&kit, tail.hi, rest, tail.lo));
    struct pair product = kit_product(&kit, a, scaled.hi);
    uint32_t infinite = kit_eq(&kit, magnitude, kit_f(&kit, INFINITY));
    uint32_t y = kit_add(&kit, product.hi, kit_mad(&kit, a, scaled.lo, product.lo));

    y = kit_mul(&kit, kit_mul(&kit, y, parts.scale), parts.unit);
    y = kit_select(&kit, kit_lt(&kit, x, kit_f(&kit, 0)), kit_neg(&kit, y), kit_sub(&kit, x, y));
    return kit_select(&kit, infinite, kit_add(&kit, x, magnitude), y);
}

/* 1 / x to 2^-23, x an F32 far from the ends of the type: a difference of bits is within an eighth,
 * which three steps of Newton square.  A division that rounds right costs twice as much. */
static uint32_t about_reciprocal(const struct kit *kit, uint32_t x)
{
    uint32_t less = kit_neg(kit, x), one = kit_f(kit, 1);
    uint32_t r = kit_float(kit, kit_sub(kit, kit_i(kit, 0x7ef311c7), kit_bits(kit, x)));

    for (int i = 0; i < 3; i++)
        r = kit_mad(kit, r, kit_mad(kit, less, r, one), r);
    return r;
}

/* Without pairs: the exponential's argument has an error of 2^-18 at most. */
uint32_t math_gelu_16(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t magnitude = kit_abs(&kit, x), four = kit_f(&kit, 4);
    uint32_t a = kit_fmin(&kit, magnitude, kit_f(&kit, 15));
    uint32_t q = kit_mul(&kit, four, about_reciprocal(&kit, kit_add(&kit, four, a)));
    uint32_t p = kit_poly(&kit, poly_mills, kit_sub(&kit, q, kit_f(&kit, 0.625)));
    uint32_t power = kit_exp(&kit, kit_mul(&kit, kit_mul(&kit, a, a), kit_f(&kit, -0.5)));
    uint32_t y = kit_mul(&kit, kit_mul(&kit, kit_mul(&kit, a, q), p), power);
    uint32_t infinite = kit_eq(&kit, magnitude, kit_f(&kit, INFINITY));

    y = kit_select(&kit, kit_lt(&kit, x, kit_f(&kit, 0)), kit_neg(&kit, y), kit_sub(&kit, x, y));
    return kit_select(&kit, infinite, kit_add(&kit, x, magnitude), y);
}
