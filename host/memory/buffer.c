/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: pieces of chunks with two reference counts.  Small ones that nobody owns are kept on
 * shelves, which are free lists, for their next use. */
#include "memory/buffer.h"

#include "memory/adopted.h"
#include "memory/memory_parts.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "memory/derived.h"

#define PIN ((uint64_t)1 << 32)

/* ---- shelves ---- */

static struct shelf *shelf_mine(struct memory *memory)
{
    return &memory->shelves[(uint64_t)pthread_self() * 0x9e3779b97f4a7c15u >> 61];
}

_Static_assert(SHELVES == 8, "the hash has three bits");

static struct buffer **shelf_place(const struct memory *memory, struct shelf *shelf, uint64_t bytes)
{
    return &shelf->list[bytes / memory->align % SHELF_SIZES];
}

/* Under the memory's lock, which comes first. */
static void clear_shelf(struct memory *memory, struct shelf *shelf)
{
    short_lock_enter(&shelf->lock);
    for (uint32_t i = 0; i < SHELF_SIZES; i++) {
        while (shelf->list[i]) {
            struct buffer *buffer = shelf->list[i];

            shelf->list[i] = buffer->next;
            memory_return_piece(memory, buffer->piece);
            free(buffer);
        }
    }
    shelf->count = 0;
    shelf->bytes = 0;
    short_lock_leave(&shelf->lock);
}

void memory_clear_shelves(struct memory *memory)
{
    for (uint32_t i = 0; i < SHELVES; i++)
        clear_shelf(memory, &memory->shelves[i]);
}

/* Takes a buffer whose piece has exactly the size from the shelf; NULL: there is none.  Buffers on
 * shelves stay in the count of buffers, for its peak; memory_stats subtracts them. */
static struct buffer *unshelve(struct memory *memory, uint64_t bytes)
{
    struct shelf *shelf = shelf_mine(memory);
    struct buffer **at, *buffer;

    short_lock_enter(&shelf->lock);
    at = shelf_place(memory, shelf, bytes);
    while (*at && (*at)->piece->bytes != bytes)
        at = &(*at)->next;
    buffer = *at;
    if (buffer) {
        *at = buffer->next;
        shelf->count--;
        shelf->bytes -= bytes;
    }
    short_lock_leave(&shelf->lock);
    return buffer;
}

/* Puts the buffer on the shelf; false: it is too large, or the shelf is full.  The buffer that was
 * put there last is taken first, but one at the start of a chunk is taken before all others: a
 * value that had it gets it again, and programs prepared for operands at the start of a chunk stay
 * usable. */
static bool shelve(struct memory *memory, struct buffer *buffer)
{
    struct shelf *shelf = shelf_mine(memory);
    uint64_t bytes = buffer->piece->bytes;
    bool has_room;

    if (buffer->piece->chunk->kind != CHUNK_POOL || bytes > SHELF_BYTES ||
        memory->limits.keep_bytes < SHELF_BYTES)
        return false;
    short_lock_enter(&shelf->lock);
    has_room = shelf->count < SHELF_BUFFERS && !atomic_load(&buffer->failure);
    if (has_room) {
        struct buffer **at = shelf_place(memory, shelf, bytes);

        while (*at && (*at)->offset == 0 && buffer->offset)
            at = &(*at)->next;
        buffer->next = *at;
        *at = buffer;
        shelf->count++;
        shelf->bytes += bytes;
    }
    short_lock_leave(&shelf->lock);
    return has_room;
}

/* ---- buffers ---- */

frit_status buffer_create(struct memory *memory, uint64_t bytes, bool persistent,
                          struct buffer **out, frit_err *err)
{
    uint64_t tail = memory->info->tail_bytes;
    struct buffer *buffer = NULL;
    frit_status st;

    *out = NULL;
    if (bytes && !persistent && bytes <= SHELF_BYTES)
        buffer = unshelve(memory, round_up(bytes + tail, memory->align));
    if (buffer) {
        buffer->bytes = bytes;
        atomic_store_explicit(&buffer->counts, 1, memory_order_relaxed);
        atomic_store_explicit(&buffer->last_write, 0, memory_order_relaxed);
        atomic_store_explicit(&buffer->writer, 0, memory_order_relaxed);
        *out = buffer;
        return FRIT_OK;
    }
    buffer = calloc(1, sizeof(*buffer));
    if (!buffer)
        return fail_memory(err, sizeof(*buffer));
    if (bytes > INT64_MAX - tail - memory->align) {
        free(buffer);
        return fail(err, FRIT_NO_DEVICE_MEMORY, "%llu bytes are too many",
                    (unsigned long long)bytes);
    }
    buffer->memory = memory;
    buffer->bytes = bytes;
    atomic_init(&buffer->counts, 1);
    if (bytes) {
        st = memory_take_piece(memory, round_up(bytes + tail, memory->align), persistent,
                               &buffer->piece, err);
        if (st) {
            free(buffer);
            return st;
        }
        atomic_store(&buffer->piece->has_parts, false);
        atomic_store_explicit(&buffer->piece->owner, buffer, memory_order_release);
        buffer->handle = buffer->piece->chunk->handle;
        buffer->offset = buffer->piece->offset;
        buffer->alone = buffer->piece->chunk->kind != CHUNK_POOL;
        buffer->tail = tail;
    }
    *out = buffer;
    return FRIT_OK;
}

/* What memory a buffer's uses are kept with: that of the buffer which it is a part of, however many
 * levels up.  NULL: none. */
static struct pool_piece *buffer_piece(const struct buffer *buffer)
{
    while (buffer->whole)
        buffer = buffer->whole;
    return buffer->piece;
}

frit_status buffer_part(struct buffer *whole, uint64_t first, uint64_t bytes, struct buffer **out,
                        frit_err *err)
{
    struct buffer *part = calloc(1, sizeof(*part));

    *out = part;
    if (!part)
        return fail_memory(err, sizeof(*part));
    part->memory = whole->memory;
    part->handle = whole->handle;
    part->offset = whole->offset + first;
    part->bytes = bytes;
    part->alone = whole->alone;
    part->tail = first + bytes == whole->bytes ? whole->tail : 0;
    part->whole = whole;
    atomic_init(&part->counts, 1);
    if (buffer_piece(whole))
        atomic_store(&buffer_piece(whole)->has_parts, true);
    buffer_own(whole);
    short_lock_enter(&part->memory->lock);
    part->next = part->memory->parts;
    if (part->next)
        part->next->prev = part;
    part->memory->parts = part;
    short_lock_leave(&part->memory->lock);
    return FRIT_OK;
}

/* Inside the lock. */
static void unlink_part(struct memory *memory, struct buffer *part)
{
    if (part->prev)
        part->prev->next = part->next;
    else
        memory->parts = part->next;
    if (part->next)
        part->next->prev = part->prev;
}

static void give_back(struct buffer *buffer)
{
    struct memory *memory = buffer->memory;
    struct failure *failure;

    buffer_changed(buffer);
    if (buffer->piece && shelve(memory, buffer))
        return;
    short_lock_enter(&memory->lock);
    if (buffer->adopted)
        adopted_return(memory, buffer->piece->chunk);
    else if (buffer->piece)
        memory_return_piece(memory, buffer->piece);
    if (buffer->whole)
        unlink_part(memory, buffer);
    short_lock_leave(&memory->lock);
    failure = atomic_load(&buffer->failure);
    if (failure)
        memory->queue.forget(memory->queue.ctx, failure);
    buffer_disown(buffer->whole);
    free(buffer);
    memory_poll(memory, PROGRESS_KNOWN);
}

static void drop(struct buffer *buffer, uint64_t count)
{
    if (atomic_fetch_sub_explicit(&buffer->counts, count, memory_order_acq_rel) == count)
        give_back(buffer);
}

void buffer_own(struct buffer *buffer)
{
    atomic_fetch_add_explicit(&buffer->counts, 1, memory_order_relaxed);
}

void buffer_disown(struct buffer *buffer)
{
    if (buffer)
        drop(buffer, 1);
}

void buffer_pin(struct buffer *buffer)
{
    atomic_fetch_add_explicit(&buffer->counts, PIN, memory_order_relaxed);
}

void buffer_unpin(struct buffer *buffer)
{
    drop(buffer, PIN);
}

uint32_t buffer_owners(const struct buffer *buffer)
{
    return (uint32_t)atomic_load_explicit(&buffer->counts, memory_order_acquire) +
           (buffer->whole != NULL || buffer->adopted);
}

uint32_t buffer_pins(const struct buffer *buffer)
{
    return (uint32_t)(atomic_load_explicit(&buffer->counts, memory_order_acquire) / PIN);
}

bool buffer_is_persistent(const struct buffer *buffer)
{
    return buffer->piece && buffer->piece->chunk->kind == CHUNK_PERSISTENT;
}

/* ---- uses ---- */

bool buffer_keeps_uses(const struct buffer *buffer)
{
    const struct pool_piece *piece = buffer_piece(buffer);

    return piece && piece->chunk->n_queues;
}

void buffer_add_waits(const struct buffer *buffer, bool reads, struct points *points)
{
    const struct pool_piece *piece = buffer_piece(buffer);

    if (!piece)
        return;
    /* With parts, the last write of the whole buffer may be older than those of its parts. */
    if (reads && !atomic_load_explicit(&piece->has_parts, memory_order_relaxed)) {
        points_add(points, atomic_load_explicit(&buffer->last_write, memory_order_acquire));
        return;
    }
    for (uint32_t q = 0; q < piece->chunk->n_queues; q++)
        points_add_value(points, q, atomic_load_explicit(&piece->uses[q], memory_order_acquire));
}

void buffer_use(const struct buffer *buffer, uint64_t point)
{
    struct pool_piece *piece = buffer_piece(buffer);
    atomic_uint_least64_t *use;
    uint64_t now, value = point_value(point);

    if (!piece || piece->chunk->n_queues == 0)
        return;
    use = &piece->uses[point_queue(point)];
    now = atomic_load_explicit(use, memory_order_relaxed);
    while (now < value && !atomic_compare_exchange_weak(use, &now, value))
        ;
}

static void visit(struct buffer *buffer, void (*fn)(struct buffer *buffer, void *ctx), void *ctx)
{
    if (atomic_load(&buffer->counts))
        fn(buffer, ctx);
}

/* Holds all locks during the visit: buffers are removed under the memory's lock, and put on a shelf
 * under the shelf's. */
void memory_each_buffer(struct memory *memory, void (*fn)(struct buffer *buffer, void *ctx),
                        void *ctx)
{
    short_lock_enter(&memory->lock);
    for (uint32_t i = 0; i < SHELVES; i++)
        short_lock_enter(&memory->shelves[i].lock);
    for (const struct pool_chunk *chunk = memory->pool.chunks; chunk; chunk = chunk->next) {
        for (const struct pool_piece *piece = chunk->first; piece; piece = piece->after) {
            struct buffer *owner = piece->used ? atomic_load(&piece->owner) : NULL;

            if (owner)
                visit(owner, fn, ctx);
        }
    }
    for (struct buffer *part = memory->parts; part; part = part->next)
        visit(part, fn, ctx);
    for (uint32_t i = 0; i < SHELVES; i++)
        short_lock_leave(&memory->shelves[i].lock);
    short_lock_leave(&memory->lock);
}

/* ---- mirrors ---- */

bool buffer_set_mirror(struct buffer *buffer, struct buffer *mirror)
{
    struct buffer *none = NULL;

    if (atomic_compare_exchange_strong(&buffer->mirror, &none, mirror))
        return true;
    buffer_disown(mirror);
    return false;
}

void buffer_drop_copies(struct buffer *buffer)
{
    if (atomic_load_explicit(&buffer->mirror, memory_order_relaxed)) {
        atomic_store(&buffer->is_away, false);
        buffer_disown(atomic_exchange(&buffer->mirror, NULL));
    }
    derived_forget(buffer);
}
