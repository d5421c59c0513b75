/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers without a state: each is a function of the seed, of what it is drawn for, and of
 * its index.  A run that goes on from a file so draws what the uninterrupted one draws. */
#ifndef TRAIN_RANDOM_H
#define TRAIN_RANDOM_H

#include <stdint.h>

enum random_use { RANDOM_WEIGHTS = 1, RANDOM_ORDER, RANDOM_SHIFT, RANDOM_HOLDOUT };

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* In 0..1, without 1. */
static inline double random_at(uint64_t seed, enum random_use use, uint64_t a, uint64_t b)
{
    const uint64_t key = random_mix(random_mix(random_mix(seed) + use) + a);

    return (double)(random_mix(key + b) >> 11) * 0x1p-53;
}

#endif
