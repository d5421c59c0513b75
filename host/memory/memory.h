/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: buffers cut from chunks, which are what the driver allocates.
 *
 * Ordinary buffers share pool chunks; a buffer that is too large for one, or on a device without
 * sub-allocation, gets a chunk of its own, which later serves buffers of nearly the same size; a
 * persistent buffer gets a chunk of exactly its size, which later serves only that size.
 *
 * Chunks without buffers are kept up to `keep_bytes`.  A chunk beyond them goes back to the driver
 * once the queues have reached the timeline values that were the newest when its last buffer went:
 * at that release, or in a later memory_poll.  Until then it serves new buffers.  Only an
 * allocation that finds no memory, or would exceed what the driver says that this process should
 * stay below (heap_budget), memory_trim and memory_destroy wait for a queue.  Memory that
 * was adopted from the program serves one buffer, and is released by the same rule at once.
 *
 * Memory is used again at once, whatever is pending on it: one queue runs the new use after the
 * old ones.  Where a device has more queues, a piece of memory keeps its last use on each of them
 * from buffer to buffer, and who uses it next has his queue wait for these points
 * (buffer_add_waits).
 *
 * Where the driver has no memory for a pool chunk, smaller ones are tried, down to the size of the
 * buffer; then what is derived from buffers (derived.h) and every chunk without buffers goes back,
 * but for persistent ones, and the allocation is tried once more.  Threads: any.  The lock is never
 * held during a driver call. */
#ifndef MEMORY_MEMORY_H
#define MEMORY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/extmem.h>

#include "memory/buffer.h"

struct contents;
struct failure;
struct memory;
struct pool_piece;
struct points;

/* Device memory with two counts: owners (tensors: may I write in place?) and pins (launches and
 * copies under way: must it stay?).  It goes back to its pool when both are 0. */
struct buffer {
    struct memory *memory;
    struct pool_piece *piece;
    void *handle;                     /* the driver's name of the chunk */
    uint64_t offset;                  /* in the chunk */
    uint64_t bytes;                   /* requested */
    uint64_t tail;                    /* usable past them, at most the device's tail_bytes */
    bool alone;                       /* in a chunk of its own, or a part of such a buffer */
    bool adopted;                     /* the program's memory: nobody writes it */
    struct buffer *whole;             /* that it is a part of, owned; NULL: none */
    atomic_uint_least64_t counts;     /* owners | pins << 32 */
    atomic_uint_least64_t last_write; /* point */
    atomic_uint_least64_t writer;     /* what wrote it last, by the caller's numbers; 0: nothing */
    _Atomic(struct failure *)
        failure; /* why its contents are invalid, set by the caller; usually NULL.
                    Changed only by those who keep the buffer from ending */
    /* The same bytes in another device's memory, owned; NULL: none.  Until a write here, which the
     * writer follows with buffer_changed, the two stay equal. */
    _Atomic(struct buffer *) mirror;
    _Atomic(struct contents *) contents; /* since the last write, see derived.h; NULL: unnumbered */
    atomic_bool is_away;                 /* only the mirror has the bytes yet */
    atomic_uint
        pending; /* collective operations that use it, see device/pending.h; not of a part */
    struct buffer *prev, *next; /* on the shelf; among the parts */
};

struct memory_limits {
    uint64_t chunk_bytes; /* of a pool chunk; already within the device's limits */
    uint64_t keep_bytes;  /* in chunks without buffers, persistent ones not counted */
};

struct memory_stats {
    uint64_t driver_allocs, driver_frees, trims, alloc_retries;
    uint64_t bytes_now, bytes_peak;       /* in buffers */
    uint64_t reserved_now, reserved_peak; /* in chunks */
    uint64_t buffers_now;
    uint64_t adopted;     /* bytes of the program's memory that became buffers */
    uint64_t adopted_now; /* of these, what was not released yet; not in bytes_now */
};

/* Memory of the program, which it does not write until `release` is called. */
struct lent_bytes {
    const void *data;
    uint64_t bytes;
    void (*release)(void *ctx); /* NULL: nobody wants to know */
    void *ctx;
    bool on_device; /* in memory of the device's kind (frit/extmem.h), not of the host */
};

enum memory_progress {
    PROGRESS_KNOWN, /* what was learnt before; calls no driver */
    PROGRESS_QUERY, /* queries the driver, without waiting */
    PROGRESS_WAIT   /* waits for the value */
};

/* The queues whose commands use the memory. */
struct memory_queue {
    uint32_t n_queues;
    /* The newest timeline value that was submitted to each queue.  Called inside the lock. */
    void (*submitted)(void *ctx, struct points *out);
    /* Whether no command up to there is pending; PROGRESS_WAIT returns true. */
    bool (*is_done)(void *ctx, const struct points *points, enum memory_progress how);
    /* Adds what is known of the reasons to a failure of the driver's alloc. */
    void (*explain)(void *ctx, frit_err *err);
    /* A buffer with this mark is gone. */
    void (*forget)(void *ctx, struct failure *failure);
    void *ctx;
};

/* `backend`, `info` and `self` outlive the memory. */
frit_status memory_create(const frit_backend *backend, const frit_device_info *info, void *self,
                          const struct memory_limits *limits, struct memory **out, frit_err *err);
/* Before the first buffer: the device adopts memory of its kind.  Borrows the table. */
void memory_set_extmem(struct memory *memory, const frit_extmem_table *extmem);
/* Before the first buffer.  Without queues commands end before the buffers that they use are
 * released. */
void memory_set_queue(struct memory *memory, const struct memory_queue *queue);
/* Gives every chunk back.  Buffers must be gone. */
void memory_destroy(struct memory *memory);

/* Whether what lies `first` bytes after the start of the buffer is the start of driver memory, for
 * FRIT_ARG_START.  Not asserted of what shares a chunk with others, though it may be: so it follows
 * from the buffer's size and kind, and not from what was allocated before. */
static inline bool buffer_starts(const struct buffer *buffer, uint64_t first)
{
    return buffer->alone && buffer->offset + first == 0;
}

/* The bytes here change, or have changed: nobody else uses the buffer. */
static inline void buffer_changed(struct buffer *buffer)
{
    if (atomic_load_explicit(&buffer->mirror, memory_order_relaxed) ||
        atomic_load_explicit(&buffer->contents, memory_order_relaxed))
        buffer_drop_copies(buffer);
}

/* The buffer that it is a part of, however many levels up; itself if it is none. */
static inline const struct buffer *buffer_whole(const struct buffer *buffer)
{
    while (buffer->whole)
        buffer = buffer->whole;
    return buffer;
}

/* Whether a collective operation uses it. */
static inline bool buffer_is_pending(const struct buffer *buffer)
{
    return atomic_load_explicit(&buffer_whole(buffer)->pending, memory_order_acquire);
}

static inline bool buffer_is_away(const struct buffer *buffer)
{
    return atomic_load_explicit(&buffer->is_away, memory_order_acquire);
}

/* How often memory went back to the driver, or to the program: while it is the same, a handle names
 * the same memory. */
uint64_t memory_frees(const struct memory *memory);
/* Gives derived memory that no launch uses back, and chunks without buffers, persistent ones only
 * on `all`. */
void memory_trim(struct memory *memory, bool all);
/* Gives chunks beyond `keep_bytes` back whose commands are done; does not wait.  One load where
 * there are none. */
void memory_poll(struct memory *memory, enum memory_progress how);
void memory_stats(struct memory *memory, struct memory_stats *out);

/* The size of a pool chunk: `wanted`, but at most an eighth of the device's budget, so that a small
 * device is not taken by one chunk, in whole units of what it allocates, and at most what it takes
 * in one piece. */
uint64_t memory_chunk_bytes(const frit_device_info *info, uint64_t wanted);
/* How much is kept for later unless the configuration says it: half of a memory that only the
 * device uses, a quarter of one that it shares with the programs of the host, 1 GiB where the size
 * is not known. */
uint64_t memory_keep_bytes(const frit_device_info *info);

#endif
