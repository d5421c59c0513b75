/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of a device for the transfers of one thread, beside the queues of streams: it does not
 * wait for what they have, and they do not know of it.  So its owner transfers only what no command
 * uses, and lets nobody use it before the transfers have ended.  Threads: one at a time. */
#ifndef DEVICE_SIDE_QUEUE_H
#define DEVICE_SIDE_QUEUE_H

#include <frit/backend.h>
#include <frit/frit.h>

struct side_queue {
    frit_device *device;
    frit_queue *handle; /* NULL: the driver has no more, and the first one is used */
    uint64_t last;      /* what the last transfer reaches */
};

void side_queue_open(struct side_queue *queue, frit_device *device);
/* Nothing is under way. */
void side_queue_close(struct side_queue *queue);

/* As the driver's slots, whose members queue and waits are filled in; `at` is for side_queue_wait.
 */
frit_status side_queue_read(struct side_queue *queue, frit_transfer *from, void *into, uint64_t *at,
                            frit_err *err);
frit_status side_queue_write(struct side_queue *queue, frit_transfer *to, const void *from,
                             uint64_t *at, frit_err *err);
/* Transfers up to `at` have ended; the failure of one of them. */
frit_status side_queue_wait(const struct side_queue *queue, uint64_t at, frit_err *err);
/* All transfers have ended. */
frit_status side_queue_finish(const struct side_queue *queue, frit_err *err);

#endif
