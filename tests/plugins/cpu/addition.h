/* SPDX-License-Identifier: Apache-2.0 */
/* y = x + 3 over the elements of a row, by hand: buffers, program, launch. */
#ifndef CPU_ADDITION_H
#define CPU_ADDITION_H

#include "plugins/rig.h"

struct addition {
    struct rig *rig;
    frit_allocation x, y;
    frit_program program;
    frit_launch_spec spec;
    bool has_spec;
    frit_variant variant;
    frit_arg args[3]; /* the scalar keeps its place */
    uint64_t n;
};

/* x[i] is i % 1000.  On failure the rig's err is set and nothing is allocated. */
frit_status addition_open(struct addition *a, struct rig *rig, uint64_t n);
frit_status addition_run(struct addition *a, uint64_t *value);
void addition_close(struct addition *a);

#endif
