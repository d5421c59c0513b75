/* SPDX-License-Identifier: Apache-2.0 */
#include "portion.h"

#include <string.h>

#include <frit/op.h>

#include "collective/combine.h"

/* Of a rank's data.  Large enough that taking a portion costs nothing beside it, and small enough
 * that 25 MiB are divided evenly and that an abort does not wait. */
static const uint64_t portion_bytes = 256 * 1024;

static bool in_parts(const struct agreed *op)
{
    return op->kind == FRIT_COLLECTIVE_ALL_GATHER || op->kind == FRIT_COLLECTIVE_REDUCE_SCATTER;
}

static bool copies(const struct agreed *op)
{
    return op->kind == FRIT_COLLECTIVE_BROADCAST || op->kind == FRIT_COLLECTIVE_ALL_GATHER;
}

/* Units, elements or bytes, of the part that one rank has or gets. */
static uint64_t part_units(const struct agreed *op, uint32_t buffer)
{
    const frit_collective_buffer *first = &op->buffers[0][buffer];

    return copies(op) ? frit_storage_bytes(first->dtype, (int64_t)first->count) : first->count;
}

static uint64_t units(const struct agreed *op, uint32_t buffer)
{
    return part_units(op, buffer) * (in_parts(op) ? op->size : 1);
}

static uint64_t unit_bytes(const struct agreed *op, uint32_t buffer)
{
    return copies(op) ? 1 : frit_storage_bytes(op->buffers[0][buffer].dtype, 1);
}

struct portion portion_next(const struct agreed *op, struct portion from)
{
    uint64_t left = portion_bytes;

    for (; from.buffer < op->n_buffers && left > 0; from.buffer++, from.at = 0) {
        const uint64_t bytes = unit_bytes(op, from.buffer);
        const uint64_t rest = units(op, from.buffer) - from.at;

        if (rest * bytes > left)
            return (struct portion){from.buffer, from.at + left / bytes};
        left -= rest * bytes;
    }
    return from;
}

/* ---- one range of one buffer ---- */

static void copy_to_all(const struct agreed *op, uint32_t buffer, const char *source, uint64_t at,
                        uint64_t bytes)
{
    for (uint32_t r = 0; r < op->size; r++) {
        char *into = (char *)op->buffers[r][buffer].into + at;

        if (into != source)
            memcpy(into, source, bytes);
    }
}

/* `part`: whose part that is, where the operation has parts; `at` counts from its start. */
static void run_in_part(const struct agreed *op, uint32_t buffer, uint32_t part, uint64_t at,
                        uint64_t n)
{
    const uint64_t before = part * part_units(op, buffer);
    const void *from[LOCAL_MAX_RANKS];
    void *into[LOCAL_MAX_RANKS];
    struct combine combine = {.dtype = op->buffers[0][buffer].dtype,
                              .mean = op->combine == FRIT_CHOICE_combine_mean,
                              .n_from = op->size,
                              .n_into = op->size,
                              .from = from,
                              .into = into,
                              .from_at = before + at,
                              .into_at = at,
                              .count = n};

    if (copies(op)) {
        const uint32_t source = op->kind == FRIT_COLLECTIVE_BROADCAST ? op->root : part;

        copy_to_all(op, buffer, (const char *)op->buffers[source][buffer].from + at, before + at,
                    n);
        return;
    }
    for (uint32_t r = 0; r < op->size; r++) {
        from[r] = op->buffers[r][buffer].from;
        into[r] = op->buffers[r][buffer].into;
    }
    if (op->kind == FRIT_COLLECTIVE_REDUCE_SCATTER) {
        into[0] = into[part];
        combine.n_into = 1;
    }
    combine_run(&combine);
}

static void run_range(const struct agreed *op, uint32_t buffer, uint64_t at, uint64_t until)
{
    const uint64_t part = in_parts(op) ? part_units(op, buffer) : until;

    while (at < until) {
        const uint64_t begin = at % part, rest = part - begin;
        const uint64_t n = until - at < rest ? until - at : rest;

        run_in_part(op, buffer, (uint32_t)(at / part), begin, n);
        at += n;
    }
}

void portion_run(const struct agreed *op, struct portion from, struct portion until)
{
    for (; from.buffer < until.buffer; from.buffer++, from.at = 0)
        run_range(op, from.buffer, from.at, units(op, from.buffer));
    if (from.at < until.at)
        run_range(op, from.buffer, from.at, until.at);
}
