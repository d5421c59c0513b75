/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a run: the values of one list of ops while it runs, and what was done to them since the
 * last submit.
 *
 * A frame is a plan over its graph, or the ops of a graph in program order (what a composite op
 * stands for, one op on another device).  A batch holds commands of one frame only, and every
 * change of the frame's values since the batch began is in the log: a refused submit is undone by
 * going backwards through the log, and buffers that died are given back when a submit went through.
 * Threads: one at a time. */
#ifndef RUN_FRAME_H
#define RUN_FRAME_H

#include "run/run.h"

struct arena;
struct graph;

#define NO_CHANGE UINT32_MAX

enum { FRAME_PENDING = 32 };

/* A collective operation that the frame began and has not waited for. */
struct frame_pending {
    const struct buffer *from, *into; /* whole */
    uint32_t value;                   /* its result */
};

enum change_kind { CHANGE_MADE, CHANGE_DIED, CHANGE_WORKSPACE, CHANGE_FAILED };

/* One change of a frame's values. */
struct change {
    uint32_t value;  /* WORKSPACE: none */
    uint32_t reused; /* MADE, WORKSPACE: the change whose buffer it took, or NO_CHANGE */
    enum change_kind kind;
    bool first;                  /* FAILED: it is the frame's first failure */
    struct buffer *held;         /* DIED, WORKSPACE: owned by the log until a submit went through */
    uint64_t last_write, writer; /* MADE: of the buffer before */
};

/* Where a frame is. */
struct cursor {
    uint32_t step;
    uint32_t op; /* of the step, where its ops run one by one */
    bool by_ops;
    bool in_parts; /* of an item that is in the batch: the block ran in parts, see parts.h */
};

/* A step of either kind of frame. */
struct frame_step {
    struct program *program;
    const char *label;
    const uint32_t *ops;
    uint32_t n_ops;
    const uint32_t *in, *out; /* with a program */
    uint32_t n_in, n_out;
};

struct frame {
    frit_device *device;
    struct run_scratch *scratch;
    const struct plan *plan; /* NULL: ops in program order */
    const struct graph *graph;
    struct run_value *values;
    const struct run_op *ops;
    const uint32_t *last_step;   /* by value */
    struct run_value *predicted; /* see prefetch.h; NULL: nothing is */
    const bool *idle;            /* by step: nobody wants what it makes */
    const uint32_t *order;       /* without a plan: 0, 1, .. */
    const int64_t *strides;      /* of the output of an only op, NULL: dense */
    struct run_note *notes;      /* by step; NULL: none are taken */
    struct run_note *note;       /* of the step that this frame stands for, NULL: none is taken */
    const uint32_t *assigned;    /* values with memory assigned, in the order of their making */
    uint32_t n_steps, n_values;
    bool has_buckets;    /* values have memory assigned by bucket.h */
    uint32_t n_assigned; /* items after the steps: each sees that one of these lies there */
    uint32_t stream;
    struct frit_rank *ranks;  /* of the stream */
    struct bound_plan *bound; /* that this run leaves, NULL: none */
    bool borrowed;            /* runs for another device: may not borrow a third */
    const bool *there; /* by step: runs on the fallback device by choice; NULL: see route.h */
    bool stays_home;   /* no step does */
    /* See trial.h. */
    bool is_trial;       /* nothing is measured, and first candidates run unless one is named or a
                            block runs in parts; compiles are waited for */
    uint64_t zone_bytes; /* around new memory, filled like it with bytes of 1; 0: there are none */
    struct buffer **zones; /* memory with its zones, owned */
    uint32_t n_zones, zones_capacity;
    struct failure *first;
    struct frame_pending pending[FRAME_PENDING];
    uint32_t n_pending;

    struct cursor at;    /* what runs next */
    struct cursor begun; /* where the batch began */
    uint32_t n_log;      /* changes before the item at `at` */
    uint32_t single_to;  /* each item of the steps before this one is submitted by itself */
    bool refused;        /* the item at `refused_at` was refused at submit by itself; why */
    struct cursor refused_at;
    frit_err refusal;
};

/* Sets a mark in the note of the step at the cursor. */
static inline void frame_note_mark(struct frame *frame, enum run_mark mark)
{
    if (frame->notes)
        frame->notes[frame->at.step].marks |= (uint32_t)mark;
}
/* The note of the plan's step that runs; NULL: none is taken. */
static inline struct run_note *frame_note(struct frame *frame)
{
    if (frame->at.step >= frame->n_steps)
        return NULL;
    return frame->notes ? &frame->notes[frame->at.step] : frame->note;
}

void frame_step_at(const struct frame *frame, uint32_t step, struct frame_step *out);

/* Whether an item after the one at the cursor uses it, or a view of it. */
bool frame_is_used_later(const struct frame *frame, uint32_t value);
/* Whether the value has no use after the item at the cursor, and nobody sees it later. */
bool frame_dies(const struct frame *frame, uint32_t value);
/* Whether the owners of its buffer are only values of the frame that end with this item. */
bool frame_is_sole_owner(const struct frame *frame, uint32_t value);

/* Room for changes, so that those that follow cannot fail. */
frit_status frame_reserve(struct frame *frame, uint32_t changes, frit_err *err);
/* A buffer for something new: one that died before this item and since the last submit, or from the
 * pools; `reused` is for frame_add_made or frame_add_workspace, which must follow. */
frit_status frame_claim(struct frame *frame, uint64_t bytes, bool persistent, struct buffer **out,
                        uint32_t *reused, frit_err *err);
/* The buffer of a value that dies with this item, or (external) that nobody sees later; likewise.
 */
struct buffer *frame_inherit(struct frame *frame, uint32_t value, uint32_t *reused);

/* Changes after frame_reserve.  frame_add_made takes one owner over. */
void frame_add_made(struct frame *frame, uint32_t value, struct buffer *buffer, uint32_t reused);
void frame_add_workspace(struct frame *frame, struct buffer *buffer, uint32_t reused);
void frame_bury(struct frame *frame, uint32_t value); /* made ones with a buffer */
/* Adds a reference. */
void frame_fail(struct frame *frame, uint32_t value, struct failure *failure);

/* The item at the cursor is in the batch.  False if out of memory. */
bool frame_note_item(struct frame *frame);

/* A submit went through: what is dead goes back. */
void frame_commit(struct frame *frame);

#endif
