/* SPDX-License-Identifier: Apache-2.0 */
#include "device/side_queue.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "device/device.h"
#include "device/queue.h"
#include "device/staging.h"
#include "device/wait.h"

/* ---- life ---- */

void side_queue_open(struct side_queue *queue, frit_device *device)
{
    const frit_queue_desc desc = {.struct_size = sizeof(desc), .kind = FRIT_QUEUE_TRANSFER};
    frit_err err = ERR_INIT;
    frit_status st;

    *queue = (struct side_queue){.device = device};
    if (!device->backend->queue_create || device->info->caps & FRIT_CAP_INLINE_QUEUE)
        return;
    st = fail_from(&err, device->backend->queue_create(device->self, &desc, &queue->handle, &err),
                   "queue_create");
    if (st && st != FRIT_UNSUPPORTED)
        log_write(FRIT_LOG_WARN, "stream", "%s: no queue for transfers: %s", device->name,
                  err.text);
}

static void free_memory(struct side_queue *queue)
{
    if (queue->pinned)
        queue->device->backend->free(queue->device->self, queue->pinned);
    else
        free(queue->host);
    queue->pinned = NULL;
    queue->host = NULL;
    queue->capacity = 0;
}

void side_queue_close(struct side_queue *queue)
{
    if (!queue->device)
        return;
    free_memory(queue);
    if (queue->handle)
        queue->device->backend->queue_destroy(queue->device->self, queue->handle);
    queue->handle = NULL;
}

/* ---- host memory ---- */

static void alloc_pinned(struct side_queue *queue, uint64_t bytes)
{
    const frit_backend *backend = queue->device->backend;
    const frit_alloc_desc desc = {.struct_size = sizeof(desc),
                                  .heap = staging_heap(queue->device->info, bytes),
                                  .bytes = bytes,
                                  .align = queue->device->info->align_bytes};
    frit_allocation got = {.struct_size = sizeof(got)};
    frit_err err = ERR_INIT;

    if (!queue->handle || !desc.heap)
        return;
    if (fail_from(&err, backend->alloc(queue->device->self, &desc, &got, &err), "alloc")) {
        log_write(FRIT_LOG_INFO, "memory", "%s: no pinned memory: %s", queue->device->name,
                  err.text);
    } else if (!got.host_pointer) {
        backend->free(queue->device->self, got.memory);
    } else {
        queue->pinned = got.memory;
        queue->host = got.host_pointer;
    }
}

frit_status side_queue_reserve(struct side_queue *queue, uint64_t bytes, frit_err *err)
{
    if (bytes <= queue->capacity)
        return FRIT_OK;
    free_memory(queue);
    alloc_pinned(queue, bytes);
    if (!queue->host)
        queue->host = malloc(bytes);
    if (!queue->host)
        return fail_memory(err, bytes);
    queue->capacity = bytes;
    return FRIT_OK;
}

/* ---- copies ---- */

static frit_status submit(struct side_queue *queue, const frit_cmd *cmd, uint64_t *point,
                          frit_err *err)
{
    const frit_backend *backend = queue->device->backend;

    return fail_from(err,
                     backend->submit(queue->device->self, queue->handle, cmd, 1, sizeof(*cmd), NULL,
                                     0, point, err),
                     "submit");
}

/* By a command between the device's memory and pinned memory. */
static frit_status copy_pinned(struct side_queue *queue, const struct side_copy *copy, bool reads,
                               uint64_t *point, frit_err *err)
{
    const frit_cmd cmd = {.struct_size = sizeof(cmd),
                          .kind = FRIT_CMD_COPY,
                          .src = reads ? copy->memory : queue->pinned,
                          .src_offset = reads ? copy->offset : copy->at,
                          .dst = reads ? queue->pinned : copy->memory,
                          .dst_offset = reads ? copy->at : copy->offset,
                          .bytes = copy->bytes};

    return submit(queue, &cmd, point, err);
}

/* By the driver's transfers, on this queue or (it has none) on the device's first one. */
static frit_status transfer(struct side_queue *queue, const struct side_copy *copy, bool reads,
                            uint64_t *point, frit_err *err)
{
    const frit_backend *backend = queue->device->backend;
    frit_transfer to = {.struct_size = sizeof(to),
                        .memory = copy->memory,
                        .offset = copy->offset,
                        .bytes = copy->bytes,
                        .queue = queue->handle};
    const struct points none = {0};
    char *host = queue->host + copy->at;

    if (!queue->handle)
        return reads ? device_read(queue->device, 0, &to, host, &none, point, err)
                     : device_write(queue->device, 0, &to, host, &none, point, err);
    return reads ? fail_from(err, backend->read(queue->device->self, &to, host, point, err), "read")
                 : fail_from(err, backend->write(queue->device->self, &to, host, point, err),
                             "write");
}

/* FRIT_UNSUPPORTED would say that every rank finds the operation so. */
static frit_status copy_any(struct side_queue *queue, const struct side_copy *copy, bool reads,
                            uint64_t *point, frit_err *err)
{
    const frit_status st = queue->pinned ? copy_pinned(queue, copy, reads, point, err)
                                         : transfer(queue, copy, reads, point, err);

    if (!st)
        queue->last = *point;
    return st == FRIT_UNSUPPORTED ? FRIT_INTERNAL : st;
}

frit_status side_queue_read(struct side_queue *queue, const struct side_copy *copy, uint64_t *point,
                            frit_err *err)
{
    return copy_any(queue, copy, true, point, err);
}

frit_status side_queue_write(struct side_queue *queue, const struct side_copy *copy,
                             uint64_t *point, frit_err *err)
{
    return copy_any(queue, copy, false, point, err);
}

static frit_status wait_for(const struct side_queue *queue, uint64_t value, frit_err *err)
{
    const frit_backend *backend = queue->device->backend;
    frit_failure failure = {.struct_size = sizeof(failure)};
    frit_err own = ERR_INIT;
    frit_status st;

    do {
        st = backend->wait(queue->device->self, queue->handle, value, UINT64_MAX, &failure, &own);
    } while (st == FRIT_TIMEOUT);
    st = fail_from(&own, st, "wait");
    if (!st)
        st = fail_from(&own, failure.status, "a copy");
    return st ? fail(err, st, "%s", own.text) : FRIT_OK;
}

frit_status side_queue_wait(const struct side_queue *queue, uint64_t point, frit_err *err)
{
    return queue->handle ? wait_for(queue, point, err) : device_wait(queue->device, point, err);
}

frit_status side_queue_finish(const struct side_queue *queue, frit_err *err)
{
    return side_queue_wait(queue, queue->last, err);
}
