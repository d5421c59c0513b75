/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a child of `frit conform`: the devices, and what programs give on them.  One thread. */
#ifndef CLI_CONFORM_LAB_H
#define CLI_CONFORM_LAB_H

#include "conform/conform.h"

/* Devices of one child. */
struct lab {
    frit_host *host;
    frit_device *device, *reference;
    bool flushes[FRIT_DTYPE_LIMIT]; /* takes denormals of the type for zero */
    struct block_memo *memo;
    const struct border *border; /* before anything was opened */
    bool *lost;                  /* set when `device`, or its like of a bare host, is lost */
    FILE *out;                   /* the lines of the child */
};

/* How a case's program runs. */
enum manner {
    PLAIN,
    WIDE,   /* in f64 */
    GUARDED /* with a look at the operands afterwards */
};

/* What a program gave on a device. */
struct results {
    uint32_t n;
    uint32_t dtype[CONFORM_OUTPUTS];
    frit_dims dims[CONFORM_OUTPUTS];
    void *data[CONFORM_OUTPUTS];
    uint64_t bytes[CONFORM_OUTPUTS];
    double most;   /* largest value of the operands */
    uint64_t seen; /* elements of the first */
};

/* Tensors with holes between them in which the case's are likely to lie; the first ones only fill
 * the holes that are there. */
enum { N_GUARDS = 24, FIRST_HOLE = 7, GUARD_BYTE = 0x5a, GUARDED_BYTES = 1 << 16 };

struct guards {
    frit_tensor *at[N_GUARDS];
    uint64_t bytes;
};

#endif
