/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The queues of a device on host memory.  A queue is listed in its device from init to fini, so
 * that a handle which is none is found out before it is read. */
#include <string.h>

#include "util/hosted.h"
#include "util/hosted_command.h"
#include "util/memory.h"

/* Replaces `from` in the list of queues by `to`, NULL being a free entry; false: it is not there.
 */
static bool exchange(struct hosted *device, struct hosted_queue *from, struct hosted_queue *to)
{
    bool done = false;

    for (uint32_t i = 0; i < HOSTED_QUEUES - 1 && !done; i++) {
        struct hosted_queue *there = from;

        done = atomic_compare_exchange_strong(&device->more[i], &there, to);
    }
    return done;
}

frit_status hosted_queue_init(struct hosted_queue *queue, struct hosted *device, void *ctx,
                              frit_err *err)
{
    queue->device = device;
    queue->ctx = ctx;
    progress_init(&queue->progress, device->plug);
    if (exchange(device, NULL, queue))
        return FRIT_OK;
    progress_fini(&queue->progress);
    return plug_fail(device->plug, err, FRIT_UNSUPPORTED, "a device has %d queues at most",
                     HOSTED_QUEUES);
}

void hosted_queue_fini(struct hosted_queue *queue)
{
    (void)exchange(queue->device, queue, NULL);
    progress_fini(&queue->progress);
}

/* The queue of a handle that was checked. */
static struct hosted_queue *queue_of(struct hosted *device, frit_queue *handle)
{
    return handle ? (struct hosted_queue *)(void *)handle : &device->first;
}

/* FRIT_INVALID with a text for a handle that names no queue of the device. */
static frit_status find_queue(struct hosted *device, frit_queue *handle, struct hosted_queue **out,
                              frit_err *err)
{
    *out = queue_of(device, handle);
    for (uint32_t i = 0; i < HOSTED_QUEUES - 1 && handle; i++)
        if (atomic_load_explicit(&device->more[i], memory_order_acquire) == *out)
            return FRIT_OK;
    return handle ? plug_fail(device->plug, err, FRIT_INVALID, "a queue that was never made")
                  : FRIT_OK;
}

/* ---- points ---- */

static frit_status check_points(struct hosted *device, const frit_point *points, uint32_t n,
                                frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n && !status; i++) {
        struct hosted_queue *queue;

        status = find_queue(device, points[i].queue, &queue, err);
        if (!status)
            status = progress_check_value(&queue->progress, points[i].value, err);
    }
    return status;
}

/* Waits for points that were checked: the calls that returned them have reached them, or are about
 * to. */
static void await_points(struct hosted *device, const frit_point *points, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        (void)progress_await(&queue_of(device, points[i].queue)->progress, points[i].value);
}

/* ---- slots ---- */

/* Checks a transfer, waits for its points and returns its queue and its bytes of the buffer. */
static frit_status begin_transfer(struct hosted *device, const frit_transfer *transfer,
                                  struct hosted_queue **queue, char **data, frit_err *err)
{
    frit_status status = find_queue(device, transfer->queue, queue, err);

    if (!status)
        status = progress_check_lost(&(*queue)->progress, err);
    if (!status)
        status = check_points(device, transfer->waits, transfer->n_waits, err);
    if (!status)
        status =
            hosted_check_range(device, transfer->memory, transfer->offset, transfer->bytes, err);
    if (status)
        return status;
    await_points(device, transfer->waits, transfer->n_waits);
    *data = memory_at(transfer->memory, transfer->offset);
    return FRIT_OK;
}

frit_status hosted_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err)
{
    struct hosted_queue *queue;
    char *data;
    frit_status status = begin_transfer(self, to, &queue, &data, err);

    if (status)
        return status;
    memcpy(data, from, to->bytes);
    *value = progress_advance(&queue->progress, NULL);
    return FRIT_OK;
}

frit_status hosted_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err)
{
    struct hosted_queue *queue;
    char *data;
    frit_status status = begin_transfer(self, from, &queue, &data, err);

    if (status)
        return status;
    memcpy(into, data, from->bytes);
    *value = progress_advance(&queue->progress, NULL);
    return FRIT_OK;
}

static const frit_cmd *command_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

frit_status hosted_submit(void *self, frit_queue *handle, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    struct hosted *device = self;
    struct hosted_queue *queue;
    frit_status status = find_queue(device, handle, &queue, err);
    bool alive = true;

    if (!status)
        status = check_points(device, waits, n_waits, err);
    for (uint32_t i = 0; i < count && !status; i++)
        status = hosted_check_command(queue, command_at(cmds, stride, i), err);
    if (!status)
        status = progress_issue(&queue->progress, value, err);
    if (status)
        return status;
    await_points(device, waits, n_waits);
    for (uint32_t i = 0; i < count && alive; i++)
        alive = hosted_run_command(queue, command_at(cmds, stride, i), *value, i + 1);
    progress_reach(&queue->progress, *value, NULL);
    return FRIT_OK;
}

/* Only the value of a call that has not returned yet can be late. */
frit_status hosted_wait(void *self, frit_queue *handle, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err)
{
    struct hosted_queue *queue;
    frit_status status = find_queue(self, handle, &queue, err);

    return status ? status : progress_wait(&queue->progress, value, timeout_ns, failure, err);
}
