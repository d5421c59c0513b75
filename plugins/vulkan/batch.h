/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: command buffers that are recorded and submitted to the queue.  All functions but
 * batch_create_pool and batch_create need the queue's lock. */
#ifndef VULKAN_BATCH_H
#define VULKAN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "api.h"

struct device;
struct timestamps;

struct batch {
    VkCommandBuffer cmds;
    VkCommandPool pool;            /* that `cmds` is allocated from, if it has one of its own */
    uint64_t value;                /* timeline value of the last submission; 0: never submitted */
    uint32_t n_cmds;               /* recorded since batch_begin */
    bool needs_barrier;            /* there are commands after the last barrier */
    struct timestamps *timestamps; /* NULL: no timestamp was ever recorded; owned */
};

/* Creates a command pool for the device's queue family. */
frit_status batch_create_pool(struct device *device, VkCommandPoolCreateFlags flags,
                              VkCommandPool *out, frit_err *err);
/* Allocates the command buffer of a batch from a pool. */
frit_status batch_create(struct device *device, VkCommandPool pool, struct batch *batch,
                         frit_err *err);

/* Begins recording; the commands will run after everything that was submitted before them. */
frit_status batch_begin(struct device *device, struct batch *batch, VkCommandBufferUsageFlags flags,
                        frit_err *err);
/* Orders everything recorded so far before everything recorded later. */
void batch_barrier(struct device *device, struct batch *batch);
/* Ends recording. */
frit_status batch_end(struct device *device, struct batch *batch, frit_err *err);
/* Submits a batch after batch_end, as often as its usage flags allow.  The device signals `value`,
 * which is `issued` or the next one, when the batch has run. */
frit_status batch_submit(struct device *device, struct batch *batch, uint64_t value, frit_err *err);

/* Submits the open batch (gather.h), then begins the oldest batch of the queue's own, after waiting
 * until the device has run it, for a single submission.  Whatever a batch left open in the queue's
 * rings is freed, so a caller that fails later just drops the batch. */
frit_status batch_acquire(struct device *device, struct batch **out, frit_err *err);
/* Ends and submits a batch of batch_acquire, see batch_submit.  Open spans of the queue's rings are
 * freed when `value` is reached, or at once after a failure. */
frit_status batch_flush(struct device *device, struct batch *batch, uint64_t value, frit_err *err);

#endif
