/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors: buffers on the fallback device with the bytes of buffers of a device (`home`).
 *
 * An op that runs on the fallback device leaves its result there: the buffer at home has memory but
 * is *away*, and its bytes are fetched when something at home reads them.  An operand that was
 * copied to the fallback device stays there until the buffer at home is written or freed.  So
 * nothing is copied twice in one direction.  A buffer can be away only before its first use at
 * home, so fetching it races with no use: two threads that fetch it at once write the same bytes.
 *
 * Threads: any; the caller holds no lock. */
#ifndef RUN_MIRROR_H
#define RUN_MIRROR_H

#include "run/carry.h"

struct stream;

/* An operand on its way to the fallback device. */
struct mirror_read {
    struct value value; /* at home */
    bool is_there;      /* the buffer has a mirror: nothing is copied */
    bool whole_buffer;  /* all of the buffer is copied, and the copy becomes its mirror */
    struct carry carry;
};

/* Starts to copy a value of the device to the fallback device; its buffer has an owner until
 * mirror_finish, which must follow.  Several may be started before the first is finished. */
void mirror_start(frit_device *device, const struct value *value, struct mirror_read *read);
/* The value on the fallback device; `out` owns its buffer. */
frit_status mirror_finish(struct mirror_read *read, struct value *out, frit_err *err);

/* A value of the device for one that lies on the fallback device, whose bytes stay there if it is
 * dense; `out` owns its buffer. */
frit_status mirror_adopt(frit_device *device, const struct value *there, bool persistent,
                         struct value *out, frit_err *err);

/* Copies the bytes of a buffer home, if it is away. */
frit_status mirror_fetch(frit_device *device, struct buffer *buffer, frit_err *err);

/* If the value's buffer is away: true, and in `there` the same value on the fallback device, with
 * its buffer pinned. */
bool mirror_pin(const struct value *value, struct value *there);
/* Why the bytes of a buffer that is away are invalid, a new reference; NULL: no failure is known,
 * or it is not away. */
struct failure *mirror_failure(frit_device *device, const struct buffer *buffer);

/* ---- for a sync; both do nothing if the fallback device runs its commands inside submit ---- */

/* Waits for the fallback device. */
frit_status mirror_wait(frit_device *device, frit_err *err);
/* After mirror_wait: fails the stream's tensors whose buffers are away with invalid bytes. */
void mirror_fail_tensors(struct stream *stream);

#endif
