/* SPDX-License-Identifier: Apache-2.0 */
/* A free list holds the segments of 2^k .. 2^(k+1)-1 bytes.  A request looks for the smallest fit
 * in its own class, then takes the first of the next class that has any: the same requests in the
 * same order find the same places, so a repeated workload needs no new block. */
#include "memory/pool.h"

#include <stdlib.h>

static uint32_t size_class(uint64_t bytes)
{
    return 63 - (uint32_t)__builtin_clzll(bytes);
}

static void list_push(struct pool *pool, struct pool_piece *segment)
{
    struct pool_piece **head = &pool->free[size_class(segment->bytes)];

    segment->prev = NULL;
    segment->next = *head;
    if (*head)
        (*head)->prev = segment;
    *head = segment;
}

static void list_remove(struct pool *pool, struct pool_piece *segment)
{
    if (segment->prev)
        segment->prev->next = segment->next;
    else
        pool->free[size_class(segment->bytes)] = segment->next;
    if (segment->next)
        segment->next->prev = segment->prev;
}

struct pool_block *pool_block_create(enum block_kind kind, void *handle, uint64_t bytes)
{
    struct pool_block *block = malloc(sizeof(*block));
    struct pool_piece *segment = malloc(sizeof(*segment));

    if (!block || !segment) {
        free(block);
        free(segment);
        return NULL;
    }
    *segment = (struct pool_piece){.block = block, .bytes = bytes};
    *block = (struct pool_block){.first = segment, .handle = handle, .bytes = bytes, .kind = kind};
    return block;
}

void pool_block_destroy(struct pool_block *block)
{
    if (!block)
        return;
    for (struct pool_piece *segment = block->first; segment;) {
        struct pool_piece *after = segment->after;

        free(segment);
        segment = after;
    }
    free(block);
}

static void count_idle(struct pool *pool, const struct pool_block *block, bool idle)
{
    if (block->kind != BLOCK_PERSISTENT)
        pool->idle_bytes += idle ? block->bytes : -block->bytes;
}

void pool_insert(struct pool *pool, struct pool_block *block)
{
    block->prev = NULL;
    block->next = pool->blocks;
    if (pool->blocks)
        pool->blocks->prev = block;
    pool->blocks = block;
    count_idle(pool, block, true);
    if (block->kind == BLOCK_POOL)
        list_push(pool, block->first);
}

void pool_remove(struct pool *pool, struct pool_block *block)
{
    if (block->prev)
        block->prev->next = block->next;
    else
        pool->blocks = block->next;
    if (block->next)
        block->next->prev = block->prev;
    count_idle(pool, block, false);
    if (block->kind == BLOCK_POOL)
        list_remove(pool, block->first);
}

/* Cuts the front off a free segment that is in no list; the rest goes into its list. */
static void split(struct pool *pool, struct pool_piece *segment, uint64_t bytes)
{
    struct pool_piece *rest;

    if (segment->bytes == bytes)
        return;
    rest = malloc(sizeof(*rest));
    if (!rest)
        return;
    *rest = (struct pool_piece){.block = segment->block,
                                .before = segment,
                                .after = segment->after,
                                .offset = segment->offset + bytes,
                                .bytes = segment->bytes - bytes};
    if (segment->after)
        segment->after->before = rest;
    segment->after = rest;
    segment->bytes = bytes;
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

/* Whole blocks serve what fills at least three quarters of them, persistent ones only their own
 * size. */
static struct pool_piece *find_whole(const struct pool *pool, enum block_kind kind, uint64_t bytes)
{
    struct pool_block *best = NULL;

    for (struct pool_block *b = pool->blocks; b; b = b->next) {
        uint64_t most = kind == BLOCK_PERSISTENT ? bytes : bytes + bytes / 3;

        if (b->kind == kind && !b->n_used && b->bytes >= bytes && b->bytes <= most &&
            (!best || b->bytes < best->bytes))
            best = b;
    }
    return best ? best->first : NULL;
}

struct pool_piece *pool_take(struct pool *pool, enum block_kind kind, uint64_t bytes)
{
    struct pool_piece *segment =
        kind == BLOCK_POOL ? find_split(pool, bytes) : find_whole(pool, kind, bytes);

    if (!segment)
        return NULL;
    if (kind == BLOCK_POOL) {
        list_remove(pool, segment);
        split(pool, segment, bytes);
    }
    segment->used = true;
    if (segment->block->n_used++ == 0)
        count_idle(pool, segment->block, false);
    return segment;
}

/* Appends the segment after `segment` to it. */
static void merge_after(struct pool_piece *segment)
{
    struct pool_piece *gone = segment->after;

    segment->bytes += gone->bytes;
    segment->after = gone->after;
    if (gone->after)
        gone->after->before = segment;
    free(gone);
}

void pool_return(struct pool *pool, struct pool_piece *segment)
{
    struct pool_block *block = segment->block;

    segment->used = false;
    if (--block->n_used == 0)
        count_idle(pool, block, true);
    if (block->kind != BLOCK_POOL)
        return;
    if (segment->after && !segment->after->used) {
        list_remove(pool, segment->after);
        merge_after(segment);
    }
    if (segment->before && !segment->before->used) {
        segment = segment->before;
        list_remove(pool, segment);
        merge_after(segment);
    }
    list_push(pool, segment);
}
