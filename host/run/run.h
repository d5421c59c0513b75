/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan over concrete values.
 *
 * The caller (a stream) holds its baton and no lock.  Steps run in order: each allocates its
 * memory, binds its arguments and adds its commands to a batch, which is submitted when it is long
 * enough, when an allocation finds no memory, and at the end.  A program that refuses or fails is
 * replaced: next candidate, then its ops one by one, then their decomposition, then another device
 * (option `fallback`); each is counted.  Nothing here knows slots or handles. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <frit/frit.h>

#include "tensor/value.h"

struct failure;
struct graph;

/* One value of the expanded segment. */
struct run_value {
    struct value value; /* EXTERNAL: given, with a buffer that the caller keeps alive.  MADE: set by
                           the run; the caller gets one owner of the buffer, which stays NULL if
                           the value failed or is not wanted */
    struct failure *failure; /* EXTERNAL: why there is no value, borrowed.  MADE: set by the run, a
                                reference for the caller */
    bool external;
    bool wanted; /* MADE: it may be used after the segment */
    bool last;   /* EXTERNAL: it is not used after the segment; after its last use its buffer may be
                    overwritten, if the caller is the only owner */
    bool persistent; /* MADE: set by the run if its memory must be persistent */
    bool pinned; /* EXTERNAL: the caller has pinned the buffer; that pin does not keep the run from
                    overwriting it */
    struct buffer *assigned; /* MADE, wanted: memory of its size to store it in, dense; borrowed.
                                NULL: the run chooses */
    bool in_bucket; /* set by the run: it has assigned memory itself, which it owns, to a value that
                       need not be wanted, see bucket.h */
};

/* What a recorded op has besides its operands.  The ops that a composite op is expanded into all
 * have that of the composite op. */
struct run_op {
    uint64_t seed, counter; /* SEEDED rows */
    uint32_t context;       /* see record/context.h */
    bool chosen;            /* it stands for a composite op that has a program, see choice.h */
};

struct plan;
struct run_scratch;
/* Host memory that the runs of one stream use one after the other. */
frit_status run_scratch_create(struct run_scratch **out, frit_err *err);
void run_scratch_destroy(struct run_scratch *scratch); /* NULL does nothing */

struct bound_plan;
struct frit_rank;

/* How a step was run, for inspection. */
enum run_mark {
    RUN_IN_PLACE = 1,    /* an output took the memory of an operand */
    RUN_SKIPPED = 2,     /* none of its results were wanted */
    RUN_BY_OPS = 4,      /* its ops ran one by one instead of its program */
    RUN_CANDIDATE = 16,  /* another candidate of the program than the first ran */
    RUN_DECOMPOSED = 32, /* the decomposition of a composite op ran instead of its program, or is a
                            part of the step because it is faster */
    RUN_ELSEWHERE = 64   /* it ran on another device */
};

struct run_note {
    uint32_t marks;
    char why[252]; /* reason of the first fallback; "": there was none */
    char
        candidate[64]; /* that ran, of a program with several; "": of one with one, or no program */
    const char *chosen; /* how, as in struct candidates; NULL likewise */
};

struct run {
    frit_device *device;
    struct run_scratch *scratch; /* NULL: the run makes its own */
    const struct plan *plan;     /* of the ops of `graph` */
    const struct graph *graph;   /* concrete, expanded; value numbers are those of the plan */
    struct run_value *values;    /* graph->n_values */
    const struct run_op *ops;    /* graph->n_ops */
    bool assigned;               /* at least one value has memory assigned */
    uint32_t stream;             /* ordinal, for cookies */
    struct frit_rank *ranks;     /* of the stream */
    struct bound_plan
        *bound; /* records the run for replays, see replay.h; NULL: it is not recorded */
    struct run_note *notes; /* per step: zeroed by the caller, written; NULL: not wanted */
    bool not_run;           /* written: it failed before the first step */
    struct failure *first;  /* written: the first failure, one reference, or NULL */
};

/* Leaves every MADE value with a buffer, with a failure, or (not wanted) with nothing.  When it
 * returns, all commands are submitted or their values have failed. */
void run_plan(struct run *run);

/* A copy of a value with these strides (NULL: dense); `out` owns its buffer. */
frit_status run_relayout(frit_device *device, const struct value *value, const int64_t *strides,
                         struct value *out, frit_err *err);

/* Writes the elements of a value, dense, into memory of their size. */
frit_status run_write_into(frit_device *device, const struct value *value, struct buffer *memory,
                           frit_err *err);

/* What the command with this cookie computes, "map: add mul exp" or the name of an op; NULL if the
 * cookie has no label.  The text lives as long as the device. */
const char *run_label(frit_device *device, uint64_t cookie);

#endif
