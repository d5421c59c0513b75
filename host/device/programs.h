/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of one device for single ops: one per relative op, in the device's cache, which they
 * leave when they are not used for long.  Threads: any; no lock is held during a driver call. */
#ifndef DEVICE_PROGRAM_H
#define DEVICE_PROGRAM_H

#include <frit/frit.h>
#include <frit/program.h>

#include "graph/graph.h"

struct program;
struct prepared_cache;
struct programs;

frit_status programs_create(frit_device *device, struct programs **out, frit_err *err);
void programs_destroy(struct programs *programs);

/* ---- the relative form of one op ---- */

/* An op with its operands; `in` and `out` as op_check left them (FRIT_NO_DTYPE: not wanted). */
struct program_call {
    uint32_t op, n_in, n_out;
    const void *attrs; /* NULL: a record without fields */
    const struct op_input *in;
    const struct op_type *out;
};

/* The call of an op of a graph: `in` has room for its operands, `out` for FRIT_OP_MAX_OUT. */
struct program_call program_call_of(const struct graph *graph, const struct graph_op *op,
                                    struct op_input *in, struct op_type *out);

/* A relative op with the memory it points to: values, extents and scalars numbered in order of
 * appearance, KEY attributes only. */
struct op_form {
    frit_op_desc desc;
    frit_operand *operands; /* inputs, then outputs; in `fixed` where they fit */
    frit_operand fixed[FRIT_OP_MAX_IN + FRIT_OP_MAX_OUT];
    uint64_t attrs[64];
};

frit_status op_form_init(const struct program_call *call, struct op_form *out, frit_err *err);
void op_form_fini(struct op_form *form);

/* ---- programs ---- */

/* The driver's program for an op, a new reference; NULL: it refuses the op.  Queries the driver
 * once for each relative op that is in use. */
frit_status programs_get(frit_device *device, const struct program_call *call, struct program **out,
                         frit_err *err);
/* Whether there is one. */
frit_status programs_have(frit_device *device, const struct program_call *call, bool *yes,
                          frit_err *err);

/* What prepare answered for a program, of an op or of a block; made at the first call, and ends
 * with the program. */
frit_status programs_prepared_cache(frit_device *device, struct program *program,
                                    struct prepared_cache **out, frit_err *err);

#endif
