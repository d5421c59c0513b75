/* SPDX-License-Identifier: Apache-2.0 */
#include "device/side_queue.h"

#include "base/fail.h"
#include "base/log.h"
#include "device/device.h"
#include "device/queue.h"
#include "device/wait.h"

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

void side_queue_close(struct side_queue *queue)
{
    if (queue->handle)
        queue->device->backend->queue_destroy(queue->device->self, queue->handle);
    queue->handle = NULL;
}

frit_status side_queue_read(struct side_queue *queue, frit_transfer *from, void *into, uint64_t *at,
                            frit_err *err)
{
    const frit_backend *backend = queue->device->backend;
    const struct points after = {0};
    frit_status st;

    from->queue = queue->handle;
    st = queue->handle
             ? fail_from(err, backend->read(queue->device->self, from, into, at, err), "read")
             : device_read(queue->device, 0, from, into, &after, at, err);
    if (!st)
        queue->last = *at;
    return st;
}

frit_status side_queue_write(struct side_queue *queue, frit_transfer *to, const void *from,
                             uint64_t *at, frit_err *err)
{
    const frit_backend *backend = queue->device->backend;
    const struct points after = {0};
    frit_status st;

    to->queue = queue->handle;
    st = queue->handle
             ? fail_from(err, backend->write(queue->device->self, to, from, at, err), "write")
             : device_write(queue->device, 0, to, from, &after, at, err);
    if (!st)
        queue->last = *at;
    return st;
}

static frit_status wait_for(const struct side_queue *queue, uint64_t value, frit_err *err)
{
    const frit_backend *backend = queue->device->backend;
    frit_failure failure = {.struct_size = sizeof(failure)};
    frit_status st;

    do {
        st = backend->wait(queue->device->self, queue->handle, value, UINT64_MAX, &failure, err);
    } while (st == FRIT_TIMEOUT);
    st = fail_from(err, st, "wait");
    return st ? st : fail_from(err, failure.status, "a transfer");
}

frit_status side_queue_wait(const struct side_queue *queue, uint64_t at, frit_err *err)
{
    return queue->handle ? wait_for(queue, at, err) : device_wait(queue->device, at, err);
}

frit_status side_queue_finish(const struct side_queue *queue, frit_err *err)
{
    return side_queue_wait(queue, queue->last, err);
}
