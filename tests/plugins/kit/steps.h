/* SPDX-License-Identifier: Apache-2.0 */
/* What a host does with a driver on the kit, step by step: an op, its program, a signature, a
 * launch.
 */
#ifndef TEST_KIT_STEPS_H
#define TEST_KIT_STEPS_H

#include "kit/kit.h"
#include "plugins/rig.h"

/* Setup and teardown: the state is a rig whose driver is open. */
int steps_open(void **state);
int steps_close(void **state);

/* An op as a host describes it: tensors of f32 and rank 2, extents by number. */
struct op {
    frit_op_desc desc;
    frit_operand in[3], out[1];
    uint32_t dead[3];
    union kit_attrs attrs;
};

/* `a` and `b` are values, 0: a scalar; `dead` a value, 0: none. */
void op_of(struct op *op, uint32_t id, uint32_t a, uint32_t b, uint32_t y, uint32_t dead);

frit_program program_for(struct rig *rig, const struct op *op);

/* Of f32 and rank 2, row-major or `turned`. */
frit_arg_sig sig_of(int64_t rows, int64_t columns, bool turned);
/* Requests `n_in` of the arguments as inputs and one output after them, into `spec` and `variant`.
 */
frit_status prepare(struct rig *rig, const frit_program *program, const frit_arg_sig *args,
                    uint32_t n_in, frit_launch_spec *spec, frit_variant *variant);

struct launch {
    frit_arg args[4];
    frit_scalar scalars[4];
    int64_t bounds[12];
    frit_launch_spec spec;
    frit_variant variant;
    frit_launch launch;
    frit_allocation memory;
};

/* A launch with `n` arguments, all 2 x 3 of one piece of memory, which the caller frees. */
void launch_of(struct rig *rig, struct launch *l, const frit_program *program, uint32_t n);
/* Submits it; where that is accepted waits for it, and for how it ended.  The status is that of the
 * call that failed. */
frit_status submit_and_wait(struct rig *rig, const struct launch *l, frit_failure *failure);
void set_scalar(struct launch *l, uint32_t i, double value);

#endif
