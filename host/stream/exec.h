/* SPDX-License-Identifier: Apache-2.0 */
/* Running one recorded op: as a change of layout, as the driver's own program, or as the core ops
 * that a composite row stands for. */
#ifndef STREAM_EXEC_H
#define STREAM_EXEC_H

#include "stream/stream.h"

/* An operand with its value at hand; tensors are pinned by whoever made this. */
struct exec_input {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t dtype; /* SCALAR: type it is used as */
    frit_scalar scalar;
    struct value value;
};

/* Borrowed.  `out` values come with their types (FRIT_NO_DTYPE: not wanted) and leave with a buffer
 * that the caller owns, or all without one on failure. */
struct exec_call {
    frit_device *device;
    uint32_t op;
    uint32_t n_in;
    uint32_t n_out;
    bool persistent;
    const void *attrs;
    const struct exec_input *in;
    struct value *out;
    const int64_t *out_strides; /* of the only output; NULL: dense */
    uint64_t seed, counter;
};

/* Runs the records in order, sets their outputs ready or failed, and gives their uses back. Records
 * whose outputs nobody can see any more are dropped, last first, so that what only they needed goes
 * too. */
void exec_queue(struct stream *stream, const struct segment_queue *queue);
/* Gives a record's uses back without running it; its outputs stay pending. */
void exec_drop(struct op_record *record);

frit_status exec_call(const struct exec_call *call, frit_err *err);
/* A densely stored copy of a pinned value; `out` owns its buffer. */
frit_status exec_dense(frit_device *device, const struct value *value, struct value *out,
                       frit_err *err);
/* The same under the given strides. */
frit_status exec_relayout(frit_device *device, const struct value *value, const int64_t *strides,
                          struct value *out, frit_err *err);
/* Launches the driver's program for a call that it claims; in launch.c. */
frit_status launch_run(const struct exec_call *call, const frit_program *program, frit_err *err);

#endif
