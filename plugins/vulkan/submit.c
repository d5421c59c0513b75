/* SPDX-License-Identifier: Apache-2.0 */
/* Submission.  All commands are checked before the first one is recorded. */
#include "submit.h"

#include "gpu/command.h"

#include "adapter.h"
#include "batch.h"
#include "buffer.h"
#include "device.h"
#include "foreign.h"
#include "launch.h"
#include "plugin.h"
#include "record.h"

/* ---- checks ---- */

static frit_status check_timestamp(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    if (!device->adapter->timestamp_bits)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "%s does not support timestamps", device->adapter->name);
    return command_check_timestamp(&device->instance->plug, cmd, err);
}

frit_status submit_check_command(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return command_check_copy(&device->instance->plug, cmd, err);
    case FRIT_CMD_FILL:
        return command_check_fill(&device->instance->plug, cmd, err);
    case FRIT_CMD_LAUNCH:
        return command_check_launch(&device->instance->plug, cmd->launch, err);
    case FRIT_CMD_DISPATCH:
        return foreign_check(device, cmd, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    case FRIT_CMD_TIMESTAMP:
        return check_timestamp(device, cmd, err);
    default:
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "command of unknown kind %u", cmd->kind);
    }
}

/* ---- submit ---- */

/* Needs the lock. */
static frit_status submit(struct device *device, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, uint64_t *value, frit_err *err)
{
    struct recorder r = {.device = device};
    frit_err failure = {.struct_size = sizeof failure};
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < count && !status; i++)
        status = submit_check_command(device, command_at(cmds, stride, i), err);
    if (!status)
        status = record_begin(&r, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < count && !status; i++)
        status = record_command(&r, command_at(cmds, stride, i), &failure);
    return record_end(&r, status, &failure, value, err);
}

frit_status submit_commands(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                            uint32_t stride, const frit_point *waits, uint32_t n_waits,
                            uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status = queue_check_handle(device, queue, err);

    if (status)
        return status;
    pthread_mutex_lock(&device->queue.lock);
    status = queue_check_waits(device, waits, n_waits, err);
    if (!status)
        status = submit(device, cmds, count, stride, value, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
