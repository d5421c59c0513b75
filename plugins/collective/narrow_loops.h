/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of narrow.h, for files that are compiled for different instructions. */
#ifndef COLLECTIVE_NARROW_LOOPS_H
#define COLLECTIVE_NARROW_LOOPS_H

#include <string.h>

#include "ir/half.h"

#define NARROW_LOOPS(NAME, fraction)                                                        \
    static void load_##NAME(float *restrict into, const char *restrict from, size_t count)  \
    {                                                                                       \
        for (size_t i = 0; i < count; i++) {                                                \
            uint16_t bits;                                                                  \
                                                                                            \
            memcpy(&bits, from + i * sizeof(bits), sizeof(bits));                           \
            into[i] = half_load(bits, fraction);                                            \
        }                                                                                   \
    }                                                                                       \
    static void store_##NAME(char *restrict into, const float *restrict from, size_t count) \
    {                                                                                       \
        for (size_t i = 0; i < count; i++) {                                                \
            const uint16_t bits = half_store(from[i], fraction);                            \
                                                                                            \
            memcpy(into + i * sizeof(bits), &bits, sizeof(bits));                           \
        }                                                                                   \
    }

#endif
