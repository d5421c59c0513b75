/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of one device: made once per relative op, prepared once per signature.
 *
 * Both answers are remembered, but for a prepare that failed.  Threads: any; the lock is never held
 * during a driver call. */
#ifndef STREAM_PROGRAM_H
#define STREAM_PROGRAM_H

#include "stream/exec.h"

struct programs;

/* A relative op with the memory it points to. */
struct relative_op {
    frit_op_desc desc;
    frit_operand *operands; /* inputs, then outputs; in `fixed` where they fit */
    frit_operand fixed[FRIT_OP_MAX_IN + FRIT_OP_MAX_OUT];
    uint64_t attrs[64]; /* the record, KEY fields only */
};

/* Fills `out` from a call; relative_fini gives memory back. */
frit_status relative_init(const struct exec_call *call, struct relative_op *out, frit_err *err);
void relative_fini(struct relative_op *relative);

frit_status programs_create(struct programs **out, frit_err *err);
void programs_destroy(struct programs *programs);

/* Whether the driver claims the op; then its program, which lives as long as the device. */
frit_status programs_get(frit_device *device, const struct exec_call *call,
                         const frit_program **out, frit_err *err);

/* What prepare answered for a signature, compiled where it asked for it.  RELAYOUT is passed on as
 * a positive status.  `spec` and `variant` are copies. */
frit_status programs_prepare(frit_device *device, const frit_program *program,
                             const frit_signature *signature, frit_launch_spec *spec,
                             frit_variant *variant, frit_err *err);

#endif
