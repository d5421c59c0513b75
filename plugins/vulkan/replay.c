/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of recordings, and replays: a replay patches the region's words, copies them to the
 * region of an instance that the device does not use, and submits the instance.  A short one that
 * need not run at once is recorded in the open batch instead. */
#include "replay.h"

#include <assert.h>
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
    const uint64_t *words = recording->capture.words + kernel->first_word;
    const enum block_mode mode = capture_mode(kernel);

    if (mode == BLOCK_AS_SUBMITTED)
        launch_record_pushed(r, &kernel->launch, words, kernel->aligned);
    else
        launch_record_by_address(r, &kernel->launch, region + kernel->first_word * sizeof(uint64_t),
                                 mode == BLOCK_SPLIT ? words + kernel->launch.n_args : NULL,
                                 kernel->aligned);
}

static frit_status record_instance(struct device *device, frit_recording *recording,
                                   struct batch *instance, uint64_t region, frit_err *err)
{
    struct recorder r = {.device = device, .batch = instance};
    const struct captured_launch *launch = recording->capture.launches;
    frit_status status = batch_begin(device, instance, 0, err);

    for (uint32_t i = 0; i < recording->capture.n_cmds && !status; i++) {
        const frit_cmd *cmd = &recording->capture.cmds[i];

        if (cmd->kind != FRIT_CMD_LAUNCH) {
            instance->n_cmds = 0; /* record_command must not begin another batch */
            status = record_command(&r, cmd, err);
            continue;
        }
        for (uint32_t k = launch->first_kernel; k < launch->first_kernel + launch->n_kernels; k++)
            record_kernel(&r, recording, &recording->capture.kernels[k], region);
        instance->needs_barrier = true;
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
    frit_status status = buffer_create(
        device, MEMORY_PARAMS, region_bytes(recording) * MAX_INSTANCES + CAPTURE_BLOCK_ALIGN,
        &recording->regions, err);

    if (!status)
        status = batch_create_pool(device, 0, &recording->pool, err);
    return status ? status : create_instance(device, recording, &first, err);
}

/* ---- replay ---- */

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

/* ---- in the open batch ---- */

/* The most commands of a recording whose replay is recorded anew where it may wait for others.  To
 * record so few takes the host less time than a submission. */
enum { MAX_GATHERED = 16 };

static frit_status gather_kernel(struct recorder *r, const struct captured_kernel *kernel,
                                 const uint64_t *words, frit_err *err)
{
    const struct kernel_code *code = kernel->launch.code;
    const frit_memory *params = &r->device->queue.params;
    const struct arg_block b = arg_block_layout(&kernel->launch);
    uint64_t offset;
    frit_status status =
        kernel->aligned ? FRIT_OK : compile_for_any(r->device, kernel->launch.code, err);

    if (!status && code->block_is_pushed) {
        launch_record_pushed(r, &kernel->launch, words, kernel->aligned);
        return FRIT_OK;
    }
    if (!status)
        status = record_reserve(r, b.bytes, &offset, err);
    if (status)
        return status;
    memcpy(params->mapped + offset, words, b.bytes);
    launch_record_by_address(r, &kernel->launch, params->address + offset, NULL, kernel->aligned);
    return FRIT_OK;
}

static frit_status gather_launch(struct recorder *r, const struct capture *capture,
                                 const struct captured_launch *launch, frit_err *err)
{
    frit_status status = record_count(r, launch->launch.cookie, err);

    for (uint32_t i = 0; i < launch->n_kernels && !status; i++) {
        const struct captured_kernel *kernel = &capture->kernels[launch->first_kernel + i];

        status = gather_kernel(r, kernel, capture->words + kernel->first_word, err);
    }
    return status;
}

/* Records the commands of a replay as those of a submit. */
static frit_status gather_replay(struct device *device, const struct capture *capture,
                                 uint64_t *value, frit_err *err)
{
    struct recorder r = {.device = device};
    const struct captured_launch *launch = capture->launches;
    frit_err failure = {.struct_size = sizeof failure};
    frit_status status = record_begin(&r, err);

    if (status)
        return status;
    for (uint32_t i = 0; i < capture->n_cmds && !status; i++) {
        if (capture->cmds[i].kind == FRIT_CMD_LAUNCH)
            status = gather_launch(&r, capture, launch++, &failure);
        else
            status = record_command(&r, &capture->cmds[i], &failure);
    }
    return record_end(&r, status, &failure, value, err);
}

/* ---- the slot ---- */

/* Needs the lock. */
static frit_status replay(struct device *device, frit_recording *recording, const void *params,
                          uint64_t *value, frit_err *err)
{
    struct batch *instance = NULL;
    frit_status status =
        capture_patch(&recording->capture, params, &device->queue.launch_words, err);

    if (!status && recording->capture.n_cmds <= MAX_GATHERED &&
        gather_may_wait(device, device->queue.gather.batch))
        return gather_replay(device, &recording->capture, value, err);
    if (!status)
        status = gather_flush(device, err);
    if (!status)
        status = acquire_instance(device, recording, &instance, err);
    if (status)
        return status;
    assert(instance);
    memcpy(recording->regions.mapped +
               (uint64_t)(instance - recording->instances) * region_bytes(recording),
           recording->capture.words, region_bytes(recording));
    status = batch_submit(device, instance, device->queue.issued + 1, err);
    *value = instance->value;
    return status;
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
