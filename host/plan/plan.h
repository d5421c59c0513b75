/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: what to run for a relative segment.
 *
 * Steps in the order in which they run; each covers ops of the expanded segment (ops that the
 * driver does not claim replaced by the core ops they stand for) with one program, or is one op
 * that runs by itself.  Every op of the segment is in exactly one step, and the order passed
 * plan_verify. Immutable once made, shared by streams, counted.  Threads: any. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include <stdatomic.h>

#include <frit/fuser.h>

#include "base/str.h"
#include "plan/program.h"
#include "plan/relative.h"

/* Why a block got no more ops. */
enum plan_end {
    PLAN_END_ALL,    /* there were no more */
    PLAN_END_CLOSED, /* its fusers take no more */
    PLAN_END_SPLIT,  /* the next op that shares a value could not join without a cycle */
    PLAN_END_BLOCKS, /* more blocks than fusion.max_blocks */
    PLAN_END_SHORT,  /* the fuser covers less than the block had */
    PLAN_END_SINGLE, /* an op that no fuser wants */
    PLAN_ENDS
};
const char *plan_end_name(enum plan_end end);

/* What a search found: ops in the order of their step. */
struct plan_block {
    struct program *program; /* NULL: each op runs by itself */
    uint32_t n_ops;
    const uint32_t *ops; /* numbers in the segment */
    uint32_t score;
    enum plan_end end;
};

struct plan_step {
    struct program *program; /* NULL: one op that runs by itself */
    const char *label;       /* "map: add mul exp" or the op's name; for people and failures */
    uint32_t score;
    enum plan_end end;
    uint32_t n_ops, n_in, n_out, n_dead;
    uint32_t *ops;  /* in the order of the program */
    uint32_t *in;   /* values, as fuser.h orders a program's arguments; of a single op, its tensor
                       operands in order, repeated ones repeated */
    uint32_t *out;  /* likewise; of a single op every wanted output */
    uint32_t *dead; /* values made in the segment that nobody sees later, stored or not, where this
                       step is the last that uses them or a view of them */
};

#define PLAN_NO_STEP UINT32_MAX

struct plan {
    atomic_uint refs;
    struct arena arena;
    uint32_t n_calls; /* recorded ops covered: a composite is one */
    uint32_t n_ops;   /* of the expanded segment */
    uint32_t n_values;
    uint32_t n_steps;
    frit_op_desc *ops; /* deep copies; each death stands at the op that uses the value last */
    struct plan_step *steps;
    uint32_t *last_step; /* per value: the last step that uses or makes it or a view of it;
                            PLAN_NO_STEP if there is none */
    uint64_t bytes;      /* of host memory, programs not counted */
    uint64_t serial;     /* unique in the process */
    bool passing;        /* a fuser failed when it was made: not for other processes */
};

/* The blocks must hold each of the first ops of `relative` once.  What later ops say counts where
 * it is about these: a death that stands there, a use that keeps a value alive.  References to
 * programs are taken by the plan. */
frit_status plan_create(const struct relative *relative, uint32_t n_calls,
                        const struct plan_block *blocks, uint32_t n_blocks, struct plan **out,
                        frit_err *err);
/* Each op by itself in program order. */
frit_status plan_unfused(const struct relative *relative, uint32_t n_calls, struct plan **out,
                         frit_err *err);
struct plan *plan_ref(struct plan *plan);
void plan_unref(struct plan *plan);             /* NULL does nothing */
bool plan_is_unshared(const struct plan *plan); /* the caller's reference is the last */

/* Lifetime simulation of ops in an order of running: each of `n_ops` ops once, no value used before
 * it is made or after it died, ORDERED ops in order.  FRIT_INTERNAL says which op breaks it. */
frit_status plan_simulate(const frit_op_desc *ops, uint32_t n_ops, uint32_t n_values,
                          const uint32_t *order, frit_err *err);

/* plan_simulate over the steps, and that these fit together: values that cross steps are stored,
 * memory that a view shares with its base is kept until the last use of either.  plan_create calls
 * it and fails with FRIT_INTERNAL. */
frit_status plan_verify(const struct plan *plan, frit_err *err);

/* For people, tests and goldens: a line per step (label, ops, values in and out, score, end). */
void plan_print(const struct plan *plan, struct str *out);

#endif
