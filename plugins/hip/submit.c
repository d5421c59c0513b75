/* SPDX-License-Identifier: Apache-2.0 */
/* Submission.  All commands are checked before the first one is enqueued.  A stream runs what it is
 * given in order, so that BARRIER is nothing.  A failure after a command was enqueued is reported
 * by wait, for the value that the submission reaches. */
#include "submit.h"

#include "builtin.h"
#include "device.h"
#include "foreign.h"
#include "gpu/command.h"
#include "launch.h"
#include "plugin.h"
#include "scope.h"
#include "timestamp.h"

/* ---- checks ---- */

frit_status submit_check_command(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;

    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return command_check_copy(plug, cmd, err);
    case FRIT_CMD_FILL:
        return command_check_fill(plug, cmd, err);
    case FRIT_CMD_LAUNCH:
        return command_check_launch(plug, cmd->launch, err);
    case FRIT_CMD_DISPATCH:
        return foreign_check(device, cmd, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    case FRIT_CMD_TIMESTAMP:
        return command_check_timestamp(plug, cmd, err);
    default:
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "command of unknown kind %u", cmd->kind);
    }
}

/* ---- copies and fills ---- */

frit_status submit_copy(struct frit_queue *queue, gpu_stream stream, const frit_cmd *cmd,
                        frit_err *err)
{
    const struct api *api = queue->device->api;
    const frit_memory *to = cmd->dst, *from = cmd->src;
    const uint64_t to_address = to->address + cmd->dst_offset;
    const uint64_t from_address = from->address + cmd->src_offset;
    gpu_result result;

    if (from->is_pinned)
        result =
            api->MemcpyHtoDAsync(to_address, from->mapped + cmd->src_offset, cmd->bytes, stream);
    else if (to->is_pinned)
        result =
            api->MemcpyDtoHAsync(to->mapped + cmd->dst_offset, from_address, cmd->bytes, stream);
    else
        result = api->MemcpyDtoDAsync(to_address, from_address, cmd->bytes, stream);
    return result ? device_fail(queue->device, result, "copying", err) : FRIT_OK;
}

/* The runtime fills with patterns of 1, 2 and 4 bytes, a kernel with those of 8. */
frit_status submit_fill(struct frit_queue *queue, gpu_stream stream, const frit_cmd *cmd,
                        frit_err *err)
{
    const struct api *api = queue->device->api;
    const uint64_t pattern = command_repeat_pattern(cmd->pattern, cmd->pattern_bytes);
    const uint64_t at = cmd->dst->address + cmd->dst_offset;
    gpu_result result;

    if (cmd->bytes % 4 == 0 && at % 4 == 0 && pattern >> 32 == (uint32_t)pattern)
        result = api->MemsetD32Async(at, (uint32_t)pattern, cmd->bytes / 4, stream);
    else if (cmd->pattern_bytes == 1)
        result = api->MemsetD8Async(at, (uint8_t)pattern, cmd->bytes, stream);
    else if (cmd->pattern_bytes == 2)
        result = api->MemsetD16Async(at, (uint16_t)pattern, cmd->bytes / 2, stream);
    else
        return builtin_fill(queue, stream, at, pattern, cmd->bytes / sizeof pattern, err);
    return result ? device_fail(queue->device, result, "filling memory", err) : FRIT_OK;
}

/* ---- submit ---- */

static frit_status enqueue(struct frit_queue *queue, const frit_cmd *cmd, frit_err *err)
{
    switch (cmd->kind) {
    case FRIT_CMD_LAUNCH:
        return launch_enqueue(queue, cmd->launch, err);
    case FRIT_CMD_COPY:
        return submit_copy(queue, queue->stream, cmd, err);
    case FRIT_CMD_FILL:
        return submit_fill(queue, queue->stream, cmd, err);
    case FRIT_CMD_TIMESTAMP:
        return timestamp_enqueue(queue, cmd->dst->address + cmd->dst_offset, err);
    case FRIT_CMD_DISPATCH:
        return foreign_enqueue(queue, cmd, err);
    default: /* BARRIER */
        return FRIT_OK;
    }
}

/* Needs the lock.  Of the commands from a failed one on none is enqueued; which of them the caller
 * takes for failed follows from a fault that names no command. */
static frit_status enqueue_all(struct frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                               uint32_t stride, uint64_t *value, frit_err *err)
{
    struct fault fault = {.err = {.struct_size = sizeof fault.err}};
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < count && !status; i++)
        status = submit_check_command(queue->device, command_at(cmds, stride, i), err);
    if (status)
        return status;
    for (uint32_t i = 0; i < count && !status; i++) {
        const frit_cmd *cmd = command_at(cmds, stride, i);

        status = enqueue(queue, cmd, &fault.err);
        if (status)
            fault.cookie = command_cookie(cmd);
    }
    fault.err.status = status;
    return queue_signal(queue, status ? &fault : NULL, value, err);
}

frit_status submit_commands(void *self, frit_queue *handle, const frit_cmd *cmds, uint32_t count,
                            uint32_t stride, const frit_point *waits, uint32_t n_waits,
                            uint64_t *value, frit_err *err)
{
    struct device *device = self;
    struct scope scope;
    frit_queue *queue;
    frit_status status = queue_find(device, handle, &queue, err);

    if (!status)
        status = scope_enter(device, &scope, err);
    if (status)
        return status;
    status = queue_add_waits(queue, waits, n_waits, err);
    if (!status)
        status = device_check(device, err);
    if (!status) {
        pthread_mutex_lock(&queue->lock);
        queue_poll(queue);
        status = enqueue_all(queue, cmds, count, stride, value, err);
        pthread_mutex_unlock(&queue->lock);
    }
    scope_leave(device, &scope);
    device_settle(device);
    return status;
}
