/* SPDX-License-Identifier: Apache-2.0 */
/* A free list holds the pieces of 2^k .. 2^(k+1)-1 bytes.  A request looks for the smallest fit
 * in its own class, then takes the first of the next class that has any: the same requests in the
 * same order find the same places, so a repeated workload needs no new chunk. */
#include "memory/pool.h"

#include <stdlib.h>

static uint32_t size_class(uint64_t bytes)
{
    return 63 - (uint32_t)__builtin_clzll(bytes);
}

static void list_push(struct pool *pool, struct pool_piece *piece)
{
    struct pool_piece **head = &pool->free[size_class(piece->bytes)];

    piece->prev = NULL;
    piece->next = *head;
    if (*head)
        (*head)->prev = piece;
    *head = piece;
}

static void list_remove(struct pool *pool, struct pool_piece *piece)
{
    if (piece->prev)
        piece->prev->next = piece->next;
    else
        pool->free[size_class(piece->bytes)] = piece->next;
    if (piece->next)
        piece->next->prev = piece->prev;
}

static size_t piece_size(uint32_t n_queues)
{
    return sizeof(struct pool_piece) + n_queues * sizeof(((struct pool_piece *)0)->uses[0]);
}

struct pool_chunk *pool_chunk_create(enum chunk_kind kind, void *handle, uint64_t bytes,
                                     uint32_t n_queues)
{
    struct pool_chunk *chunk = malloc(sizeof(*chunk));
    struct pool_piece *piece = calloc(1, piece_size(n_queues));

    if (!chunk || !piece) {
        free(chunk);
        free(piece);
        return NULL;
    }
    piece->chunk = chunk;
    piece->bytes = bytes;
    *chunk = (struct pool_chunk){
        .first = piece, .handle = handle, .bytes = bytes, .kind = kind, .n_queues = n_queues};
    return chunk;
}

void pool_chunk_destroy(struct pool_chunk *chunk)
{
    if (!chunk)
        return;
    for (struct pool_piece *piece = chunk->first; piece;) {
        struct pool_piece *after = piece->after;

        free(piece);
        piece = after;
    }
    free(chunk);
}

static void count_idle(struct pool *pool, const struct pool_chunk *chunk, bool idle)
{
    if (chunk->kind != CHUNK_PERSISTENT)
        pool->idle_bytes += idle ? chunk->bytes : -chunk->bytes;
}

void pool_insert(struct pool *pool, struct pool_chunk *chunk)
{
    chunk->prev = NULL;
    chunk->next = pool->chunks;
    if (pool->chunks)
        pool->chunks->prev = chunk;
    pool->chunks = chunk;
    count_idle(pool, chunk, true);
    if (chunk->kind == CHUNK_POOL)
        list_push(pool, chunk->first);
}

void pool_remove(struct pool *pool, struct pool_chunk *chunk)
{
    if (chunk->prev)
        chunk->prev->next = chunk->next;
    else
        pool->chunks = chunk->next;
    if (chunk->next)
        chunk->next->prev = chunk->prev;
    count_idle(pool, chunk, false);
    if (chunk->kind == CHUNK_POOL)
        list_remove(pool, chunk->first);
}

/* Every use of `of` counts as a use of `piece` too. */
static void add_uses(struct pool_piece *piece, const struct pool_piece *of)
{
    for (uint32_t q = 0; q < piece->chunk->n_queues; q++) {
        uint64_t value = atomic_load_explicit(&of->uses[q], memory_order_relaxed);

        if (atomic_load_explicit(&piece->uses[q], memory_order_relaxed) < value)
            atomic_store_explicit(&piece->uses[q], value, memory_order_relaxed);
    }
}

/* Cuts the front off a free piece that is in no list; the rest goes into its list. */
static void split(struct pool *pool, struct pool_piece *piece, uint64_t bytes)
{
    struct pool_piece *rest;

    if (piece->bytes == bytes)
        return;
    rest = calloc(1, piece_size(piece->chunk->n_queues));
    if (!rest)
        return;
    rest->chunk = piece->chunk;
    rest->before = piece;
    rest->after = piece->after;
    rest->offset = piece->offset + bytes;
    rest->bytes = piece->bytes - bytes;
    add_uses(rest, piece);
    if (piece->after)
        piece->after->before = rest;
    piece->after = rest;
    piece->bytes = bytes;
    list_push(pool, rest);
}

static struct pool_piece *find_split(const struct pool *pool, uint64_t bytes)
{
    uint32_t cls = size_class(bytes);
    struct pool_piece *best = NULL;

    for (struct pool_piece *s = pool->free[cls]; s; s = s->next) {
        if (s->bytes >= bytes && (!best || s->bytes < best->bytes))
            best = s;
    }
    while (!best && ++cls < POOL_CLASSES)
        best = pool->free[cls];
    return best;
}

/* Whole chunks serve what fills at least three quarters of them, persistent ones only their own
 * size. */
static struct pool_piece *find_whole(const struct pool *pool, enum chunk_kind kind, uint64_t bytes)
{
    struct pool_chunk *best = NULL;

    for (struct pool_chunk *b = pool->chunks; b; b = b->next) {
        uint64_t most = kind == CHUNK_PERSISTENT ? bytes : bytes + bytes / 3;

        if (b->kind == kind && !b->n_used && b->bytes >= bytes && b->bytes <= most &&
            (!best || b->bytes < best->bytes))
            best = b;
    }
    return best ? best->first : NULL;
}

struct pool_piece *pool_take(struct pool *pool, enum chunk_kind kind, uint64_t bytes)
{
    struct pool_piece *piece =
        kind == CHUNK_POOL ? find_split(pool, bytes) : find_whole(pool, kind, bytes);

    if (!piece)
        return NULL;
    if (kind == CHUNK_POOL) {
        list_remove(pool, piece);
        split(pool, piece, bytes);
    }
    piece->used = true;
    atomic_store_explicit(&piece->owner, NULL, memory_order_relaxed);
    if (piece->chunk->n_used++ == 0)
        count_idle(pool, piece->chunk, false);
    return piece;
}

/* Appends the piece after `piece` to it. */
static void merge_after(struct pool_piece *piece)
{
    struct pool_piece *gone = piece->after;

    add_uses(piece, gone);
    piece->bytes += gone->bytes;
    piece->after = gone->after;
    if (gone->after)
        gone->after->before = piece;
    free(gone);
}

void pool_return(struct pool *pool, struct pool_piece *piece)
{
    struct pool_chunk *chunk = piece->chunk;

    piece->used = false;
    if (--chunk->n_used == 0)
        count_idle(pool, chunk, true);
    if (chunk->kind != CHUNK_POOL)
        return;
    if (piece->after && !piece->after->used) {
        list_remove(pool, piece->after);
        merge_after(piece);
    }
    if (piece->before && !piece->before->used) {
        piece = piece->before;
        list_remove(pool, piece);
        merge_after(piece);
    }
    list_push(pool, piece);
}
