/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the soak have in common: options, random numbers, complaints. */
#ifndef TESTS_STRESS_SOAK_H
#define TESTS_STRESS_SOAK_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>

/* Constant once the first process is started. */
struct soak {
    unsigned seconds, processes;
    uint64_t seed;
    bool sanitized;   /* no limits of address space, and more patience */
    char folder[256]; /* of this run: stores, artefacts, plugins that fail */
    char build[256];  /* the build tree */
};

/* The next number of a sequence, below n. */
uint32_t soak_pick(uint64_t *random, uint32_t n);

/* One line on standard error, with the process's number. */
void soak_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds since some point, as a clock that nobody sets. */
double soak_now(void);

#endif
