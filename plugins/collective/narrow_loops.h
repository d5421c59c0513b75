/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of narrow.h, for files that are compiled for different instructions. */
#ifndef COLLECTIVE_NARROW_LOOPS_H
#define COLLECTIVE_NARROW_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ir/half.h"

static inline uint16_t narrow_at(const char *from, size_t i)
{
    uint16_t bits;

    memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
    return bits;
}

#define NARROW_LOOPS(NAME, fraction)                                                             \
    static void load_##NAME(float *restrict into, const char *restrict from, size_t count)       \
    {                                                                                            \
        for (size_t i = 0; i < count; i++)                                                       \
            into[i] = half_load(narrow_at(from, i), fraction);                                   \
    }                                                                                            \
    static void store_##NAME(char *restrict into, const float *restrict from, size_t count)      \
    {                                                                                            \
        for (size_t i = 0; i < count; i++) {                                                     \
            const uint16_t bits = half_store(from[i], fraction);                                 \
                                                                                                 \
            memcpy(into + i * sizeof(bits), &bits, sizeof(bits));                                \
        }                                                                                        \
    }                                                                                            \
    static void exchange_##NAME(char *const into[2], const char *a, const char *b, size_t count, \
                                bool halved)                                                     \
    {                                                                                            \
        const float scale = halved ? 0.5f : 1;                                                   \
        char *first = into[0], *second = into[1];                                                \
                                                                                                 \
        for (size_t i = 0; i < count; i++) {                                                     \
            const float sum =                                                                    \
                half_load(narrow_at(a, i), fraction) + half_load(narrow_at(b, i), fraction);     \
            const uint16_t bits = half_store(sum * scale, fraction);                             \
                                                                                                 \
            memcpy(first + i * sizeof(bits), &bits, sizeof(bits));                               \
            memcpy(second + i * sizeof(bits), &bits, sizeof(bits));                              \
        }                                                                                        \
    }

#endif
