/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a device's buffers that lie on its fallback device, alone or as well.
 *
 * An op that runs on the fallback device leaves its result there: the buffer at home has memory,
 * and its bytes come when something at home reads them.  An operand that went over stays there
 * until the buffer changes or ends.  So nothing crosses twice in one direction.  A buffer is away
 * only before its first use at home, so that fetching it can be no write that another thread sees:
 * two threads that fetch at once write the same bytes.
 *
 * Threads: any; no lock is held. */
#ifndef RUN_MIRROR_H
#define RUN_MIRROR_H

#include "run/carry.h"

struct stream;

/* An operand on its way to the fallback device. */
struct mirror_read {
    struct value value; /* at home */
    bool is_there;      /* nothing is carried */
    bool whole;         /* the copy will be the buffer's mirror */
    struct carry carry;
};

/* How many bytes mirror_start would carry. */
uint64_t mirror_distance(const struct value *value);
/* Starts to bring a value of the device over; its buffer has an owner until mirror_finish, which
 * must follow.  Several may be started before the first is finished. */
void mirror_start(frit_device *device, const struct value *value, struct mirror_read *read);
/* The value on the fallback device; `out` owns its buffer. */
frit_status mirror_finish(struct mirror_read *read, struct value *out, frit_err *err);

/* A value of the device whose bytes lie on the fallback device and stay there; `out` owns its
 * buffer. */
frit_status mirror_adopt(frit_device *device, const struct value *there, bool persistent,
                         struct value *out, frit_err *err);

/* Brings the bytes of a buffer home, if they are away. */
frit_status mirror_fetch(frit_device *device, struct buffer *buffer, frit_err *err);

/* If the value's bytes are away: the same value on the fallback device, pinned. */
bool mirror_pin(const struct value *value, struct value *there);
/* Why the bytes that are away are no good, a new reference; NULL: nothing is known. */
struct failure *mirror_failure(frit_device *device, const struct buffer *buffer);

/* For a sync: waits for the fallback device where its queue may be late, ... */
frit_status mirror_wait(frit_device *device, frit_err *err);
/* ... and then fails the stream's tensors whose bytes are away and no good. */
void mirror_find_failures(struct stream *stream);

#endif
