/* SPDX-License-Identifier: Apache-2.0 */
#include "device/staging.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/submit_after.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "tensor/failure.h"

/* Slots enough for one that is filled, one that is copied and one that waits for it; a slot of some
 * MiB takes a link of tens of GB/s a tenth of a millisecond, which is ten submits long. */
enum { SLOTS = 4, SLOT_BYTES = 4 << 20, SLOT_COPIES = 1024, PART_ALIGN = 64 };

/* A part of a piece that lies in a slot. */
struct part {
    struct staging_piece *piece;
    uint64_t first, bytes; /* of the piece */
    uint64_t offset;       /* in the ring */
};

struct slot_state {
    struct part parts[SLOT_COPIES];
    uint32_t n_parts;
    uint64_t used;  /* bytes */
    uint64_t point; /* that its copies reach, 0: none is under way */
    bool continues; /* the last part's piece goes on in the next slot */
};

struct staging {
    frit_device *device;
    uint32_t heap;
    bool unusable; /* the driver gives no such memory */
    bool reads;    /* the transfers under way */
    pthread_mutex_t lock;
    frit_memory *memory; /* NULL: not allocated */
    char *host;
    uint32_t now; /* slot to be filled */
    struct slot_state slots[SLOTS];
    frit_cmd cmds[SLOT_COPIES];
};

/* ---- the ring ---- */

static const frit_heap *heap_at(const frit_device_info *info, uint32_t index)
{
    return (const frit_heap *)(const void *)((const char *)info->heaps +
                                             (size_t)index * info->heap_stride);
}

uint32_t staging_heap(const frit_device_info *info, uint64_t bytes)
{
    for (uint32_t i = 1; i < info->n_heaps; i++) {
        const frit_heap *heap = heap_at(info, i);

        if (heap->kind == FRIT_HEAP_PINNED && (!heap->max_block || heap->max_block >= bytes))
            return i;
    }
    return 0;
}

frit_status staging_create(frit_device *device, struct staging **out, frit_err *err)
{
    uint32_t heap = staging_heap(device->info, SLOTS * SLOT_BYTES);

    *out = NULL;
    if (!heap || device->info->caps & (FRIT_CAP_HOST_VISIBLE | FRIT_CAP_INLINE_QUEUE))
        return FRIT_OK;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    (*out)->device = device;
    (*out)->heap = heap;
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

/* Nothing uses it. */
static void free_ring(struct staging *staging)
{
    const frit_device *device = staging->device;

    device->backend->free(device->self, staging->memory);
    staging->memory = NULL;
}

void staging_destroy(struct staging *staging)
{
    if (!staging)
        return;
    free_ring(staging);
    pthread_mutex_destroy(&staging->lock);
    free(staging);
}

static bool alloc_ring(struct staging *staging)
{
    const frit_device *device = staging->device;
    const uint64_t align = device->info->align_bytes ? device->info->align_bytes : PART_ALIGN;
    const frit_alloc_desc desc = {.struct_size = sizeof(desc),
                                  .heap = staging->heap,
                                  .bytes = SLOTS * SLOT_BYTES,
                                  .align = align};
    frit_allocation got = {.struct_size = sizeof(got)};
    frit_err err = ERR_INIT;

    if (fail_from(&err, device->backend->alloc(device->self, &desc, &got, &err), "alloc"))
        log_write(FRIT_LOG_INFO, "memory", "%s: no pinned memory: %s", device->name, err.text);
    staging->memory = got.memory;
    staging->host = got.host_pointer;
    staging->unusable = !got.memory || !got.host_pointer;
    if (staging->unusable)
        free_ring(staging);
    return !staging->unusable;
}

bool staging_enter(struct staging *staging)
{
    if (!staging || pthread_mutex_trylock(&staging->lock))
        return false;
    if (!staging->unusable && (staging->memory || alloc_ring(staging)))
        return true;
    pthread_mutex_unlock(&staging->lock);
    return false;
}

void staging_leave(struct staging *staging)
{
    pthread_mutex_unlock(&staging->lock);
}

/* ---- slots ---- */

static struct failure *failure_at(const struct staging *staging, uint64_t point)
{
    struct lineage *lineage = staging->device->lineage;

    return lineage_knows(lineage, point) ? lineage_failure_at(lineage, point) : NULL;
}

/* The copies of a slot have ended: what was read goes to the program.  Of a buffer that was written
 * in several submits only the last is known to the lineage. */
static void empty_slot(struct staging *staging, struct slot_state *slot)
{
    struct failure *failure = failure_at(staging, slot->point);

    for (uint32_t i = 0; i < slot->n_parts && staging->reads; i++) {
        const struct part *part = &slot->parts[i];

        if (failure && !part->piece->failure)
            part->piece->failure = failure_ref(failure);
        memcpy((char *)part->piece->data + part->first, staging->host + part->offset, part->bytes);
    }
    if (failure && slot->continues && !staging->reads)
        lineage_spoil(staging->device->lineage, slot->parts[slot->n_parts - 1].piece->buffer,
                      failure);
    failure_unref(failure);
}

/* Waits until the slot can be filled again. */
static frit_status clear_slot(struct staging *staging, struct slot_state *slot, frit_err *err)
{
    frit_status st = FRIT_OK;

    if (slot->point)
        st = device_wait(staging->device, slot->point, err);
    if (!st && slot->point)
        empty_slot(staging, slot);
    slot->n_parts = 0;
    slot->used = 0;
    slot->point = 0;
    slot->continues = false;
    return st;
}

static frit_cmd copy_of(const struct staging *staging, const struct part *part)
{
    const struct buffer *buffer = part->piece->buffer;
    const uint64_t there = buffer->offset + part->piece->first + part->first;
    frit_cmd cmd = {.struct_size = sizeof(cmd), .kind = FRIT_CMD_COPY, .bytes = part->bytes};

    if (staging->reads) {
        cmd.src = buffer->handle;
        cmd.src_offset = there;
        cmd.dst = staging->memory;
        cmd.dst_offset = part->offset;
    } else {
        cmd.src = staging->memory;
        cmd.src_offset = part->offset;
        cmd.dst = buffer->handle;
        cmd.dst_offset = there;
    }
    return cmd;
}

static void note_copied(const struct staging *staging, struct staging_piece *piece, uint64_t point)
{
    piece->at = point;
    buffer_use(piece->buffer, point);
    if (staging->reads)
        return;
    atomic_store(&piece->buffer->last_write, point);
    lineage_transferred(staging->device->lineage, piece->buffer, point);
}

/* Submits the copies of the slot that is being filled, and goes on to the next. */
static frit_status submit_slot(struct staging *staging, frit_err *err)
{
    struct slot_state *slot = &staging->slots[staging->now];
    struct submit_after after = {0};

    if (slot->n_parts == 0)
        return FRIT_OK;
    for (uint32_t i = 0; i < slot->n_parts; i++) {
        staging->cmds[i] = copy_of(staging, &slot->parts[i]);
        buffer_add_waits(slot->parts[i].piece->buffer, staging->reads, &after.points);
    }
    TRY(device_submit(staging->device, 0, staging->cmds, slot->n_parts, &after, &slot->point, err));
    for (uint32_t i = 0; i < slot->n_parts; i++)
        note_copied(staging, slot->parts[i].piece, slot->point);
    staging->now = (staging->now + 1) % SLOTS;
    return clear_slot(staging, &staging->slots[staging->now], err);
}

/* ---- pieces ---- */

/* Puts as much of the piece as there is room for into the slot; returns how much that is. */
static uint64_t add_part(struct staging *staging, struct staging_piece *piece, uint64_t first)
{
    struct slot_state *slot = &staging->slots[staging->now];
    struct part *part = &slot->parts[slot->n_parts++];
    uint64_t left = piece->bytes - first, space = SLOT_BYTES - slot->used;

    *part = (struct part){.piece = piece,
                          .first = first,
                          .bytes = left < space ? left : space,
                          .offset = (uint64_t)staging->now * SLOT_BYTES + slot->used};
    if (!staging->reads)
        memcpy(staging->host + part->offset, (const char *)piece->data + first, part->bytes);
    slot->used += (part->bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    slot->continues = part->bytes < left;
    return part->bytes;
}

static frit_status stage(struct staging *staging, struct staging_piece *pieces, uint64_t n,
                         frit_err *err)
{
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t done = 0; done < pieces[i].bytes;) {
            const struct slot_state *slot = &staging->slots[staging->now];

            if (slot->used == SLOT_BYTES || slot->n_parts == SLOT_COPIES)
                TRY(submit_slot(staging, err));
            done += add_part(staging, &pieces[i], done);
        }
    }
    return submit_slot(staging, err);
}

/* Slots whose copies have to end before the call does: of reads all, of writes those in which a
 * piece goes on, whose failure nobody else would find. */
static frit_status end_slots(struct staging *staging, frit_err *err)
{
    frit_status first = FRIT_OK;

    for (uint32_t i = 1; i <= SLOTS; i++) {
        struct slot_state *slot = &staging->slots[(staging->now + i) % SLOTS];
        frit_status st;

        if (slot->point && !staging->reads && !slot->continues) {
            slot->n_parts = 0; /* their pieces end with the call */
            continue;
        }
        st = clear_slot(staging, slot, first ? NULL : err);
        first = first ? first : st;
    }
    return first;
}

/* What is left of a call that failed: its pieces are gone when it returns. */
static void abandon(struct staging *staging)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot_state *slot = &staging->slots[i];

        if (slot->point)
            (void)device_wait(staging->device, slot->point, NULL);
        slot->n_parts = 0;
        slot->used = 0;
        slot->point = 0;
        slot->continues = false;
    }
}

static frit_status transfer(struct staging *staging, bool reads, struct staging_piece *pieces,
                            uint64_t n, frit_err *err)
{
    frit_status st;

    staging->reads = reads;
    st = stage(staging, pieces, n, err);
    if (!st)
        st = end_slots(staging, err);
    if (st)
        abandon(staging);
    return st;
}

frit_status staging_write(struct staging *staging, struct staging_piece *pieces, uint64_t n,
                          frit_err *err)
{
    return transfer(staging, false, pieces, n, err);
}

frit_status staging_read(struct staging *staging, struct staging_piece *pieces, uint64_t n,
                         frit_err *err)
{
    return transfer(staging, true, pieces, n, err);
}

void staging_trim(struct staging *staging)
{
    if (!staging || pthread_mutex_trylock(&staging->lock))
        return;
    abandon(staging);
    if (staging->memory)
        free_ring(staging);
    pthread_mutex_unlock(&staging->lock);
}
