/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two ways is faster here, found by taking both. */
#ifndef MPI_TRIAL_H
#define MPI_TRIAL_H

#include <stdint.h>

struct trial {
    uint32_t n;     /* times so far */
    double cost[2]; /* the least of late, in any unit; 0: none */
};

/* The way for this time: the better one, and at times the other. */
static inline uint32_t trial_next(struct trial *trial)
{
    enum { AT_FIRST = 4, AGAIN = 64 };
    const uint32_t n = trial->n++, better = trial->cost[1] < trial->cost[0];

    if (n < AT_FIRST)
        return n % 2;
    return n % AGAIN == 0 ? !better : better;
}

/* A cost that was due to something else is only one of many, and old ones are forgotten. */
static inline void trial_report(struct trial *trial, uint32_t way, double cost)
{
    const double old = trial->cost[way] * 1.02;

    trial->cost[way] = trial->cost[way] == 0 || cost < old ? cost : old;
}

#endif
