/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers.
 *
 * If the buffer is mapped and the device is idle, the host copies the data itself.  Otherwise the
 * data passes through the staging ring in chunks: the device copies one chunk while the host copies
 * the next.  The chunks of a read reach the host's memory when their spans of the ring are freed:
 * in a wait, or when another command needs space in the ring. */
#include "transfer.h"

#include <assert.h>
#include <string.h>

#include "batch.h"
#include "buffer.h"
#include "device.h"
#include "plugin.h"
#include "record.h"

enum {
    CHUNK_BYTES = STAGING_BYTES / 4,
    SMALL_BYTES = 1 << 16 /* of a write that may wait in the open batch (gather.h) */
};

static frit_status check_transfer(struct device *device, const frit_transfer *transfer,
                                  frit_err *err)
{
    frit_status status = queue_check_handle(device, transfer->queue, err);

    if (!status)
        status = queue_check_waits(device, transfer->waits, transfer->n_waits, err);
    return status ? status
                  : memory_check_range(&device->instance->plug, transfer->memory, transfer->offset,
                                       transfer->bytes, err);
}

/* ---- through the staging ring ---- */

/* Records the copy of a chunk of `bytes` at offset `at`, either from `from` or into `into`. */
static frit_status record_chunk(struct recorder *r, const frit_transfer *transfer, uint64_t at,
                                uint64_t bytes, const void *from, void *into, frit_err *err)
{
    const frit_memory *staging = &r->device->queue.staging, *buffer = transfer->memory;
    uint64_t offset;
    frit_status status = record_count(r, 0, err);

    if (!status)
        status = record_stage(r, bytes, into ? (char *)into + at : NULL, &offset, err);
    if (status)
        return status;
    if (into) {
        record_copy(r, buffer->handle, transfer->offset + at, staging->handle, offset, bytes);
    } else {
        memcpy(staging->mapped + offset, (const char *)from + at, bytes);
        record_copy(r, staging->handle, offset, buffer->handle, transfer->offset + at, bytes);
    }
    return FRIT_OK;
}

static frit_status copy_chunk(struct device *device, const frit_transfer *transfer, uint64_t at,
                              const void *from, void *into, uint64_t *value, frit_err *err)
{
    const uint64_t left = transfer->bytes - at;
    struct recorder r = {.device = device, .is_urgent = into || left > SMALL_BYTES};
    frit_err failure = {.struct_size = sizeof failure};
    frit_status status = record_begin(&r, err);

    assert(from || into);
    if (status)
        return status;
    status = record_chunk(&r, transfer, at, left < CHUNK_BYTES ? left : CHUNK_BYTES, from, into,
                          &failure);
    return record_end(&r, status, &failure, value, err);
}

/* Copies chunk by chunk, either from `from` or into `into`.  Releases the lock between chunks, so
 * that other threads do not wait for all of them.  If a read fails, nothing more is copied to
 * `into`. */
static frit_status copy_staged(struct device *device, const frit_transfer *transfer,
                               const void *from, void *into, uint64_t *value, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint64_t at = 0; at < transfer->bytes && !status; at += CHUNK_BYTES) {
        pthread_mutex_lock(&device->queue.lock);
        status = copy_chunk(device, transfer, at, from, into, value, err);
        if (status && into)
            ring_drop_copies(&device->queue.staging_ring, into, transfer->bytes);
        pthread_mutex_unlock(&device->queue.lock);
    }
    return status;
}

/* ---- by the host ---- */

/* Whether everything submitted has run.  Needs the lock. */
static bool is_idle(struct device *device)
{
    struct queue *queue = &device->queue;

    queue_poll(device);
    return queue->reached == queue->issued && !queue->is_lost;
}

/* Copies either from `from` or into `into` at once.  False: the buffer is not mapped or the device
 * is not idle. */
static bool copy_by_host(struct device *device, const frit_transfer *transfer, const void *from,
                         void *into, uint64_t *value)
{
    const frit_memory *buffer = transfer->memory;
    bool done = false;

    assert(from || into);
    if (!buffer->mapped)
        return false;
    pthread_mutex_lock(&device->queue.lock);
    if (is_idle(device)) {
        char *at = buffer->mapped + transfer->offset;

        memcpy(into ? into : at, into ? at : from, transfer->bytes);
        *value = queue_issue_reached(&device->queue);
        done = true;
    }
    pthread_mutex_unlock(&device->queue.lock);
    return done;
}

/* Checks a transfer, submits the open batch if the host is to read mapped memory, and sets
 * `pending` to the timeline value at which the device is idle; 0: it is idle already. */
static frit_status check_and_poll(struct device *device, const frit_transfer *transfer,
                                  bool is_read, uint64_t *pending, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = check_transfer(device, transfer, err);
    if (!status && is_read && transfer->memory->mapped)
        (void)gather_flush(device, NULL);
    *pending = is_idle(device) ? 0 : device->queue.submitted;
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}

static frit_status wait_for(struct device *device, uint64_t value, frit_err *err)
{
    frit_status status = queue_wait_value(device, value, UINT64_MAX, err);

    if (status == FRIT_DEVICE_LOST) {
        pthread_mutex_lock(&device->queue.lock);
        queue_set_lost(device);
        pthread_mutex_unlock(&device->queue.lock);
    }
    return status;
}

frit_status transfer_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                           frit_err *err)
{
    struct device *device = self;
    uint64_t pending;
    frit_status status = check_and_poll(device, to, false, &pending, err);

    if (status || copy_by_host(device, to, from, NULL, value))
        return status;
    return copy_staged(device, to, from, NULL, value, err);
}

/* Waits until the device is idle if the buffer is mapped: one copy by the host takes less time than
 * two through the staging ring. */
frit_status transfer_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                          frit_err *err)
{
    struct device *device = self;
    uint64_t pending;
    frit_status status = check_and_poll(device, from, true, &pending, err);

    if (!status && pending && from->memory->mapped)
        status = wait_for(device, pending, err);
    if (status || copy_by_host(device, from, NULL, into, value))
        return status;
    return copy_staged(device, from, NULL, into, value, err);
}
