/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting chunks into pieces: best fit over size classes, neighbours merged on return.  Pure
 * bookkeeping: no driver call, no lock, no statistics. */
#ifndef MEMORY_POOL_H
#define MEMORY_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/point.h"

/* ADOPTED: memory of the program, in no pool (memory/adopted.c). */
enum chunk_kind { CHUNK_POOL, CHUNK_WHOLE, CHUNK_PERSISTENT, CHUNK_ADOPTED };

/* A range of a chunk; the pieces of a chunk cover it, in address order. */
struct pool_piece {
    struct pool_chunk *chunk;
    struct pool_piece *before, *after; /* neighbours in the chunk */
    struct pool_piece *prev, *next;    /* in the free list of the size class */
    uint64_t offset, bytes;
    _Atomic(void *) owner; /* of a used one: the caller's; NULL: not said yet */
    bool used;
    atomic_bool has_parts; /* likewise: its bytes are those of several buffers */
    /* Value of the last use on each queue, of the chunk's n_queues; a free piece keeps them. */
    atomic_uint_least64_t uses[];
};

struct pool_chunk {
    struct pool_chunk *prev, *next;
    struct pool_piece *first;
    void *handle;
    uint64_t bytes;
    struct points idle_since; /* of chunks without used pieces: the newest values then */
    uint64_t idle_order;      /* likewise: larger than that of chunks that were idle before */
    uint32_t n_used;
    uint32_t n_queues; /* whose uses are kept; 0: one queue keeps all uses in order */
    enum chunk_kind kind;
    void (*release)(void *ctx); /* of adopted ones: gives them back to the program; NULL: nobody */
    void *ctx;
};

enum { POOL_CLASSES = 64 };

/* All zero is an empty pool. */
struct pool {
    struct pool_chunk *chunks;
    struct pool_piece *free[POOL_CLASSES]; /* of pool chunks, by the logarithm of the size */
    uint64_t idle_bytes;                   /* in chunks without used pieces, but persistent ones */
};

/* A chunk of driver memory with one free piece; NULL without host memory. */
struct pool_chunk *pool_chunk_create(enum chunk_kind kind, void *handle, uint64_t bytes,
                                     uint32_t n_queues);
void pool_chunk_destroy(struct pool_chunk *chunk);
void pool_insert(struct pool *pool, struct pool_chunk *chunk);
/* The chunk must have no used piece. */
void pool_remove(struct pool *pool, struct pool_chunk *chunk);

/* A used piece of at least `bytes` from the chunks of a kind, NULL if none has room.  `bytes` is
 * a multiple of the alignment that all sizes share.  May need host memory for a split; without it
 * the whole free piece is given. */
struct pool_piece *pool_take(struct pool *pool, enum chunk_kind kind, uint64_t bytes);
void pool_return(struct pool *pool, struct pool_piece *piece);

#endif
