/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors whose values are to be written into preassigned memory: a gradient into its part of
 * a bucket.
 *
 * Nothing waits: an op that is queued is written there when it runs, by its program
 * itself (FRIT_ARG_PREASSIGNED) where that is possible, else by a copy.  Until then each assignment
 * owns the tensor, so that the value is made and stored whoever releases it.  A queue without
 * assignments does nothing for them but to look at one pointer per plan.  Threads: any. */
#ifndef RUN_PREASSIGN_H
#define RUN_PREASSIGN_H

#include <frit/frit.h>

struct buffer;
struct explorer;
struct run_value;
struct segment;
struct slot;
struct stream;

/* The tensor's elements shall lie densely at byte `offset` of the buffer, which is on its device.
 * What was submitted before, and ops recorded before the tensor's own, still read there what was
 * there; the caller sees that nobody reads it later.  A tensor that waits in a queue lies in the
 * buffer itself once it is made, and holds it; of one that is there already the elements are
 * copied.
 * FRIT_INVALID: they do not fit there, or clash with what waits to be written there; a failed
 * tensor gives its failure. */
frit_status stream_preassign(frit_tensor *tensor, struct buffer *buffer, uint64_t offset,
                             frit_err *err);

/* ---- for the stream ---- */

/* One tensor that waits. */
struct assignment {
    struct assignment *next;
    frit_tensor *tensor; /* one owner */
    struct slot *slot;
    struct buffer *memory; /* the part of the buffer, one owner */
};

/* Inside the lock, when records were detached: takes off those that the records left behind, which
 * are `rest` now, do not make. */
struct assignment *preassign_detach(struct stream *stream, const struct segment *rest);
/* Inside the lock: marks the values of a run that have to be written into given memory. */
void preassign_bind(const struct assignment *list, const struct segment *segment,
                    const struct explorer *explorer, struct run_value *values);
/* Outside of it, when the run is over. */
void preassign_end(struct assignment *list);
/* The stream's tensors have ended. */
void preassign_forget(struct stream *stream);

#endif
