/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a memory: what memory.c (chunks) and buffer.c (buffers and shelves) share. */
#ifndef MEMORY_MEMORY_PARTS_H
#define MEMORY_MEMORY_PARTS_H

#include "base/short_lock.h"
#include "memory/memory.h"
#include "memory/pool.h"

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
    const frit_extmem_table *extmem; /* NULL: the device adopts no memory of its kind */
    const frit_device_info *info;
    void *self;
    struct memory_limits limits;
    uint64_t align;
    struct memory_queue queue;
    uint32_t n_queues; /* number of queues, if there are several, whose uses buffers keep; 0: one
                          queue */
    atomic_bool has_surplus; /* idle chunks hold more than is kept; written inside the lock */
    atomic_bool has_leaving; /* `leaving` is not empty; written inside the lock */
    struct short_lock lock;  /* guards everything below */
    struct pool pool;
    uint64_t idle_order;         /* of the chunk that became idle last */
    atomic_uint_least64_t frees; /* see memory_frees */
    struct buffer *parts;
    struct pool_chunk *leaving, **leaving_end; /* adopted, without a buffer; oldest first */
    struct memory_stats stats;
    struct short_lock derived_lock; /* guards all lists of derived memory, see derived.c */
    struct derived *derived;
};

static inline uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* A used piece for a buffer, of this many bytes or more. */
frit_status memory_take_piece(struct memory *memory, uint64_t bytes, bool persistent,
                              struct pool_piece **out, frit_err *err);
/* Inside the lock. */
void memory_return_piece(struct memory *memory, struct pool_piece *piece);

#endif
