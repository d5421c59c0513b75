/* SPDX-License-Identifier: Apache-2.0 */
/* Makes recordings. */
#include "capture.h"

#include <inttypes.h>

#include "device.h"
#include "plugin.h"
#include "replay.h"
#include "submit.h"

static void destroy(struct device *device, frit_recording *recording)
{
    if (!recording)
        return;
    if (recording->pool)
        device->api.DestroyCommandPool(device->handle, recording->pool, NULL);
    buffer_destroy(device, &recording->regions);
    capture_fini(&recording->capture);
    vulkan_free(device->instance, recording);
}

void capture_release(void *self, frit_recording *recording)
{
    destroy(self, recording);
}

/* Whether a recording may contain the command.  It may not if the command reads the parameter ring,
 * whose bytes are freed after one submission, or is a timestamp. */
static bool is_recordable(const frit_cmd *cmd)
{
    if (cmd->kind != FRIT_CMD_FILL)
        return cmd->kind != FRIT_CMD_DISPATCH && cmd->kind != FRIT_CMD_TIMESTAMP;
    return ((cmd->dst_offset | cmd->bytes) % 4 == 0 && cmd->pattern_bytes <= 4);
}

static frit_status check(void *ctx, const frit_cmd *cmd, frit_err *err)
{
    struct device *device = ctx;
    frit_status status = submit_check_command(device, cmd, err);

    if (!status && !is_recordable(cmd))
        status = plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                           "cannot record a command of kind %u", cmd->kind);
    return status;
}

enum block_mode capture_mode(const struct captured_kernel *kernel)
{
    const struct kernel_code *code = kernel->launch.code;

    if (!code->block_is_pushed || kernel->params_change)
        return BLOCK_BY_ADDRESS;
    return kernel->addresses_change ? BLOCK_SPLIT : BLOCK_AS_SUBMITTED;
}

/* Creates the pipelines that the kernels need. */
static frit_status make_pipelines(struct device *device, frit_recording *recording, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < recording->capture.n_kernels && !status; i++) {
        const struct captured_kernel *kernel = &recording->capture.kernels[i];

        status = compile_for_capture(device, kernel->launch.code, capture_mode(kernel),
                                     kernel->aligned, err);
    }
    return status;
}

static frit_status record(struct device *device, const struct capture_source *source,
                          frit_recording **out, frit_err *err)
{
    frit_recording *made = vulkan_alloc(device->instance, sizeof *made);
    frit_status status;

    if (!made)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    pthread_mutex_lock(&device->queue.lock);
    status = capture_init(&made->capture, &device->instance->plug, source,
                          &device->queue.launch_words, err);
    pthread_mutex_unlock(&device->queue.lock);
    if (!status)
        status = make_pipelines(device, made, err);
    if (!status) {
        pthread_mutex_lock(&device->queue.lock);
        status = replay_open(device, made, err);
        pthread_mutex_unlock(&device->queue.lock);
    }
    if (status)
        destroy(device, made);
    else
        *out = made;
    return status;
}

frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct device *device = self;
    const struct capture_source source = {cmds,     count,        stride, params,
                                          n_params, param_stride, check,  device};
    frit_status status = queue_check_handle(device, queue, err);

    *out = NULL;
    return status ? status : record(device, &source, out, err);
}
