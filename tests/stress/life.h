/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one process: hosts and devices are opened and closed, programs run in threads that
 * come and go, limits move, drivers fail. */
#ifndef TESTS_STRESS_LIFE_H
#define TESTS_STRESS_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "soak.h"

struct life {
    const struct soak *soak;
    uint64_t random;
    double seconds;  /* how long it takes */
    bool is_scarce;  /* the limit of its address space moves */
    bool is_counted; /* what it holds must not grow */
};

/* Returns the exit status: 0, or 1 after complaints. */
int life_lead(const struct life *life);

#endif
