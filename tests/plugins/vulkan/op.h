/* SPDX-License-Identifier: Apache-2.0 */
/* One op on vectors of f32, from op_program to a command. */
#ifndef VULKAN_OP_H
#define VULKAN_OP_H

#include "rig.h"

struct vector {
    void *memory;
    uint64_t offset; /* bytes */
};

/* y = a + b, over n elements. */
struct add {
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    frit_launch launch;
    frit_arg args[3];
    frit_cmd cmd;
};

/* The first failure of op_program, prepare or compile.  To be ended by add_close, whatever it
 * gave. */
frit_status add_open(struct rig *rig, struct add *add, const struct vector vectors[3], int64_t n);
void add_close(struct add *add);

#endif
