/* SPDX-License-Identifier: Apache-2.0 */
/* Command buffers of recordings, and what a replay writes for one.  Under the queue's lock. */
#include "replay.h"

#include <string.h>

#include "buffer.h"
#include "capture.h"
#include "launch.h"
#include "plugin.h"
#include "queue.h"

/* ---- command buffers ---- */

static void record_kernel(struct recording *r, const frit_recording *recording,
                          const struct kernel *kernel, uint64_t block)
{
    const uint64_t *words = recording->words + kernel->first;

    if (kernel->form == WORDS_NEAR)
        record_pushed(r, &kernel->is, words, kernel->aligned);
    else
        record_by_address(r, &kernel->is, block + kernel->first * sizeof(uint64_t),
                          kernel->form == WORDS_PUSHED ? words + kernel->is.n_args : NULL,
                          kernel->aligned);
}

static frit_status record_instance(struct device *device, frit_recording *recording,
                                   struct batch *instance, uint64_t block, frit_err *err)
{
    struct recording r = {.device = device, .batch = instance};
    const struct captured *launch = recording->launches;
    frit_status status = batch_open(device, instance, 0, err);

    for (uint32_t i = 0; i < recording->n_cmds && !status; i++) {
        const frit_cmd *cmd = &recording->cmds[i];

        if (cmd->kind != FRIT_CMD_LAUNCH) {
            r.n = 0; /* it is one part */
            status = record_command(&r, cmd, err);
            continue;
        }
        for (uint32_t k = launch->first; k < launch->first + launch->n_kernels; k++)
            record_kernel(&r, recording, &recording->kernels[k], block);
        r.dirty = true;
        launch++;
    }
    return status ? status : batch_close(device, instance, err);
}

static frit_status add_instance(struct device *device, frit_recording *recording,
                                struct batch **out, frit_err *err)
{
    struct batch *instance = &recording->instances[recording->n_instances];
    const VkCommandBufferAllocateInfo cmds = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = recording->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkResult result = device->api.AllocateCommandBuffers(device->handle, &cmds, &instance->cmds);
    uint64_t block = recording->blocks.address + recording->n_instances * block_bytes(recording);
    frit_status status;

    if (result)
        return vulkan_refused(device->instance, err, result, "a command buffer on %s",
                              device->adapter->name);
    status = record_instance(device, recording, instance, block, err);
    if (status)
        return status;
    recording->n_instances++;
    *out = instance;
    return FRIT_OK;
}

frit_status capture_instances(struct device *device, frit_recording *recording, frit_err *err)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = device->adapter->family};
    struct batch *first;
    VkResult result;
    frit_status status =
        buffer_create(device, MEMORY_PARAMS, block_bytes(recording) * INSTANCES + BLOCK_ALIGN,
                      &recording->blocks, err);

    if (status)
        return status;
    result = device->api.CreateCommandPool(device->handle, &pool, NULL, &recording->pool);
    return result ? vulkan_refused(device->instance, err, result, "a command pool on %s",
                                   device->adapter->name)
                  : add_instance(device, recording, &first, err);
}

/* ---- replay ---- */

static frit_status put_addresses(struct device *device, frit_recording *recording,
                                 const char *block, frit_err *err)
{
    for (uint64_t i = 0; i < recording->n_addresses; i++) {
        const struct address *address = &recording->addresses[i];
        const frit_place *place = (const frit_place *)(const void *)(block + address->at);
        uint64_t word;

        if (place->memory && !buffer_holds(place->memory, place->offset, address->extent))
            return queue_check_range(device, place->memory, place->offset, address->extent, err);
        word = place->memory ? place->memory->address + place->offset + address->origin : 0;
        if (address->aligned && word % SPIRV_ALIGN)
            return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                             "a place that is less aligned than the recorded one");
        recording->words[address->word] = word;
    }
    return FRIT_OK;
}

/* Parameters of a launch with other scalars or bounds than before. */
static frit_status put_numbers(struct device *device, frit_recording *recording,
                               const struct captured *launch, frit_err *err)
{
    const struct kernel *to = &recording->kernels[launch->first];
    struct kernels_launch kernel;
    frit_status status = launch_kernels(device, &launch->launch, &kernel, err);

    if (status)
        return status;
    do {
        uint64_t *words = recording->words + to->first;
        const uint64_t *params = kernel.words;

        for (uint32_t s = 0; s < kernel.n_spaces; s++) {
            memcpy(words + kernel.n_args, params, kernel.n_words * sizeof *words);
            words += kernel.n_args + kernel.n_words;
            params += kernel.n_words;
        }
        to++;
    } while (kernels_next(&kernel));
    return FRIT_OK;
}

/* Words of this replay, under the lock. */
static frit_status put_words(struct device *device, frit_recording *recording, const char *block,
                             frit_err *err)
{
    frit_status status = put_addresses(device, recording, block, err);

    for (uint32_t i = 0; i < recording->n_numbers; i++)
        memcpy(recording->numbers[i].to, block + recording->numbers[i].at, sizeof(uint64_t));
    for (uint32_t i = 0; i < recording->n_launches && !status; i++)
        if (recording->launches[i].late)
            status = put_numbers(device, recording, &recording->launches[i], err);
    return status;
}

/* One that no replay in flight needs: made anew while there are few, else waited for. */
static frit_status free_instance(struct device *device, frit_recording *recording,
                                 struct batch **out, frit_err *err)
{
    struct queue *queue = &device->queue;
    struct batch *oldest = &recording->instances[0];

    queue_refresh(device);
    if (queue->lost)
        return queue_lost(device, err);
    for (uint32_t i = 1; i < recording->n_instances; i++)
        if (recording->instances[i].value < oldest->value)
            oldest = &recording->instances[i];
    *out = oldest;
    if (oldest->value <= queue->done)
        return FRIT_OK;
    if (recording->n_instances < INSTANCES)
        return add_instance(device, recording, out, err);
    return queue_await_own(device, oldest->value, err);
}

/* Under the lock. */
static frit_status replay(struct device *device, frit_recording *recording, const void *block,
                          uint64_t *value, frit_err *err)
{
    struct batch *instance;
    frit_status status = put_words(device, recording, block, err);

    if (!status)
        status = free_instance(device, recording, &instance, err);
    if (status)
        return status;
    memcpy(recording->blocks.mapped +
               (uint64_t)(instance - recording->instances) * block_bytes(recording),
           recording->words, recording->n_words * sizeof *recording->words);
    return batch_submit(device, instance, value, err);
}

frit_status capture_replay(void *self, frit_recording *recording, const void *block,
                           const frit_point *waits, uint32_t n_waits, uint64_t *value,
                           frit_err *err)
{
    struct device *device = self;
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = queue_check_waits(device, waits, n_waits, err);
    if (!status)
        status = replay(device, recording, block, value, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
