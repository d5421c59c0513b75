/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting blocks into segments: best fit over size classes, neighbours merged on return.  Pure
 * bookkeeping: no driver call, no lock, no statistics. */
#ifndef MEMORY_POOL_H
#define MEMORY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum block_kind { BLOCK_POOL, BLOCK_WHOLE, BLOCK_PERSISTENT };

/* A stretch of a block; the segments of a block tile it in address order. */
struct pool_piece {
    struct pool_block *block;
    struct pool_piece *before, *after; /* neighbours in the block */
    struct pool_piece *prev, *next;    /* in the free list of the size class */
    uint64_t offset, bytes;
    bool used;
};

struct pool_block {
    struct pool_block *prev, *next;
    struct pool_piece *first;
    void *handle;
    uint64_t bytes;
    uint32_t n_used;
    enum block_kind kind;
};

enum { POOL_CLASSES = 64 };

/* All zero is an empty pool. */
struct pool {
    struct pool_block *blocks;
    struct pool_piece *free[POOL_CLASSES]; /* of pool blocks, by the logarithm of the size */
    uint64_t idle_bytes; /* in blocks without used segments, but persistent ones */
};

/* A block of driver memory with one free segment; NULL without host memory. */
struct pool_block *pool_block_create(enum block_kind kind, void *handle, uint64_t bytes);
void pool_block_destroy(struct pool_block *block);
void pool_insert(struct pool *pool, struct pool_block *block);
/* The block must have no used segment. */
void pool_remove(struct pool *pool, struct pool_block *block);

/* A used segment of at least `bytes` from the blocks of a kind, NULL if none has room.  `bytes` is
 * a multiple of the alignment that all sizes share.  May need host memory for a split; without it
 * the whole free segment is given. */
struct pool_piece *pool_take(struct pool *pool, enum block_kind kind, uint64_t bytes);
void pool_return(struct pool *pool, struct pool_piece *segment);

#endif
