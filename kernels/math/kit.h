/* SPDX-License-Identifier: Apache-2.0 */
/* How the functions write instructions: short names that know the type, multiply-adds that are
 * fused where the target does so, polynomials, and numbers of two parts.
 *
 * A pair is a number hi + lo with lo at most about half a unit in the last place of hi.  The sums
 * and products that make pairs are exact (Dekker, Knuth) as long as nothing overflows and the low
 * part does not underflow. */
#ifndef MATH_KIT_H
#define MATH_KIT_H

#include "ir/kir.h"
#include "ir/target.h"
#include "math/coefs.h"
#include "math/math.h"

/* Of a float type, F32 or F64. */
struct kit {
    struct kir_module *module;
    enum kir_type type;
    enum kir_type itype; /* the integer of its size */
    bool wide;           /* F64 */
    bool fma;
    bool scale;     /* by an instruction */
    uint32_t width; /* bits */
    uint32_t man;   /* stored bits of the significand */
    int64_t bias;
};

struct pair {
    uint32_t hi, lo;
};

struct kit kit_of(struct kir_module *module, const struct kir_target *target, uint32_t x);

uint32_t kit_f(const struct kit *kit, double value);
uint32_t kit_i(const struct kit *kit, int64_t value);
/* A number that differs by the type. */
static inline uint32_t kit_ff(const struct kit *kit, double f32, double f64)
{
    return kit_f(kit, kit->wide ? f64 : f32);
}

static inline uint32_t kit_1(const struct kit *kit, enum kir_op op, uint32_t a)
{
    return kir_unary(kit->module, op, a);
}

static inline uint32_t kit_2(const struct kit *kit, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_binary(kit->module, op, a, b);
}

#define KIT_1(name)                                                      \
    static inline uint32_t kit_##name(const struct kit *kit, uint32_t a) \
    {                                                                    \
        return kit_1(kit, KIR_##name, a);                                \
    }
#define KIT_2(name)                                                                  \
    static inline uint32_t kit_##name(const struct kit *kit, uint32_t a, uint32_t b) \
    {                                                                                \
        return kit_2(kit, KIR_##name, a, b);                                         \
    }
KIT_1(neg)
KIT_1(abs)
KIT_1(sqrt)
KIT_1(rint)
KIT_1(trunc)
KIT_1(not )
KIT_2(add)
KIT_2(sub)
KIT_2(mul)
KIT_2(div)
KIT_2(and)
KIT_2(or)
KIT_2(xor)
KIT_2(eq)
KIT_2(ne)
KIT_2(lt)
KIT_2(le)
KIT_2(ult)
KIT_2(scale)
KIT_2(fmin)
KIT_2(fmax)
KIT_2(mulhi)
KIT_2(smax)
#undef KIT_1
#undef KIT_2

static inline uint32_t kit_select(const struct kit *kit, uint32_t which, uint32_t a, uint32_t b)
{
    return kir_select(kit->module, which, a, b);
}

/* Integers by constant counts. */
uint32_t kit_shl(const struct kit *kit, uint32_t a, uint32_t count);
uint32_t kit_shr(const struct kit *kit, uint32_t a, uint32_t count);
uint32_t kit_sar(const struct kit *kit, uint32_t a, uint32_t count);

uint32_t kit_bits(const struct kit *kit, uint32_t a);  /* of a float */
uint32_t kit_float(const struct kit *kit, uint32_t a); /* from bits */
uint32_t kit_sign(const struct kit *kit, uint32_t a);  /* its sign bit alone, as an integer */
/* A value that is not negative with the sign bit added. */
uint32_t kit_with_sign(const struct kit *kit, uint32_t a, uint32_t sign);

/* 2^n, n an integer in the type's normal range. */
uint32_t kit_power_of_2(const struct kit *kit, uint32_t n);

/* a * b + c: fused, or else rounded twice. */
uint32_t kit_mad(const struct kit *kit, uint32_t a, uint32_t b, uint32_t c);
/* By Horner's rule. */
uint32_t kit_poly(const struct kit *kit, const struct poly polys[2], uint32_t x);
/* (P(x) - P(0)) / x */
uint32_t kit_slope(const struct kit *kit, const struct poly polys[2], uint32_t x);
/* x + x * z * P(z): an odd function from the polynomial of its rest, z = x * x. */
uint32_t kit_odd(const struct kit *kit, const struct poly polys[2], uint32_t x, uint32_t z);

struct pair kit_sum(const struct kit *kit, uint32_t a, uint32_t b);
struct pair kit_sum_fast(const struct kit *kit, uint32_t a, uint32_t b); /* |a| >= |b|, or a = 0 */
struct pair kit_product(const struct kit *kit, uint32_t a, uint32_t b);
struct pair kit_pair_sum(const struct kit *kit, struct pair a, struct pair b); /* |a| >= |b| */
struct pair kit_pair_product(const struct kit *kit, struct pair a, struct pair b);
/* Each part by the same choice. */
struct pair kit_pair_select(const struct kit *kit, uint32_t which, struct pair a, struct pair b);

/* ---- parts that several functions need ---- */

/* e^x = (1 + (r + more)) * scale * unit, for x from `least` to 0, which is where e^x |x| is 0;
 * above 0 as long as that is finite.  `scale` and `unit` are powers of 2 in the type's normal
 * range. */
struct exp_parts {
    uint32_t r, more, scale, unit;
};

struct exp_parts kit_exp_parts(const struct kit *kit, uint32_t x);
double kit_exp_least(const struct kit *kit);
/* e^x of what is not above 0. */
uint32_t kit_exp(const struct kit *kit, uint32_t x);
/* log(x 2^more), x a pair of positive, finite, normal numbers (lo: KIR_NONE for 0); more: a float
 * that is an integer, or KIR_NONE for 0. */
uint32_t kit_log(const struct kit *kit, struct pair x, uint32_t more);

#endif
