/* SPDX-License-Identifier: Apache-2.0 */
/* Collective rows, which the host runs itself between two submits: no driver claims them.
 *
 * Everything before the row in its plan is submitted.  The row begins an operation of the stream's
 * rank (operation.h), which runs beside what follows; its buffers are pending until it has ended
 * (device/pending.h), and the result is there then, or has failed. */
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
/* Whether the other ranks wait for it. */
static inline bool collective_is_awaited(uint32_t op)
{
    return collective_is(op) && op != FRIT_OP_sync_collective;
}

/* Of whichever row; 0 what it does not have. */
struct collective_attrs {
    uint32_t combine;
    int64_t group, root, ranks;
};
/* `record` NULL: all defaults. */
struct collective_attrs collective_attrs_of(uint32_t op, const void *record);

struct collective_call {
    frit_device *device;
    struct frit_rank *ranks; /* of the stream */
    uint32_t op;             /* 0: waits until `out` is not pending */
    uint32_t n_in;
    struct collective_attrs attrs;
    struct value *in;
    struct value out; /* dense; in the memory of an only operand, or not overlapping it.  Of
                         all_reduce_coalesced operands may lie in it at their places */
};

/* No lock is held, the baton is; nothing waits to be submitted.  FRIT_OK: the operation is begun,
 * or (sync_collective) all have ended. */
frit_status collective_begin(const struct collective_call *call, frit_err *err);
/* The row does not run, for lack of its operand or of memory: the other ranks must not wait. */
void collective_give_up(struct frit_rank *ranks, uint32_t op, int64_t group, frit_status status,
                        const char *why);

/* Outside of any lock: the op is not recorded into the stream, for this reason.  Runs what is
 * queued before it, then as above.  `record`: its attributes, NULL: all defaults. */
void collective_refuse(struct stream *stream, uint32_t op, const void *record,
                       const struct failure *why);

#endif
