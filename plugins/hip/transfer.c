/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers pass through the staging ring in chunks: the device copies one chunk while the host
 * copies the next.  The chunks of a read reach the host's memory when their spans of the ring are
 * freed: in a wait, or when another command needs space in the ring. */
#include "transfer.h"

#include <string.h>

#include "device.h"
#include "plugin.h"
#include "scope.h"

enum { CHUNK_BYTES = STAGING_BYTES / 4, CHUNK_ALIGN = 64 };

/* Enqueues the copy of the chunk at offset `at`, either from `from` or into `into`.  Needs the
 * lock. */
static frit_status copy_chunk(struct frit_queue *queue, const frit_transfer *transfer, uint64_t at,
                              const void *from, void *into, uint64_t *value, frit_err *err)
{
    const struct api *api = queue->device->api;
    const uint64_t left = transfer->bytes - at, bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    const uint64_t address = transfer->memory->address + transfer->offset + at;
    char *staging;
    uint64_t offset;
    gpu_result result;
    frit_status status = queue_reserve(queue, &queue->staging_ring, bytes, CHUNK_ALIGN,
                                       into ? (char *)into + at : NULL, &offset, err);

    if (status)
        return status;
    staging = queue->staging.mapped + offset;
    if (from)
        memcpy(staging, (const char *)from + at, bytes);
    result = from ? api->MemcpyHtoDAsync(address, staging, bytes, queue->stream)
                  : api->MemcpyDtoHAsync(staging, address, bytes, queue->stream);
    if (result) {
        ring_cancel(&queue->staging_ring);
        return device_fail(queue->device, result, "copying", err);
    }
    return queue_signal(queue, NULL, value, err);
}

/* Releases the lock between chunks, so that other threads do not wait for all of them.  If a read
 * fails, nothing more is copied to `into`. */
static frit_status copy_all(struct frit_queue *queue, const frit_transfer *transfer,
                            const void *from, void *into, uint64_t *value, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint64_t at = 0; at < transfer->bytes && !status; at += CHUNK_BYTES) {
        pthread_mutex_lock(&queue->lock);
        queue_poll(queue);
        status = device_check(queue->device, err);
        if (!status)
            status = copy_chunk(queue, transfer, at, from, into, value, err);
        if (status && into)
            ring_drop_copies(&queue->staging_ring, into, transfer->bytes);
        pthread_mutex_unlock(&queue->lock);
    }
    return status;
}

static frit_status transfer_any(struct device *device, const frit_transfer *transfer,
                                const void *from, void *into, uint64_t *value, frit_err *err)
{
    struct scope scope;
    frit_queue *queue;
    frit_status status = queue_find(device, transfer->queue, &queue, err);

    if (!status)
        status = memory_check_range(&device->instance->plug, transfer->memory, transfer->offset,
                                    transfer->bytes, err);
    if (!status)
        status = scope_enter(device, &scope, err);
    if (status)
        return status;
    status = queue_add_waits(queue, transfer->waits, transfer->n_waits, err);
    if (!status)
        status = copy_all(queue, transfer, from, into, value, err);
    scope_leave(device, &scope);
    device_settle(device);
    return status;
}

frit_status transfer_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                           frit_err *err)
{
    return transfer_any(self, to, from, NULL, value, err);
}

frit_status transfer_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                          frit_err *err)
{
    return transfer_any(self, from, NULL, into, value, err);
}
