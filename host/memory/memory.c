/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/short_lock.h"
#include "memory/pool.h"

#define PIN ((uint64_t)1 << 32)

/* Small buffers that were given back lie on a shelf, pieces of blocks and all, until one of exactly
 * their size is wanted or blocks are to go back to the driver.  Threads use different shelves as a
 * rule, so that they do not wait for each other. */
enum { SHELVES = 8, SHELF_SIZES = 16, SHELF_BUFFERS = 16, SHELF_BYTES = 1 << 14 };

struct shelf {
    _Alignas(64) struct short_lock lock;
    struct buffer *list[SHELF_SIZES]; /* by size */
    uint32_t count;
    uint64_t bytes;
};

struct memory {
    struct shelf shelves[SHELVES];
    const frit_backend *backend;
    const frit_device_info *info;
    void *self;
    struct memory_limits limits;
    uint64_t align;
    memory_idle idle;
    void *idle_ctx;
    struct short_lock lock; /* of everything below */
    struct pool pool;
    struct memory_stats stats;
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

uint64_t memory_block_bytes(const frit_device_info *info, uint64_t wanted)
{
    uint64_t budget = info->heap.budget ? info->heap.budget : info->heap.bytes;
    uint64_t unit = info->heap.granularity ? info->heap.granularity : 1;

    if (budget && wanted > budget / 8)
        wanted = budget / 8;
    wanted = round_up(wanted, unit);
    if (info->heap.max_block && wanted > info->heap.max_block)
        wanted = info->heap.max_block / unit * unit;
    return wanted;
}

frit_status memory_create(const frit_backend *backend, const frit_device_info *info, void *self,
                          const struct memory_limits *limits, struct memory **out, frit_err *err)
{
    struct memory *memory = aligned_alloc(_Alignof(struct memory), sizeof(*memory));

    *out = NULL;
    if (!memory)
        return fail_memory(err, sizeof(*memory));
    memset(memory, 0, sizeof(*memory));
    memory->backend = backend;
    memory->info = info;
    memory->self = self;
    memory->limits = *limits;
    memory->align = info->align_bytes ? info->align_bytes : 64;
    *out = memory;
    return FRIT_OK;
}

void memory_set_idle(struct memory *memory, memory_idle idle, void *ctx)
{
    memory->idle = idle;
    memory->idle_ctx = ctx;
}

void memory_destroy(struct memory *memory)
{
    if (!memory)
        return;
    memory_trim(memory, true);
    free(memory);
}

/* ---- blocks ---- */

/* Takes idle blocks out until at most `keep` bytes of them are left; returns them as a list. */
static struct pool_block *unlink_idle(struct memory *memory, uint64_t keep, bool persistent)
{
    struct pool_block *list = NULL;

    for (struct pool_block *block = memory->pool.blocks, *next; block; block = next) {
        next = block->next;
        if (block->n_used ||
            (block->kind == BLOCK_PERSISTENT ? !persistent : memory->pool.idle_bytes <= keep))
            continue;
        pool_remove(&memory->pool, block);
        memory->stats.reserved_now -= block->bytes;
        memory->stats.driver_frees++;
        block->next = list;
        list = block;
    }
    return list;
}

static void free_blocks(struct memory *memory, struct pool_block *list)
{
    if (list && memory->idle)
        memory->idle(memory->idle_ctx);
    while (list) {
        struct pool_block *next = list->next;

        memory->backend->free(memory->self, list->handle);
        pool_block_destroy(list);
        list = next;
    }
}

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
            memory->stats.buffers_now--;
            memory->stats.bytes_now -= buffer->segment->bytes;
            pool_return(&memory->pool, buffer->segment);
            free(buffer);
        }
    }
    shelf->count = 0;
    shelf->bytes = 0;
    short_lock_leave(&shelf->lock);
}

void memory_trim(struct memory *memory, bool all)
{
    struct pool_block *list;

    short_lock_enter(&memory->lock);
    for (uint32_t i = 0; i < SHELVES; i++)
        clear_shelf(memory, &memory->shelves[i]);
    list = unlink_idle(memory, 0, all);
    short_lock_leave(&memory->lock);
    free_blocks(memory, list);
    if (memory->backend->memory_cleanup)
        memory->backend->memory_cleanup(memory->self);
}

/* One call of the driver, counted. */
static frit_status driver_alloc(struct memory *memory, uint64_t bytes, frit_allocation *out,
                                frit_err *err)
{
    frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = bytes, .align = memory->align};

    *out = (frit_allocation){.struct_size = sizeof(*out)};
    short_lock_enter(&memory->lock);
    memory->stats.driver_allocs++;
    short_lock_leave(&memory->lock);
    return fail_from(err, memory->backend->alloc(memory->self, &desc, out, err), "alloc");
}

static frit_status alloc_or_trim(struct memory *memory, uint64_t bytes, frit_allocation *out,
                                 frit_err *err)
{
    frit_err first = ERR_INIT;
    frit_status st = driver_alloc(memory, bytes, out, &first);

    if (st == FRIT_NO_DEVICE_MEMORY) {
        log_write(FRIT_LOG_INFO, "memory", "trimming pools to allocate %llu bytes",
                  (unsigned long long)bytes);
        memory_trim(memory, false);
        short_lock_enter(&memory->lock);
        memory->stats.trims++;
        memory->stats.alloc_retries++;
        short_lock_leave(&memory->lock);
        st = driver_alloc(memory, bytes, out, &first);
    }
    if (!st && !out->memory)
        st = fail(&first, FRIT_INTERNAL, "the driver's alloc gave no memory and no error");
    if (st && err)
        *err = first;
    return st;
}

static frit_status block_from_driver(struct memory *memory, enum block_kind kind, uint64_t bytes,
                                     struct pool_block **out, frit_err *err)
{
    frit_allocation a;

    if (memory->info->heap.max_block && bytes > memory->info->heap.max_block)
        return fail(err, FRIT_NO_DEVICE_MEMORY,
                    "%llu bytes are more than the device allocates in one piece (%llu)",
                    (unsigned long long)bytes, (unsigned long long)memory->info->heap.max_block);
    TRY(alloc_or_trim(memory, bytes, &a, err));
    *out = pool_block_create(kind, a.memory, bytes);
    if (!*out) {
        memory->backend->free(memory->self, a.memory);
        return fail_memory(err, sizeof(**out));
    }
    return FRIT_OK;
}

/* ---- buffers ---- */

static enum block_kind kind_for(const struct memory *memory, uint64_t bytes, bool persistent)
{
    if (persistent)
        return BLOCK_PERSISTENT;
    if (memory->info->caps & FRIT_CAP_NO_SUBALLOC || bytes > memory->limits.block_bytes)
        return BLOCK_WHOLE;
    return BLOCK_POOL;
}

static void count_taken(struct memory *memory, const struct pool_piece *segment)
{
    struct memory_stats *s = &memory->stats;

    s->buffers_now++;
    s->bytes_now += segment->bytes;
    if (s->bytes_now > s->bytes_peak)
        s->bytes_peak = s->bytes_now;
}

static struct pool_piece *take(struct memory *memory, enum block_kind kind, uint64_t bytes)
{
    struct pool_piece *segment;

    short_lock_enter(&memory->lock);
    segment = pool_take(&memory->pool, kind, bytes);
    if (segment)
        count_taken(memory, segment);
    short_lock_leave(&memory->lock);
    return segment;
}

static struct pool_piece *take_new(struct memory *memory, struct pool_block *block, uint64_t bytes)
{
    struct memory_stats *s = &memory->stats;
    struct pool_piece *segment;

    short_lock_enter(&memory->lock);
    pool_insert(&memory->pool, block);
    s->reserved_now += block->bytes;
    if (s->reserved_now > s->reserved_peak)
        s->reserved_peak = s->reserved_now;
    segment =
        pool_take(&memory->pool, block->kind, block->kind == BLOCK_POOL ? bytes : block->bytes);
    count_taken(memory, segment);
    short_lock_leave(&memory->lock);
    return segment;
}

static frit_status segment_get(struct memory *memory, uint64_t bytes, bool persistent,
                               struct pool_piece **out, frit_err *err)
{
    enum block_kind kind = kind_for(memory, bytes, persistent);
    uint64_t granularity = memory->info->heap.granularity;
    struct pool_block *block;

    /* What the driver would round up, rounded before the search for a block of nearly this size. */
    if (kind != BLOCK_POOL && granularity)
        bytes = round_up(bytes, granularity);
    *out = take(memory, kind, bytes);
    if (*out)
        return FRIT_OK;
    TRY(block_from_driver(memory, kind, kind == BLOCK_POOL ? memory->limits.block_bytes : bytes,
                          &block, err));
    *out = take_new(memory, block, bytes);
    return FRIT_OK;
}

/* One from the shelf whose piece has exactly the size, or NULL.  What lies on a shelf counts as a
 * buffer, for the peak; memory_stats takes it off. */
static struct buffer *unshelve(struct memory *memory, uint64_t bytes)
{
    struct shelf *shelf = shelf_mine(memory);
    struct buffer **at, *buffer;

    short_lock_enter(&shelf->lock);
    at = shelf_place(memory, shelf, bytes);
    while (*at && (*at)->segment->bytes != bytes)
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

/* The last one is the next to be taken, but for one at the start of a block, which always is:
 * programs are prepared for operands that begin there, so it should not wander. */
static bool shelve(struct memory *memory, struct buffer *buffer)
{
    struct shelf *shelf = shelf_mine(memory);
    uint64_t bytes = buffer->segment->bytes;
    bool room;

    if (buffer->segment->block->kind != BLOCK_POOL || bytes > SHELF_BYTES ||
        memory->limits.keep_bytes < SHELF_BYTES)
        return false;
    short_lock_enter(&shelf->lock);
    room = shelf->count < SHELF_BUFFERS;
    if (room) {
        struct buffer **at = shelf_place(memory, shelf, bytes);

        while (*at && (*at)->offset == 0 && buffer->offset)
            at = &(*at)->next;
        buffer->next = *at;
        *at = buffer;
        shelf->count++;
        shelf->bytes += bytes;
    }
    short_lock_leave(&shelf->lock);
    return room;
}

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
        st = segment_get(memory, round_up(bytes + tail, memory->align), persistent,
                         &buffer->segment, err);
        if (st) {
            free(buffer);
            return st;
        }
        buffer->handle = buffer->segment->block->handle;
        buffer->offset = buffer->segment->offset;
        buffer->alone = buffer->segment->block->kind != BLOCK_POOL;
        buffer->tail = tail;
    }
    *out = buffer;
    return FRIT_OK;
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
    buffer_own(whole);
    return FRIT_OK;
}

static void give_back(struct buffer *buffer)
{
    struct memory *memory = buffer->memory;
    struct pool_block *surplus = NULL;

    buffer_disown(buffer->whole);
    buffer_drop_mirror(buffer);
    if (buffer->segment && shelve(memory, buffer))
        return;
    if (buffer->segment) {
        short_lock_enter(&memory->lock);
        memory->stats.buffers_now--;
        memory->stats.bytes_now -= buffer->segment->bytes;
        pool_return(&memory->pool, buffer->segment);
        if (memory->pool.idle_bytes > memory->limits.keep_bytes)
            surplus = unlink_idle(memory, memory->limits.keep_bytes, false);
        short_lock_leave(&memory->lock);
        free_blocks(memory, surplus);
    }
    free(buffer);
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
           (buffer->whole != NULL);
}

uint32_t buffer_pins(const struct buffer *buffer)
{
    return (uint32_t)(atomic_load_explicit(&buffer->counts, memory_order_acquire) / PIN);
}

bool buffer_is_persistent(const struct buffer *buffer)
{
    return buffer->segment && buffer->segment->block->kind == BLOCK_PERSISTENT;
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

void buffer_drop_mirror(struct buffer *buffer)
{
    if (!atomic_load_explicit(&buffer->mirror, memory_order_relaxed))
        return;
    atomic_store(&buffer->is_away, false);
    buffer_disown(atomic_exchange(&buffer->mirror, NULL));
}

void memory_stats(struct memory *memory, struct memory_stats *out)
{
    short_lock_enter(&memory->lock);
    *out = memory->stats;
    for (uint32_t i = 0; i < SHELVES; i++) {
        struct shelf *shelf = &memory->shelves[i];

        short_lock_enter(&shelf->lock);
        out->buffers_now -= shelf->count;
        out->bytes_now -= shelf->bytes;
        short_lock_leave(&shelf->lock);
    }
    short_lock_leave(&memory->lock);
}
