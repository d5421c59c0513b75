/* SPDX-License-Identifier: Apache-2.0 */
#include "run/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/prepared.h"
#include "device/queue.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/program.h"
#include "tensor/failure.h"

void batch_fini(struct batch *batch)
{
    batch_cut(batch, &(struct batch_mark){0});
    arena_fini(&batch->arena);
    free(batch->cmds);
    free(batch->ranges);
    free(batch->written);
    free(batch->used);
    free(batch->kept);
    free(batch->derived);
    *batch = (struct batch){0};
}

struct batch_mark batch_mark(const struct batch *batch)
{
    return (struct batch_mark){batch->n_cmds,       batch->n_ranges,   batch->since,
                               batch->n_written,    batch->n_used,     batch->n_kept,
                               batch->n_derived,    batch->n_launches, batch->n_barriers,
                               batch->launches.last};
}

void batch_cut(struct batch *batch, const struct batch_mark *mark)
{
    if (batch->launches.last > mark->last_launch)
        lineage_end(batch->lineage, &batch->launches, mark->last_launch, 0);
    while (batch->n_kept > mark->n_kept) {
        const struct batch_kept *kept = &batch->kept[--batch->n_kept];

        prepared_unref(kept->prepared);
        program_unref(kept->program);
    }
    while (batch->n_derived > mark->n_derived)
        buffer_disown(batch->derived[--batch->n_derived].memory);
    batch->n_cmds = mark->n_cmds;
    batch->n_ranges = mark->n_ranges;
    batch->since = mark->since;
    batch->n_written = mark->n_written;
    batch->n_used = mark->n_used;
    batch->n_launches = mark->n_launches;
    batch->n_barriers = mark->n_barriers;
}

void batch_reset(struct batch *batch)
{
    batch_cut(batch, &(struct batch_mark){0});
    batch->after = (struct submit_after){0};
    arena_reset(&batch->arena);
}

/* Whether one must not begin before the other has ended. */
static bool ranges_clash(const struct batch_range *a, const struct batch_range *b)
{
    return (a->write || b->write) && a->memory == b->memory && a->begin < b->end &&
           b->begin < a->end;
}

static bool must_wait(const struct batch *batch, const struct batch_range *ranges, uint32_t n)
{
    for (uint32_t i = batch->since; i < batch->n_ranges; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (ranges_clash(&batch->ranges[i], &ranges[k]))
                return true;
        }
    }
    return false;
}

frit_status batch_add(struct batch *batch, const frit_cmd *cmds, uint32_t n_cmds,
                      const struct batch_range *ranges, uint32_t n_ranges, frit_err *err)
{
    if (!array_grow(&batch->cmds, &batch->cmds_capacity, batch->n_cmds, n_cmds + 1,
                    sizeof(*batch->cmds)) ||
        !array_grow(&batch->ranges, &batch->ranges_capacity, batch->n_ranges, n_ranges,
                    sizeof(*batch->ranges)))
        return fail_memory(err, (n_cmds + 1) * sizeof(*cmds));
    if (must_wait(batch, ranges, n_ranges)) {
        batch->cmds[batch->n_cmds++] =
            (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
        batch->n_barriers++;
        batch->since = batch->n_ranges;
    }
    for (uint32_t i = 0; i < n_cmds; i++)
        batch->cmds[batch->n_cmds++] = cmds[i];
    for (uint32_t i = 0; i < n_ranges; i++) {
        if (ranges[i].memory && ranges[i].begin < ranges[i].end)
            batch->ranges[batch->n_ranges++] = ranges[i];
    }
    return FRIT_OK;
}

frit_status batch_fill(struct batch *batch, struct buffer *buffer, uint64_t bytes, uint8_t byte,
                       frit_err *err)
{
    frit_cmd cmd = {.struct_size = sizeof(cmd),
                    .kind = FRIT_CMD_FILL,
                    .dst = buffer->handle,
                    .dst_offset = buffer->offset,
                    .bytes = bytes ? bytes : buffer->bytes + buffer->tail,
                    .pattern = byte,
                    .pattern_bytes = 1};
    struct batch_range range = {buffer->handle, cmd.dst_offset, cmd.dst_offset + cmd.bytes, true};

    if (!buffer->handle)
        return FRIT_OK;
    TRY(batch_uses(batch, buffer, true, err));
    return batch_add(batch, &cmd, 1, &range, 1, err);
}

frit_status batch_copy(struct batch *batch, struct buffer *from, uint64_t first, struct buffer *to,
                       frit_err *err)
{
    frit_cmd cmd = {.struct_size = sizeof(cmd),
                    .kind = FRIT_CMD_COPY,
                    .dst = to->handle,
                    .dst_offset = to->offset,
                    .src = from->handle,
                    .src_offset = from->offset + first,
                    .bytes = to->bytes};
    struct batch_range ranges[2] = {{cmd.src, cmd.src_offset, cmd.src_offset + cmd.bytes, false},
                                    {cmd.dst, cmd.dst_offset, cmd.dst_offset + cmd.bytes, true}};

    TRY(batch_uses(batch, from, false, err));
    return batch_add(batch, &cmd, 1, ranges, 2, err);
}

frit_status batch_uses(struct batch *batch, struct buffer *buffer, bool write, frit_err *err)
{
    if (!buffer_keeps_uses(buffer))
        return FRIT_OK;
    if (!array_grow(&batch->used, &batch->used_capacity, batch->n_used, 1, sizeof(struct buffer *)))
        return fail_memory(err, sizeof(struct buffer *));
    batch->used[batch->n_used++] = buffer;
    buffer_add_waits(buffer, !write, &batch->after.points);
    return FRIT_OK;
}

frit_status batch_writes(struct batch *batch, struct buffer *buffer, frit_err *err)
{
    TRY(batch_uses(batch, buffer, true, err));
    if (!array_grow(&batch->written, &batch->written_capacity, batch->n_written, 1,
                    sizeof(struct buffer *)))
        return fail_memory(err, sizeof(struct buffer *));
    batch->written[batch->n_written++] = buffer;
    return FRIT_OK;
}

frit_status batch_derives(struct batch *batch, const struct batch_derived *derived, frit_err *err)
{
    if (!array_grow(&batch->derived, &batch->derived_capacity, batch->n_derived, 1,
                    sizeof(*batch->derived)))
        return fail_memory(err, sizeof(*batch->derived));
    TRY(batch_writes(batch, derived->memory, err));
    buffer_own(derived->memory);
    batch->derived[batch->n_derived++] = *derived;
    return FRIT_OK;
}

struct buffer *batch_find_derived(const struct batch *batch, uint64_t content,
                                  const struct derived_key *key)
{
    for (uint32_t i = 0; i < batch->n_derived; i++) {
        const struct batch_derived *derived = &batch->derived[i];

        if (derived->content != content || memcmp(&derived->key, key, sizeof(*key)) != 0)
            continue;
        buffer_own(derived->memory);
        return derived->memory;
    }
    return NULL;
}

frit_status batch_keep(struct batch *batch, struct program *program, struct prepared *prepared,
                       frit_err *err)
{
    if (!array_grow(&batch->kept, &batch->kept_capacity, batch->n_kept, 1, sizeof(*batch->kept))) {
        prepared_unref(prepared);
        return fail_memory(err, sizeof(*batch->kept));
    }
    batch->kept[batch->n_kept++] = (struct batch_kept){program_ref(program), prepared};
    return FRIT_OK;
}

/* What failed inside the submit spoils what it was to write. */
static void spoil_written(const struct batch *batch, frit_device *device, uint64_t point)
{
    struct failure *failure;

    if (!(device->info->caps & FRIT_CAP_INLINE_QUEUE) || !lineage_knows(device->lineage, point))
        return;
    failure = lineage_failure_at(device->lineage, point);
    for (uint32_t i = 0; i < batch->n_written && failure; i++)
        lineage_spoil(device->lineage, batch->written[i], failure);
    failure_unref(failure);
}

frit_status batch_submit(struct batch *batch, frit_device *device, uint32_t queue, uint64_t *point,
                         frit_err *err)
{
    TRY(device_submit(device, queue, batch->cmds, batch->n_cmds, &batch->after, point, err));
    for (uint32_t i = 0; i < batch->n_used; i++)
        buffer_use(batch->used[i], *point);
    for (uint32_t i = 0; i < batch->n_written; i++) {
        atomic_store(&batch->written[i]->last_write, *point);
        buffer_changed(batch->written[i]);
        if (batch->written[i]->whole) {
            atomic_store(&batch->written[i]->whole->last_write, *point);
            buffer_changed(batch->written[i]->whole);
        }
    }
    spoil_written(batch, device, *point);
    for (uint32_t i = 0; i < batch->n_derived; i++) {
        const struct batch_derived *derived = &batch->derived[i];

        atomic_store(&derived->memory->last_write, *point);
        derived_add(derived->of, derived->content, &derived->key, derived->memory);
    }
    lineage_end(device->lineage, &batch->launches, 0, *point);
    atomic_fetch_add(&device->count.launches, batch->n_launches);
    atomic_fetch_add(&device->count.barriers, batch->n_barriers);
    batch_reset(batch);
    return FRIT_OK;
}
