/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that a collective operation uses: the operation runs on a thread of its own, beside the
 * stream that began it, and whoever needs such a buffer waits until it has ended.
 *
 * From pending_begin to pending_end the buffer is pinned, so that its memory serves nobody else.  A
 * part of a buffer counts as the whole.  Threads: any. */
#ifndef DEVICE_PENDING_H
#define DEVICE_PENDING_H

#include <frit/status.h>

struct buffer;

struct pending_ends; /* of operations on buffers of one device */

frit_status pending_create(struct pending_ends **out, frit_err *err);
void pending_destroy(struct pending_ends *ends); /* NULL does nothing */

/* An operation uses the buffer. */
void pending_begin(struct buffer *buffer);
/* What it wrote is there, or the buffer has its failure. */
void pending_end(struct pending_ends *ends, struct buffer *buffer);
/* Returns when no operation uses the buffer (NULL: at once).  No lock is held. */
void pending_wait(struct pending_ends *ends, const struct buffer *buffer);

#endif
