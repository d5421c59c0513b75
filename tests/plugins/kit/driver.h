/* SPDX-License-Identifier: Apache-2.0 */
/* A driver on the kit whose rows note what they are given and compute nothing.  It is linked into
 * the test that uses it.  One thread. */
#ifndef TEST_KIT_DRIVER_H
#define TEST_KIT_DRIVER_H

#include "kit/kit.h"

/* What the last launch was. */
struct seen {
    uint32_t n_launches;
    uint32_t n_ops, n_in, n_args;
    double scalars[4]; /* scalar operand 1 of each op */
    double last;       /* scalar operand 2 of the first */
    uint32_t first_bound[4];
    uint32_t elements;
    const void *code;
    bool inside; /* the result of the first op is not an argument */
};
extern struct seen seen;

#endif
