/* SPDX-License-Identifier: Apache-2.0 */
/* Submits.  What could be wrong with a command is found before the first one is recorded.  Once a
 * part of the list is handed over a failure is one of the queue's, told by wait. */
#include "submit.h"

#include <inttypes.h>

#include "foreign.h"
#include "launch.h"
#include "plugin.h"
#include "queue.h"
#include "record.h"

/* ---- checks ---- */

static frit_status check_fill(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    uint32_t n = cmd->pattern_bytes;

    if ((n != 1 && n != 2 && n != 4 && n != 8) || cmd->dst_offset % n || cmd->bytes % n)
        return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                         "fill of %" PRIu64 " bytes at %" PRIu64 " with a pattern of %u",
                         cmd->bytes, cmd->dst_offset, n);
    return queue_check_range(device, cmd->dst, cmd->dst_offset, cmd->bytes, err);
}

static frit_status check_copy(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    frit_status status = queue_check_range(device, cmd->dst, cmd->dst_offset, cmd->bytes, err);

    if (!status)
        status = queue_check_range(device, cmd->src, cmd->src_offset, cmd->bytes, err);
    if (!status && cmd->src == cmd->dst && cmd->src_offset < cmd->dst_offset + cmd->bytes &&
        cmd->dst_offset < cmd->src_offset + cmd->bytes)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "copy of %" PRIu64 " bytes onto themselves", cmd->bytes);
    return status;
}

static frit_status check_timestamp(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    if (!device->adapter->stamp_bits)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED, "%s has no timestamps",
                         device->adapter->name);
    if (cmd->dst_offset % sizeof(uint64_t))
        return plug_fail(&device->instance->plug, err, FRIT_INVALID, "timestamp at %" PRIu64,
                         cmd->dst_offset);
    return queue_check_range(device, cmd->dst, cmd->dst_offset, sizeof(uint64_t), err);
}

frit_status submit_check(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return check_copy(device, cmd, err);
    case FRIT_CMD_FILL:
        return check_fill(device, cmd, err);
    case FRIT_CMD_LAUNCH:
        return launch_check(device, cmd->launch, err);
    case FRIT_CMD_DISPATCH:
        return foreign_check(device, cmd, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    case FRIT_CMD_TIMESTAMP:
        return check_timestamp(device, cmd, err);
    default:
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED, "command of kind %u",
                         cmd->kind);
    }
}

/* ---- submit ---- */

static const frit_cmd *command(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

static uint64_t cookie_of(const frit_cmd *cmd)
{
    const bool launches = cmd->kind == FRIT_CMD_LAUNCH || cmd->kind == FRIT_CMD_DISPATCH;

    return launches ? cmd->launch->cookie : 0;
}

/* Parts are on their way: what comes behind them does not run, and counts as a failure of the last
 * one.  `from`: the first command of it. */
static frit_status keep_fault(struct device *device, const struct recording *r,
                              const frit_cmd *from, frit_status status, const frit_err *err)
{
    struct fault *fault = &device->queue.fault;

    if (fault->first == 0)
        *fault = (struct fault){.first = r->value, .cookie = cookie_of(from), .err = *err};
    fault->err.status = status;
    fault->last = r->value;
    return FRIT_OK;
}

/* Under the lock. */
static frit_status submit(struct device *device, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, uint64_t *value, frit_err *err)
{
    struct recording r = {.device = device};
    frit_err later = {.struct_size = sizeof later};
    frit_status status = FRIT_OK;
    uint32_t from = 0; /* first command of the part that is recorded */

    for (uint32_t i = 0; i < count && !status; i++)
        status = submit_check(device, command(cmds, stride, i), err);
    if (!status)
        status = record_begin(&r, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < count && !status; i++) {
        const uint64_t before = r.value;

        status = record_command(&r, command(cmds, stride, i), &later);
        if (r.value != before)
            from = i;
    }
    if (!status)
        status = batch_end(device, r.batch, &r.value, &later);
    if (status && !r.value) {
        vulkan_retell(device->instance, err, &later);
        return status;
    }
    *value = r.value;
    return status ? keep_fault(device, &r, command(cmds, stride, from), status, &later) : FRIT_OK;
}

frit_status queue_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                         uint32_t stride, const frit_point *waits, uint32_t n_waits,
                         uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status = queue_check(device, queue, err);

    if (status)
        return status;
    pthread_mutex_lock(&device->queue.lock);
    status = queue_check_waits(device, waits, n_waits, err);
    if (!status)
        status = submit(device, cmds, count, stride, value, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
