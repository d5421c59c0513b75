/* SPDX-License-Identifier: Apache-2.0 */
/* Submission.  All commands are checked before the first one is recorded.  A failure after the
 * first batch was submitted becomes a fault of the queue, which wait reports. */
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

/* Notes that the commands from `from` on were not submitted, because of `err`, after the batch with
 * the value `r->value` was.  Wait reports that as a failure of that batch. */
static frit_status set_fault(struct device *device, const struct recorder *r, const frit_cmd *from,
                             frit_status status, const frit_err *err)
{
    struct queue_fault *fault = &device->queue.fault;

    if (fault->first == 0)
        *fault =
            (struct queue_fault){.first = r->value, .cookie = command_cookie(from), .err = *err};
    fault->err.status = status;
    fault->last = r->value;
    return FRIT_OK;
}

/* Needs the lock. */
static frit_status submit(struct device *device, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, uint64_t *value, frit_err *err)
{
    struct recorder r = {.device = device};
    frit_err failure = {.struct_size = sizeof failure};
    frit_status status = FRIT_OK;
    uint32_t from = 0; /* first command of the present batch */

    for (uint32_t i = 0; i < count && !status; i++)
        status = submit_check_command(device, command_at(cmds, stride, i), err);
    if (!status)
        status = record_begin(&r, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < count && !status; i++) {
        const uint64_t before = r.value;

        status = record_command(&r, command_at(cmds, stride, i), &failure);
        if (r.value != before)
            from = i;
    }
    if (!status)
        status = batch_flush(device, r.batch, &r.value, &failure);
    if (status && !r.value) {
        plug_copy_err(&device->instance->plug, err, &failure);
        return status;
    }
    *value = r.value;
    return status ? set_fault(device, &r, command_at(cmds, stride, from), status, &failure)
                  : FRIT_OK;
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
