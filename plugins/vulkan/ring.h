/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are taken in order and come back in order, when the queue has reached the value of
 * what used them.  Pure bookkeeping: knows neither memory nor device.  The caller locks.
 *
 * A span is open from when it is taken until ring_seal says with which timeline value it is free
 * again; it never wraps around the end. */
#ifndef VULKAN_RING_H
#define VULKAN_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { RING_SPANS = 256 };

#define RING_FULL UINT64_MAX

struct ring_span {
    uint64_t end;   /* of all bytes ever taken */
    uint64_t value; /* 0: open */
    uint64_t offset, bytes;
    void *into; /* not NULL: what lies here is wanted there before it is free */
};

struct ring {
    uint64_t bytes;      /* a power of two */
    uint64_t head, tail; /* of all bytes ever taken; what lies between is in use */
    uint32_t first, count;
    struct ring_span spans[RING_SPANS]; /* from `first`, around */
};

void ring_init(struct ring *ring, uint64_t bytes);
/* The offset of `bytes` bytes at a multiple of `align` (a power of two), or RING_FULL.  `into` NULL
 * grows an open span that is not wanted anywhere, where there is one. */
uint64_t ring_take(struct ring *ring, uint64_t bytes, uint64_t align, void *into);
/* Open spans are free when `value` is reached. */
void ring_seal(struct ring *ring, uint64_t value);
/* Open spans are free now. */
void ring_cancel(struct ring *ring);
/* What was wanted in these bytes is wanted no more. */
void ring_forget(struct ring *ring, const void *into, uint64_t bytes);
/* The value with which the oldest span is free, 0 if there is none or it is open. */
uint64_t ring_oldest(const struct ring *ring);
/* Frees the oldest span, if `reached` frees it, into `out`; false: there is none. */
bool ring_pop(struct ring *ring, uint64_t reached, struct ring_span *out);

#endif
