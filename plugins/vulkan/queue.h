/* SPDX-License-Identifier: Apache-2.0 */
/* The queue. */
#ifndef VULKAN_QUEUE_H
#define VULKAN_QUEUE_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

#include "api.h"

struct batch;
struct device;
struct queue;
struct ring;

/* The whole queue of an opened device. */
frit_status queue_open(struct device *device, frit_err *err);
/* Waits for everything; also after a queue_open that failed, or none. */
void queue_close(struct device *device);
/* A batch to record into, after everything submitted; waits for one. */
frit_status batch_begin(struct device *device, struct batch **out, frit_err *err);
/* Orders what was recorded before what comes after. */
void batch_barrier(struct device *device, struct batch *batch);
/* The same in two steps, for a command buffer of the caller's: begins it, with these flags; ends
 * it; hands it over, any number of times. */
frit_status batch_open(struct device *device, struct batch *batch, VkCommandBufferUsageFlags flags,
                       frit_err *err);
frit_status batch_close(struct device *device, struct batch *batch, frit_err *err);
frit_status batch_submit(struct device *device, struct batch *batch, uint64_t *value,
                         frit_err *err);
/* Submits; open spans of both rings are free when its value is reached.  A batch that is not ended
 * was never begun. */
frit_status batch_end(struct device *device, struct batch *batch, uint64_t *value, frit_err *err);
/* Bytes of one of the two rings.  Waits for what is submitted to end; FRIT_BUSY where only what is
 * recorded holds them. */
frit_status queue_room(struct device *device, struct ring *ring, uint64_t bytes, uint64_t align,
                       void *into, uint64_t *offset, frit_err *err);
/* Waits until `value` is reached, without the lock or with it. */
frit_status queue_await(struct device *device, uint64_t value, uint64_t timeout_ns, frit_err *err);
/* The same under the lock, for room in the queue itself; notes a loss, and what is reached. */
frit_status queue_await_own(struct device *device, uint64_t value, frit_err *err);
/* Takes note of what is reached; reads that are done are copied to where they are wanted. */
void queue_refresh(struct device *device);
/* A value that is reached already; only when everything is. */
uint64_t queue_pass(struct queue *queue);
frit_status queue_lost(struct device *device, frit_err *err);
/* The device was found to be lost.  What is under way will never be told to have ended; it ends
 * here, so that what it uses can be given back.  Reads that have not arrived are wanted no more. */
void queue_lose(struct device *device);
/* FRIT_INVALID with a text for any queue but the first one, NULL. */
frit_status queue_check(const struct device *device, const frit_queue *queue, frit_err *err);
frit_status queue_check_waits(struct device *device, const frit_point *waits, uint32_t n,
                              frit_err *err);
frit_status queue_check_range(struct device *device, const frit_memory *memory, uint64_t offset,
                              uint64_t bytes, frit_err *err);
frit_status queue_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err);

#endif
