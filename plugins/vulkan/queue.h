/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a device: its timeline semaphore, its rings of host memory, failures and the loss of
 * the device. */
#ifndef VULKAN_QUEUE_H
#define VULKAN_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

#include "api.h"
#include "batch.h"
#include "buffer.h"
#include "gather.h"
#include "gpu/launch_words.h"
#include "gpu/ring.h"

struct device;

enum {
    QUEUE_BATCHES = 32,
    QUEUE_SIGNALS = 32,     /* a power of two */
    PARAMS_BYTES = 1 << 22, /* of the parameter ring */
    STAGING_BYTES = 1 << 24 /* of the staging ring */
};

/* A failure of submits whose values were returned before; the slot `wait` reports it. */
struct queue_fault {
    uint64_t first, last; /* timeline values; 0: there is no fault */
    uint64_t cookie;      /* of the launch that begins the first batch that failed; 0: no launch */
    frit_err err;
};

/* The notification of the host that the device is lost. */
struct loss_notice {
    void (*on_lost)(void *ctx, const frit_err *why); /* from frit_open_params; may be NULL */
    void *ctx;
    frit_err why;
    pthread_t thread; /* calls `on_lost` */
    bool has_thread;
};

/* `lock` protects everything but `timeline`, whose value any thread may query and wait for. */
struct queue {
    pthread_mutex_t lock;
    bool is_open; /* `lock` is initialized */
    VkQueue handle;
    VkSemaphore timeline;
    uint64_t issued;                 /* last timeline value returned to the host */
    uint64_t submitted;              /* last timeline value that the device has to signal */
    uint64_t submitted_before;       /* by the submission before */
    uint64_t submitted_ns;           /* host time of the last submission */
    uint64_t signals[QUEUE_SIGNALS]; /* of the last submissions; that of the next one goes to */
    uint32_t next_signal;            /* this index */
    uint64_t reached;                /* last timeline value known to be reached */
    bool is_lost;
    struct loss_notice loss;
    struct queue_fault fault;
    struct gather gather;
    uint32_t next_batch; /* index of the batch to be used next, which is the oldest */
    struct batch batches[QUEUE_BATCHES];
    frit_memory staging, params; /* memory of the rings, mapped */
    struct ring staging_ring;    /* data of transfers */
    struct ring params_ring;     /* what commands read: argument blocks, patterns of fills */
    struct launch_words launch_words;
};

/* Initializes `device->queue`.  After a failure too the caller calls queue_close. */
frit_status queue_open(struct device *device, frit_err *err);
/* Waits until the device is idle, then frees everything.  The queue may never have been opened. */
void queue_close(struct device *device);

/* Waits until the timeline reaches `value`, which must have been submitted unless the timeout is 0.
 * Returns FRIT_TIMEOUT, or FRIT_DEVICE_LOST, after which the caller must call queue_set_lost.  The
 * lock may be held or not. */
frit_status queue_wait_value(struct device *device, uint64_t value, uint64_t timeout_ns,
                             frit_err *err);
/* The same for a thread that is in no hurry: it sleeps at once. */
frit_status queue_wait_sleeping(struct device *device, uint64_t value, uint64_t timeout_ns,
                                frit_err *err);
/* Waits until the timeline reaches `value`, without a timeout, then calls queue_poll.  Marks the
 * device as lost if it is.  Needs the lock. */
frit_status queue_wait_locked(struct device *device, uint64_t value, frit_err *err);
/* Queries the timeline, frees the spans that are no longer in use and copies the data of finished
 * reads to the host's memory.  Needs the lock. */
void queue_poll(struct device *device);
/* Returns a new timeline value that is reached already.  The device must be idle.  Needs the
 * lock. */
uint64_t queue_issue_reached(struct queue *queue);
/* Allocates bytes of one of the two rings, see ring_take.  Waits for submissions to free them;
 * FRIT_BUSY if open spans alone fill the ring.  Needs the lock. */
frit_status queue_reserve(struct device *device, struct ring *ring, uint64_t bytes, uint64_t align,
                          void *copy_to, uint64_t *offset, frit_err *err);

/* Writes the message of a lost device and returns FRIT_DEVICE_LOST. */
frit_status queue_fail_lost(const struct device *device, frit_err *err);
/* Adds a fault.  If there is one already, its range is extended. */
void queue_add_fault(struct queue *queue, const struct queue_fault *fault);
/* Marks the device as lost and notifies the host, once.  Values that were not reached never will
 * be; pending reads are dropped, and their memory may be freed.  Needs the lock. */
void queue_set_lost(struct device *device);

/* FRIT_INVALID with a message unless `queue` is NULL, the only queue. */
frit_status queue_check_handle(const struct device *device, const frit_queue *queue, frit_err *err);
/* FRIT_INVALID with a message for a point whose value was never issued.  Needs the lock. */
frit_status queue_check_waits(const struct device *device, const frit_point *waits, uint32_t n,
                              frit_err *err);

/* Slot `wait` of frit.backend/1. */
frit_status queue_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err);

#endif
