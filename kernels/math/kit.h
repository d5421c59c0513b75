/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers to write functions: short names that derive the type, multiply-adds that are fused where
 * the target does so, polynomials, and pairs.
 *
 * A pair is a number hi + lo with lo at most about half a unit in the last place of hi.  Sums and
 * products that return pairs are exact (Dekker, Knuth) unless they overflow or the low part
 * underflows. */
#ifndef MATH_KIT_H
#define MATH_KIT_H

#include "ir/kir.h"
#include "ir/target.h"
#include "math/coefs.h"
#include "math/math.h"

/* A float type, F32 or F64, and the module that is written. */
struct kit {
    struct kir_module *module;
    enum kir_type type;
    enum kir_type itype; /* the integer of its size */
    bool wide;           /* F64 */
    bool fma;
    bool scale;     /* the target scales by a power of 2 in one instruction */
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
/* A constant that differs between the types. */
static inline uint32_t kit_per_type(const struct kit *kit, double f32, double f64)
{
    return kit_f(kit, kit->wide ? f64 : f32);
}

static inline uint32_t kit_unary(const struct kit *kit, enum kir_op op, uint32_t a)
{
    return kir_unary(kit->module, op, a);
}

static inline uint32_t kit_binary(const struct kit *kit, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_binary(kit->module, op, a, b);
}

#define KIT_1(name)                                                      \
    static inline uint32_t kit_##name(const struct kit *kit, uint32_t a) \
    {                                                                    \
        return kit_unary(kit, KIR_##name, a);                            \
    }
#define KIT_2(name)                                                                  \
    static inline uint32_t kit_##name(const struct kit *kit, uint32_t a, uint32_t b) \
    {                                                                                \
        return kit_binary(kit, KIR_##name, a, b);                                    \
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

/* Integer shift by a constant. */
uint32_t kit_shl(const struct kit *kit, uint32_t a, uint32_t count);
uint32_t kit_shr(const struct kit *kit, uint32_t a, uint32_t count);
uint32_t kit_sar(const struct kit *kit, uint32_t a, uint32_t count);

uint32_t kit_bits(const struct kit *kit, uint32_t a);  /* of a float */
uint32_t kit_float(const struct kit *kit, uint32_t a); /* from bits */
uint32_t kit_sign(const struct kit *kit, uint32_t a);  /* the sign bit alone, as an integer */
/* A value that is not negative with the sign bit added. */
uint32_t kit_with_sign(const struct kit *kit, uint32_t a, uint32_t sign);

/* 2^n, n an integer in the type's normal range. */
uint32_t kit_power_of_2(const struct kit *kit, uint32_t n);

/* a * b + c: fused, or else rounded twice. */
uint32_t kit_mad(const struct kit *kit, uint32_t a, uint32_t b, uint32_t c);
/* P(x) by Horner's rule. */
uint32_t kit_poly(const struct kit *kit, const struct poly polys[2], uint32_t x);
/* (P(x) - P(0)) / x */
uint32_t kit_slope(const struct kit *kit, const struct poly polys[2], uint32_t x);
/* x + x * z * P(z): an odd function; z = x * x. */
uint32_t kit_odd(const struct kit *kit, const struct poly polys[2], uint32_t x, uint32_t z);

struct pair kit_sum(const struct kit *kit, uint32_t a, uint32_t b);
struct pair kit_sum_fast(const struct kit *kit, uint32_t a, uint32_t b); /* |a| >= |b|, or a = 0 */
struct pair kit_product(const struct kit *kit, uint32_t a, uint32_t b);
struct pair kit_pair_sum(const struct kit *kit, struct pair a, struct pair b); /* |a| >= |b| */
struct pair kit_pair_product(const struct kit *kit, struct pair a, struct pair b);
/* Selects both parts by the same condition. */
struct pair kit_pair_select(const struct kit *kit, uint32_t which, struct pair a, struct pair b);

/* ---- parts of several functions ---- */

/* e^x = (1 + (r + more)) * scale * unit, for x from kit_exp_least, below which e^x |x| is 0, to 0,
 * and above 0 while e^x is finite.  `scale` and `unit` are powers of 2 in the type's normal range.
 */
struct exp_parts {
    uint32_t r, more, scale, unit;
};

#endif
