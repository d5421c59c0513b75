/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: one VkQueue and one timeline semaphore.
 *
 * Each submission signals a larger value than the one before.  Values between the two are those of
 * submits that went to the device together (gather.h).  The driver also issues values that no
 * submission signals, for transfers that the host does itself; it does so only while the device is
 * idle, so those values are reached at once.  It follows that every value that is not reached yet
 * is either at most `submitted`, and the semaphore will reach it, or of the open batch. */
#include "queue.h"

#include <inttypes.h>
#include <string.h>

#include "base/thread.h"

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "timestamp.h"

/* How long a wait polls the semaphore before the thread sleeps; about what a wakeup takes. */
enum { SPIN_NS = 20000 };

/* ---- open and close ---- */

static frit_status open_batch(struct device *device, struct batch *batch, frit_err *err)
{
    frit_status status =
        batch_create_pool(device, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, &batch->pool, err);

    return status ? status : batch_create(device, batch->pool, batch, err);
}

static frit_status open_timeline(struct device *device, frit_err *err)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                          .pNext = &type};
    VkResult result =
        device->api.CreateSemaphore(device->handle, &create, NULL, &device->queue.timeline);

    return result ? vulkan_fail(device->instance, err, result, "creating a semaphore on %s",
                                device->adapter->name)
                  : FRIT_OK;
}

frit_status queue_open(struct device *device, frit_err *err)
{
    struct queue *queue = &device->queue;
    frit_status status;

    if (pthread_mutex_init(&queue->lock, NULL))
        return plug_fail(&device->instance->plug, err, FRIT_IO, "cannot create a mutex");
    queue->is_open = true;
    queue->launch_words.plug = &device->instance->plug;
    ring_init(&queue->staging_ring, STAGING_BYTES);
    ring_init(&queue->params_ring, PARAMS_BYTES);
    if (!queue->handle)
        device->api.GetDeviceQueue(device->handle, device->adapter->queue_family, 0,
                                   &queue->handle);
    status = gather_open(device, err);
    if (!status)
        status = open_timeline(device, err);
    for (uint32_t i = 0; i < QUEUE_BATCHES && !status; i++)
        status = open_batch(device, &queue->batches[i], err);
    if (!status)
        status = buffer_create(device, MEMORY_STAGING, STAGING_BYTES, &queue->staging, err);
    if (!status)
        status = buffer_create(device, MEMORY_PARAMS, PARAMS_BYTES, &queue->params, err);
    return status;
}

void queue_close(struct device *device)
{
    struct queue *queue = &device->queue;

    if (!queue->is_open)
        return;
    gather_close(device);
    if (queue->loss.has_thread)
        pthread_join(queue->loss.thread, NULL);
    (void)device->api.QueueWaitIdle(queue->handle);
    for (uint32_t i = 0; i < QUEUE_BATCHES; i++) {
        timestamps_destroy(device, &queue->batches[i]);
        device->api.DestroyCommandPool(device->handle, queue->batches[i].pool, NULL);
    }
    device->api.DestroySemaphore(device->handle, queue->timeline, NULL);
    buffer_destroy(device, &queue->staging);
    buffer_destroy(device, &queue->params);
    launch_words_fini(&queue->launch_words);
    pthread_mutex_destroy(&queue->lock);
}

/* ---- the timeline ---- */

frit_status queue_fail_lost(const struct device *device, frit_err *err)
{
    return plug_fail(&device->instance->plug, err, FRIT_DEVICE_LOST,
                     "%s is lost; close it and open it again", device->adapter->name);
}

/* Frees the spans whose values are reached, oldest first, and copies the data of reads to the
 * host's memory. */
static void finish_reads(struct queue *queue)
{
    struct ring_span span;

    while (ring_pop(&queue->params_ring, queue->reached, &span))
        ;
    while (ring_pop(&queue->staging_ring, queue->reached, &span))
        if (span.copy_to)
            memcpy(span.copy_to, queue->staging.mapped + span.offset, span.bytes);
}

static void *notify_loss(void *arg)
{
    struct loss_notice *loss = arg;

    loss->on_lost(loss->ctx, &loss->why);
    return NULL;
}

/* Runs inside a slot of the driver, from which the host may not be called back, so a thread
 * notifies it. */
void queue_set_lost(struct device *device)
{
    struct queue *queue = &device->queue;
    struct loss_notice *loss = &queue->loss;

    if (queue->is_lost)
        return;
    queue->is_lost = true;
    queue->gather.batch = NULL;
    (void)device->api.QueueWaitIdle(queue->handle);
    finish_reads(queue);
    ring_drop_copies(&queue->staging_ring, NULL, UINT64_MAX);
    loss->why.struct_size = sizeof loss->why;
    (void)queue_fail_lost(device, &loss->why);
    loss->has_thread = loss->on_lost && !thread_start(&loss->thread, notify_loss, loss);
}

void queue_poll(struct device *device)
{
    struct queue *queue = &device->queue;
    uint64_t value = 0;
    VkResult result;

    if (queue->reached < queue->submitted && !queue->is_lost) {
        result = device->api.GetSemaphoreCounterValue(device->handle, queue->timeline, &value);
        if (result == VK_ERROR_DEVICE_LOST)
            queue_set_lost(device);
        if (!result && value > queue->reached)
            queue->reached = value;
    }
    finish_reads(queue);
}

uint64_t queue_issue_reached(struct queue *queue)
{
    queue->reached = ++queue->issued;
    return queue->issued;
}

/* Polls the semaphore for at most SPIN_NS.  VK_TIMEOUT: `value` is not reached yet. */
static VkResult poll_briefly(struct device *device, uint64_t value, uint64_t timeout_ns)
{
    uint64_t until =
        plug_now_ns(&device->instance->plug) + (timeout_ns < SPIN_NS ? timeout_ns : SPIN_NS);
    uint64_t reached = 0;
    VkResult result;

    do {
        result =
            device->api.GetSemaphoreCounterValue(device->handle, device->queue.timeline, &reached);
        if (result || reached >= value)
            return result;
    } while (plug_now_ns(&device->instance->plug) < until);
    return VK_TIMEOUT;
}

/* The status of a wait for `value` with this result. */
static frit_status wait_status(struct device *device, uint64_t value, VkResult result,
                               frit_err *err)
{
    if (result == VK_TIMEOUT)
        return plug_fail(&device->instance->plug, err, FRIT_TIMEOUT,
                         "timeline value %" PRIu64 " is not reached yet", value);
    if (result == VK_ERROR_DEVICE_LOST)
        return queue_fail_lost(device, err);
    return result
               ? vulkan_fail(device->instance, err, result, "waiting for %s", device->adapter->name)
               : FRIT_OK;
}

static VkResult sleep_until(struct device *device, uint64_t value, uint64_t timeout_ns)
{
    const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &device->queue.timeline,
                                      .pValues = &value};

    return device->api.WaitSemaphores(device->handle, &wait, timeout_ns);
}

frit_status queue_wait_sleeping(struct device *device, uint64_t value, uint64_t timeout_ns,
                                frit_err *err)
{
    return wait_status(device, value, sleep_until(device, value, timeout_ns), err);
}

frit_status queue_wait_value(struct device *device, uint64_t value, uint64_t timeout_ns,
                             frit_err *err)
{
    VkResult result = poll_briefly(device, value, timeout_ns);

    if (result == VK_TIMEOUT && timeout_ns > SPIN_NS)
        result = sleep_until(device, value, timeout_ns);
    return wait_status(device, value, result, err);
}

frit_status queue_wait_locked(struct device *device, uint64_t value, frit_err *err)
{
    frit_status status = queue_wait_value(device, value, UINT64_MAX, err);

    if (status == FRIT_DEVICE_LOST)
        queue_set_lost(device);
    queue_poll(device);
    return status;
}

frit_status queue_check_handle(const struct device *device, const frit_queue *queue, frit_err *err)
{
    return queue ? plug_fail(&device->instance->plug, err, FRIT_INVALID,
                             "unknown queue; the driver has only the first queue, NULL")
                 : FRIT_OK;
}

frit_status queue_check_waits(const struct device *device, const frit_point *waits, uint32_t n,
                              frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n && !status; i++) {
        status = queue_check_handle(device, waits[i].queue, err);
        if (!status && waits[i].value > device->queue.issued)
            status = plug_fail(&device->instance->plug, err, FRIT_INVALID,
                               "wait for value %" PRIu64 " of a queue whose last value is %" PRIu64,
                               waits[i].value, device->queue.issued);
    }
    return status;
}

frit_status queue_reserve(struct device *device, struct ring *ring, uint64_t bytes, uint64_t align,
                          void *copy_to, uint64_t *offset, frit_err *err)
{
    while ((*offset = ring_take(ring, bytes, align, copy_to)) == RING_FULL) {
        uint64_t oldest = ring_oldest_value(ring);
        frit_status status = oldest ? queue_wait_locked(device, oldest, err) : FRIT_BUSY;

        if (status)
            return status;
    }
    return FRIT_OK;
}

/* ---- the slot wait ---- */

void queue_add_fault(struct queue *queue, const struct queue_fault *fault)
{
    if (queue->fault.first == 0)
        queue->fault = *fault;
    queue->fault.err.status = fault->err.status;
    queue->fault.last = fault->last;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Sets `failure` to the first failure after the one that it names and up to `value`, as
 * frit_failure defines it; `reason` is set to its message.  A fault that begins at the same value
 * as the loss of the device comes first.  Which command of a batch failed is unknown. */
static void report_failure(struct queue *queue, uint64_t value, frit_failure *failure,
                           frit_err *reason)
{
    const bool is_complete = failure->command == 0 || failure->command == FRIT_ALL_COMMANDS;
    const uint64_t next = is_complete ? failure->value + 1 : failure->value;
    struct queue_fault *fault = &queue->fault;
    uint64_t first;

    failure->status = FRIT_OK;
    if (fault->last < next)
        fault->first = 0;
    first = larger(fault->first, next);
    if (fault->first && first <= queue->reached + queue->is_lost && first <= value) {
        *reason = fault->err;
        failure->status = fault->err.status;
        failure->cookie = fault->cookie;
    } else if (queue->is_lost && value > queue->reached && value >= next) {
        first = larger(queue->reached + 1, next);
        failure->status = FRIT_DEVICE_LOST;
        failure->cookie = 0;
    } else {
        return;
    }
    failure->value = first;
    failure->command = FRIT_ALL_COMMANDS;
}

/* The value of the submission that makes `value` reached; `value` itself if that was too long ago.
 * Layers of Vulkan do not expect waits for values that nobody signals. */
static uint64_t signal_of(const struct queue *queue, uint64_t value)
{
    uint64_t signal = queue->submitted;

    if (value > signal)
        return value;
    for (uint32_t i = 1; i <= QUEUE_SIGNALS; i++) {
        const uint64_t at = queue->signals[(queue->next_signal - i) % QUEUE_SIGNALS];

        if (at < value)
            return signal;
        signal = at;
    }
    return value;
}

frit_status queue_wait(void *self, frit_queue *handle, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err)
{
    struct device *device = self;
    struct queue *queue = &device->queue;
    frit_status status = queue_check_handle(device, handle, err);
    frit_err reason = {0};
    uint64_t signal;
    bool reached;

    if (status)
        return status;
    pthread_mutex_lock(&queue->lock);
    queue_poll(device);
    if (value > queue->submitted && timeout_ns)
        (void)gather_flush(device, NULL);
    else
        gather_poll(device);
    reached = value <= queue->reached;
    if (queue->is_lost && !reached)
        status = queue_fail_lost(device, err);
    else if (value > queue->issued)
        status = queue_check_waits(device, &(frit_point){.value = value}, 1, err);
    signal = signal_of(queue, value);
    pthread_mutex_unlock(&queue->lock);
    if (!reached && !status)
        status = queue_wait_value(device, signal, timeout_ns, err);
    pthread_mutex_lock(&queue->lock);
    if (status == FRIT_DEVICE_LOST)
        queue_set_lost(device);
    queue_poll(device);
    /* `err` describes the wait itself if that has failed, and `failure` otherwise. */
    if (status != FRIT_INVALID)
        report_failure(queue, value, failure, &reason);
    pthread_mutex_unlock(&queue->lock);
    if (reason.status && status != FRIT_INVALID && status != FRIT_DEVICE_LOST)
        plug_copy_err(&device->instance->plug, err, &reason);
    return status;
}
