/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of a device for the copies of one thread to and from host memory of its own, beside the
 * queues of streams where the driver has more than one: it does not wait for what they have, and
 * they do not know of it.  So its owner
 * copies only what no command uses, and lets nobody use it before the copies have ended.  The
 * memory is pinned where the device has such a heap.  Threads: one at a time. */
#ifndef DEVICE_SIDE_QUEUE_H
#define DEVICE_SIDE_QUEUE_H

#include <frit/backend.h>
#include <frit/frit.h>

struct side_queue {
    frit_device *device;
    frit_queue *handle;  /* NULL: the driver has no more, and the first one is used */
    frit_memory *pinned; /* that `host` is the address of; NULL: it is malloc's */
    char *host;
    uint64_t capacity; /* bytes of it */
    uint64_t last;     /* what the last copy reaches */
};

void side_queue_open(struct side_queue *queue, frit_device *device);
/* Nothing is under way. */
void side_queue_close(struct side_queue *queue);

/* At least so much host memory, while nothing is under way. */
frit_status side_queue_reserve(struct side_queue *queue, uint64_t bytes, frit_err *err);

/* Between a device's memory and byte `at` of the host memory, in order.  *point is for
 * side_queue_wait. */
struct side_copy {
    frit_memory *memory;
    uint64_t offset, bytes; /* there */
    uint64_t at;
};
frit_status side_queue_read(struct side_queue *queue, const struct side_copy *copy, uint64_t *point,
                            frit_err *err);
frit_status side_queue_write(struct side_queue *queue, const struct side_copy *copy,
                             uint64_t *point, frit_err *err);
/* Copies up to there have ended; the failure of one of them. */
frit_status side_queue_wait(const struct side_queue *queue, uint64_t point, frit_err *err);
/* All copies have. */
frit_status side_queue_finish(const struct side_queue *queue, frit_err *err);

#endif
