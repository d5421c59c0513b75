/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the programs to run for a relative segment.
 *
 * Steps in execution order.  A step covers ops of the expanded segment with one program, or is a
 * single op.  (In the expanded segment ops that the driver does not support are replaced by their
 * core ops.)  Every op is in exactly one step, and the order passed plan_verify.  Immutable and
 * reference-counted, shared by streams.  Thread-safe. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/program.h>

#include "base/arena.h"

struct program;
struct relative;
struct str;

/* Why a block did not grow. */
enum plan_end {
    PLAN_END_ALL,    /* no ops were left */
    PLAN_END_CLOSED, /* its fusers accept no more */
    PLAN_END_SPLIT,  /* the next op that shares a value could not join without a cycle */
    PLAN_END_BLOCKS, /* more blocks than fusion.max_blocks */
    PLAN_END_SHORT,  /* the fuser covers only a prefix of the block */
    PLAN_END_SINGLE, /* an op that no fuser accepts */
    PLAN_ENDS
};
const char *plan_end_name(enum plan_end end);

/* A result of a search: ops in the order of their step. */
struct plan_block {
    struct program *program; /* NULL: each op is run singly */
    uint32_t n_ops;
    const uint32_t *ops; /* numbers in the segment */
    uint32_t score;
    enum plan_end end;
};

struct plan_step {
    struct program *program; /* NULL: a single op */
    const char *label;       /* "map: add mul exp" or the op's name; for messages */
    uint32_t score;
    enum plan_end end;
    uint32_t n_ops, n_in, n_out, n_dead;
    uint32_t *ops; /* in the order of the program */
    uint32_t *in;  /* values: of a program, in the order of frit/fuser.h; of a single op, its tensor
                      operands including repeated ones */
    uint32_t *out; /* values: of a program, likewise; of a single op, all requested outputs */
    uint32_t *dead; /* values made in the segment, stored or not, for which this is the last step
                       that uses them or a view of them */
};

#define PLAN_NO_STEP UINT32_MAX

struct plan {
    atomic_uint refs;
    struct arena arena;
    uint32_t n_calls; /* recorded ops covered; a composite op counts as one */
    uint32_t n_ops;   /* of the expanded segment */
    uint32_t n_values;
    uint32_t n_steps;
    frit_op_desc *ops; /* deep copies; each death is at the last op that uses the value */
    struct plan_step *steps;
    uint32_t *last_step; /* per value: the last step that uses or makes it or a view of it, or
                            PLAN_NO_STEP */
    uint64_t bytes;      /* of host memory, without programs */
    uint64_t serial;     /* unique in the process */
    bool passing;        /* a fuser failed while it was made: it must not be saved */
    const void *saved;   /* the bytes of a saved plan, which has neither ops nor steps; else NULL */
    size_t n_saved;
};

/* The blocks must contain each of the first ops of `relative` exactly once.  Later ops of
 * `relative` are considered too, as far as they use values of the first ones or list their deaths.
 * The plan takes references to the programs. */
frit_status plan_create(const struct relative *relative, uint32_t n_calls,
                        const struct plan_block *blocks, uint32_t n_blocks, struct plan **out,
                        frit_err *err);
/* Makes a plan that runs each op singly, in program order. */
frit_status plan_create_unfused(const struct relative *relative, uint32_t n_calls,
                                struct plan **out, frit_err *err);
/* A plan as it was saved: only `n_calls` and the bytes, which are copied. */
frit_status plan_create_saved(uint32_t n_calls, const void *bytes, size_t n_bytes,
                              struct plan **out, frit_err *err);
struct plan *plan_ref(struct plan *plan);
void plan_unref(struct plan *plan);             /* NULL does nothing */
bool plan_is_unshared(const struct plan *plan); /* the caller has the only reference */

/* Prints a line per step (label, ops, values in and out, score, end). */
void plan_print(const struct plan *plan, struct str *out);

#endif
