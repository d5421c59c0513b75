/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from and to the program. */
#ifndef RUN_TRANSFER_H
#define RUN_TRANSFER_H

#include <frit/frit.h>

#include "tensor/value.h"

struct buffer;
struct failure;
struct lent_bytes;

/* A new buffer with the dense elements at `data`; `value` comes with its type. */
frit_status transfer_in(frit_device *device, const void *data, bool persistent, struct value *value,
                        frit_err *err);

/* As transfer_in, with the memory itself where the device adopts it; FRIT_UNSUPPORTED where it does
 * not.  On failure `release` is not called. */
frit_status transfer_adopt(frit_device *device, const struct lent_bytes *lent, struct value *value,
                           frit_err *err);

/* Writes all bytes of a buffer that has memory. */
frit_status transfer_fill(frit_device *device, struct buffer *buffer, const void *data,
                          frit_err *err);

/* A write of a whole buffer that is new. */
struct transfer_write {
    struct buffer *buffer;
    const void *data;
};
/* As transfer_fill of each, through pinned memory where the device has it and there are several.
 * On failure none holds anything good. */
frit_status transfer_fill_all(frit_device *device, const struct transfer_write *writes, uint64_t n,
                              frit_err *err);

/* A read under way. */
struct transfer_read {
    frit_device *device;
    struct value value; /* pinned, or the dense copy */
    bool copied;
    uint64_t first, bytes; /* of the value's buffer; no bytes: nothing to copy */
    void *data;
    uint64_t at;             /* point, 0: nothing to wait for */
    struct failure *failure; /* why the bytes could not be copied, a reference; NULL: they are on
                                their way or there */
};

/* Makes ready to copy the elements of a pinned value, takes the pin over; transfer_finish must
 * follow.  What lies on the fallback device alone is read there. */
frit_status transfer_prepare(frit_device *device, const struct value *pinned, void *data,
                             struct transfer_read *read, frit_err *err);
/* Starts the copies of reads that were made ready, all zero: of one that was not.  Those of a
 * device with pinned memory go through that, and are there on return. */
void transfer_begin(struct transfer_read *reads, uint64_t n);
/* Both, for one. */
frit_status transfer_start(frit_device *device, const struct value *pinned, void *data,
                           struct transfer_read *read, frit_err *err);
/* Waits and gives everything back; `started` is what transfer_start or transfer_prepare returned.
 */
frit_status transfer_finish(struct transfer_read *read, frit_status started, frit_err *err);

/* The bytes of a buffer as the host sees them, once nothing is pending on the device; NULL where it
 * does not, or where work is not over when a submit returns. */
void *transfer_host_bytes(frit_device *device, const struct buffer *buffer);
/* The same by its address in memory of the device's kind (frit/extmem.h); 0 where it has none, or
 * nothing can be waited for. */
uint64_t transfer_device_address(frit_device *device, const struct buffer *buffer);

#endif
