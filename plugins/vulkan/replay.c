/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of recordings, and replays: a replay patches the region's words, copies them to the
 * region of an instance that the device does not use, and submits the instance. */
#include "replay.h"

#include <string.h>

#include "gpu/arg_block.h"
#include "batch.h"
#include "buffer.h"
#include "capture.h"
#include "device.h"
#include "launch.h"
#include "plugin.h"
#include "record.h"

/* ---- instances ---- */

/* `region` is the device address of the instance's region. */
static void record_kernel(struct recorder *r, const frit_recording *recording,
                          const struct captured_kernel *kernel, uint64_t region)
{
    const uint64_t *words = recording->words + kernel->first_word;

    if (kernel->mode == BLOCK_AS_SUBMITTED)
        launch_record_pushed(r, &kernel->launch, words, kernel->aligned);
    else
        launch_record_by_address(r, &kernel->launch, region + kernel->first_word * sizeof(uint64_t),
                                 kernel->mode == BLOCK_SPLIT ? words + kernel->launch.n_args : NULL,
                                 kernel->aligned);
}

static frit_status record_instance(struct device *device, frit_recording *recording,
                                   struct batch *instance, uint64_t region, frit_err *err)
{
    struct recorder r = {.device = device, .batch = instance};
    const struct captured_launch *launch = recording->launches;
    frit_status status = batch_begin(device, instance, 0, err);

    for (uint32_t i = 0; i < recording->n_cmds && !status; i++) {
        const frit_cmd *cmd = &recording->cmds[i];

        if (cmd->kind != FRIT_CMD_LAUNCH) {
            r.n_cmds = 0; /* record_command must not begin another batch */
            status = record_command(&r, cmd, err);
            continue;
        }
        for (uint32_t k = launch->first_kernel; k < launch->first_kernel + launch->n_kernels; k++)
            record_kernel(&r, recording, &recording->kernels[k], region);
        r.needs_barrier = true;
        launch++;
    }
    return status ? status : batch_end(device, instance, err);
}

/* Adds an instance to the recording. */
static frit_status create_instance(struct device *device, frit_recording *recording,
                                   struct batch **out, frit_err *err)
{
    struct batch *instance = &recording->instances[recording->n_instances];
    uint64_t region = recording->regions.address + recording->n_instances * region_bytes(recording);
    frit_status status = batch_create(device, recording->pool, instance, err);

    if (!status)
        status = record_instance(device, recording, instance, region, err);
    if (status)
        return status;
    recording->n_instances++;
    *out = instance;
    return FRIT_OK;
}

frit_status replay_open(struct device *device, frit_recording *recording, frit_err *err)
{
    struct batch *first;
    frit_status status =
        buffer_create(device, MEMORY_PARAMS, region_bytes(recording) * MAX_INSTANCES + BLOCK_ALIGN,
                      &recording->regions, err);

    if (!status)
        status = batch_create_pool(device, 0, &recording->pool, err);
    return status ? status : create_instance(device, recording, &first, err);
}

/* ---- replay ---- */

static frit_status patch_addresses(struct device *device, frit_recording *recording,
                                   const char *params, frit_err *err)
{
    for (uint64_t i = 0; i < recording->n_address_patches; i++) {
        const struct address_patch *patch = &recording->address_patches[i];
        const frit_place *place = (const frit_place *)(const void *)(params + patch->param_offset);
        uint64_t word;

        if (place->memory && !buffer_holds(place->memory, place->offset, patch->extent))
            return buffer_check_range(device, place->memory, place->offset, patch->extent, err);
        word = place->memory ? place->memory->address + place->offset + patch->origin : 0;
        if (patch->aligned && word % SPIRV_ALIGN)
            return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                             "an argument whose address is less aligned than when it was recorded");
        recording->words[patch->word] = word;
    }
    return FRIT_OK;
}

/* Computes the parameters of a launch from its scalars and bounds, which have changed. */
static frit_status patch_params(struct device *device, frit_recording *recording,
                                const struct captured_launch *launch, frit_err *err)
{
    const struct captured_kernel *to = &recording->kernels[launch->first_kernel];
    struct kernels_launch kernel;
    frit_status status = launch_first_kernel(device, &launch->launch, &kernel, err);

    if (status)
        return status;
    do {
        arg_block_write_params(&kernel, recording->words + to->first_word);
        to++;
    } while (kernels_next(&kernel));
    return FRIT_OK;
}

/* Sets the region's words to those of this replay. */
static frit_status patch_words(struct device *device, frit_recording *recording, const char *params,
                               frit_err *err)
{
    frit_status status = patch_addresses(device, recording, params, err);

    for (uint32_t i = 0; i < recording->n_scalar_patches; i++)
        memcpy(recording->scalar_patches[i].target,
               params + recording->scalar_patches[i].param_offset, sizeof(uint64_t));
    for (uint32_t i = 0; i < recording->n_launches && !status; i++)
        if (recording->launches[i].has_scalar_patches)
            status = patch_params(device, recording, &recording->launches[i], err);
    return status;
}

/* An instance that the device does not use.  Creates another one if all are in use; waits if there
 * are MAX_INSTANCES already. */
static frit_status acquire_instance(struct device *device, frit_recording *recording,
                                    struct batch **out, frit_err *err)
{
    struct queue *queue = &device->queue;
    struct batch *oldest = &recording->instances[0];

    queue_poll(device);
    if (queue->is_lost)
        return queue_fail_lost(device, err);
    for (uint32_t i = 1; i < recording->n_instances; i++)
        if (recording->instances[i].value < oldest->value)
            oldest = &recording->instances[i];
    *out = oldest;
    if (oldest->value <= queue->reached)
        return FRIT_OK;
    if (recording->n_instances < MAX_INSTANCES)
        return create_instance(device, recording, out, err);
    return queue_wait_locked(device, oldest->value, err);
}

/* Needs the lock. */
static frit_status replay(struct device *device, frit_recording *recording, const void *params,
                          uint64_t *value, frit_err *err)
{
    struct batch *instance;
    frit_status status = patch_words(device, recording, params, err);

    if (!status)
        status = acquire_instance(device, recording, &instance, err);
    if (status)
        return status;
    memcpy(recording->regions.mapped +
               (uint64_t)(instance - recording->instances) * region_bytes(recording),
           recording->words, recording->n_words * sizeof *recording->words);
    return batch_submit(device, instance, value, err);
}

frit_status replay_submit(void *self, frit_recording *recording, const void *params,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = queue_check_waits(device, waits, n_waits, err);
    if (!status)
        status = replay(device, recording, params, value, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
