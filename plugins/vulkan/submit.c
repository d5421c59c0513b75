/* SPDX-License-Identifier: Apache-2.0 */
/* From commands to recordings.
 *
 * What could be wrong with a command is found before the first one is recorded.  A long list is
 * handed over in parts, so that the device begins early and the ring of parameters need not hold
 * all of it; after the first part a failure is one of the queue's, told by wait. */
#include <inttypes.h>
#include <string.h>

#include "driver.h"

enum { PART_COMMANDS = 256, WIDE_BYTES = 4096 };

struct recording {
    struct device *device;
    struct batch *batch;
    uint32_t n;     /* commands in the batch */
    bool dirty;     /* some of them since the last barrier */
    uint64_t value; /* of the last part handed over, 0: none */
};

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

static frit_status check_command(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->flags & FRIT_MUST_UNDERSTAND)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "command with flags %#" PRIx64, cmd->flags);
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return check_copy(device, cmd, err);
    case FRIT_CMD_FILL:
        return check_fill(device, cmd, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    default:
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED, "command of kind %u",
                         cmd->kind);
    }
}

/* ---- parts ---- */

static frit_status begin_part(struct recording *r, frit_err *err)
{
    r->n = 0;
    r->dirty = false;
    return batch_begin(r->device, &r->batch, err);
}

static frit_status next_part(struct recording *r, frit_err *err)
{
    frit_status status = batch_end(r->device, r->batch, &r->value, err);

    return status ? status : begin_part(r, err);
}

/* Bytes of the ring of parameters.  What the part itself holds of it is free once it runs. */
static frit_status take(struct recording *r, uint64_t bytes, uint64_t *offset, frit_err *err)
{
    frit_status status;

    do {
        status = queue_room(r->device, &r->device->queue.params_ring, bytes, 16, NULL, offset, err);
    } while (status == FRIT_BUSY && !(status = next_part(r, err)));
    return status;
}

/* ---- commands ---- */

static void copy(struct recording *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes)
{
    const VkBufferCopy region = {from_offset, to_offset, bytes};

    if (bytes)
        r->device->api.CmdCopyBuffer(r->batch->cmds, from, to, 1, &region);
}

/* The pattern over eight bytes. */
static uint64_t widen(uint64_t pattern, uint32_t bytes)
{
    if (bytes < 8)
        pattern &= (1ull << 8 * bytes) - 1;
    for (uint32_t have = bytes; have < 8; have *= 2)
        pattern |= pattern << 8 * have;
    return pattern;
}

/* Words by a fill; what is left of a word at both ends by copies. */
static frit_status fill_words(struct recording *r, const frit_cmd *cmd, uint32_t word,
                              frit_err *err)
{
    const struct queue *queue = &r->device->queue;
    const struct buffer *to = cmd->dst;
    uint64_t begin = cmd->dst_offset, end = begin + cmd->bytes;
    uint64_t first = (begin + 3) & ~3ull, last = end & ~3ull, at;
    frit_status status;

    if (first > last)
        first = last = end; /* inside of one word */
    if (begin < first || last < end) {
        status = take(r, sizeof word, &at, err);
        if (status)
            return status;
        memcpy(queue->params.mapped + at, &word, sizeof word);
        copy(r, queue->params.handle, at + begin % 4, to->handle, begin, first - begin);
        copy(r, queue->params.handle, at, to->handle, last, end - last);
    }
    if (first < last)
        r->device->api.CmdFillBuffer(r->batch->cmds, to->handle, first, last - first, word);
    return FRIT_OK;
}

/* Eight bytes that differ: a first stretch by a copy, then what is there as often as it takes. */
static frit_status fill_wide(struct recording *r, const frit_cmd *cmd, uint64_t pattern,
                             frit_err *err)
{
    const struct queue *queue = &r->device->queue;
    const struct buffer *to = cmd->dst;
    uint64_t have = cmd->bytes < WIDE_BYTES ? cmd->bytes : WIDE_BYTES, at;
    frit_status status = take(r, have, &at, err);

    if (status)
        return status;
    for (uint64_t i = 0; i < have; i += sizeof pattern)
        memcpy(queue->params.mapped + at + i, &pattern, sizeof pattern);
    copy(r, queue->params.handle, at, to->handle, cmd->dst_offset, have);
    while (have < cmd->bytes) {
        uint64_t more = cmd->bytes - have < have ? cmd->bytes - have : have;

        batch_barrier(r->device, r->batch);
        copy(r, to->handle, cmd->dst_offset, to->handle, cmd->dst_offset + have, more);
        have += more;
    }
    return FRIT_OK;
}

static frit_status fill(struct recording *r, const frit_cmd *cmd, frit_err *err)
{
    uint64_t pattern = widen(cmd->pattern, cmd->pattern_bytes);

    if (cmd->bytes == 0)
        return FRIT_OK;
    return pattern >> 32 == (uint32_t)pattern ? fill_words(r, cmd, (uint32_t)pattern, err)
                                              : fill_wide(r, cmd, pattern, err);
}

static frit_status record(struct recording *r, const frit_cmd *cmd, frit_err *err)
{
    const struct buffer *from = cmd->src, *to = cmd->dst;
    frit_status status = FRIT_OK;

    if (cmd->kind == FRIT_CMD_BARRIER) {
        if (r->dirty)
            batch_barrier(r->device, r->batch);
        r->dirty = false;
        return FRIT_OK;
    }
    if (r->n == PART_COMMANDS)
        status = next_part(r, err);
    if (status)
        return status;
    if (cmd->kind == FRIT_CMD_COPY)
        copy(r, from->handle, cmd->src_offset, to->handle, cmd->dst_offset, cmd->bytes);
    else
        status = fill(r, cmd, err);
    r->n++;
    r->dirty = true;
    return status;
}

/* ---- submit ---- */

static const frit_cmd *command(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

/* Parts are on their way: what failed after them counts as a failure of the last one. */
static frit_status keep_fault(struct device *device, const struct recording *r, frit_status status,
                              const frit_err *err)
{
    struct fault *fault = &device->queue.fault;

    if (fault->first == 0)
        *fault = (struct fault){.first = r->value, .err = *err};
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

    for (uint32_t i = 0; i < count && !status; i++)
        status = check_command(device, command(cmds, stride, i), err);
    if (!status)
        status = begin_part(&r, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < count && !status; i++)
        status = record(&r, command(cmds, stride, i), r.value ? &later : err);
    if (!status)
        status = batch_end(device, r.batch, &r.value, r.value ? &later : err);
    *value = r.value;
    return status && r.value ? keep_fault(device, &r, status, &later) : status;
}

frit_status queue_submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                         const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status;

    pthread_mutex_lock(&device->queue.lock);
    status = queue_check_waits(device, waits, n_waits, err);
    if (!status)
        status = submit(device, cmds, count, stride, value, err);
    pthread_mutex_unlock(&device->queue.lock);
    return status;
}
