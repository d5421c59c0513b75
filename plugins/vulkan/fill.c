/* SPDX-License-Identifier: Apache-2.0 */
/* FILL.  vkCmdFillBuffer repeats a 32-bit word over whole words; other patterns and parts of words
 * are filled by copies. */
#include "fill.h"

#include <string.h>

#include "batch.h"
#include "device.h"
#include "record.h"

/* Bytes of a pattern of 8 bytes that are copied from the parameter ring. */
enum { FIRST_BYTES = 4096 };

/* The pattern of 1, 2, 4 or 8 bytes, repeated to 8 bytes. */
static uint64_t repeat_pattern(uint64_t pattern, uint32_t bytes)
{
    if (bytes < 8)
        pattern &= (1ull << 8 * bytes) - 1;
    for (uint32_t have = bytes; have < 8; have *= 2)
        pattern |= pattern << 8 * have;
    return pattern;
}

/* Fills whole words with `word`, and copies the parts of words at both ends. */
static frit_status fill_words(struct recorder *r, const frit_cmd *cmd, uint32_t word, frit_err *err)
{
    const struct queue *queue = &r->device->queue;
    const frit_memory *to = cmd->dst;
    uint64_t begin = cmd->dst_offset, end = begin + cmd->bytes;
    uint64_t first = (begin + 3) & ~3ull, last = end & ~3ull, at;
    frit_status status;

    if (first > last)
        first = last = end; /* the range lies inside one word */
    if (begin < first || last < end) {
        status = record_reserve(r, sizeof word, &at, err);
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

/* Copies the first FIRST_BYTES from the parameter ring, then doubles what is filled by copies
 * within the buffer. */
static frit_status fill_by_doubling(struct recorder *r, const frit_cmd *cmd, uint64_t pattern,
                                    frit_err *err)
{
    const struct queue *queue = &r->device->queue;
    const frit_memory *to = cmd->dst;
    uint64_t have = cmd->bytes < FIRST_BYTES ? cmd->bytes : FIRST_BYTES, at;
    frit_status status = record_reserve(r, have, &at, err);

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

frit_status fill_record(struct recorder *r, const frit_cmd *cmd, frit_err *err)
{
    uint64_t pattern = repeat_pattern(cmd->pattern, cmd->pattern_bytes);

    if (cmd->bytes == 0)
        return FRIT_OK;
    return pattern >> 32 == (uint32_t)pattern ? fill_words(r, cmd, (uint32_t)pattern, err)
                                              : fill_by_doubling(r, cmd, pattern, err);
}
