/* SPDX-License-Identifier: Apache-2.0 */
/* Many transfers at once through pinned memory: a ring of a few slots in the device's PINNED heap.
 *
 * A slot is filled with the bytes of as many transfers as it holds, or with a part of a large one,
 * and is copied by one submit; while the device copies it, the host fills, or empties, the next.
 * Only on devices whose own memory the host does not reach and whose queue runs late: elsewhere
 * `write` and `read` are at least as good, and so they are for one transfer, which a driver stages
 * itself.
 *
 * The ring is allocated at its first use and given back by staging_trim.  Threads: any; one uses
 * the ring at a time, and others find it busy. */
#ifndef DEVICE_STAGING_H
#define DEVICE_STAGING_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/frit.h>

struct buffer;
struct failure;
struct staging;

/* The number of a heap of pinned memory that gives so many bytes at once; 0: there is none, as the
 * first heap is the device's own. */
uint32_t staging_heap(const frit_device_info *info, uint64_t bytes);

/* *out is NULL for a device that stages nothing. */
frit_status staging_create(frit_device *device, struct staging **out, frit_err *err);
/* The device is idle.  NULL does nothing. */
void staging_destroy(struct staging *staging);
/* Waits for the device's copies from the ring.  NULL does nothing. */
void staging_trim(struct staging *staging);

/* A range of a buffer, and the program's memory that it is copied from or to. */
struct staging_piece {
    struct buffer *buffer;
    uint64_t first, bytes; /* of the buffer; >= 1 */
    void *data;            /* `const` for staging_write */
    uint64_t at;           /* written: point that the last copy reaches */
    struct failure
        *failure; /* written by staging_read: why `data` is invalid, a reference; or NULL */
};

/* Takes the ring; false: the device has none, or another thread has it.  Then no piece is staged.
 */
bool staging_enter(struct staging *staging); /* NULL: false */
void staging_leave(struct staging *staging);

/* Between these two.  Fills the buffers, which are new; most copies may be pending on return.  On
 * failure the buffers hold nothing good. */
frit_status staging_write(struct staging *staging, struct staging_piece *pieces, uint64_t n,
                          frit_err *err);
/* Fills the program's memory and returns when that is done. */
frit_status staging_read(struct staging *staging, struct staging_piece *pieces, uint64_t n,
                         frit_err *err);

#endif
