/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: a stream of the runtime, a timeline of events, and rings of memory.
 *
 * Every value of the timeline is an event that was recorded after the work that reaches it.  A
 * queue has a fixed number of events, which it uses in turn.
 *
 * Locks: never two queues' locks at once; `progress` has a lock of its own, which is taken last. */
#ifndef HIP_QUEUE_H
#define HIP_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

#include "gpu/launch_words.h"
#include "gpu/ring.h"
#include "util/progress.h"

#include "api.h"
#include "buffer.h"

struct device;

enum {
    QUEUE_EVENTS = 64,
    PARAMS_BYTES = 1 << 22, /* of the parameter ring */
    STAGING_BYTES = 1 << 24 /* of the staging ring */
};

/* `lock` protects everything but `progress`, which has its own. */
struct frit_queue {
    struct device *device;
    pthread_mutex_t lock;
    gpu_stream stream;
    bool stream_is_adopted;         /* the application's */
    uint64_t issued;                /* last value that an event was recorded for */
    uint64_t reached;               /* last value known to be reached */
    gpu_event events[QUEUE_EVENTS]; /* of value v: events[v % QUEUE_EVENTS] */
    struct progress progress;
    frit_memory staging;       /* pinned memory of the staging ring */
    struct ring staging_ring;  /* data of transfers */
    frit_memory params;        /* pinned memory of the parameter ring */
    frit_memory device_params; /* device memory at the same offsets */
    struct ring params_ring;   /* argument blocks that do not fit into a kernel's parameters */
    struct launch_words buffer;
};

/* All functions but the slots need the device to be entered. */

/* Opens the host's queue NULL, on a stream of the application unless `adopted` is NULL. */
frit_status queue_open_first(struct device *device, gpu_stream adopted, frit_err *err);
/* Waits until the queue is idle, then frees it. */
void queue_close(struct frit_queue *queue);
/* After the loss of the device: what is not reached never will be, and pending reads are dropped.
 */
void queue_lose(struct frit_queue *queue, const frit_err *why);

/* The queue of a handle.  FRIT_INVALID with a message for one that the device does not have. */
frit_status queue_find(struct device *device, frit_queue *handle, frit_queue **out, frit_err *err);
/* Makes the queue wait for points of this and other queues.  FRIT_INVALID with a message for a
 * point that was never issued.  Without the lock. */
frit_status queue_add_waits(struct frit_queue *queue, const frit_point *waits, uint32_t n,
                            frit_err *err);

/* The rest needs the lock. */

/* Ends the work of a value: records its event and seals the rings' open spans.  `fault` may be NULL
 * and is what failed on the way.  On failure the stream has ended what was enqueued, since nobody
 * could wait for it. */
frit_status queue_signal(struct frit_queue *queue, const struct fault *fault, uint64_t *value,
                         frit_err *err);
/* Queries events, frees spans and copies the data of finished reads to the host's memory. */
void queue_poll(struct frit_queue *queue);
/* Allocates bytes of one of the two rings, see ring_take.  Waits for the device to free them;
 * FRIT_BUSY with a message if open spans alone fill the ring. */
frit_status queue_reserve(struct frit_queue *queue, struct ring *ring, uint64_t bytes,
                          uint64_t align, void *copy_to, uint64_t *offset, frit_err *err);

/* Bytes that the host writes and kernels read. */
struct queue_block {
    void *host;       /* where to write them */
    uint64_t address; /* where kernels read them */
    uint64_t bytes;
};

frit_status queue_reserve_block(struct frit_queue *queue, uint64_t bytes, struct queue_block *out,
                                frit_err *err);
/* Enqueues the copy of a block that is written. */
frit_status queue_send_block(struct frit_queue *queue, const struct queue_block *block,
                             frit_err *err);

/* Slots of frit.backend/1. */
frit_status queue_create(void *self, const frit_queue_desc *desc, frit_queue **out, frit_err *err);
void queue_destroy(void *self, frit_queue *queue);
frit_status queue_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err);

#endif
