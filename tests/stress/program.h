/* SPDX-License-Identifier: Apache-2.0 */
/* A random program whose results are known. */
#ifndef TESTS_STRESS_PROGRAM_H
#define TESTS_STRESS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>

struct program {
    uint64_t random;
    frit_device *device[2]; /* the same, or of two hosts */
    uint32_t steps;
    bool large;    /* tensors of some hundred KiB among them */
    bool computes; /* the device does; else results are not looked at */
    bool may_fail; /* memory is limited, or the driver fails on request */
    /* Written. */
    uint64_t checked, failed; /* reads with a value, and with an allowed failure */
    bool wrong;               /* one was neither; it was reported */
};

/* On the calling thread.  Its tensors are released at the end, some with ops still queued. */
void program_run(struct program *program);

#endif
