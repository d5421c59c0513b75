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

/* Small buffers that were given back lie on a shelf, pieces of chunks and all, until one of exactly
 * their size is wanted or chunks are to go back to the driver.  Threads use different shelves as a
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
    struct memory_queue queue;
    atomic_bool has_surplus; /* idle chunks hold more than is kept; written inside the lock */
    struct short_lock lock;  /* of everything below */
    struct pool pool;
    struct buffer *parts;
    struct memory_stats stats;
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

uint64_t memory_chunk_bytes(const frit_device_info *info, uint64_t wanted)
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

uint64_t memory_keep_bytes(const frit_device_info *info)
{
    uint64_t budget = info->heap.budget ? info->heap.budget : info->heap.bytes;
    bool own = info->type == FRIT_DEVICE_DISCRETE || info->type == FRIT_DEVICE_ACCELERATOR;

    return budget ? budget / (own ? 2 : 4) : (uint64_t)1 << 30;
}

static uint64_t done_before(void *ctx)
{
    (void)ctx;
    return 0;
}

static bool always_done(void *ctx, uint64_t value, enum memory_progress how)
{
    (void)ctx;
    (void)value;
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
    memory->queue =
        (struct memory_queue){done_before, always_done, explain_nothing, forget_nothing, NULL};
    *out = memory;
    return FRIT_OK;
}

void memory_set_queue(struct memory *memory, const struct memory_queue *queue)
{
    memory->queue = *queue;
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

/* Inside the lock. */
static void return_piece(struct memory *memory, struct pool_piece *piece)
{
    struct pool_chunk *chunk = piece->chunk;

    memory->stats.buffers_now--;
    memory->stats.bytes_now -= piece->bytes;
    pool_return(&memory->pool, piece);
    if (chunk->n_used)
        return;
    chunk->idle_since = memory->queue.submitted(memory->queue.ctx);
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
            (!oldest || chunk->idle_since < oldest->idle_since))
            oldest = chunk;
    }
    return oldest;
}

/* No pending command uses the chunks. */
static void free_chunks(struct memory *memory, struct pool_chunk *list)
{
    while (list) {
        struct pool_chunk *next = list->next;

        memory->backend->free(memory->self, list->handle);
        pool_chunk_destroy(list);
        list = next;
    }
}

/* Gives back chunks beyond keep_bytes that are idle since `done` or before.  Returns when the next
 * one became idle, 0 where there is no surplus any more. */
static uint64_t free_surplus(struct memory *memory, uint64_t done)
{
    struct pool_chunk *list = NULL, *oldest = NULL;
    uint64_t since = 0;

    short_lock_enter(&memory->lock);
    while (has_surplus(memory)) {
        oldest = oldest_idle(memory);
        since = oldest->idle_since;
        if (since > done)
            break;
        list = unlink_chunk(memory, oldest, list);
        since = 0;
    }
    atomic_store_explicit(&memory->has_surplus, has_surplus(memory), memory_order_relaxed);
    short_lock_leave(&memory->lock);
    free_chunks(memory, list);
    return since;
}

void memory_poll(struct memory *memory, enum memory_progress how)
{
    uint64_t since = 0;

    if (!atomic_load_explicit(&memory->has_surplus, memory_order_relaxed))
        return;
    do {
        since = free_surplus(memory, since);
    } while (since && memory->queue.is_done(memory->queue.ctx, since, how));
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
            return_piece(memory, buffer->piece);
            free(buffer);
        }
    }
    shelf->count = 0;
    shelf->bytes = 0;
    short_lock_leave(&shelf->lock);
}

void memory_trim(struct memory *memory, bool all)
{
    struct pool_chunk *list;
    uint64_t newest = 0;

    short_lock_enter(&memory->lock);
    for (uint32_t i = 0; i < SHELVES; i++)
        clear_shelf(memory, &memory->shelves[i]);
    list = unlink_idle(memory, all);
    short_lock_leave(&memory->lock);
    for (const struct pool_chunk *chunk = list; chunk; chunk = chunk->next)
        newest = chunk->idle_since > newest ? chunk->idle_since : newest;
    if (list)
        memory->queue.is_done(memory->queue.ctx, newest, PROGRESS_WAIT);
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
    return fail_from(err, memory->backend->alloc(memory->self, &desc, out, err), "alloc");
}

static uint64_t round_to_device(const struct memory *memory, uint64_t bytes)
{
    uint64_t granularity = memory->info->heap.granularity;

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

static frit_status alloc_or_trim(struct memory *memory, uint64_t *bytes, uint64_t least,
                                 frit_allocation *out, frit_err *err)
{
    uint64_t most = *bytes;
    frit_status st;

    memory_poll(memory, PROGRESS_ASK);
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
    return st;
}

/* A chunk with room for a piece. */
static frit_status chunk_from_driver(struct memory *memory, enum chunk_kind kind, uint64_t piece,
                                     struct pool_chunk **out, frit_err *err)
{
    uint64_t bytes = bytes_of_new(memory, kind, piece);
    frit_err failure = ERR_INIT;
    frit_allocation a;
    frit_status st;

    if (memory->info->heap.max_block && bytes > memory->info->heap.max_block)
        return fail(err, FRIT_NO_DEVICE_MEMORY,
                    "%llu bytes are more than the device allocates in one piece (%llu)",
                    (unsigned long long)bytes, (unsigned long long)memory->info->heap.max_block);
    st = alloc_or_trim(memory, &bytes, round_to_device(memory, piece), &a, &failure);
    if (st) {
        memory->queue.explain(memory->queue.ctx, &failure);
        if (err)
            *err = failure;
        return st;
    }
    *out = pool_chunk_create(kind, a.memory, bytes);
    if (!*out) {
        memory->backend->free(memory->self, a.memory);
        return fail_memory(err, sizeof(**out));
    }
    return FRIT_OK;
}

/* ---- buffers ---- */

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

static frit_status piece_get(struct memory *memory, uint64_t bytes, bool persistent,
                             struct pool_piece **out, frit_err *err)
{
    enum chunk_kind kind = kind_for(memory, bytes, persistent);
    struct pool_chunk *chunk;

    /* What the driver would round up, rounded before the search for a chunk of nearly this size. */
    if (kind != CHUNK_POOL)
        bytes = round_to_device(memory, bytes);
    *out = take(memory, kind, bytes);
    if (*out)
        return FRIT_OK;
    TRY(chunk_from_driver(memory, kind, bytes, &chunk, err));
    *out = take_new(memory, chunk, bytes);
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

/* The last one is the next to be taken, but for one at the start of a chunk, which always is:
 * programs are prepared for operands that begin there, so it should not wander. */
static bool shelve(struct memory *memory, struct buffer *buffer)
{
    struct shelf *shelf = shelf_mine(memory);
    uint64_t bytes = buffer->piece->bytes;
    bool room;

    if (buffer->piece->chunk->kind != CHUNK_POOL || bytes > SHELF_BYTES ||
        memory->limits.keep_bytes < SHELF_BYTES)
        return false;
    short_lock_enter(&shelf->lock);
    room = shelf->count < SHELF_BUFFERS && !atomic_load(&buffer->failure);
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
        st = piece_get(memory, round_up(bytes + tail, memory->align), persistent, &buffer->piece,
                       err);
        if (st) {
            free(buffer);
            return st;
        }
        atomic_store_explicit(&buffer->piece->owner, buffer, memory_order_release);
        buffer->handle = buffer->piece->chunk->handle;
        buffer->offset = buffer->piece->offset;
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
    part->tail = first + bytes == whole->bytes ? whole->tail : 0;
    part->whole = whole;
    atomic_init(&part->counts, 1);
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

    if (buffer->piece && shelve(memory, buffer))
        return;
    short_lock_enter(&memory->lock);
    if (buffer->piece)
        return_piece(memory, buffer->piece);
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
           (buffer->whole != NULL);
}

uint32_t buffer_pins(const struct buffer *buffer)
{
    return (uint32_t)(atomic_load_explicit(&buffer->counts, memory_order_acquire) / PIN);
}

bool buffer_is_persistent(const struct buffer *buffer)
{
    return buffer->piece && buffer->piece->chunk->kind == CHUNK_PERSISTENT;
}

static void visit(struct buffer *buffer, void (*fn)(struct buffer *buffer, void *ctx), void *ctx)
{
    if (atomic_load(&buffer->counts))
        fn(buffer, ctx);
}

/* A buffer leaves its piece or its list inside the lock, or goes on a shelf inside the shelf's. */
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
