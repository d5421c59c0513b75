/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan over concrete values.
 *
 * The caller (a stream) holds its baton and no lock.  Steps run in order; what one needs is
 * allocated, bound and put into a batch of commands; a batch is submitted when it is long enough,
 * when an allocation finds no memory, and at the end.  A program that refuses or fails is replaced:
 * next candidate, then its ops one by one, then their decomposition, then another device (option
 * `fallback`); each is counted.  Nothing here knows slots or handles. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <frit/frit.h>

#include "tensor/value.h"

struct failure;
struct graph;

/* One value of the expanded segment. */
struct run_value {
    struct value value; /* EXTERNAL: type, layout, buffer, kept alive by the caller.  MADE: filled;
                           the buffer has one owner for the caller; stays NULL where it failed or
                           was not wanted */
    struct failure *failure; /* EXTERNAL, borrowed: it has no value.  MADE: set with a reference */
    bool external;
    bool wanted;     /* MADE: somebody may see it after the segment */
    bool last;       /* EXTERNAL: nobody sees it after the segment, so that its buffer may be
                        overwritten after its last use if it has one owner, the caller's */
    bool persistent; /* MADE: the run's own, where its memory is to be persistent */
    bool pinned; /* EXTERNAL: the caller keeps it alive with a pin, which does not hinder that */
    struct buffer *assigned; /* MADE, wanted: the memory that it is to lie in, densely; borrowed, of
                                its size.  NULL: any */
};

/* What a recorded op has beside its operands; an op that stands for a part of a composite has that
 * of the composite. */
struct run_op {
    uint64_t seed, counter; /* SEEDED rows */
    bool persistent;
};

/* Memory that runs use one after the other; of one stream.  All zero is empty. */
struct plan;
struct run_scratch;
frit_status run_scratch_create(struct run_scratch **out, frit_err *err);
void run_scratch_destroy(struct run_scratch *scratch); /* NULL does nothing */

struct bound_plan;
struct frit_rank;

/* What became of a step, for who looks on. */
enum run_mark {
    RUN_IN_PLACE = 1,    /* an output took the memory of an operand */
    RUN_SKIPPED = 2,     /* nobody wanted what it makes */
    RUN_BY_OPS = 4,      /* not its program ran, but its ops by themselves */
    RUN_CANDIDATE = 16,  /* not the first candidate of a program */
    RUN_DECOMPOSED = 32, /* not the program of a composite op, but what the op stands for */
    RUN_ELSEWHERE = 64   /* on another device */
};

struct run_note {
    uint32_t marks;
    char why[252]; /* reason of the first fallback; "": there was none */
};

struct run {
    frit_device *device;
    struct run_scratch *scratch; /* NULL: the run makes its own */
    const struct plan *plan;     /* its ops are those of the graph */
    const struct graph *graph;   /* concrete, expanded; value numbers are those of the plan */
    struct run_value *values;    /* graph->n_values */
    const struct run_op *ops;    /* graph->n_ops */
    bool assigned;               /* some value has memory assigned */
    uint32_t stream;             /* ordinal, for cookies */
    struct frit_rank *ranks;     /* of the stream */
    struct bound_plan *bound;    /* to be left behind, see replay.h; NULL: none */
    struct run_note *notes;      /* zeroed, written: by step; NULL: nobody looks on */
    bool broken;                 /* written: no step ran */
    struct failure *first;       /* written: the first failure, one reference, or NULL */
};

/* Leaves every MADE value with a buffer, with a failure, or (not wanted) with nothing.  When it
 * returns, all commands are submitted or their values have failed. */
void run_plan(struct run *run);

/* A copy of a value with these strides (NULL: dense); `out` owns its buffer. */
frit_status run_relayout(frit_device *device, const struct value *value, const int64_t *strides,
                         struct value *out, frit_err *err);

/* The elements of a value are written into this memory, of their size. */
frit_status run_write_into(frit_device *device, const struct value *value, struct buffer *memory,
                           frit_err *err);

/* What the command with this cookie was doing, "map: add mul exp" or the name of an op; NULL if it
 * says nothing.  Lives as long as the device. */
const char *run_label(frit_device *device, uint64_t cookie);

#endif
