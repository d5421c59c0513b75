/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs and launches, as the functions of a driver's rows, fusers and compiler are given them.
 */
#ifndef KIT_CALL_H
#define KIT_CALL_H

#include <frit/program.h>

#include "kit/block.h"
#include "util/plug.h"
#include "util/walk.h"

struct kit_candidate;
struct kit_device;
struct kit_row;
struct kit_fuser;

/* Ops that are launched together, in one way.  Constant. */
struct kit_program {
    const struct kit_device *device; /* that it was made for */
    const struct kit_row *row;       /* of its one op; NULL: a fuser made it */
    const struct kit_fuser *fuser;   /* that made it; NULL: it is of one op */
    const struct kit_block *block;
    const struct kit_candidate *candidate; /* NULL: the row or fuser itself */
};

/* Code that programs need before they run: those of rows, fusers and candidates with KIT_COMPILED.
 * The kit keeps it in the program, one for each variant that was compiled, until the program is
 * destroyed.
 * Threads: any, also several at once on one program. */
struct kit_compiler {
    /* Writes into `variant` all that code for this signature depends on besides the block: element
     * types are in the block, addresses and values never count, and each size that does is compiled
     * anew.  May fill in what else the spec is to say, workspace and the like, but for `driver[3]`
     * and the outputs' aliases, which the kit fills; arrays that the spec points to live as long as
     * the program, or are from kit_spec_alloc.  Pure, and shorter than any launch.
     * FRIT_UNSUPPORTED, by plug_fail: not for these operands.  NULL: one code per program. */
    frit_status (*prepare)(const struct kit_program *program, const frit_signature *sig,
                           frit_launch_spec *spec, frit_variant *variant, frit_err *err);
    /* Makes the code of a variant, not NULL.  As frit_program_table.compile says; where two threads
     * make the same, one of the two is released. */
    frit_status (*compile)(const struct kit_program *program, const frit_variant *variant,
                           const frit_cancel *cancel, void **code, frit_err *err);
    /* No launch of it is pending. */
    void (*release)(const struct kit_program *program, void *code);
    /* How often the code became better since it was compiled, never less than before; when it has
     * grown, kit_improved says so.  The host then prepares anew.  NULL: never. */
    uint32_t (*generation)(const struct kit_program *program, void *code);
};

/* An argument. */
struct kit_tensor {
    /* Where its range lies, for memory that is not the host's; borrowed until submit returns. */
    const frit_arg *arg;
    char *data;     /* element 0, in host memory; NULL: absent, or by kit_call_of */
    uint32_t dtype; /* FRIT_NO_DTYPE: absent */
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK]; /* in bytes */
};

/* A launch.  `launch` and what it points at are borrowed until submit returns; all else lives as
 * long as the program. */
struct kit_call {
    const struct plug *plug; /* for plug_fail */
    const struct kit_device *device;
    const struct kit_program *program;
    const struct kit_block *block; /* of the program */
    void *code;                    /* with KIT_COMPILED: of the launch's variant */
    const frit_launch *launch;
    struct kit_tensor args[KIT_ARGS]; /* block->n_in inputs, then results; see kit_value.arg */
};

/* Operand `i` and result `k` of op `op` of the block; NULL where it is not an argument: a scalar,
 * absent, or a value that dies inside. */
const struct kit_tensor *kit_in(const struct kit_call *call, uint32_t op, uint32_t i);
const struct kit_tensor *kit_out(const struct kit_call *call, uint32_t op, uint32_t k);

/* Scalar operand `i` of op `op`, whatever its type.  As a real: exact for floats, and the nearest
 * for integers of more than 53 bits.  As an integer: exact for integers (u64 by _u64, all others by
 * _i64) and bool, which is 0 or 1; what does not fit saturates, as fractions are cut and NaN is 0.
 */
double kit_scalar(const struct kit_call *call, uint32_t op, uint32_t i);
int64_t kit_scalar_i64(const struct kit_call *call, uint32_t op, uint32_t i);
uint64_t kit_scalar_u64(const struct kit_call *call, uint32_t op, uint32_t i);

/* Bytes from an element to the next along dim `d` of a result of `rank`, 0 where it broadcasts or
 * is absent. */
int64_t kit_stride(const struct kit_tensor *tensor, uint32_t rank, uint32_t d);
/* All arguments together over the dims of the first result, row by row; operand i of the walk is
 * args[i]. */
void kit_walk(const struct kit_call *call, struct walk *walk);

/* ---- for a driver with a submit of its own ---- */

/* The program that a LAUNCH names, with the candidate; NULL: it is not one of this kit. */
const struct kit_program *kit_program_of(const frit_launch *launch);
/* The launch, whose `data` are NULL: memory is the driver's.  FRIT_INVALID with a text where it is
 * none of this kit, or has other arguments than its program, or comes before its code. */
frit_status kit_call_of(const struct kit_device *device, const frit_launch *launch,
                        struct kit_call *call, frit_err *err);

#endif
