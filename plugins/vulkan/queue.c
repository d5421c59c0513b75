/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: recordings in the order in which they are submitted, on one timeline semaphore.
 *
 * Each submission signals a larger value than the one before; in between, values may pass that the
 * host itself reached while the device had nothing to do.  So a value that is not reached is at
 * most `submitted`, and the semaphore reaches it.  A recording begins with a barrier, which orders
 * it after all that was submitted. */
#include "queue.h"

#include <inttypes.h>
#include <string.h>

#include "buffer.h"
#include "driver.h"
#include "plugin.h"
#include "stamp.h"

/* How long the semaphore is asked before the thread sleeps: waking up costs as much. */
enum { SPIN_NS = 20000 };

/* ---- opening ---- */

static frit_status open_batch(struct device *device, struct batch *batch, frit_err *err)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                          .queueFamilyIndex = device->adapter->family};
    VkCommandBufferAllocateInfo cmds = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    VkResult result = device->api.CreateCommandPool(device->handle, &pool, NULL, &batch->pool);

    if (!result) {
        cmds.commandPool = batch->pool;
        result = device->api.AllocateCommandBuffers(device->handle, &cmds, &batch->cmds);
    }
    return result ? vulkan_refused(device->instance, err, result, "a command buffer on %s",
                                   device->adapter->name)
                  : FRIT_OK;
}

static frit_status open_timeline(struct device *device, frit_err *err)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                          .pNext = &type};
    VkResult result =
        device->api.CreateSemaphore(device->handle, &create, NULL, &device->queue.timeline);

    return result ? vulkan_refused(device->instance, err, result, "a semaphore on %s",
                                   device->adapter->name)
                  : FRIT_OK;
}

frit_status queue_open(struct device *device, frit_err *err)
{
    struct queue *queue = &device->queue;
    frit_status status;

    if (pthread_mutex_init(&queue->lock, NULL))
        return plug_fail(&device->instance->plug, err, FRIT_IO, "no mutex for the queue");
    queue->is_open = true;
    ring_init(&queue->staging_ring, STAGING_BYTES);
    ring_init(&queue->params_ring, PARAMS_BYTES);
    if (!queue->handle)
        device->api.GetDeviceQueue(device->handle, device->adapter->family, 0, &queue->handle);
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
    if (queue->loss.told)
        pthread_join(queue->loss.thread, NULL);
    (void)device->api.QueueWaitIdle(queue->handle);
    for (uint32_t i = 0; i < QUEUE_BATCHES; i++) {
        stamps_destroy(device, &queue->batches[i]);
        device->api.DestroyCommandPool(device->handle, queue->batches[i].pool, NULL);
    }
    device->api.DestroySemaphore(device->handle, queue->timeline, NULL);
    buffer_destroy(device, &queue->staging);
    buffer_destroy(device, &queue->params);
    vulkan_free(device->instance, queue->words);
    pthread_mutex_destroy(&queue->lock);
}

/* ---- the timeline ---- */

frit_status queue_lost(struct device *device, frit_err *err)
{
    return plug_fail(&device->instance->plug, err, FRIT_DEVICE_LOST,
                     "%s is lost; close it and open it again", device->adapter->name);
}

/* Reads whose copies have arrived are finished here, under the lock, in their order. */
static void land(struct queue *queue)
{
    struct ring_span span;

    while (ring_pop(&queue->params_ring, queue->done, &span))
        ;
    while (ring_pop(&queue->staging_ring, queue->done, &span))
        if (span.into)
            memcpy(span.into, queue->staging.mapped + span.offset, span.bytes);
}

static void *tell_loss(void *arg)
{
    struct loss *loss = arg;

    loss->lost(loss->ctx, &loss->why);
    return NULL;
}

/* Every loss is found inside of a slot, so that a thread of its own tells it. */
void queue_lose(struct device *device)
{
    struct queue *queue = &device->queue;
    struct loss *loss = &queue->loss;

    if (queue->lost)
        return;
    queue->lost = true;
    (void)device->api.QueueWaitIdle(queue->handle);
    land(queue);
    ring_forget(&queue->staging_ring, NULL, UINT64_MAX);
    loss->why.struct_size = sizeof loss->why;
    (void)queue_lost(device, &loss->why);
    loss->told = loss->lost && !pthread_create(&loss->thread, NULL, tell_loss, loss);
}

void queue_refresh(struct device *device)
{
    struct queue *queue = &device->queue;
    uint64_t value = 0;
    VkResult result;

    if (queue->done < queue->submitted && !queue->lost) {
        result = device->api.GetSemaphoreCounterValue(device->handle, queue->timeline, &value);
        if (result == VK_ERROR_DEVICE_LOST)
            queue_lose(device);
        if (!result && value > queue->done)
            queue->done = value;
    }
    land(queue);
}

uint64_t queue_pass(struct queue *queue)
{
    queue->done = ++queue->issued;
    return queue->issued;
}

static uint64_t now_ns(const struct device *device)
{
    return device->instance->plug.core->now_ns(device->instance->plug.host->self);
}

/* VK_TIMEOUT where `value` is not reached in time. */
static VkResult spin(struct device *device, uint64_t value, uint64_t timeout_ns)
{
    uint64_t until = now_ns(device) + (timeout_ns < SPIN_NS ? timeout_ns : SPIN_NS), reached = 0;
    VkResult result;

    do {
        result =
            device->api.GetSemaphoreCounterValue(device->handle, device->queue.timeline, &reached);
        if (result || reached >= value)
            return result;
    } while (now_ns(device) < until);
    return VK_TIMEOUT;
}

frit_status queue_await(struct device *device, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &device->queue.timeline,
                                      .pValues = &value};
    VkResult result = spin(device, value, timeout_ns);

    if (result == VK_TIMEOUT && timeout_ns > SPIN_NS)
        result = device->api.WaitSemaphores(device->handle, &wait, timeout_ns);
    if (result == VK_TIMEOUT)
        return plug_fail(&device->instance->plug, err, FRIT_TIMEOUT,
                         "value %" PRIu64 " is not reached yet", value);
    if (result == VK_ERROR_DEVICE_LOST)
        return queue_lost(device, err);
    return result ? vulkan_refused(device->instance, err, result, "waiting for %s",
                                   device->adapter->name)
                  : FRIT_OK;
}

frit_status queue_await_own(struct device *device, uint64_t value, frit_err *err)
{
    frit_status status = queue_await(device, value, UINT64_MAX, err);

    if (status == FRIT_DEVICE_LOST)
        queue_lose(device);
    queue_refresh(device);
    return status;
}

frit_status queue_check(const struct device *device, const frit_queue *queue, frit_err *err)
{
    return queue ? plug_fail(&device->instance->plug, err, FRIT_INVALID,
                             "a queue that was never made; there is the first one, NULL, alone")
                 : FRIT_OK;
}

frit_status queue_check_waits(struct device *device, const frit_point *waits, uint32_t n,
                              frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n && !status; i++) {
        status = queue_check(device, waits[i].queue, err);
        if (!status && waits[i].value > device->queue.issued)
            status = plug_fail(&device->instance->plug, err, FRIT_INVALID,
                               "wait for value %" PRIu64 ", but the queue is at %" PRIu64,
                               waits[i].value, device->queue.issued);
    }
    return status;
}

frit_status queue_check_range(struct device *device, const frit_memory *memory, uint64_t offset,
                              uint64_t bytes, frit_err *err)
{
    if (memory && buffer_holds(memory, offset, bytes))
        return FRIT_OK;
    return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                     "%" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64, bytes, offset,
                     memory ? memory->bytes : 0);
}

/* ---- recordings ---- */

/* Everything before it is done, and seen, before anything after it begins. */
static void barrier(struct device *device, struct batch *batch, VkPipelineStageFlags after,
                    VkAccessFlags sees)
{
    const VkPipelineStageFlags work =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask =
                                        VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                    .dstAccessMask = sees};

    device->api.CmdPipelineBarrier(batch->cmds, work, after, 0, 1, &memory, 0, NULL, 0, NULL);
}

void batch_barrier(struct device *device, struct batch *batch)
{
    barrier(device, batch, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                VK_ACCESS_TRANSFER_WRITE_BIT);
}

frit_status batch_open(struct device *device, struct batch *batch, VkCommandBufferUsageFlags flags,
                       frit_err *err)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = flags};
    VkResult result = device->api.BeginCommandBuffer(batch->cmds, &begin);

    if (result)
        return vulkan_refused(device->instance, err, result, "recording on %s",
                              device->adapter->name);
    stamps_reset(batch);
    batch_barrier(device, batch);
    return FRIT_OK;
}

frit_status batch_close(struct device *device, struct batch *batch, frit_err *err)
{
    VkResult result;

    (void)stamps_copy(device, batch);
    barrier(device, batch, VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    result = device->api.EndCommandBuffer(batch->cmds);
    return result ? vulkan_refused(device->instance, err, result, "recording on %s",
                                   device->adapter->name)
                  : FRIT_OK;
}

frit_status batch_submit(struct device *device, struct batch *batch, uint64_t *value, frit_err *err)
{
    struct queue *queue = &device->queue;
    const uint64_t reached = queue->issued + 1;
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &reached};
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .pNext = &timeline,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &batch->cmds,
                                 .signalSemaphoreCount = 1,
                                 .pSignalSemaphores = &queue->timeline};
    VkResult result;

    if (queue->lost) /* found while room was waited for */
        return queue_lost(device, err);
    result = device->api.QueueSubmit(queue->handle, 1, &submit, VK_NULL_HANDLE);
    if (result == VK_ERROR_DEVICE_LOST)
        queue_lose(device);
    if (result)
        return vulkan_refused(device->instance, err, result, "submitting to %s",
                              device->adapter->name);
    queue->issued = queue->submitted = batch->value = reached;
    *value = reached;
    return FRIT_OK;
}

frit_status batch_begin(struct device *device, struct batch **out, frit_err *err)
{
    struct queue *queue = &device->queue;
    struct batch *batch = &queue->batches[queue->next];
    frit_status status;
    VkResult result;

    queue_refresh(device);
    if (queue->lost)
        return queue_lost(device, err);
    if (batch->value > queue->done) {
        status = queue_await_own(device, batch->value, err);
        if (status)
            return status;
    }
    ring_cancel(&queue->staging_ring); /* what a recording took that was given up */
    ring_cancel(&queue->params_ring);
    result = device->api.ResetCommandPool(device->handle, batch->pool, 0);
    if (result)
        return vulkan_refused(device->instance, err, result, "recording on %s",
                              device->adapter->name);
    *out = batch;
    return batch_open(device, batch, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, err);
}

frit_status batch_end(struct device *device, struct batch *batch, uint64_t *value, frit_err *err)
{
    struct queue *queue = &device->queue;
    frit_status status = queue->lost ? queue_lost(device, err) : batch_close(device, batch, err);

    if (!status)
        status = batch_submit(device, batch, value, err);
    if (status)
        return status;
    queue->next = (queue->next + 1) % QUEUE_BATCHES;
    ring_seal(&queue->staging_ring, *value);
    ring_seal(&queue->params_ring, *value);
    return FRIT_OK;
}

frit_status queue_room(struct device *device, struct ring *ring, uint64_t bytes, uint64_t align,
                       void *into, uint64_t *offset, frit_err *err)
{
    while ((*offset = ring_take(ring, bytes, align, into)) == RING_FULL) {
        uint64_t oldest = ring_oldest(ring);
        frit_status status = oldest ? queue_await_own(device, oldest, err) : FRIT_BUSY;

        if (status)
            return status;
    }
    return FRIT_OK;
}

/* ---- waiting ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What is known of failures behind what the caller knows, as frit_failure says; which command of a
 * value failed is never known.  Of the value that a loss begins with a fault is told first. */
static void tell(struct queue *queue, uint64_t value, frit_failure *failure, frit_err *told)
{
    const bool known = failure->command == 0 || failure->command == FRIT_ALL_COMMANDS;
    const uint64_t next = known ? failure->value + 1 : failure->value;
    struct fault *fault = &queue->fault;
    uint64_t first;

    failure->status = FRIT_OK;
    if (fault->last < next)
        fault->first = 0;
    first = larger(fault->first, next);
    if (fault->first && first <= queue->done + queue->lost && first <= value) {
        *told = fault->err;
        failure->status = fault->err.status;
        failure->cookie = fault->cookie;
    } else if (queue->lost && value > queue->done && value >= next) {
        first = larger(queue->done + 1, next);
        failure->status = FRIT_DEVICE_LOST;
        failure->cookie = 0;
    } else {
        return;
    }
    failure->value = first;
    failure->command = FRIT_ALL_COMMANDS;
}

frit_status queue_wait(void *self, frit_queue *handle, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err)
{
    struct device *device = self;
    struct queue *queue = &device->queue;
    frit_status status = queue_check(device, handle, err);
    frit_err told = {0};
    bool reached;

    if (status)
        return status;
    pthread_mutex_lock(&queue->lock);
    queue_refresh(device);
    reached = value <= queue->done;
    if (queue->lost && !reached)
        status = queue_lost(device, err);
    else if (value > queue->issued)
        status = queue_check_waits(device, &(frit_point){.value = value}, 1, err);
    pthread_mutex_unlock(&queue->lock);
    if (!reached && !status)
        status = queue_await(device, value, timeout_ns, err);
    pthread_mutex_lock(&queue->lock);
    if (status == FRIT_DEVICE_LOST)
        queue_lose(device);
    queue_refresh(device);
    /* `failure` may name an older fault; why the wait failed is the wait's own. */
    if (status != FRIT_INVALID)
        tell(queue, value, failure, &told);
    pthread_mutex_unlock(&queue->lock);
    if (told.status && status != FRIT_INVALID && status != FRIT_DEVICE_LOST)
        vulkan_retell(device->instance, err, &told);
    return status;
}
