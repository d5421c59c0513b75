/* SPDX-License-Identifier: Apache-2.0 */
/* Records commands.  A long list becomes several batches, so that the device begins early and the
 * parameter ring does not have to hold what all of them read. */
#include "record.h"

#include "gpu/command.h"

#include "batch.h"
#include "device.h"
#include "fill.h"
#include "foreign.h"
#include "launch.h"
#include "plugin.h"
#include "timestamp.h"

enum { BATCH_COMMANDS = 256, STAGING_ALIGN = 64 };

_Static_assert((int)BATCH_COMMANDS <= (int)BATCH_TIMESTAMPS, "each command may be a timestamp");

/* Begins a new batch. */
static frit_status begin_batch(struct recorder *r, frit_err *err)
{
    r->n_cmds = 0;
    return batch_acquire(r->device, &r->batch, err);
}

frit_status record_begin(struct recorder *r, frit_err *err)
{
    r->batch = r->device->queue.gather.batch;
    if (!r->batch)
        return begin_batch(r, err);
    record_barrier(r);
    return FRIT_OK;
}

/* The batch is the open one, which has commands of other lists too. */
static bool is_gathered(const struct recorder *r)
{
    return r->batch && r->batch == r->device->queue.gather.batch;
}

static frit_status submit_batch(struct recorder *r, frit_err *err)
{
    const uint64_t value = r->device->queue.issued + 1;
    frit_status status;

    if (is_gathered(r)) {
        r->value = gather_keep(r->device, r->batch, r->cookie);
        return gather_flush(r->device, err);
    }
    status = batch_flush(r->device, r->batch, value, err);
    if (!status)
        r->value = value;
    return status;
}

static frit_status start_next_batch(struct recorder *r, frit_err *err)
{
    frit_status status = submit_batch(r, err);

    return status ? status : begin_batch(r, err);
}

static frit_status end_batch(struct recorder *r, frit_err *err)
{
    if (r->is_urgent || !gather_may_wait(r->device, r->batch))
        return submit_batch(r, err);
    r->value = gather_keep(r->device, r->batch, r->cookie);
    return FRIT_OK;
}

frit_status record_end(struct recorder *r, frit_status status, frit_err *failure, uint64_t *value,
                       frit_err *err)
{
    if (!status)
        status = end_batch(r, failure);
    else if (is_gathered(r) && r->n_cmds)
        r->value = gather_keep(r->device, r->batch, r->cookie);
    if (status && !r->value) {
        plug_copy_err(&r->device->instance->plug, err, failure);
        return status;
    }
    *value = r->value;
    if (status) {
        failure->status = status;
        queue_add_fault(&r->device->queue,
                        &(struct queue_fault){r->value, r->value, r->cookie, *failure});
    }
    return FRIT_OK;
}

/* Submits the batch and begins another one if it holds all of the ring itself. */
static frit_status reserve(struct recorder *r, struct ring *ring, uint64_t bytes, uint64_t align,
                           void *copy_to, uint64_t *offset, frit_err *err)
{
    frit_status status;

    do {
        status = queue_reserve(r->device, ring, bytes, align, copy_to, offset, err);
    } while (status == FRIT_BUSY && !(status = start_next_batch(r, err)));
    return status;
}

frit_status record_reserve(struct recorder *r, uint64_t bytes, uint64_t *offset, frit_err *err)
{
    return reserve(r, &r->device->queue.params_ring, bytes, 16, NULL, offset, err);
}

frit_status record_stage(struct recorder *r, uint64_t bytes, void *copy_to, uint64_t *offset,
                         frit_err *err)
{
    return reserve(r, &r->device->queue.staging_ring, bytes, STAGING_ALIGN, copy_to, offset, err);
}

void record_barrier(struct recorder *r)
{
    if (timestamps_copy(r->device, r->batch) || r->batch->needs_barrier)
        batch_barrier(r->device, r->batch);
    r->batch->needs_barrier = false;
}

void record_copy(struct recorder *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes)
{
    const VkBufferCopy region = {from_offset, to_offset, bytes};

    if (bytes)
        r->device->api.CmdCopyBuffer(r->batch->cmds, from, to, 1, &region);
}

frit_status record_count(struct recorder *r, uint64_t cookie, frit_err *err)
{
    frit_status status = r->batch->n_cmds == BATCH_COMMANDS ? start_next_batch(r, err) : FRIT_OK;

    if (r->n_cmds++ == 0)
        r->cookie = cookie;
    r->batch->n_cmds += !status;
    r->batch->needs_barrier |= !status;
    return status;
}

frit_status record_command(struct recorder *r, const frit_cmd *cmd, frit_err *err)
{
    const frit_memory *from = cmd->src, *to = cmd->dst;
    frit_status status = FRIT_OK;

    if (cmd->kind == FRIT_CMD_BARRIER) {
        record_barrier(r);
        return FRIT_OK;
    }
    status = record_count(r, command_cookie(cmd), err);
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
    return status;
}
