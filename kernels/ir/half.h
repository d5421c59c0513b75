/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits as memory holds them.  To memory they round to nearest even, NaN stays NaN and
 * quiet.  Both conversions are without branches, so that loops over them become vectors. */
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

/* Comparisons are of signed integers, which every vector unit has. */
static inline float half_load(uint16_t bits, uint32_t fraction)
{
    const struct half_layout half = half_layout(fraction);
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const int32_t rest = bits & 0x7fff;
    const uint32_t shifted = (uint32_t)rest << half.shift;
    const uint32_t normal = shifted + (half.rebias << 23);
    const uint32_t infinite = shifted + (2 * half.rebias << 23); /* or NaN: the greatest exponent */
    const uint32_t small =
        half_bits_of((float)rest * half_real_of((half.rebias + 1 - fraction) << 23));
    const uint32_t finite = rest < 1 << fraction ? small : normal;

    if (!half.rebias)
        return half_real_of((uint32_t)bits << 16);
    return half_real_of(sign | (rest < (int32_t)half.infinity ? finite : infinite));
}

static inline uint16_t half_store(float real, uint32_t fraction)
{
    const struct half_layout half = half_layout(fraction);
    const uint32_t bits = half_bits_of(real), rest = bits & 0x7fffffff;
    const uint32_t kept = rest >> half.shift, below_half = (1u << (half.shift - 1)) - 1;
    /* A carry goes into the exponent. */
    const uint32_t normal = (rest - (half.rebias << 23) + below_half + (kept & 1)) >> half.shift;
    /* The sum has a subnormal's last bit at the end of its fraction. */
    const uint32_t small =
        half_bits_of(half_real_of(rest) + half_real_of(half.aligner)) - half.aligner;
    const uint32_t finite = half.rebias && (int32_t)rest < (int32_t)half.normal ? small : normal;
    const uint32_t nan = half.infinity | half.quiet | (kept & ((1u << fraction) - 1));
    const uint32_t large = (int32_t)rest > 0x7f800000 ? nan : half.infinity;

    return (uint16_t)((bits >> 16 & 0x8000) |
                      ((int32_t)rest < (int32_t)half.overflow ? finite : large));
}

#endif
