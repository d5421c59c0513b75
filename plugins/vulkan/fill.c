/* SPDX-License-Identifier: Apache-2.0 */
/* FILL: Vulkan fills whole words with a word.  What else there is to fill is copied. */
#include "fill.h"

#include <string.h>

#include "queue.h"
#include "record.h"

enum { WIDE_BYTES = 4096 };

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
    const frit_memory *to = cmd->dst;
    uint64_t begin = cmd->dst_offset, end = begin + cmd->bytes;
    uint64_t first = (begin + 3) & ~3ull, last = end & ~3ull, at;
    frit_status status;

    if (first > last)
        first = last = end; /* inside of one word */
    if (begin < first || last < end) {
        status = record_take(r, sizeof word, &at, err);
        if (status)
            return status;
        memcpy(queue->params.mapped + at, &word, sizeof word);
        record_copy(r, queue->params.handle, at + begin % 4, to->handle, begin, first - begin);
        record_copy(r, queue->params.handle, at, to->handle, last, end - last);
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
    const frit_memory *to = cmd->dst;
    uint64_t have = cmd->bytes < WIDE_BYTES ? cmd->bytes : WIDE_BYTES, at;
    frit_status status = record_take(r, have, &at, err);

    if (status)
        return status;
    for (uint64_t i = 0; i < have; i += sizeof pattern)
        memcpy(queue->params.mapped + at + i, &pattern, sizeof pattern);
    record_copy(r, queue->params.handle, at, to->handle, cmd->dst_offset, have);
    while (have < cmd->bytes) {
        uint64_t more = cmd->bytes - have < have ? cmd->bytes - have : have;

        batch_barrier(r->device, r->batch);
        record_copy(r, to->handle, cmd->dst_offset, to->handle, cmd->dst_offset + have, more);
        have += more;
    }
    return FRIT_OK;
}

frit_status record_fill(struct recording *r, const frit_cmd *cmd, frit_err *err)
{
    uint64_t pattern = widen(cmd->pattern, cmd->pattern_bytes);

    if (cmd->bytes == 0)
        return FRIT_OK;
    return pattern >> 32 == (uint32_t)pattern ? fill_words(r, cmd, (uint32_t)pattern, err)
                                              : fill_wide(r, cmd, pattern, err);
}
