/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits to f32 and back, without branches, so that loops over them become vectors.  To
 * 16 bits they round to nearest even, NaN stays NaN and quiet. */
#ifndef LOCAL_HALF_H
#define LOCAL_HALF_H

#include <stdint.h>
#include <string.h>

static inline int32_t half_bits(float real)
{
    int32_t bits;

    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static inline float half_real(int32_t bits)
{
    float real;

    memcpy(&real, &bits, sizeof(real));
    return real;
}

static inline float half_from_bf16(uint16_t bits)
{
    return half_real((int32_t)((uint32_t)bits << 16));
}

static inline uint16_t half_to_bf16(float real)
{
    const uint32_t bits = (uint32_t)half_bits(real);
    const int32_t rest = (int32_t)(bits & 0x7fffffff);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)(rest > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

static inline float half_from_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const int32_t rest = bits & 0x7fff;
    const int32_t normal = (rest << 13) + (112 << 23);   /* the bias of f32 has 112 more */
    const int32_t infinite = (rest << 13) + (224 << 23); /* or NaN: the greatest exponent */
    const int32_t small = half_bits((float)rest * 0x1p-24f);
    const int32_t finite = rest < 0x400 ? small : normal;

    return half_real((int32_t)((uint32_t)(rest < 0x7c00 ? finite : infinite) | sign));
}

static inline uint16_t half_to_f16(float real)
{
    const int32_t bits = half_bits(real), rest = bits & 0x7fffffff;
    const int32_t normal = (rest - (112 << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    /* The sum has a subnormal's last bit at the end of its fraction. */
    const int32_t small = half_bits(half_real(rest) + 0.5f) - (126 << 23);
    const int32_t finite = rest < 113 << 23 ? small : normal;
    const int32_t nan = 0x7e00 | (rest >> 13 & 0x3ff);
    const int32_t large = rest > 0x7f800000 ? nan : 0x7c00;

    /* From 65520 on they round to infinity. */
    return (uint16_t)((rest < 0x477ff000 ? finite : large) | (bits >> 16 & 0x8000));
}

#endif
