/* SPDX-License-Identifier: Apache-2.0 */
/* Commands are recorded in parts: a long list is handed over as it grows, so that the device begins
 * early and the ring of parameters need not hold all of it. */
#include "record.h"
#include "fill.h"
#include "foreign.h"
#include "launch.h"
#include "queue.h"
#include "stamp.h"

enum { PART_COMMANDS = 256 };

_Static_assert((int)PART_COMMANDS <= (int)BATCH_STAMPS, "each command may be a timestamp");

frit_status record_begin(struct recording *r, frit_err *err)
{
    r->n = 0;
    r->dirty = false;
    return batch_begin(r->device, &r->batch, err);
}

static frit_status next_part(struct recording *r, frit_err *err)
{
    frit_status status = batch_end(r->device, r->batch, &r->value, err);

    return status ? status : record_begin(r, err);
}

frit_status record_take(struct recording *r, uint64_t bytes, uint64_t *offset, frit_err *err)
{
    frit_status status;

    do {
        status = queue_room(r->device, &r->device->queue.params_ring, bytes, 16, NULL, offset, err);
    } while (status == FRIT_BUSY && !(status = next_part(r, err)));
    return status;
}

void record_copy(struct recording *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes)
{
    const VkBufferCopy region = {from_offset, to_offset, bytes};

    if (bytes)
        r->device->api.CmdCopyBuffer(r->batch->cmds, from, to, 1, &region);
}

frit_status record_command(struct recording *r, const frit_cmd *cmd, frit_err *err)
{
    const frit_memory *from = cmd->src, *to = cmd->dst;
    frit_status status = FRIT_OK;

    if (cmd->kind == FRIT_CMD_BARRIER) {
        if (stamps_copy(r->device, r->batch) || r->dirty)
            batch_barrier(r->device, r->batch);
        r->dirty = false;
        return FRIT_OK;
    }
    if (r->n == PART_COMMANDS)
        status = next_part(r, err);
    if (status)
        return status;
    if (cmd->kind == FRIT_CMD_LAUNCH)
        status = record_launch(r, cmd->launch, err);
    else if (cmd->kind == FRIT_CMD_DISPATCH)
        status = record_foreign(r, cmd, err);
    else if (cmd->kind == FRIT_CMD_COPY)
        record_copy(r, from->handle, cmd->src_offset, to->handle, cmd->dst_offset, cmd->bytes);
    else if (cmd->kind == FRIT_CMD_TIMESTAMP)
        status = stamps_add(r->device, r->batch, to->handle, cmd->dst_offset, err);
    else
        status = record_fill(r, cmd, err);
    r->n++;
    r->dirty = true;
    return status;
}
