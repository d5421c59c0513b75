/* SPDX-License-Identifier: Apache-2.0 */
/* The open batch: commands of several submits that go to the device together.  All functions need
 * the queue's lock. */
#ifndef VULKAN_GATHER_H
#define VULKAN_GATHER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct batch;
struct device;

enum {
    /* Of the open batch, after which it is submitted; what one more submission costs the device is
     * then less than a twentieth of what short kernels take. */
    GATHER_COMMANDS = 64
};

struct gather {
    struct batch *batch; /* recorded and not submitted; NULL: none */
    uint64_t first;      /* timeline value of its first submit; that of the last is `issued` */
    uint64_t cookie;     /* of the launch that begins the batch; 0: no launch */
    pthread_t thread;    /* submits the batch when the device is about to be idle */
    pthread_cond_t changed;
    bool has_thread, is_closing;
};

/* Initializes `device->queue.gather`. */
frit_status gather_open(struct device *device, frit_err *err);
/* Submits the open batch and ends the thread.  The device may be lost. */
void gather_close(struct device *device);

/* Whether the commands of `batch` may stay in an open batch: it is not full, and the
 * device has work until the next submission comes.  `batch` may be NULL. */
bool gather_may_wait(struct device *device, const struct batch *batch);
/* Leaves a batch of batch_acquire, or the open batch, open after the commands of a submit.  Returns
 * the timeline value of the submit. */
uint64_t gather_keep(struct device *device, struct batch *batch, uint64_t cookie);
/* Submits the open batch, if there is one.  A failure becomes a fault of its submits, whose values
 * are reached then; it is returned too. */
frit_status gather_flush(struct device *device, frit_err *err);
/* Submits the open batch unless the device has enough work. */
void gather_poll(struct device *device);

#endif
