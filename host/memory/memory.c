/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "memory/adopted.h"
#include "memory/buffer.h"
#include "memory/derived.h"

uint64_t memory_chunk_bytes(const frit_device_info *info, uint64_t wanted)
{
    uint64_t budget = info->heaps->budget ? info->heaps->budget : info->heaps->bytes;
    uint64_t unit = info->heaps->granularity ? info->heaps->granularity : 1;

    if (budget && wanted > budget / 8)
        wanted = budget / 8;
    wanted = round_up(wanted, unit);
    if (info->heaps->max_block && wanted > info->heaps->max_block)
        wanted = info->heaps->max_block / unit * unit;
    return wanted;
}

uint64_t memory_keep_bytes(const frit_device_info *info)
{
    uint64_t budget = info->heaps->budget ? info->heaps->budget : info->heaps->bytes;
    bool own = info->type == FRIT_DEVICE_DISCRETE || info->type == FRIT_DEVICE_ACCELERATOR;

    return budget ? budget / (own ? 2 : 4) : (uint64_t)1 << 30;
}

static void done_before(void *ctx, struct points *out)
{
    (void)ctx;
    *out = (struct points){0};
}

static bool always_done(void *ctx, const struct points *points, enum memory_progress how)
{
    (void)ctx;
    (void)points;
    (void)how;
    return true;
}

static void explain_nothing(void *ctx, frit_err *err)
{
    (void)ctx;
    (void)err;
}

static void forget_nothing(void *ctx, struct failure *failure)
{
    (void)ctx;
    (void)failure;
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
    memory->leaving_end = &memory->leaving;
    memory->queue =
        (struct memory_queue){1, done_before, always_done, explain_nothing, forget_nothing, NULL};
    *out = memory;
    return FRIT_OK;
}

void memory_set_extmem(struct memory *memory, const frit_extmem_table *extmem)
{
    memory->extmem = extmem;
}

void memory_set_queue(struct memory *memory, const struct memory_queue *queue)
{
    memory->queue = *queue;
    memory->n_queues = queue->n_queues > 1 ? queue->n_queues : 0;
}

void memory_destroy(struct memory *memory)
{
    if (!memory)
        return;
    memory_trim(memory, true);
    free(memory);
}

/* ---- chunks ---- */

/* Inside the lock. */
static bool has_surplus(const struct memory *memory)
{
    return memory->pool.idle_bytes > memory->limits.keep_bytes;
}

void memory_return_piece(struct memory *memory, struct pool_piece *piece)
{
    struct pool_chunk *chunk = piece->chunk;

    memory->stats.buffers_now--;
    memory->stats.bytes_now -= piece->bytes;
    pool_return(&memory->pool, piece);
    if (chunk->n_used)
        return;
    memory->queue.submitted(memory->queue.ctx, &chunk->idle_since);
    chunk->idle_order = ++memory->idle_order;
    if (has_surplus(memory))
        atomic_store_explicit(&memory->has_surplus, true, memory_order_relaxed);
}

/* Inside the lock; puts the chunk in front of `list`. */
static struct pool_chunk *unlink_chunk(struct memory *memory, struct pool_chunk *chunk,
                                       struct pool_chunk *list)
{
    pool_remove(&memory->pool, chunk);
    memory->stats.reserved_now -= chunk->bytes;
    memory->stats.driver_frees++;
    chunk->next = list;
    return chunk;
}

/* Inside the lock.  All idle chunks, persistent ones only on request, as a list. */
static struct pool_chunk *unlink_idle(struct memory *memory, bool persistent)
{
    struct pool_chunk *list = NULL;

    for (struct pool_chunk *chunk = memory->pool.chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (!chunk->n_used && (persistent || chunk->kind != CHUNK_PERSISTENT))
            list = unlink_chunk(memory, chunk, list);
    }
    return list;
}

/* Inside the lock.  The chunk that is idle for longest, persistent ones aside. */
static struct pool_chunk *oldest_idle(const struct memory *memory)
{
    struct pool_chunk *oldest = NULL;

    for (struct pool_chunk *chunk = memory->pool.chunks; chunk; chunk = chunk->next) {
        if (!chunk->n_used && chunk->kind != CHUNK_PERSISTENT &&
            (!oldest || chunk->idle_order < oldest->idle_order))
            oldest = chunk;
    }
    return oldest;
}

uint64_t memory_frees(const struct memory *memory)
{
    return atomic_load(&memory->frees);
}

/* No pending command uses the chunks. */
static void free_chunks(struct memory *memory, struct pool_chunk *list)
{
    while (list) {
        struct pool_chunk *next = list->next;

        atomic_fetch_add(&memory->frees, 1);
        memory->backend->free(memory->self, list->handle);
        pool_chunk_destroy(list);
        list = next;
    }
}

/* Gives back chunks beyond keep_bytes that are idle for as long as the one of the order `done`, or
 * longer.  Returns the next one's order and when it became idle, 0 where there is no surplus any
 * more. */
static uint64_t free_surplus(struct memory *memory, uint64_t done, struct points *since)
{
    struct pool_chunk *list = NULL;
    uint64_t order = 0;

    short_lock_enter(&memory->lock);
    while (has_surplus(memory)) {
        struct pool_chunk *oldest = oldest_idle(memory);

        order = oldest->idle_order;
        *since = oldest->idle_since;
        if (order > done)
            break;
        list = unlink_chunk(memory, oldest, list);
        order = 0;
    }
    atomic_store_explicit(&memory->has_surplus, has_surplus(memory), memory_order_relaxed);
    short_lock_leave(&memory->lock);
    free_chunks(memory, list);
    return order;
}

void memory_poll(struct memory *memory, enum memory_progress how)
{
    struct points since = {0};
    uint64_t order = 0;

    adopted_poll(memory, how);
    if (!atomic_load_explicit(&memory->has_surplus, memory_order_relaxed))
        return;
    do {
        order = free_surplus(memory, order, &since);
    } while (order && memory->queue.is_done(memory->queue.ctx, &since, how));
}

void memory_trim(struct memory *memory, bool all)
{
    struct pool_chunk *list;
    struct points newest = {0};

    adopted_poll(memory, PROGRESS_WAIT);
    derived_trim(memory);
    short_lock_enter(&memory->lock);
    memory_clear_shelves(memory);
    list = unlink_idle(memory, all);
    short_lock_leave(&memory->lock);
    for (const struct pool_chunk *chunk = list; chunk; chunk = chunk->next) {
        for (uint32_t q = 0; q < QUEUES_MAX; q++)
            points_add_value(&newest, q, chunk->idle_since.at[q]);
    }
    if (list)
        memory->queue.is_done(memory->queue.ctx, &newest, PROGRESS_WAIT);
    free_chunks(memory, list);
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
    TRY(fail_from(err, memory->backend->alloc(memory->self, &desc, out, err), "alloc"));
    return out->memory ? FRIT_OK : fail(err, FRIT_INTERNAL, "alloc gave no memory and no error");
}

static uint64_t round_to_device(const struct memory *memory, uint64_t bytes)
{
    uint64_t granularity = memory->info->heaps->granularity;

    return granularity ? round_up(bytes, granularity) : bytes;
}

/* A pool chunk for large pieces holds a whole number of them, so that a device which is filled with
 * tensors of one size has no unusable rest in each chunk. */
static uint64_t bytes_of_new(const struct memory *memory, enum chunk_kind kind, uint64_t piece)
{
    uint64_t bytes = memory->limits.chunk_bytes;

    if (kind != CHUNK_POOL)
        return piece;
    if (piece <= bytes / 8)
        return bytes;
    bytes = round_to_device(memory, bytes - bytes % piece);
    return bytes < memory->limits.chunk_bytes ? bytes : memory->limits.chunk_bytes;
}

/* Of `*bytes`, or of less where the driver has no memory for that, but at least of `least`. */
static frit_status alloc_at_most(struct memory *memory, uint64_t *bytes, uint64_t least,
                                 frit_allocation *out, frit_err *err)
{
    frit_status st = driver_alloc(memory, *bytes, out, err);

    while (st == FRIT_NO_DEVICE_MEMORY && *bytes > least) {
        *bytes = round_to_device(memory, round_up(*bytes / 4, memory->align));
        if (*bytes < least)
            *bytes = least;
        st = driver_alloc(memory, *bytes, out, err);
    }
    return st;
}

/* Chunks without buffers go back where this process would exceed what the device can spare for it
 * now. */
static void keep_to_budget(struct memory *memory, uint64_t bytes)
{
    uint64_t budget =
        memory->backend->heap_budget ? memory->backend->heap_budget(memory->self, 0) : 0;
    bool exceeds;

    if (!budget)
        return;
    short_lock_enter(&memory->lock);
    exceeds = memory->stats.reserved_now + bytes > budget && oldest_idle(memory);
    memory->stats.trims += exceeds;
    short_lock_leave(&memory->lock);
    if (exceeds)
        memory_trim(memory, false);
}

/* Memory that is not as it was requested goes back. */
static frit_status check_alignment(struct memory *memory, const frit_allocation *allocation,
                                   frit_err *err)
{
    const uint64_t address = allocation->address | (uint64_t)(uintptr_t)allocation->host_pointer;

    if (address % memory->align == 0)
        return FRIT_OK;
    memory->backend->free(memory->self, allocation->memory);
    return fail(err, FRIT_INTERNAL,
                "the driver's alloc gave memory at %#llx, which is not aligned to %llu bytes",
                (unsigned long long)address, (unsigned long long)memory->align);
}

static frit_status alloc_or_trim(struct memory *memory, uint64_t *bytes, uint64_t least,
                                 frit_allocation *out, frit_err *err)
{
    uint64_t most = *bytes;
    frit_status st;

    memory_poll(memory, PROGRESS_QUERY);
    keep_to_budget(memory, *bytes);
    st = alloc_at_most(memory, bytes, least, out, err);
    if (st == FRIT_NO_DEVICE_MEMORY) {
        log_write(FRIT_LOG_INFO, "memory", "trimming pools to allocate %llu bytes",
                  (unsigned long long)least);
        memory_trim(memory, false);
        short_lock_enter(&memory->lock);
        memory->stats.trims++;
        memory->stats.alloc_retries++;
        short_lock_leave(&memory->lock);
        *bytes = most;
        st = alloc_at_most(memory, bytes, least, out, err);
    }
    if (!st && !out->memory)
        st = fail(err, FRIT_INTERNAL, "the driver's alloc gave no memory and no error");
    return st ? st : check_alignment(memory, out, err);
}

/* A chunk with room for a piece. */
static frit_status chunk_from_driver(struct memory *memory, enum chunk_kind kind, uint64_t piece,
                                     struct pool_chunk **out, frit_err *err)
{
    uint64_t bytes = bytes_of_new(memory, kind, piece);
    frit_err failure = ERR_INIT;
    frit_allocation a;
    frit_status st;

    if (memory->info->heaps->max_block && bytes > memory->info->heaps->max_block)
        return fail(err, FRIT_NO_DEVICE_MEMORY,
                    "%llu bytes are more than the device allocates in one piece (%llu)",
                    (unsigned long long)bytes, (unsigned long long)memory->info->heaps->max_block);
    st = alloc_or_trim(memory, &bytes, round_to_device(memory, piece), &a, &failure);
    if (st) {
        memory->queue.explain(memory->queue.ctx, &failure);
        if (err)
            *err = failure;
        return st;
    }
    *out = pool_chunk_create(kind, a.memory, bytes, memory->n_queues);
    if (!*out) {
        memory->backend->free(memory->self, a.memory);
        return fail_memory(err, sizeof(**out));
    }
    return FRIT_OK;
}

/* ---- pieces ---- */

static enum chunk_kind kind_for(const struct memory *memory, uint64_t bytes, bool persistent)
{
    if (persistent)
        return CHUNK_PERSISTENT;
    if (memory->info->caps & FRIT_CAP_NO_SUBALLOC || bytes > memory->limits.chunk_bytes)
        return CHUNK_WHOLE;
    return CHUNK_POOL;
}

static void count_taken(struct memory *memory, const struct pool_piece *piece)
{
    struct memory_stats *s = &memory->stats;

    s->buffers_now++;
    s->bytes_now += piece->bytes;
    if (s->bytes_now > s->bytes_peak)
        s->bytes_peak = s->bytes_now;
}

static struct pool_piece *take(struct memory *memory, enum chunk_kind kind, uint64_t bytes)
{
    struct pool_piece *piece;

    short_lock_enter(&memory->lock);
    piece = pool_take(&memory->pool, kind, bytes);
    if (piece)
        count_taken(memory, piece);
    short_lock_leave(&memory->lock);
    return piece;
}

static struct pool_piece *take_new(struct memory *memory, struct pool_chunk *chunk, uint64_t bytes)
{
    struct memory_stats *s = &memory->stats;
    struct pool_piece *piece;

    short_lock_enter(&memory->lock);
    pool_insert(&memory->pool, chunk);
    s->reserved_now += chunk->bytes;
    if (s->reserved_now > s->reserved_peak)
        s->reserved_peak = s->reserved_now;
    piece = pool_take(&memory->pool, chunk->kind, chunk->kind == CHUNK_POOL ? bytes : chunk->bytes);
    count_taken(memory, piece);
    short_lock_leave(&memory->lock);
    return piece;
}

frit_status memory_take_piece(struct memory *memory, uint64_t bytes, bool persistent,
                              struct pool_piece **out, frit_err *err)
{
    enum chunk_kind kind = kind_for(memory, bytes, persistent);
    struct pool_chunk *chunk;
    frit_status st;

    /* What the driver would round up, rounded before the search for a chunk of nearly this size. */
    if (kind != CHUNK_POOL)
        bytes = round_to_device(memory, bytes);
    *out = take(memory, kind, bytes);
    if (*out)
        return FRIT_OK;
    st = chunk_from_driver(memory, kind, bytes, &chunk, err);
    if (!st)
        *out = take_new(memory, chunk, bytes);
    else if (st == FRIT_NO_DEVICE_MEMORY) /* in what was given back meanwhile */
        *out = take(memory, kind, bytes);
    return *out ? FRIT_OK : st;
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
