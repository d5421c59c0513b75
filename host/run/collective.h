/* SPDX-License-Identifier: Apache-2.0 */
/* Collective rows, which the host runs itself between two submits: no driver claims them.
 *
 * Everything before the row in its plan is submitted, and the device has made its operand.  The
 * operation works on the device's memory where the host sees it, else on a copy in host memory.
 * The result is there when the row ends, so that what follows is as after any other op. */
#ifndef RUN_COLLECTIVE_H
#define RUN_COLLECTIVE_H

#include <frit/frit.h>

#include "graph/op.h"
#include "tensor/value.h"

struct buffer;
struct failure;
struct frit_rank;
struct stream;
struct value;

static inline bool collective_is(uint32_t op)
{
    return op_row(op)->cls == FRIT_CLASS_COLLECTIVE;
}

struct collective_call {
    frit_device *device;
    struct frit_rank *ranks; /* of the stream */
    uint32_t op;
    frit_attrs_collective attrs;
    struct value in;    /* these two: of all_reduce */
    struct buffer *out; /* dense */
};

/* No lock is held, the baton is; nothing waits to be submitted. */
frit_status collective_run(const struct collective_call *call, frit_err *err);
/* The row does not run, for lack of its operand or of memory: the other ranks must not wait.
 * `attrs` NULL: all defaults. */
void collective_give_up(struct frit_rank *ranks, const frit_attrs_collective *attrs,
                        frit_status status, const char *why);

/* Outside of any lock: an all_reduce is not recorded into the stream, for this reason.  Runs what
 * is queued before it, then as above.  `attrs` NULL: all defaults. */
void collective_refuse(struct stream *stream, const frit_attrs_collective *attrs,
                       const struct failure *why);

#endif
