/* SPDX-License-Identifier: Apache-2.0 */
#include "math/kit.h"

struct kit kit_of(struct kir_module *module, const struct kir_target *target, uint32_t x)
{
    bool wide = kir_type_at(module, x) == KIR_F64;

    return (struct kit){.module = module,
                        .type = wide ? KIR_F64 : KIR_F32,
                        .itype = wide ? KIR_I64 : KIR_I32,
                        .wide = wide,
                        .fma = target->fma,
                        .scale = target->scale && !wide,
                        .width = wide ? 64 : 32,
                        .man = wide ? 52 : 23,
                        .bias = wide ? 1023 : 127};
}

uint32_t kit_f(const struct kit *kit, double value)
{
    return kir_const_f(kit->module, kit->type, value);
}

uint32_t kit_i(const struct kit *kit, int64_t value)
{
    return kir_const_i(kit->module, kit->itype, value);
}

uint32_t kit_shl(const struct kit *kit, uint32_t a, uint32_t count)
{
    return kit_binary(kit, KIR_shl, a,
                      kir_const_i(kit->module, kir_type_at(kit->module, a), count));
}

uint32_t kit_shr(const struct kit *kit, uint32_t a, uint32_t count)
{
    return kit_binary(kit, KIR_shr, a,
                      kir_const_i(kit->module, kir_type_at(kit->module, a), count));
}

uint32_t kit_sar(const struct kit *kit, uint32_t a, uint32_t count)
{
    return kit_binary(kit, KIR_sar, a,
                      kir_const_i(kit->module, kir_type_at(kit->module, a), count));
}

uint32_t kit_bits(const struct kit *kit, uint32_t a)
{
    return kir_emit_as(kit->module, KIR_bits, kit->itype, 0, a, KIR_NONE, KIR_NONE);
}

uint32_t kit_float(const struct kit *kit, uint32_t a)
{
    return kir_emit_as(kit->module, KIR_bits, kit->type, 0, a, KIR_NONE, KIR_NONE);
}

uint32_t kit_sign(const struct kit *kit, uint32_t a)
{
    return kit_and(kit, kit_bits(kit, a), kit_i(kit, kit->wide ? INT64_MIN : INT32_MIN));
}

uint32_t kit_with_sign(const struct kit *kit, uint32_t a, uint32_t sign)
{
    return kit_float(kit, kit_or(kit, kit_bits(kit, a), sign));
}

uint32_t kit_power_of_2(const struct kit *kit, uint32_t n)
{
    return kit_float(kit, kit_shl(kit, kit_add(kit, n, kit_i(kit, kit->bias)), kit->man));
}

uint32_t kit_mad(const struct kit *kit, uint32_t a, uint32_t b, uint32_t c)
{
    if (kit->fma)
        return kir_emit(kit->module, KIR_fma, a, b, c);
    return kit_add(kit, kit_mul(kit, a, b), c);
}

static uint32_t horner(const struct kit *kit, const struct poly *poly, uint32_t from, uint32_t x)
{
    uint32_t sum = kit_f(kit, poly->c[poly->n - 1]);

    for (uint32_t i = poly->n - 1; i-- > from;)
        sum = kit_mad(kit, sum, x, kit_f(kit, poly->c[i]));
    return sum;
}

uint32_t kit_poly(const struct kit *kit, const struct poly polys[2], uint32_t x)
{
    return horner(kit, &polys[kit->wide], 0, x);
}

uint32_t kit_slope(const struct kit *kit, const struct poly polys[2], uint32_t x)
{
    return horner(kit, &polys[kit->wide], 1, x);
}

uint32_t kit_odd(const struct kit *kit, const struct poly polys[2], uint32_t x, uint32_t z)
{
    return kit_mad(kit, kit_mul(kit, x, z), kit_poly(kit, polys, z), x);
}

/* ---- pairs ---- */

struct pair kit_sum_fast(const struct kit *kit, uint32_t a, uint32_t b)
{
    uint32_t hi = kit_add(kit, a, b);

    return (struct pair){hi, kit_sub(kit, b, kit_sub(kit, hi, a))};
}

struct pair kit_sum(const struct kit *kit, uint32_t a, uint32_t b)
{
    uint32_t hi = kit_add(kit, a, b);
    uint32_t of_b = kit_sub(kit, hi, a);
    uint32_t of_a = kit_sub(kit, hi, of_b);

    return (struct pair){hi, kit_add(kit, kit_sub(kit, a, of_a), kit_sub(kit, b, of_b))};
}

/* Splits a float into the upper half of its significand and the rest; products of halves are exact.
 */
static struct pair halves(const struct kit *kit, uint32_t a)
{
    int64_t mask = kit->wide ? INT64_MIN >> 36 : INT32_MIN >> 19;
    uint32_t hi = kit_float(kit, kit_and(kit, kit_bits(kit, a), kit_i(kit, mask)));

    return (struct pair){hi, kit_sub(kit, a, hi)};
}

struct pair kit_product(const struct kit *kit, uint32_t a, uint32_t b)
{
    uint32_t hi = kit_mul(kit, a, b);
    struct pair x, y;
    uint32_t rest;

    if (kit->fma)
        return (struct pair){hi, kit_mad(kit, a, b, kit_neg(kit, hi))};
    x = halves(kit, a);
    y = a == b ? x : halves(kit, b);
    rest = kit_sub(kit, kit_mul(kit, x.hi, y.hi), hi);
    rest = kit_add(kit, rest, kit_mul(kit, x.hi, y.lo));
    rest = kit_add(kit, rest, kit_mul(kit, x.lo, y.hi));
    return (struct pair){hi, kit_add(kit, rest, kit_mul(kit, x.lo, y.lo))};
}

struct pair kit_pair_sum(const struct kit *kit, struct pair a, struct pair b)
{
    struct pair sum = kit_sum_fast(kit, a.hi, b.hi);

    return kit_sum_fast(kit, sum.hi, kit_add(kit, sum.lo, kit_add(kit, a.lo, b.lo)));
}

struct pair kit_pair_product(const struct kit *kit, struct pair a, struct pair b)
{
    struct pair product = kit_product(kit, a.hi, b.hi);

    product.lo = kit_mad(kit, a.hi, b.lo, product.lo);
    product.lo = kit_mad(kit, a.lo, b.hi, product.lo);
    return kit_sum_fast(kit, product.hi, product.lo);
}

struct pair kit_pair_select(const struct kit *kit, uint32_t which, struct pair a, struct pair b)
{
    return (struct pair){kit_select(kit, which, a.hi, b.hi), kit_select(kit, which, a.lo, b.lo)};
}
