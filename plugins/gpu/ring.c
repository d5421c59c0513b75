/* SPDX-License-Identifier: Apache-2.0 */
/* `head` and `tail` are positions that only grow, and restart from 0 when the ring is empty; the
 * offset of a position is the position modulo the capacity. */
#include "gpu/ring.h"

#include <string.h>

void ring_init(struct ring *ring, uint64_t bytes)
{
    memset(ring, 0, sizeof *ring);
    ring->bytes = bytes;
}

static struct ring_span *span_at(struct ring *ring, uint32_t i)
{
    return &ring->spans[(ring->first + i) % RING_SPANS];
}

/* The newest span if ring_take may extend it, else NULL. */
static struct ring_span *growable_span(struct ring *ring)
{
    struct ring_span *last = ring->count ? span_at(ring, ring->count - 1) : NULL;

    return last && last->value == 0 && !last->copy_to ? last : NULL;
}

uint64_t ring_take(struct ring *ring, uint64_t bytes, uint64_t align, void *copy_to)
{
    struct ring_span *span = copy_to ? NULL : growable_span(ring);
    uint64_t start;

    if (ring->count == 0)
        ring->head = ring->tail = 0;
    start = (ring->head + align - 1) & ~(align - 1);
    if (start % ring->bytes + bytes > ring->bytes)
        start += ring->bytes - start % ring->bytes;
    if (bytes > ring->bytes || start + bytes - ring->tail > ring->bytes ||
        (!span && ring->count == RING_SPANS))
        return RING_FULL;
    if (!span) {
        span = span_at(ring, ring->count++);
        *span =
            (struct ring_span){.offset = start % ring->bytes, .bytes = bytes, .copy_to = copy_to};
    }
    ring->head = start + bytes;
    span->end = ring->head;
    return start % ring->bytes;
}

void ring_seal(struct ring *ring, uint64_t value)
{
    for (uint32_t i = ring->count; i-- > 0 && span_at(ring, i)->value == 0;)
        span_at(ring, i)->value = value;
}

void ring_cancel(struct ring *ring)
{
    while (ring->count && span_at(ring, ring->count - 1)->value == 0)
        ring->count--;
    ring->head = ring->count ? span_at(ring, ring->count - 1)->end : ring->tail;
}

void ring_drop_copies(struct ring *ring, const void *range, uint64_t bytes)
{
    for (uint32_t i = 0; i < ring->count; i++) {
        struct ring_span *span = span_at(ring, i);

        if (span->copy_to && (uintptr_t)span->copy_to - (uintptr_t)range < bytes)
            span->copy_to = NULL;
    }
}

uint64_t ring_oldest_value(const struct ring *ring)
{
    return ring->count ? ring->spans[ring->first].value : 0;
}

bool ring_pop(struct ring *ring, uint64_t reached, struct ring_span *out)
{
    uint64_t value = ring_oldest_value(ring);

    if (value == 0 || value > reached)
        return false;
    *out = ring->spans[ring->first];
    ring->tail = out->end;
    ring->first = (ring->first + 1) % RING_SPANS;
    ring->count--;
    return true;
}
