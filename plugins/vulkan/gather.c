/* SPDX-License-Identifier: Apache-2.0 */
/* The open batch.
 *
 * A submission of its own costs the device several microseconds between two kernels.  Therefore a
 * submit goes to the device at once only while fewer than two submissions are pending there, and
 * waits in the open batch otherwise.  The open batch is submitted when
 *   - one of the two pending submissions has ended, which submits, waits, and the thread find out;
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

/* ---- the thread ---- */

/* Waits until one of the two pending submissions ends.  Releases the lock meanwhile. */
static void wait_for_room(struct device *device)
{
    const uint64_t value = device->queue.submitted_before;
    frit_err ignored = {.struct_size = sizeof ignored};
    frit_status status;

    pthread_mutex_unlock(&device->queue.lock);
    status = queue_wait_sleeping(device, value, &ignored);
    pthread_mutex_lock(&device->queue.lock);
    if (status == FRIT_DEVICE_LOST)
        queue_set_lost(device);
    else if (status)
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

    if (queue->submitted_before > queue->reached)
        queue_poll(device);
    return queue->submitted_before > queue->reached && !queue->is_lost;
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
