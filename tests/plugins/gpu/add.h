/* SPDX-License-Identifier: Apache-2.0 */
/* An add of two vectors of f32 through the driver's tables: its program, its launch and the
 * command. */
#ifndef GPU_ADD_H
#define GPU_ADD_H

#include "rig.h"

struct vector {
    void *memory;
    uint64_t offset; /* bytes */
};

/* vectors[2] = vectors[0] + vectors[1] */
struct add {
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    frit_launch launch;
    frit_arg args[3];
    frit_cmd cmd;
};

/* Creates, prepares and compiles the program, and builds the command; returns the first failure.
 * After a failure too the caller calls add_close. */
frit_status add_open(struct rig *rig, struct add *add, const struct vector vectors[3], int64_t n);
void add_close(struct add *add);
/* Adds the first three of some numbers to those that begin `shift` elements (at most 4) after the
 * first, in new memory; fails the test if a call fails or a sum is wrong. */
void add_run(struct rig *rig, uint32_t shift);

#endif
