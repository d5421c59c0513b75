/* SPDX-License-Identifier: Apache-2.0 */
/* A ring allocator: byte ranges ("spans") of a buffer, allocated in order and freed in the same
 * order when the queue's timeline reaches the value of the submission that uses them.  It only
 * computes offsets; the memory is its user's.  Threads: the caller locks.
 *
 * A span is open from its allocation until ring_seal assigns it the timeline value at which it is
 * free.  A span never wraps around the end of the ring. */
#ifndef GPU_RING_H
#define GPU_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { RING_SPANS = 256 };

#define RING_FULL UINT64_MAX

/* `end` counts all bytes that were ever allocated, from ring_init on. */
struct ring_span {
    uint64_t end;           /* position past the last byte */
    uint64_t value;         /* timeline value at which the span is free; 0: open */
    uint64_t offset, bytes; /* in the ring; only of the first allocation if the span has grown */
    void *copy_to; /* host memory to which the caller copies the bytes when it frees the span, for
                      reads; NULL: nothing is to be copied */
};

struct ring {
    uint64_t bytes;      /* capacity, a power of two */
    uint64_t head, tail; /* positions: next byte to allocate, first byte in use */
    uint32_t first, count;
    struct ring_span spans[RING_SPANS]; /* circular: `count` spans from index `first` on */
};

void ring_init(struct ring *ring, uint64_t bytes);
/* Allocates `bytes` bytes and returns their offset, a multiple of `align` (a power of two), or
 * RING_FULL.  With `copy_to` NULL the newest span grows if it is open and has no `copy_to`;
 * otherwise a span is added. */
uint64_t ring_take(struct ring *ring, uint64_t bytes, uint64_t align, void *copy_to);
/* Frees all open spans when the timeline reaches `value`. */
void ring_seal(struct ring *ring, uint64_t value);
/* Frees all open spans at once. */
void ring_cancel(struct ring *ring);
/* Sets `copy_to` to NULL in every span that would be copied into this range of host memory. */
void ring_drop_copies(struct ring *ring, const void *range, uint64_t bytes);
/* The timeline value at which the oldest span is free; 0: there is no span, or it is open. */
uint64_t ring_oldest_value(const struct ring *ring);
/* Frees the oldest span if its value is at most `reached`, and sets `out` to it.  False: it is not
 * free yet, or there is none. */
bool ring_pop(struct ring *ring, uint64_t reached, struct ring_span *out);

#endif
