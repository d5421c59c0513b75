/* SPDX-License-Identifier: Apache-2.0 */
/* Functions based on e^x: exp, expm1, sinh, cosh, tanh, sigmoid, silu.
 *
 * e^x = 2^n e^r with n an integer, |r| at most ln 2 or half of it, and a polynomial for e^r.  n is
 * rounded by adding 1.5 * 2^(bits of the significand): the sum has n in its lowest bits, and a
 * shift makes 2^n of it. */
#include "math/exp.h"

#include <math.h>

#include "math/kit.h"

/* x = n * unit * ln 2 + r, with r = `exact` - n * unit * ln2.lo rounded; unit is a power of 2. */
struct reduced {
    uint32_t sum; /* has n + up in its lowest bits */
    uint32_t n, exact, r;
};

static uint32_t less_low(const struct kit *kit, const struct reduced *reduced, double unit,
                         uint32_t from)
{
    return kit_mad(kit, reduced->n, kit_f(kit, -unit * split_ln2[kit->wide].lo), from);
}

static struct reduced reduce(const struct kit *kit, uint32_t x, double unit, int up)
{
    double shifter = ldexp(1.5, (int)kit->man) + (double)kit->bias + up;
    uint32_t sum = kit_mad(kit, x, kit_f(kit, M_LOG2E / unit), kit_f(kit, shifter));
    struct reduced reduced = {.sum = sum, .n = kit_sub(kit, sum, kit_f(kit, shifter))};

    reduced.exact = kit_mad(kit, reduced.n, kit_f(kit, -unit * split_ln2[kit->wide].hi), x);
    reduced.r = less_low(kit, &reduced, unit, reduced.exact);
    return reduced;
}

/* 2^(n + up) */
static uint32_t power(const struct kit *kit, const struct reduced *reduced)
{
    return kit_float(kit, kit_shl(kit, kit_bits(kit, reduced->sum), kit->man));
}

/* e^r - 1, unit 1. */
static uint32_t near_0(const struct kit *kit, const struct reduced *reduced)
{
    uint32_t square = kit_mul(kit, reduced->r, reduced->r);

    return kit_mad(kit, square, kit_poly(kit, poly_expm1, reduced->r), reduced->r);
}

/* e^x where it neither underflows nor overflows, for targets with an instruction that scales by a
 * power of 2. */
static uint32_t scaled_exp(const struct kit *kit, uint32_t x)
{
    struct reduced reduced = reduce(kit, x, 1, 0);

    return kit_scale(kit, kit_poly(kit, poly_exp_near, reduced.r), reduced.n);
}

/* The result is scaled twice by 2^n', n' = n / 2: two equal factors reach all finite and denormal
 * results. */
uint32_t math_exp(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t in = kit_fmin(&kit, x, kit_per_type(&kit, 90, 711));
    struct reduced reduced;
    uint32_t scale;

    in = kit_fmax(&kit, in, kit_per_type(&kit, -105, -746));
    if (kit.scale)
        return scaled_exp(&kit, in);
    reduced = reduce(&kit, in, 2, 0);
    scale = power(&kit, &reduced);
    return kit_mul(&kit, kit_mul(&kit, kit_poly(&kit, poly_exp, reduced.r), scale), scale);
}

/* e^r - 1 - r, corrected by the rounding error of r. */
static uint32_t near_0_less_r(const struct kit *kit, const struct reduced *reduced)
{
    uint32_t lost = less_low(kit, reduced, 1, kit_sub(kit, reduced->exact, reduced->r));
    uint32_t square = kit_mul(kit, reduced->r, reduced->r);

    return kit_mad(kit, square, kit_poly(kit, poly_expm1, reduced->r), lost);
}

/* By how many powers of 2 the scale of e^x, x < 0, is too large. */
static int spare(const struct kit *kit)
{
    return kit->wide ? 200 : 64;
}

double kit_exp_least(const struct kit *kit)
{
    return kit->wide ? -760 : -115;
}

static struct reduced reduce_below(const struct kit *kit, uint32_t x)
{
    return reduce(kit, kit_fmax(kit, x, kit_f(kit, kit_exp_least(kit))), 1, spare(kit));
}

struct exp_parts kit_exp_parts(const struct kit *kit, uint32_t x)
{
    struct reduced reduced = reduce_below(kit, x);

    return (struct exp_parts){reduced.r, near_0_less_r(kit, &reduced), power(kit, &reduced),
                              kit_f(kit, ldexp(1, -spare(kit)))};
}

uint32_t kit_exp(const struct kit *kit, uint32_t x)
{
    struct reduced reduced;
    uint32_t value;

    if (kit->scale)
        return scaled_exp(kit, kit_fmax(kit, x, kit_f(kit, kit_exp_least(kit))));
    reduced = reduce_below(kit, x);
    value = kit_add(kit, near_0(kit, &reduced), kit_f(kit, 1));
    return kit_mul(kit, kit_mul(kit, value, power(kit, &reduced)),
                   kit_f(kit, ldexp(1, -spare(kit))));
}

/* Far below, the power is any number. */
uint32_t kit_exp_normal(const struct kit *kit, uint32_t x)
{
    struct reduced reduced;
    uint32_t value, below;

    if (kit->wide)
        return kit_exp(kit, x);
    reduced = reduce(kit, x, 1, 0);
    value = kit_mul(kit, kit_poly(kit, poly_exp_near, reduced.r), power(kit, &reduced));
    below = kit_lt(kit, x, kit_f(kit, -87));
    return kit_select(kit, below, kit_f(kit, 0), value);
}

/* 2^r, |r| <= 1/2: least squares of the relative error over Chebyshev's points. */
static const double exp2_rough[] = {0.99999919, 0.69312197, 0.24024981, 0.05591704, 0.00956051};

/* x * log2 e = n + r; n is added to the exponent. */
uint32_t kit_exp_rough(const struct kit *kit, uint32_t x)
{
    const uint32_t terms = sizeof(exp2_rough) / sizeof(exp2_rough[0]);
    uint32_t log2e = kit_f(kit, M_LOG2E), shifter = kit_f(kit, ldexp(1.5, (int)kit->man));
    uint32_t sum = kit_mad(kit, x, log2e, shifter), n = kit_sub(kit, sum, shifter);
    uint32_t r = kit_mad(kit, x, log2e, kit_neg(kit, n)), value, below;

    value = kit_f(kit, exp2_rough[terms - 1]);
    for (uint32_t i = terms - 1; i-- > 0;)
        value = kit_mad(kit, value, r, kit_f(kit, exp2_rough[i]));
    n = kit_shl(kit, kit_bits(kit, sum), kit->man);
    value = kit_float(kit, kit_add(kit, kit_bits(kit, value), n));
    below = kit_lt(kit, x, kit_f(kit, -87));
    value =
        kit_select(kit, kit_eq(kit, x, x), value, x); /* a sum with a NaN's bits may be finite */
    return kit_select(kit, below, kit_f(kit, 0), value);
}

/* Uses half the scale, so that finite results do not overflow on the way.  Tiny x are returned as
 * they are, since halves of denormals lose a bit. */
uint32_t math_expm1(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t in = kit_fmin(&kit, x, kit_per_type(&kit, 89, 710));
    struct reduced reduced = reduce(&kit, kit_fmax(&kit, in, kit_per_type(&kit, -18, -40)), 1, -1);
    uint32_t near = kit_add(&kit, reduced.r, near_0_less_r(&kit, &reduced));
    uint32_t scale = power(&kit, &reduced);
    uint32_t less = kit_sub(&kit, scale, kit_f(&kit, 0.5));
    uint32_t half = kit_mad(&kit, scale, near, less);
    uint32_t tiny = kit_lt(&kit, kit_abs(&kit, x), kit_f(&kit, 0x1p-60));

    return kit_select(&kit, tiny, x, kit_add(&kit, half, half));
}

/* e^x / 2 of x >= 0 */
static uint32_t half_exp(const struct kit *kit, uint32_t x)
{
    struct reduced reduced = reduce(kit, kit_fmin(kit, x, kit_per_type(kit, 90, 711)), 1, -4);
    uint32_t value = kit_add(kit, near_0(kit, &reduced), kit_f(kit, 1));

    return kit_mul(kit, kit_mul(kit, value, power(kit, &reduced)), kit_f(kit, 8));
}

/* An odd polynomial up to 1, then e^|x| / 2 - e^-|x| / 2. */
uint32_t math_sinh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t a = kit_abs(&kit, x);
    uint32_t e = half_exp(&kit, a);
    uint32_t large = kit_sub(&kit, e, kit_div(&kit, kit_f(&kit, 0.25), e));
    uint32_t small = kit_odd(&kit, poly_sinh, a, kit_mul(&kit, a, a));
    uint32_t y = kit_select(&kit, kit_lt(&kit, a, kit_f(&kit, 1)), small, large);

    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}

uint32_t math_cosh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t e = half_exp(&kit, kit_abs(&kit, x));

    return kit_add(&kit, e, kit_div(&kit, kit_f(&kit, 0.25), e));
}

/* An odd polynomial up to 0.55, then 1 - 2 / (e^2|x| + 1). */
uint32_t math_tanh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t one = kit_f(&kit, 1);
    uint32_t a = kit_abs(&kit, x);
    uint32_t in = kit_fmin(&kit, kit_add(&kit, a, a), kit_per_type(&kit, 20, 40));
    struct reduced reduced = reduce(&kit, in, 1, 0);
    uint32_t value = kit_add(&kit, near_0(&kit, &reduced), one);
    uint32_t e = kit_mad(&kit, value, power(&kit, &reduced), one);
    uint32_t large = kit_sub(&kit, one, kit_div(&kit, kit_f(&kit, 2), e));
    uint32_t small = kit_odd(&kit, poly_tanh, a, kit_mul(&kit, a, a));
    uint32_t y = kit_select(&kit, kit_lt(&kit, a, kit_f(&kit, 0.55)), small, large);

    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}

/* With e = e^-|x|, which does not overflow: 1 / (1 + e) or e / (1 + e), corrected by the rounding
 * error of 1 + e. */
uint32_t math_sigmoid(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t e = kit_exp(&kit, kit_neg(&kit, kit_abs(&kit, x)));
    uint32_t one = kit_f(&kit, 1);
    uint32_t sum = kit_add(&kit, one, e);
    uint32_t over = kit_sub(&kit, kit_sub(&kit, sum, one), e);
    uint32_t below = kit_lt(&kit, x, kit_f(&kit, 0));
    uint32_t y = kit_div(&kit, kit_select(&kit, below, e, one), sum);

    return kit_mad(&kit, over, y, y);
}

/* As sigmoid; the scale of e^-|x| is multiplied last, since it may be denormal where the result is
 * not.  For x < 0 the rounding error of 1 + e is subtracted from e, at most a tenth of it: 1 / (1 +
 * e) is approximated by 1 - e / 2. */
uint32_t math_silu(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t magnitude = kit_abs(&kit, x);
    uint32_t in = kit_fmax(&kit, x, kit_f(&kit, kit_exp_least(&kit)));
    struct exp_parts parts = kit_exp_parts(&kit, kit_neg(&kit, magnitude));
    uint32_t one = kit_f(&kit, 1);
    uint32_t value = kit_add(&kit, kit_add(&kit, parts.r, parts.more), one);
    uint32_t e = kit_mul(&kit, kit_mul(&kit, value, parts.scale), parts.unit);
    uint32_t sum = kit_add(&kit, one, e);
    uint32_t over = kit_sub(&kit, kit_sub(&kit, sum, one), e);
    uint32_t below = kit_lt(&kit, x, kit_f(&kit, 0));
    uint32_t more = kit_mad(&kit, over, kit_mad(&kit, e, kit_f(&kit, -0.5), one), parts.more);
    uint32_t rest = kit_add(&kit, parts.r, more);
    uint32_t scaled = kit_mul(&kit, kit_mad(&kit, in, rest, in), parts.scale);
    uint32_t y = kit_div(&kit, kit_select(&kit, below, scaled, in), sum);

    y = kit_mul(&kit, y, kit_select(&kit, below, parts.unit, one));
    return kit_select(&kit, kit_lt(&kit, magnitude, kit_f(&kit, INFINITY)), y,
                      kit_add(&kit, x, magnitude));
}
