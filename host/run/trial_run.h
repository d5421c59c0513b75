/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a trial: what it has, and its launches. */
#ifndef RUN_TRIAL_RUN_H
#define RUN_TRIAL_RUN_H

#include "graph/graph.h"
#include "plan/plan.h"
#include "run/frame.h"
#include "run/trial.h"

struct buffer;
struct prepared_cache;
struct program;
struct run_scratch;

/* A buffer in which operands of the launch lie, and the trial's in its place. */
struct memory_pair {
    const struct buffer *of;
    struct buffer *own;
    struct buffer **copies; /* of the other sets, see trial_sets.h */
    uint64_t low, high;     /* bytes of `of` that operands lie in */
    uint64_t skipped;       /* of those in front, a multiple of PAGE */
    uint64_t bytes;
    uint32_t dtype;
    void *data; /* in the arena; NULL: all bytes are equal */
};

struct launch_trial {
    frit_device *device;
    struct program *program; /* a reference */
    struct prepared_cache *cache;
    const char *label;
    bool block;
    struct arena arena;
    struct graph graph;
    struct run_op *extra;
    uint32_t *numbers;     /* of its ops: 0, 1, .. */
    uint32_t *at_once;     /* last steps of the frame of one launch: 0 */
    struct plan_step step; /* of that frame, and its plan */
    struct plan plan;
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* values of `graph`, GRAPH_NO_VALUE */
    const int64_t *strides;
    struct value *given; /* by value: operands */
    struct run_value *values;
    struct memory_pair *memories;
    uint32_t n_memories;
    uint32_t n_sets, next_set; /* of operands; 0: not rotated yet */
    bool is_filled;            /* the operands of the first set hold their elements */
    void **of_ops;             /* by output: the ops' elements, dense; NULL: not computed */
    void **of_first;           /* candidate 0's */
    struct run_scratch *scratch;
    struct launch_trial *decomposed; /* owned: of the same elements, see choice.h; NULL: none */
};

enum {
    TRIAL_BYTES = 256 << 20, /* of operands and results */
    TRIAL_BELOW = 127        /* integers of every type */
};
#define TRIAL_RANDOM UINT64_C(0x9e3779b97f4a7c15)

/* Writes the operands' elements, unless they are there. */
frit_status trial_fill(struct launch_trial *trial, frit_err *err);
/* A frame of one launch over fresh values.  `last`: operands are not needed afterwards. */
struct frame trial_begin(struct launch_trial *trial, bool last);
/* Drops the frame's results. */
void trial_end(struct launch_trial *trial, struct frame *frame);
/* Adds a launch of the candidate, or TRIAL_PARTS, to the batch. */
frit_status trial_add(struct launch_trial *trial, struct frame *frame, uint32_t candidate,
                      frit_err *err);
/* Submits what the batch holds and waits.  `*failed`: a command failed, which `err` describes. */
frit_status trial_finish(struct launch_trial *trial, struct frame *frame, bool *failed,
                         frit_err *err);
/* The elements of a value, dense. */
frit_status trial_read(struct launch_trial *trial, const struct value *value, void *to,
                       frit_err *err);
/* Those of the frame's results, each in the trial's arena. */
frit_status trial_read_results(struct launch_trial *trial, void **out, frit_err *err);

#endif
