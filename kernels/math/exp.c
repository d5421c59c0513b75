/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of e^x: exp, expm1, sinh, cosh, tanh, sigmoid, silu.
 *
 * e^x = 2^n e^r with n integer, |r| at most ln 2 or half of it, and e^r a polynomial.  n comes from
 * adding 1.5 * 2^(bits of the significand): the sum has n in its lowest bits, from where a shift
 * makes a power of 2. */
#include <math.h>

#include "math/kit.h"

/* x = n * unit * ln 2 + r, and 2^(n + up) in `scale`; unit is a power of 2. */
struct reduced {
    uint32_t r, scale;
};

static struct reduced reduce(const struct kit *kit, uint32_t x, double unit, int up)
{
    const struct split *ln2 = &split_ln2[kit->wide];
    double shifter = ldexp(1.5, (int)kit->man) + (double)kit->bias + up;
    uint32_t sum = kit_mad(kit, x, kit_f(kit, M_LOG2E / unit), kit_f(kit, shifter));
    uint32_t n = kit_sub(kit, sum, kit_f(kit, shifter));
    uint32_t r = kit_mad(kit, n, kit_f(kit, -unit * ln2->hi), x);

    r = kit_mad(kit, n, kit_f(kit, -unit * ln2->lo), r);
    return (struct reduced){r, kit_float(kit, kit_shl(kit, kit_bits(kit, sum), kit->man))};
}

static uint32_t clamp(const struct kit *kit, uint32_t x, uint32_t low, uint32_t high)
{
    return kit_fmin(kit, kit_fmax(kit, x, low), high);
}

struct exp_parts kit_exp_parts(const struct kit *kit, uint32_t x)
{
    struct reduced reduced =
        reduce(kit, clamp(kit, x, kit_ff(kit, -115, -760), kit_ff(kit, 90, 711)), 2, 0);

    return (struct exp_parts){kit_poly(kit, poly_exp, reduced.r), reduced.scale};
}

uint32_t kit_exp(const struct kit *kit, uint32_t x)
{
    struct exp_parts parts = kit_exp_parts(kit, x);

    return kit_mul(kit, kit_mul(kit, parts.value, parts.scale), parts.scale);
}

uint32_t math_exp(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);

    return kit_exp(&kit, x);
}

/* e^r - 1 of what is reduced by units of ln 2. */
static uint32_t expm1_near(const struct kit *kit, uint32_t r)
{
    return kit_mad(kit, kit_mul(kit, r, r), kit_poly(kit, poly_expm1, r), r);
}

/* With half the scale, so that what is finite does not overflow on the way; what is tiny is
 * answered as it is, for halves of denormals lose a bit. */
uint32_t math_expm1(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    struct reduced reduced =
        reduce(&kit, clamp(&kit, x, kit_ff(&kit, -18, -40), kit_ff(&kit, 89, 710)), 1, -1);
    uint32_t rest = kit_sub(&kit, reduced.scale, kit_f(&kit, 0.5));
    uint32_t half = kit_mad(&kit, reduced.scale, expm1_near(&kit, reduced.r), rest);
    uint32_t tiny = kit_lt(&kit, kit_abs(&kit, x), kit_f(&kit, 0x1p-60));

    return kit_select(&kit, tiny, x, kit_add(&kit, half, half));
}

/* (e^2|x| - 1) / (e^2|x| + 1) */
uint32_t math_tanh(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t twice = kit_abs(&kit, kit_add(&kit, x, x));
    struct reduced reduced = reduce(&kit, kit_fmin(&kit, twice, kit_ff(&kit, 20, 40)), 1, 0);
    uint32_t rest = kit_sub(&kit, reduced.scale, kit_f(&kit, 1));
    uint32_t u = kit_mad(&kit, reduced.scale, expm1_near(&kit, reduced.r), rest);

    return kit_with_sign(&kit, kit_div(&kit, u, kit_add(&kit, u, kit_f(&kit, 2))),
                         kit_sign(&kit, x));
}

/* e^|x| / 2 */
static uint32_t half_exp(const struct kit *kit, uint32_t magnitude)
{
    struct exp_parts parts = kit_exp_parts(kit, magnitude);
    uint32_t half = kit_mul(kit, parts.scale, kit_f(kit, 0.5));

    return kit_mul(kit, kit_mul(kit, parts.value, parts.scale), half);
}

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

/* With e^-|x|, which does not overflow: 1 / (1 + e) or e / (1 + e). */
uint32_t math_sigmoid(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t e = kit_exp(&kit, kit_neg(&kit, kit_abs(&kit, x)));
    uint32_t one = kit_f(&kit, 1);
    uint32_t above = kit_select(&kit, kit_lt(&kit, x, kit_f(&kit, 0)), e, one);

    return kit_div(&kit, above, kit_add(&kit, one, e));
}

/* The same, the scale of e^-|x| last: it may be denormal where the result is not. */
uint32_t math_silu(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    struct exp_parts parts = kit_exp_parts(&kit, kit_neg(&kit, kit_abs(&kit, x)));
    uint32_t one = kit_f(&kit, 1);
    uint32_t e = kit_mul(&kit, kit_mul(&kit, parts.value, parts.scale), parts.scale);
    uint32_t below = kit_lt(&kit, x, kit_f(&kit, 0));
    uint32_t value = kit_select(&kit, below, parts.value, one);
    uint32_t scale = kit_select(&kit, below, parts.scale, one);
    uint32_t y = kit_div(&kit, kit_mul(&kit, x, value), kit_add(&kit, one, e));

    y = kit_mul(&kit, kit_mul(&kit, y, scale), scale);
    return kit_select(&kit, kit_lt(&kit, kit_f(&kit, -INFINITY), x), y, kit_f(&kit, NAN));
}
