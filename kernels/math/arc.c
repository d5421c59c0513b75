/* SPDX-License-Identifier: Apache-2.0 */
/* asin, acos, atan, atan2: odd polynomials near 0; other arguments are reduced by identities of
 * angles.  Where pi or pi / 2 is a summand, its low part is added to the smaller summand first. */
#include <math.h>

#include "math/kit.h"

/* times * pi / 2 - y */
static uint32_t pi_multiple_minus(const struct kit *kit, int times, uint32_t y)
{
    const struct split *pi_2 = &split_pi_2[kit->wide];
    uint32_t less = kit_sub(kit, y, kit_f(kit, times * pi_2->lo));

    return kit_sub(kit, kit_f(kit, times * pi_2->hi), less);
}

static uint32_t negative(const struct kit *kit, uint32_t x)
{
    return kit_lt(kit, kit_bits(kit, x), kit_i(kit, 0));
}

/* asin(s) = s + rest, with s = a for a <= 1/2; otherwise s = sqrt((1 - a) / 2), and asin(a) is pi /
 * 2 - 2 asin(s). */
struct arc {
    uint32_t s, rest, beyond;
};

static struct arc arc(const struct kit *kit, uint32_t a)
{
    uint32_t beyond = kit_lt(kit, kit_f(kit, 0.5), a);
    uint32_t half = kit_mul(kit, kit_sub(kit, kit_f(kit, 1), a), kit_f(kit, 0.5));
    uint32_t z = kit_select(kit, beyond, half, kit_mul(kit, a, a));
    uint32_t s = kit_select(kit, beyond, kit_sqrt(kit, half), a);

    uint32_t rest = kit_mul(kit, kit_mul(kit, s, z), kit_poly(kit, poly_asin, z));

    return (struct arc){s, rest, beyond};
}

/* Above 1/2 the larger parts are subtracted first, which is exact where cancellation matters. */
uint32_t math_asin(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    const struct split *pi_2 = &split_pi_2[kit.wide];
    struct arc a = arc(&kit, kit_abs(&kit, x));
    uint32_t less = kit_sub(&kit, kit_add(&kit, a.rest, a.rest), kit_f(&kit, pi_2->lo));
    uint32_t far = kit_sub(&kit, kit_f(&kit, pi_2->hi), kit_add(&kit, a.s, a.s));
    uint32_t y = kit_select(&kit, a.beyond, kit_sub(&kit, far, less), kit_add(&kit, a.s, a.rest));

    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}

uint32_t math_acos(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    struct arc a = arc(&kit, kit_abs(&kit, x));
    uint32_t angle = kit_add(&kit, a.s, a.rest);
    uint32_t twice = kit_add(&kit, angle, angle);
    uint32_t far = kit_select(&kit, negative(&kit, x), pi_multiple_minus(&kit, 2, twice), twice);
    uint32_t near = pi_multiple_minus(&kit, 1, kit_with_sign(&kit, angle, kit_sign(&kit, x)));

    return kit_select(&kit, a.beyond, far, near);
}

uint32_t math_atan(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t a = kit_abs(&kit, x), one = kit_f(&kit, 1);
    uint32_t steep = kit_lt(&kit, one, a);
    uint32_t t = kit_select(&kit, steep, kit_div(&kit, one, a), a);
    uint32_t y = kit_odd(&kit, poly_atan, t, kit_mul(&kit, t, t));

    y = kit_select(&kit, steep, pi_multiple_minus(&kit, 1, y), y);
    return kit_with_sign(&kit, y, kit_sign(&kit, x));
}

/* The angle of the point (y, x): the ratio of the smaller to the larger coordinate, 1 where both
 * are infinite, 0 where both are 0. */
uint32_t math_atan2(struct kir_module *module, const struct kir_target *target, uint32_t x,
                    uint32_t y)
{
    struct kit kit = kit_of(module, target, x);
    uint32_t up = kit_abs(&kit, x), right = kit_abs(&kit, y);
    uint32_t steep = kit_lt(&kit, right, up), zero = kit_f(&kit, 0);
    uint32_t small = kit_fmin(&kit, up, right), large = kit_fmax(&kit, up, right);
    uint32_t equal = kit_select(&kit, kit_eq(&kit, large, zero), zero, kit_f(&kit, 1));
    uint32_t ratio =
        kit_select(&kit, kit_eq(&kit, small, large), equal, kit_div(&kit, small, large));
    uint32_t angle = kit_odd(&kit, poly_atan, ratio, kit_mul(&kit, ratio, ratio));

    angle = kit_select(&kit, steep, pi_multiple_minus(&kit, 1, angle), angle);
    angle = kit_select(&kit, negative(&kit, y), pi_multiple_minus(&kit, 2, angle), angle);
    return kit_with_sign(&kit, angle, kit_sign(&kit, x));
}
