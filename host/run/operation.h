/* SPDX-License-Identifier: Apache-2.0 */
/* One collective operation of a rank, from the row that begins it to its end on the rank's thread.
 *
 * Its buffers are pending meanwhile (device/pending.h).  The operation waits for what was submitted
 * before it, gives the engine the device's memory where the host sees it, else pieces of a copy in
 * host memory, and leaves the result, or the failure, in the result's buffer. */
#ifndef RUN_OPERATION_H
#define RUN_OPERATION_H

#include <stdbool.h>

#include <frit/collective.h>
#include <frit/frit.h>

#include "memory/point.h"

struct buffer;
struct failure;
struct frit_rank;

enum { OPERATION_WHAT = 256 };

/* Where dense elements are. */
struct operation_bytes {
    struct buffer *buffer;
    uint64_t first, bytes;
};

struct operation {
    struct operation *next;
    frit_device *device;          /* NULL: it ends the group, or is a barrier */
    uint32_t row;                 /* FRIT_OP_*, 0: a barrier */
    uint32_t kind, combine, root; /* FRIT_COLLECTIVE_* and of it */
    uint32_t dtype;
    uint64_t count;                    /* elements of the shorter side */
    struct operation_bytes from, into; /* the same, or they do not overlap */
    struct buffer *copy;               /* that `from` lies in, owned; NULL: it is the caller's */
    struct points after;               /* set by operation_start */
    struct failure *failure;           /* without a device: why it cannot begin, a reference */
    uint64_t value;                    /* that the engine reaches at its end, 0: none */
    uint64_t begun_ns;                 /* see timeline_begin */
    bool has_failed;
    char note[FRIT_COLLECTIVE_NOTE]; /* what it is for, see rank_describe */
    char what[OPERATION_WHAT];
    uint32_t n_sources;
    struct buffer *sources[]; /* whose failures are the operand's */
};

/* With room for sources; the caller fills the rest.  NULL: out of memory. */
struct operation *operation_create(uint32_t n_sources);
/* The caller's commands on the buffers are submitted. */
void operation_start(struct operation *operation);
/* Whether operation_begin waits for nothing and ends nothing, as far as is known.  On the rank's
 * thread, like the next two. */
bool operation_is_ready(const struct operation *operation);
/* Hands it to the engine. */
void operation_begin(struct operation *operation, struct frit_rank *rank);
/* Waits for the engine: the result is there, or failed. */
void operation_finish(struct operation *operation, struct frit_rank *rank);
/* Ends and frees it; its buffers are not pending any more if it was started. */
void operation_end(struct operation *operation);

#endif
