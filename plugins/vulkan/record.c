/* SPDX-License-Identifier: Apache-2.0 */
/* Records commands.  A long list becomes several batches, so that the device begins early and the
 * parameter ring does not have to hold what all of them read. */
#include "record.h"

#include "batch.h"
#include "device.h"
#include "fill.h"
#include "foreign.h"
#include "launch.h"
#include "timestamp.h"

enum { BATCH_COMMANDS = 256 };

_Static_assert((int)BATCH_COMMANDS <= (int)BATCH_TIMESTAMPS, "each command may be a timestamp");

frit_status record_begin(struct recorder *r, frit_err *err)
{
    r->n_cmds = 0;
    r->needs_barrier = false;
    return batch_acquire(r->device, &r->batch, err);
}

static frit_status start_next_batch(struct recorder *r, frit_err *err)
{
    frit_status status = batch_flush(r->device, r->batch, &r->value, err);

    return status ? status : record_begin(r, err);
}

frit_status record_reserve(struct recorder *r, uint64_t bytes, uint64_t *offset, frit_err *err)
{
    frit_status status;

    do {
        status =
            queue_reserve(r->device, &r->device->queue.params_ring, bytes, 16, NULL, offset, err);
    } while (status == FRIT_BUSY && !(status = start_next_batch(r, err)));
    return status;
}

void record_copy(struct recorder *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes)
{
    const VkBufferCopy region = {from_offset, to_offset, bytes};

    if (bytes)
        r->device->api.CmdCopyBuffer(r->batch->cmds, from, to, 1, &region);
}

frit_status record_command(struct recorder *r, const frit_cmd *cmd, frit_err *err)
{
    const frit_memory *from = cmd->src, *to = cmd->dst;
    frit_status status = FRIT_OK;

    if (cmd->kind == FRIT_CMD_BARRIER) {
        if (timestamps_copy(r->device, r->batch) || r->needs_barrier)
            batch_barrier(r->device, r->batch);
        r->needs_barrier = false;
        return FRIT_OK;
    }
    if (r->n_cmds == BATCH_COMMANDS)
        status = start_next_batch(r, err);
    if (status)
        return status;
    if (cmd->kind == FRIT_CMD_LAUNCH)
        status = launch_record(r, cmd->launch, err);
    else if (cmd->kind == FRIT_CMD_DISPATCH)
        status = foreign_record(r, cmd, err);
    else if (cmd->kind == FRIT_CMD_COPY)
        record_copy(r, from->handle, cmd->src_offset, to->handle, cmd->dst_offset, cmd->bytes);
    else if (cmd->kind == FRIT_CMD_TIMESTAMP)
        status = timestamps_add(r->device, r->batch, to->handle, cmd->dst_offset, err);
    else
        status = fill_record(r, cmd, err);
    r->n_cmds++;
    r->needs_barrier = true;
    return status;
}
