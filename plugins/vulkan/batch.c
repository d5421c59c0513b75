/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: recording and submission of command buffers.
 *
 * The queue owns a fixed number of batches, which it uses in turn; recordings (capture.h) have
 * their own.  Every batch begins with a barrier, which orders it after everything that was
 * submitted before it. */
#include "batch.h"

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "timestamp.h"

/* ---- creation ---- */

frit_status batch_create_pool(struct device *device, VkCommandPoolCreateFlags flags,
                              VkCommandPool *out, frit_err *err)
{
    const VkCommandPoolCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                            .flags = flags,
                                            .queueFamilyIndex = device->adapter->queue_family};
    VkResult result = device->api.CreateCommandPool(device->handle, &create, NULL, out);

    return result ? vulkan_fail(device->instance, err, result, "creating a command pool on %s",
                                device->adapter->name)
                  : FRIT_OK;
}

frit_status batch_create(struct device *device, VkCommandPool pool, struct batch *batch,
                         frit_err *err)
{
    const VkCommandBufferAllocateInfo cmds = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkResult result = device->api.AllocateCommandBuffers(device->handle, &cmds, &batch->cmds);

    return result ? vulkan_fail(device->instance, err, result, "allocating a command buffer on %s",
                                device->adapter->name)
                  : FRIT_OK;
}

/* ---- recording ---- */

/* Everything before the barrier completes, and its writes are visible to accesses of kind `access`
 * in the stages `after`, before anything in those stages begins. */
static void record_barrier(struct device *device, struct batch *batch, VkPipelineStageFlags after,
                           VkAccessFlags access)
{
    const VkPipelineStageFlags before =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask =
                                        VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                    .dstAccessMask = access};

    device->api.CmdPipelineBarrier(batch->cmds, before, after, 0, 1, &memory, 0, NULL, 0, NULL);
}

void batch_barrier(struct device *device, struct batch *batch)
{
    record_barrier(device, batch,
                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                   VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                       VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
}

frit_status batch_begin(struct device *device, struct batch *batch, VkCommandBufferUsageFlags flags,
                        frit_err *err)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = flags};
    VkResult result = device->api.BeginCommandBuffer(batch->cmds, &begin);

    if (result)
        return vulkan_fail(device->instance, err, result, "recording commands on %s",
                           device->adapter->name);
    timestamps_reset(batch);
    batch->n_cmds = 0;
    batch->needs_barrier = false;
    batch_barrier(device, batch);
    return FRIT_OK;
}

frit_status batch_end(struct device *device, struct batch *batch, frit_err *err)
{
    VkResult result;

    (void)timestamps_copy(device, batch);
    record_barrier(device, batch, VK_PIPELINE_STAGE_HOST_BIT,
                   VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    result = device->api.EndCommandBuffer(batch->cmds);
    return result ? vulkan_fail(device->instance, err, result, "recording commands on %s",
                                device->adapter->name)
                  : FRIT_OK;
}

/* ---- submission ---- */

frit_status batch_submit(struct device *device, struct batch *batch, uint64_t value, frit_err *err)
{
    struct queue *queue = &device->queue;
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .pNext = &timeline,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &batch->cmds,
                                 .signalSemaphoreCount = 1,
                                 .pSignalSemaphores = &queue->timeline};
    VkResult result;

    if (queue->is_lost) /* since recording began: queue_reserve has waited */
        return queue_fail_lost(device, err);
    result = device->api.QueueSubmit(queue->handle, 1, &submit, VK_NULL_HANDLE);
    if (result == VK_ERROR_DEVICE_LOST)
        queue_set_lost(device);
    if (result)
        return vulkan_fail(device->instance, err, result, "submitting commands to %s",
                           device->adapter->name);
    queue->submitted_before = queue->submitted;
    queue->submitted_ns = plug_now_ns(&device->instance->plug);
    queue->issued = queue->submitted = batch->value = value;
    queue->signals[queue->next_signal++ % QUEUE_SIGNALS] = value;
    return FRIT_OK;
}

static void cancel_spans(struct queue *queue)
{
    ring_cancel(&queue->staging_ring);
    ring_cancel(&queue->params_ring);
}

frit_status batch_acquire(struct device *device, struct batch **out, frit_err *err)
{
    struct queue *queue = &device->queue;
    struct batch *batch;
    frit_status status = FRIT_OK;
    VkResult result;

    (void)gather_flush(device, NULL);
    queue_poll(device);
    if (queue->is_lost)
        return queue_fail_lost(device, err);
    batch = &queue->batches[queue->next_batch];
    if (batch->value > queue->reached)
        status = queue_wait_locked(device, batch->value, err);
    if (status)
        return status;
    cancel_spans(queue);
    result = device->api.ResetCommandPool(device->handle, batch->pool, 0);
    if (result)
        return vulkan_fail(device->instance, err, result, "recording commands on %s",
                           device->adapter->name);
    *out = batch;
    return batch_begin(device, batch, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, err);
}

frit_status batch_flush(struct device *device, struct batch *batch, uint64_t value, frit_err *err)
{
    struct queue *queue = &device->queue;
    frit_status status =
        queue->is_lost ? queue_fail_lost(device, err) : batch_end(device, batch, err);

    if (!status)
        status = batch_submit(device, batch, value, err);
    if (status) {
        cancel_spans(queue);
        return status;
    }
    queue->next_batch = (queue->next_batch + 1) % QUEUE_BATCHES;
    ring_seal(&queue->staging_ring, value);
    ring_seal(&queue->params_ring, value);
    return FRIT_OK;
}
