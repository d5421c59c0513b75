/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: buffers cut from large driver blocks.
 *
 * Ordinary buffers share pool blocks; a buffer that is too large for one, or on a device without
 * sub-allocation, gets a block of its own, which later serves buffers of nearly the same size; a
 * persistent buffer gets a block of exactly its size, which later serves only that size.  When the
 * driver has no memory, every block without buffers goes back, but for persistent ones, and the
 * allocation is tried once more.  Threads: any.  The lock is never held during a driver call. */
#ifndef MEMORY_MEMORY_H
#define MEMORY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>

struct memory;
struct pool_block;
struct pool_piece;

/* Device memory with two counts: owners (tensors: may I write in place?) and pins (launches and
 * copies under way: must it stay?).  It goes back to its pool when both are 0. */
struct buffer {
    struct memory *memory;
    struct pool_piece *segment;
    void *handle;                     /* the driver's name of the block */
    uint64_t offset;                  /* in the block */
    uint64_t bytes;                   /* asked for */
    uint64_t tail;                    /* usable past them, at most the device's tail_bytes */
    bool alone;                       /* in driver memory of its own, or a part of such a buffer */
    struct buffer *whole;             /* that it is a part of, owned; NULL: none */
    atomic_uint_least64_t counts;     /* owners | pins << 32 */
    atomic_uint_least64_t last_write; /* timeline value */
    /* The same bytes in another device's memory, owned; NULL: none.  Until a write here, which the
     * writer follows with buffer_drop_mirror, the two stay equal. */
    _Atomic(struct buffer *) mirror;
    atomic_bool is_away; /* only the mirror has the bytes yet */
    struct buffer *next; /* on the shelf */
};

struct memory_limits {
    uint64_t block_bytes; /* of a pool block; already within the device's limits */
    uint64_t keep_bytes;  /* in blocks without buffers, persistent ones not counted */
};

struct memory_stats {
    uint64_t driver_allocs, driver_frees, trims, alloc_retries;
    uint64_t bytes_now, bytes_peak;       /* in buffers */
    uint64_t reserved_now, reserved_peak; /* in blocks */
    uint64_t buffers_now;
};

/* Called before blocks go back to the driver: waits until no pending command uses them. */
typedef void (*memory_idle)(void *ctx);

/* `backend`, `info` and `self` outlive the memory. */
frit_status memory_create(const frit_backend *backend, const frit_device_info *info, void *self,
                          const struct memory_limits *limits, struct memory **out, frit_err *err);
void memory_set_idle(struct memory *memory, memory_idle idle, void *ctx);
/* Gives every block back.  Buffers must be gone. */
void memory_destroy(struct memory *memory);

/* One owner.  `bytes` 0 gives a buffer without memory (handle NULL). */
frit_status buffer_create(struct memory *memory, uint64_t bytes, bool persistent,
                          struct buffer **out, frit_err *err);
/* A part of another buffer's memory, with one owner: `bytes` from `first` on, which lie in it.  The
 * whole counts as one of its owners, so that nobody takes it for memory of his own. */
frit_status buffer_part(struct buffer *whole, uint64_t first, uint64_t bytes, struct buffer **out,
                        frit_err *err);
void buffer_own(struct buffer *buffer);
void buffer_disown(struct buffer *buffer); /* NULL does nothing */
void buffer_pin(struct buffer *buffer);
void buffer_unpin(struct buffer *buffer);
uint32_t buffer_owners(const struct buffer *buffer);
uint32_t buffer_pins(const struct buffer *buffer);
bool buffer_is_persistent(const struct buffer *buffer);

/* Whether bytes `first` bytes behind the start of the buffer lie at the start of driver memory, for
 * FRIT_ARG_START.  Not asserted of what shares driver memory with others, though it may: so it
 * follows from the buffer's size and kind, and not from what was allocated before. */
static inline bool buffer_starts(const struct buffer *buffer, uint64_t first)
{
    return buffer->alone && buffer->offset + first == 0;
}

/* Takes the mirror over; false if there is one already, which stays. */
bool buffer_set_mirror(struct buffer *buffer, struct buffer *mirror);
/* The bytes here change, or have changed: nobody else uses the buffer. */
void buffer_drop_mirror(struct buffer *buffer);

static inline bool buffer_is_away(const struct buffer *buffer)
{
    return atomic_load_explicit(&buffer->is_away, memory_order_acquire);
}

/* Gives blocks without buffers back, persistent ones too only on `all`. */
void memory_trim(struct memory *memory, bool all);
void memory_stats(struct memory *memory, struct memory_stats *out);

/* The size of a pool block: `wanted`, but at most an eighth of the device's budget, so that a small
 * device is not taken by one block, in whole units of what it allocates, and at most what it takes
 * in one piece. */
uint64_t memory_block_bytes(const frit_device_info *info, uint64_t wanted);

#endif
