/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as their bits, and bits as floats. */
#ifndef KERNELS_BITS_H
#define KERNELS_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t bits_of_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double f64_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
