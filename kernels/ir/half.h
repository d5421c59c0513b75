/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits as memory holds them.  To memory they round to nearest even, NaN stays NaN and
 * quiet. */
#ifndef KIR_HALF_H
#define KIR_HALF_H

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

static inline float bf16_load(uint16_t bits)
{
    return half_real_of((uint32_t)bits << 16);
}

static inline uint16_t bf16_store(float real)
{
    uint32_t bits = half_bits_of(real);

    if (real != real)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float f16_load(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits >> 15) << 31, rest = bits & 0x7fffu;

    if (rest >= 0x7c00) /* infinity, NaN */
        return half_real_of(sign | 0x7f800000 | (rest - 0x7c00) << 13);
    if (rest >= 0x400)
        return half_real_of(sign | ((rest << 13) + (112u << 23)));
    return sign ? -(float)rest * 0x1p-24f : (float)rest * 0x1p-24f;
}

static inline uint16_t f16_store(float real)
{
    uint32_t bits = half_bits_of(real), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;

    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (rest >= 0x38800000) /* normal: a carry goes into the exponent */
        return (uint16_t)(sign | ((rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13));
    /* Adding 0.5 puts the last bit of a subnormal at the end of the fraction. */
    return (uint16_t)(sign | (half_bits_of(half_real_of(rest) + 0.5f) - 0x3f000000));
}

#endif
