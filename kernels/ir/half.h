/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits as memory holds them.  To memory they round to nearest even, NaN stays NaN and
 * quiet. */
#ifndef KIR_HALF_H
#define KIR_HALF_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t half_bits_of(float real)
{
    uint32_t bits;

    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static inline float half_real_of(uint32_t bits)
{
    float real;

    memcpy(&real, &bits, sizeof(real));
    return real;
}

/* Constants of a conversion from and to F32, of a type with this many fraction bits; the others
 * below the sign are the exponent's. */
struct half_layout {
    uint32_t fraction;
    uint32_t shift;    /* from its fraction to that of F32 */
    uint32_t rebias;   /* what the bias of F32 has more; 0: it is the upper half of F32 */
    uint32_t infinity; /* its bits */
    uint32_t quiet;    /* the bit that makes NaN quiet */
    /* The bits of these as F32: */
    uint32_t normal;   /* the least normal number */
    uint32_t overflow; /* the least number that rounds to infinity */
    uint32_t aligner;  /* the power of two whose last bit weighs as much as a subnormal's */
};

static inline struct half_layout half_layout(uint32_t fraction)
{
    uint32_t shift, exponents, rebias;

    assert(fraction > 0 && fraction < 15);
    shift = 23 - fraction;
    exponents = 1u << (15 - fraction);
    rebias = 128 - exponents / 2;
    return (struct half_layout){
        .fraction = fraction,
        .shift = shift,
        .rebias = rebias,
        .infinity = 0x8000u - (1u << fraction),
        .quiet = 1u << (fraction - 1),
        .normal = (rebias + 1) << 23,
        .overflow = ((rebias + exponents - 1) << 23) - (1u << (shift - 1)),
        .aligner = (rebias + 24 - fraction) << 23,
    };
}

static inline float half_load(uint16_t bits, uint32_t fraction)
{
    const struct half_layout half = half_layout(fraction);
    uint32_t sign = (uint32_t)(bits >> 15) << 31, rest = bits & 0x7fffu;

    if (!half.rebias)
        return half_real_of((uint32_t)bits << 16);
    if (rest >= half.infinity) /* or NaN */
        return half_real_of(sign | 0x7f800000 | (rest - half.infinity) << half.shift);
    if (rest >= 1u << fraction)
        return half_real_of(sign | ((rest << half.shift) + (half.rebias << 23)));
    return (sign ? -(float)rest : (float)rest) * half_real_of((half.rebias + 1 - fraction) << 23);
}

static inline uint16_t half_store(float real, uint32_t fraction)
{
    const struct half_layout half = half_layout(fraction);
    uint32_t bits = half_bits_of(real), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    uint32_t kept = rest >> half.shift, below_half = (1u << (half.shift - 1)) - 1;

    if (rest > 0x7f800000)
        return (uint16_t)(sign | half.infinity | half.quiet | (kept & ((1u << fraction) - 1)));
    if (rest >= half.overflow)
        return (uint16_t)(sign | half.infinity);
    if (rest >= half.normal || !half.rebias) /* a carry goes into the exponent */
        return (uint16_t)(sign |
                          ((rest - (half.rebias << 23) + below_half + (kept & 1)) >> half.shift));
    /* The sum has a subnormal's last bit at the end of its fraction. */
    return (uint16_t)(sign | (half_bits_of(half_real_of(rest) + half_real_of(half.aligner)) -
                              half.aligner));
}

#endif
