/* SPDX-License-Identifier: Apache-2.0 */
/* What the system lets this process have.  One thread. */
#ifndef DOCTOR_LIMITS_H
#define DOCTOR_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct problems;

struct limit {
    const char *name;
    uint64_t value; /* UINT64_MAX: unlimited */
    char text[48];
};

enum { LIMITS = 9 };

struct limits {
    struct limit at[LIMITS];         /* of the process */
    uint32_t n_processors, n_usable; /* of the machine, and of this process */
    uint64_t memory;                 /* of the machine */
    uint64_t group_memory;           /* of its control group; UINT64_MAX: no limit */
    char huge_pages[32];             /* "always", "madvise", "never"; "" if unknown */
    char system[160];                /* "Linux 6.1.0 x86_64" */
};

void limits_read(struct limits *out);
void limits_check(const struct limits *limits, struct problems *problems);

#endif
