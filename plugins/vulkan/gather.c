/* SPDX-License-Identifier: Apache-2.0 */
/* The open batch.
 *
 * A submission of its own costs the device several microseconds between two kernels, and the host
 * more than to record a kernel.  Therefore a submit waits in the open batch while two submissions
 * are pending, or one that the host made just before, and goes to the device at once otherwise.
 * The open batch is submitted when
 *   - that is no longer so, which submits, waits, and the thread find out;
 *   - it is full;
 *   - somebody waits for one of its values, or a transfer or a recording comes after it.
 * So the device always has work, a lone submit never waits, and the batches become as large as the
 * program is ahead of the device. */
#include "gather.h"

#include "base/thread.h"

#include "adapter.h"
#include "batch.h"
#include "device.h"
#include "plugin.h"

/* What a submission takes the host, about: a program whose submits follow one another faster could
 * otherwise be too slow to find two submissions pending, because of the submissions themselves.  On
 * an H100 8 x 4096 x 4096 op by op had 17 TFLOP/s in each of six runs, without it 2 to 17. */
enum { RECENT_NS = 40000 };

/* ---- the thread ---- */

/* Waits until one of two pending submissions ends, or the only one is no longer recent.  Releases
 * the lock meanwhile. */
static void wait_for_room(struct device *device)
{
    const struct queue *queue = &device->queue;
    const bool are_two = queue->submitted_before > queue->reached;
    const uint64_t value = are_two ? queue->submitted_before : queue->submitted;
    frit_err ignored = {.struct_size = sizeof ignored};
    frit_status status;

    pthread_mutex_unlock(&device->queue.lock);
    status = queue_wait_sleeping(device, value, are_two ? UINT64_MAX : RECENT_NS, &ignored);
    pthread_mutex_lock(&device->queue.lock);
    if (status == FRIT_DEVICE_LOST)
        queue_set_lost(device);
    else if (status && status != FRIT_TIMEOUT)
        (void)gather_flush(device, &ignored);
}

static void *gather_main(void *arg)
{
    struct device *device = arg;
    struct gather *gather = &device->queue.gather;

    pthread_mutex_lock(&device->queue.lock);
    while (!gather->is_closing) {
        gather_poll(device);
        if (gather->batch)
            wait_for_room(device);
        else
            pthread_cond_wait(&gather->changed, &device->queue.lock);
    }
    pthread_mutex_unlock(&device->queue.lock);
    return NULL;
}

frit_status gather_open(struct device *device, frit_err *err)
{
    return pthread_cond_init(&device->queue.gather.changed, NULL)
               ? plug_fail(&device->instance->plug, err, FRIT_IO,
                           "cannot create a condition variable")
               : FRIT_OK;
}

void gather_close(struct device *device)
{
    struct gather *gather = &device->queue.gather;
    frit_err ignored = {.struct_size = sizeof ignored};

    pthread_mutex_lock(&device->queue.lock);
    gather->is_closing = true;
    (void)gather_flush(device, &ignored);
    pthread_cond_signal(&gather->changed);
    pthread_mutex_unlock(&device->queue.lock);
    if (gather->has_thread)
        pthread_join(gather->thread, NULL);
    pthread_cond_destroy(&gather->changed);
}

/* ---- the batch ---- */

static bool has_enough_work(struct device *device)
{
    struct queue *queue = &device->queue;

    if (queue->submitted > queue->reached)
        queue_poll(device);
    if (queue->submitted <= queue->reached || queue->is_lost)
        return false;
    return queue->submitted_before > queue->reached ||
           plug_now_ns(&device->instance->plug) - queue->submitted_ns < RECENT_NS;
}

bool gather_may_wait(struct device *device, const struct batch *batch)
{
    struct gather *gather = &device->queue.gather;

    if ((batch && batch->n_cmds >= GATHER_COMMANDS) || !has_enough_work(device))
        return false;
    if (!gather->has_thread)
        gather->has_thread = !thread_start(&gather->thread, gather_main, device);
    return gather->has_thread;
}

uint64_t gather_keep(struct device *device, struct batch *batch, uint64_t cookie)
{
    struct queue *queue = &device->queue;
    struct gather *gather = &queue->gather;
    const uint64_t value = ++queue->issued;

    if (gather->batch)
        return value;
    gather->batch = batch;
    gather->first = value;
    gather->cookie = cookie;
    pthread_cond_signal(&gather->changed);
    return value;
}

/* Makes the values of the submits that could not be submitted reached, as soon as all before them
 * are. */
static void skip_values(struct device *device)
{
    struct queue *queue = &device->queue;
    frit_err ignored = {.struct_size = sizeof ignored};

    if (!queue_wait_locked(device, queue->submitted, &ignored) && !queue->is_lost)
        queue->reached = queue->issued;
}

frit_status gather_flush(struct device *device, frit_err *err)
{
    struct queue *queue = &device->queue;
    struct gather *gather = &queue->gather;
    struct batch *batch = gather->batch;
    frit_err failure = {.struct_size = sizeof failure};
    frit_status status;

    if (!batch)
        return FRIT_OK;
    gather->batch = NULL;
    status = batch_flush(device, batch, queue->issued, &failure);
    if (!status)
        return FRIT_OK;
    plug_copy_err(&device->instance->plug, err, &failure);
    if (!queue->is_lost) {
        queue_add_fault(
            queue, &(struct queue_fault){gather->first, queue->issued, gather->cookie, failure});
        skip_values(device);
    }
    return status;
}

void gather_poll(struct device *device)
{
    frit_err ignored = {.struct_size = sizeof ignored};

    if (device->queue.gather.batch && !has_enough_work(device))
        (void)gather_flush(device, &ignored);
}
