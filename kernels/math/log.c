/* SPDX-License-Identifier: Apache-2.0 */
/* Functions based on log(x): log, log1p, asinh, acosh, atanh, softplus, log_sigmoid.
 *
 * x = 2^k (1 + f) with 1 + f from sqrt 1/2 to sqrt 2.  log(1 + f) is a polynomial in f for F32; for
 * F64 one in s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - s (f - s^2 P(s^2)).  Functions that are
 * small near 0 pass 1 + f as a pair, so that f keeps all its bits. */
#include "math/log.h"

#include <math.h>

#include "math/exp.h"
#include "math/kit.h"

/* log(1 + f) - f + addend */
static uint32_t log_rest(const struct kit *kit, uint32_t f, uint32_t addend)
{
    uint32_t s, z, p;

    if (!kit->wide) {
        z = kit_mul(kit, f, f);
        addend = kit_mad(kit, kit_mul(kit, z, f), kit_poly(kit, poly_log, f), addend);
        return kit_mad(kit, z, kit_f(kit, -0.5), addend);
    }
    s = kit_div(kit, f, kit_add(kit, f, kit_f(kit, 2)));
    z = kit_mul(kit, s, s);
    p = kit_mad(kit, z, kit_poly(kit, poly_log_s, z), kit_neg(kit, f));
    return kit_mad(kit, s, p, addend);
}

uint32_t kit_log(const struct kit *kit, struct pair x, uint32_t exponent)
{
    const struct split *ln2 = &split_ln2[kit->wide];
    int64_t root = kit->wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3; /* sqrt(1/2) */
    uint32_t bits = kit_bits(kit, x.hi);
    uint32_t k = kit_sar(kit, kit_sub(kit, bits, kit_i(kit, root)), kit->man);
    uint32_t of_k = kit_shl(kit, k, kit->man);
    uint32_t f = kit_sub(kit, kit_float(kit, kit_sub(kit, bits, of_k)), kit_f(kit, 1));
    uint32_t n = kit_unary(kit, kit->wide ? KIR_f64 : KIR_f32, k);
    uint32_t scale, low;
    struct pair sum;

    if (exponent != KIR_NONE)
        n = kit_add(kit, n, exponent);
    low = kit_mul(kit, n, kit_f(kit, ln2->lo));
    if (x.lo != KIR_NONE) {
        scale = kit_sub(kit, kit_i(kit, kit->bias << kit->man), of_k);
        scale = kit_float(kit, kit_smax(kit, scale, kit_i(kit, 0)));
        sum = kit_sum_fast(kit, f, kit_mul(kit, x.lo, scale));
        f = sum.hi;
        low = kit_add(kit, low, sum.lo);
    }
    f = kit_add(kit, log_rest(kit, f, low), f);
    return kit_mad(kit, n, kit_f(kit, ln2->hi), f);
}

/* x where x is infinite or NaN, else y. */
static uint32_t y_if_finite(const struct kit *kit, uint32_t x, uint32_t y)
{
    return kit_select(kit, kit_lt(kit, x, kit_f(kit, INFINITY)), y, x);
}

/* y where x > from, `at` where x = from, else NaN. */
static uint32_t y_if_above(const struct kit *kit, uint32_t x, double from, double at, uint32_t y)
{
    uint32_t there = kit_eq(kit, x, kit_f(kit, from));
    uint32_t other = kit_select(kit, there, kit_f(kit, at), kit_f(kit, NAN));

    return kit_select(kit, kit_lt(kit, kit_f(kit, from), x), y, other);
}

uint32_t math_log(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t denormal = kit_lt(&kit, x, kit_per_type(&kit, 0x1p-126, 0x1p-1022));
    uint32_t normal = kit_select(&kit, denormal, kit_mul(&kit, x, kit_f(&kit, 0x1p60)), x);
    uint32_t exponent = kit_select(&kit, denormal, kit_f(&kit, -60), kit_f(&kit, 0));
    uint32_t y = kit_log(&kit, (struct pair){normal, KIR_NONE}, exponent);

    return y_if_finite(&kit, x, y_if_above(&kit, x, 0, -INFINITY, y));
}

uint32_t math_log1p(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t y = kit_log(&kit, kit_sum(&kit, kit_f(&kit, 1), x), KIR_NONE);
    uint32_t signed_0 = kit_select(&kit, kit_eq(&kit, x, kit_f(&kit, 0)), x, y);

    return y_if_finite(&kit, x, y_if_above(&kit, x, -1, -INFINITY, signed_0));
}

/* log(1 + e^-|x|) */
static uint32_t log_1_exp(const struct kit *kit, uint32_t x)
{
    uint32_t e = kit_exp(kit, kit_neg(kit, kit_abs(kit, x)));

    return kit_log(kit, kit_sum_fast(kit, kit_f(kit, 1), e), KIR_NONE);
}

uint32_t math_softplus(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);

    return kit_add(&kit, kit_fmax(&kit, x, kit_f(&kit, 0)), log_1_exp(&kit, x));
}

uint32_t math_log_sigmoid(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);

    return kit_sub(&kit, kit_fmin(&kit, x, kit_f(&kit, 0)), log_1_exp(&kit, x));
}

/* Whether x^2 is so large that x + sqrt(x^2 +- 1) rounds to 2 x. */
static uint32_t is_large(const struct kit *kit, uint32_t x)
{
    return kit_lt(kit, kit_per_type(kit, 0x1p13, 0x1p28), x);
}

static uint32_t log_or_log_2x(const struct kit *kit, uint32_t large, uint32_t x, struct pair u)
{
    uint32_t zero = kit_f(kit, 0);

    u = kit_pair_select(kit, large, (struct pair){x, zero}, u);
    return kit_log(kit, u, kit_select(kit, large, kit_f(kit, 1), zero));
}

/* log(1 + a + a^2 / (1 + sqrt(1 + a^2))), a = |x| */
uint32_t math_asinh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t one = kit_f(&kit, 1);
    uint32_t a = kit_abs(&kit, x);
    uint32_t z = kit_mul(&kit, a, a);
    uint32_t divisor = kit_add(&kit, one, kit_sqrt(&kit, kit_add(&kit, one, z)));
    struct pair sum = kit_sum(&kit, one, a);
    struct pair u = kit_sum_fast(&kit, sum.hi, kit_div(&kit, z, divisor));
    uint32_t y;

    u.lo = kit_add(&kit, u.lo, sum.lo);
    y = y_if_finite(&kit, a, log_or_log_2x(&kit, is_large(&kit, a), a, u));
    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}

/* log(x + sqrt(t^2 + 2 t)), t = x - 1 */
uint32_t math_acosh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t one = kit_f(&kit, 1);
    uint32_t t = kit_sub(&kit, x, one);
    uint32_t z = kit_mad(&kit, t, t, kit_add(&kit, t, t));
    struct pair u = kit_sum_fast(&kit, x, kit_sqrt(&kit, z));
    uint32_t y = log_or_log_2x(&kit, is_large(&kit, x), x, u);

    return y_if_finite(&kit, x, y_if_above(&kit, x, 1, 0, y));
}

/* An odd polynomial up to 1/2, then log((1 + a) / (1 - a)) / 2, a = |x|. */
uint32_t math_atanh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t one = kit_f(&kit, 1);
    uint32_t a = kit_abs(&kit, x);
    uint32_t ratio = kit_div(&kit, kit_add(&kit, one, a), kit_sub(&kit, one, a));
    uint32_t large = kit_log(&kit, (struct pair){ratio, KIR_NONE}, KIR_NONE);
    uint32_t small = kit_odd(&kit, poly_atanh, a, kit_mul(&kit, a, a));
    uint32_t y = kit_select(&kit, kit_lt(&kit, a, kit_f(&kit, 0.5)), small,
                            kit_mul(&kit, large, kit_f(&kit, 0.5)));
    uint32_t other =
        kit_select(&kit, kit_eq(&kit, a, one), kit_f(&kit, INFINITY), kit_f(&kit, NAN));

    y = kit_select(&kit, kit_lt(&kit, a, one), y, other);
    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}
