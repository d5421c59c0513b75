/* SPDX-License-Identifier: Apache-2.0 */
/* Data in and out.
 *
 * Where the host reaches device memory, and the queue has nothing to do, data is copied in place.
 * Otherwise it goes through the staging ring in chunks: the device copies while the host fills, or
 * empties, the next one.  A read is filled in when its copy has arrived and somebody waits, or
 * wants room in the ring. */
#include "transfer.h"

#include <assert.h>
#include <string.h>

#include "driver.h"
#include "queue.h"

enum { CHUNK_BYTES = STAGING_BYTES / 4, CHUNK_ALIGN = 64 };

static frit_status check(struct device *device, const frit_transfer *transfer, frit_err *err)
{
    frit_status status = queue_check(device, transfer->queue, err);

    if (!status)
        status = queue_check_waits(device, transfer->waits, transfer->n_waits, err);
    return status ? status
                  : queue_check_range(device, transfer->memory, transfer->offset, transfer->bytes,
                                      err);
}

/* ---- through the ring ---- */

/* One chunk in a submission of its own, from `from` or else into `into`. */
static frit_status chunk(struct device *device, const frit_transfer *transfer, uint64_t at,
                         const void *from, void *into, uint64_t *value, frit_err *err)
{
    struct queue *queue = &device->queue;
    const frit_memory *buffer = transfer->memory;
    uint64_t left = transfer->bytes - at, bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES, offset;
    VkBufferCopy region = {.srcOffset = transfer->offset + at, .size = bytes};
    struct batch *batch;
    frit_status status = batch_begin(device, &batch, err);

    assert(from || into);
    if (!status)
        status = queue_room(device, &queue->staging_ring, bytes, CHUNK_ALIGN,
                            into ? (char *)into + at : NULL, &offset, err);
    if (status)
        return status;
    if (into) {
        region.dstOffset = offset;
        device->api.CmdCopyBuffer(batch->cmds, buffer->handle, queue->staging.handle, 1, &region);
    } else {
        memcpy(queue->staging.mapped + offset, (const char *)from + at, bytes);
        region.dstOffset = region.srcOffset;
        region.srcOffset = offset;
        device->api.CmdCopyBuffer(batch->cmds, queue->staging.handle, buffer->handle, 1, &region);
    }
    return batch_end(device, batch, value, err);
}

/* The lock is free between chunks, so that others need not wait for all of them.  A read that fails
 * half way wants nothing more. */
static frit_status stage(struct device *device, const frit_transfer *transfer, const void *from,
                         void *into, uint64_t *value, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint64_t at = 0; at < transfer->bytes && !status; at += CHUNK_BYTES) {
        pthread_mutex_lock(&device->queue.lock);
        status = chunk(device, transfer, at, from, into, value, err);
        if (status && into)
            ring_forget(&device->queue.staging_ring, into, transfer->bytes);
        pthread_mutex_unlock(&device->queue.lock);
    }
    return status;
}

/* ---- in place ---- */

/* Under the lock: whether nothing is under way. */
static bool idle(struct device *device)
{
    struct queue *queue = &device->queue;

    queue_refresh(device);
    return queue->done == queue->issued && !queue->lost;
}

/* Copies at once, if the memory is mapped and nothing is under way: from `from` or into `into`. */
static bool pass(struct device *device, const frit_transfer *transfer, const void *from, void *into,
                 uint64_t *value)
{
    const frit_memory *buffer = transfer->memory;
    bool done = false;

    assert(from || into);
    if (!buffer->mapped)
        return false;
    pthread_mutex_lock(&device->queue.lock);
    if (idle(device)) {
        char *at = buffer->mapped + transfer->offset;

        memcpy(into ? into : at, into ? at : from, transfer->bytes);
        *value = queue_pass(&device->queue);
        done = true;
    }
    pthread_mutex_unlock(&device->queue.lock);
    return done;
}

/* `under_way`: a value still to be reached, 0 if there is none. */
static frit_status lock_and_check(struct device *device, const frit_transfer *transfer,
                                  uint64_t *under_way, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = check(device, transfer, err);
    *under_way = idle(device) ? 0 : device->queue.submitted;
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}

static frit_status await(struct device *device, uint64_t value, frit_err *err)
{
    frit_status status = queue_await(device, value, UINT64_MAX, err);

    if (status == FRIT_DEVICE_LOST) {
        pthread_mutex_lock(&device->queue.lock);
        queue_lose(device);
        pthread_mutex_unlock(&device->queue.lock);
    }
    return status;
}

frit_status transfer_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                           frit_err *err)
{
    struct device *device = self;
    uint64_t under_way;
    frit_status status = lock_and_check(device, to, &under_way, err);

    if (status || pass(device, to, from, NULL, value))
        return status;
    return stage(device, to, from, NULL, value, err);
}

/* Mapped memory is waited for: one copy by the host ends sooner than one by the device and another
 * one. */
frit_status transfer_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                          frit_err *err)
{
    struct device *device = self;
    uint64_t under_way;
    frit_status status = lock_and_check(device, from, &under_way, err);

    if (!status && under_way && from->memory->mapped)
        status = await(device, under_way, err);
    if (status || pass(device, from, NULL, into, value))
        return status;
    return stage(device, from, NULL, into, value, err);
}
