/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several ways is the fastest here, found by taking each. */
#ifndef MPI_TRIAL_H
#define MPI_TRIAL_H

#include <stdint.h>

enum { TRIAL_WAYS = 4 };

struct trial {
    uint32_t n;              /* times so far */
    double cost[TRIAL_WAYS]; /* the least of late, in any unit; 0: none */
};

/* The way for this time: the best one, and at times another one. */
static inline uint32_t trial_next(struct trial *trial)
{
    enum { AT_FIRST = 2 * TRIAL_WAYS, AGAIN = 64 };
    const uint32_t n = trial->n++;
    uint32_t best = 0;

    if (n < AT_FIRST)
        return n % TRIAL_WAYS;
    if (n % AGAIN == 0)
        return n / AGAIN % TRIAL_WAYS;
    for (uint32_t way = 1; way < TRIAL_WAYS; way++) {
        if (trial->cost[way] < trial->cost[best])
            best = way;
    }
    return best;
}

/* A cost that was due to something else is only one of many, and old ones are forgotten. */
static inline void trial_report(struct trial *trial, uint32_t way, double cost)
{
    const double old = trial->cost[way] * 1.02;

    trial->cost[way] = trial->cost[way] == 0 || cost < old ? cost : old;
}

#endif
