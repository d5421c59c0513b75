/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The server's processor: runs a loop nest over f32. */
#ifndef REMOTE_COMPUTE_H
#define REMOTE_COMPUTE_H

#include "wire.h"

/* A launch whose parts were checked; element 0 of argument i lies at data[i]. */
struct nest {
    struct wire_launch launch;
    struct wire_arg args[WIRE_ARGS];
    struct wire_op ops[WIRE_OPS];
    char *data[WIRE_ARGS];
};

void compute(const struct nest *nest);

#endif
