/* SPDX-License-Identifier: Apache-2.0 */
#include "piece.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op.h>

#include "collective/combine.h"
#include "stream.h"

struct piece *piece_create(struct job *job, uint32_t rank, uint32_t size, uint32_t slot, int tag,
                           struct segment *mine, struct segment *const *near)
{
    struct piece *piece = calloc(1, sizeof *piece + 2 * (size_t)size * sizeof *piece->requests);

    if (!piece)
        return NULL;
    piece->job = job;
    piece->rank = rank;
    piece->size = size;
    piece->slot = slot;
    piece->tag = tag;
    piece->mine = mine;
    piece->near = near;
    for (uint32_t r = 0; r < size; r++)
        piece->n_near += near[r] != NULL;
    piece->part_bytes = segment_part_bytes(size);
    piece->receive = malloc(size * piece->part_bytes + 1); /* never none */
    if (piece->receive)
        return piece;
    free(piece);
    return NULL;
}

bool piece_drop(struct piece *piece)
{
    struct mpi *mpi;
    bool done = true;

    if (!piece)
        return true;
    mpi = &piece->job->mpi;
    if (piece->phase != PIECE_FREE && piece->n_requests) {
        for (int i = 0; i < piece->n_requests; i++)
            mpi->abi->cancel(mpi, &piece->requests[i]);
        (void)mpi->abi->test(mpi, piece->requests, piece->n_requests, &done);
    }
    if (!done)
        return false; /* MPI still reads or writes it */
    free(piece->receive);
    free(piece);
    return true;
}

static bool has_parts(uint32_t kind)
{
    return kind == FRIT_COLLECTIVE_ALL_REDUCE;
}

static uint64_t bytes_of(const struct piece *p, uint64_t elements)
{
    return frit_storage_bytes(p->buffer.dtype, (int64_t)elements);
}

uint64_t piece_count(const struct piece *piece, uint32_t kind, const frit_collective_buffer *buffer,
                     uint64_t at)
{
    const uint64_t room = piece->part_bytes / frit_storage_bytes(buffer->dtype, 1) *
                          (has_parts(kind) ? piece->size : 1);

    return buffer->count - at < room ? buffer->count - at : room;
}

/* ---- parts ---- */

/* Where the part of rank `r` lies in the buffer that has all of them, and how long it is. */
static uint64_t part(const struct piece *p, uint32_t r, uint64_t *count)
{
    const uint64_t each = (p->count + p->size - 1) / p->size, begin = r * each;

    if (!has_parts(p->kind)) {
        *count = p->count;
        return p->kind == FRIT_COLLECTIVE_BROADCAST ? p->at : r * p->buffer.count + p->at;
    }
    *count = begin >= p->count ? 0 : p->count - begin < each ? p->count - begin : each;
    return p->at + (begin < p->count ? begin : p->count);
}

/* What goes to rank `r`; for the rank itself: what goes to all. */
static char *room(const struct piece *p, uint32_t r)
{
    return segment_room(p->mine, p->slot, r, p->size);
}

/* What is sent is read by this processor. */
static void fill(const struct piece *p, uint32_t r, const char *from, uint64_t count)
{
    const bool is_read_elsewhere = r == p->rank ? p->n_near == p->size - 1 : p->near[r] != NULL;

    if (count && p->is_streamed && is_read_elsewhere)
        stream_copy(room(p, r), from, bytes_of(p, count));
    else if (count)
        memcpy(room(p, r), from, bytes_of(p, count));
}

/* What has come from rank `r`: in the first phase for this rank, in the second for all. */
static const char *received(const struct piece *p, uint32_t r)
{
    const uint32_t to = p->phase == PIECE_SCATTER ? p->rank : r;

    return p->near[r] ? segment_room(p->near[r], p->slot, to, p->size)
                      : p->receive + r * p->part_bytes;
}

/* ---- other ranks ---- */

static bool sends(const struct piece *p, uint32_t r)
{
    return p->kind != FRIT_COLLECTIVE_BROADCAST || p->phase == PIECE_SCATTER || r == p->root;
}

static enum piece_result post(struct piece *p, bool is_send, uint32_t other, char *bytes,
                              uint64_t n)
{
    struct mpi *mpi = &p->job->mpi;
    const int tag = p->tag + (p->phase == PIECE_GATHER);
    union mpi_handle *request = &p->requests[p->n_requests];

    if (n == 0)
        return PIECE_MOVED;
    if (is_send ? mpi->abi->send(mpi, bytes, (int)n, (int)other, tag, request)
                : mpi->abi->receive(mpi, bytes, (int)n, (int)other, tag, request))
        return PIECE_FAILED;
    p->n_requests++;
    return PIECE_MOVED;
}

static void ring_near(const struct piece *p)
{
    for (uint32_t r = 0; r < p->size; r++) {
        if (p->near[r])
            bell_ring(p->job->bells[r]);
    }
}

/* The rooms of this phase are filled. */
static void publish(struct piece *p)
{
    atomic_store_explicit(&p->mine->slots[p->slot].published[p->phase == PIECE_GATHER], p->number,
                          memory_order_release);
    ring_near(p);
}

static bool have_published(const struct piece *p)
{
    for (uint32_t r = 0; r < p->size; r++) {
        if (p->near[r] && sends(p, r) &&
            atomic_load_explicit(&p->near[r]->slots[p->slot].published[p->phase == PIECE_GATHER],
                                 memory_order_acquire) < p->number)
            return false;
    }
    return true;
}

/* Everything of the pieces before this one. */
static bool have_consumed(const struct piece *p)
{
    for (uint32_t r = 0; r < p->size; r++) {
        if (p->near[r] && atomic_load_explicit(&p->near[r]->slots[p->slot].consumed,
                                               memory_order_acquire) < p->number - 1)
            return false;
    }
    return true;
}

static void set_consumed(struct piece *p)
{
    atomic_store_explicit(&p->mine->slots[p->slot].consumed, p->number, memory_order_release);
    ring_near(p);
}

/* ---- phases ---- */

static enum piece_result start_scatter(struct piece *p)
{
    enum piece_result result = PIECE_MOVED;
    uint64_t mine, theirs, at;

    p->phase = PIECE_SCATTER;
    p->n_requests = 0;
    (void)part(p, p->rank, &mine);
    for (uint32_t r = 0; r < p->size && result != PIECE_FAILED; r++) {
        if (r != p->rank && !p->near[r])
            result = post(p, false, r, p->receive + r * p->part_bytes, bytes_of(p, mine));
    }
    for (uint32_t k = 1; k < p->size && result != PIECE_FAILED; k++) {
        const uint32_t r = (p->rank + k) % p->size;

        at = part(p, r, &theirs);
        fill(p, r, (const char *)p->buffer.from + bytes_of(p, at), theirs);
        if (!p->near[r])
            result = post(p, true, r, room(p, r), bytes_of(p, theirs));
    }
    publish(p);
    return result;
}

/* This rank's part of all ranks, to where it belongs and, of an all_reduce, to its room. */
static void combine_mine(struct piece *p)
{
    const bool is_sent = p->kind == FRIT_COLLECTIVE_ALL_REDUCE;
    const void *from[JOB_RANKS];
    uint64_t count, at = part(p, p->rank, &count);
    void *const into = (char *)p->buffer.into + bytes_of(p, is_sent ? at : p->at);
    const struct combine combine = {.dtype = p->buffer.dtype,
                                    .mean = p->combine == FRIT_CHOICE_combine_mean,
                                    .n_from = p->size,
                                    .n_into = 1,
                                    .from = from,
                                    .into = &into,
                                    .count = count};

    for (uint32_t r = 0; r < p->size; r++)
        from[r] = received(p, r);
    from[p->rank] = (const char *)p->buffer.from + bytes_of(p, at);
    if (count)
        combine_run(&combine);
    if (is_sent)
        fill(p, p->rank, into, count);
}

/* This rank's part lies in its room. */
static enum piece_result start_gather(struct piece *p)
{
    enum piece_result result = PIECE_MOVED;
    uint64_t count;

    p->phase = PIECE_GATHER;
    p->n_requests = 0;
    publish(p);
    for (uint32_t r = 0; r < p->size && result != PIECE_FAILED; r++) {
        (void)part(p, r, &count);
        if (r != p->rank && !p->near[r] && sends(p, r))
            result = post(p, false, r, p->receive + r * p->part_bytes, bytes_of(p, count));
    }
    (void)part(p, p->rank, &count);
    for (uint32_t k = 1; k < p->size && result != PIECE_FAILED; k++) {
        const uint32_t r = (p->rank + k) % p->size;

        if (!p->near[r] && sends(p, p->rank))
            result = post(p, true, r, room(p, p->rank), bytes_of(p, count));
    }
    return result;
}

/* What the second phase brought, to where it belongs. */
static void store_gathered(struct piece *p)
{
    for (uint32_t r = 0; r < p->size; r++) {
        uint64_t count, at = part(p, r, &count);

        if (count && r != p->rank && sends(p, r))
            memcpy((char *)p->buffer.into + bytes_of(p, at), received(p, r), bytes_of(p, count));
    }
}

/* What this rank sends, to its room and where it belongs on this rank. */
static void fill_mine(struct piece *p)
{
    uint64_t count, at = part(p, p->rank, &count);
    const char *from = (const char *)p->buffer.from + bytes_of(p, p->at);
    char *into = (char *)p->buffer.into + bytes_of(p, at);

    if (p->kind == FRIT_COLLECTIVE_BROADCAST && p->rank != p->root)
        return;
    fill(p, p->rank, from, count);
    if (into != from && count)
        memcpy(into, from, bytes_of(p, count));
}

static enum piece_result start_phase(struct piece *p)
{
    if (p->kind == FRIT_COLLECTIVE_ALL_REDUCE || p->kind == FRIT_COLLECTIVE_REDUCE_SCATTER)
        return start_scatter(p);
    fill_mine(p);
    return start_gather(p);
}

void piece_start(struct piece *p)
{
    p->number++;
    p->n_requests = 0;
    p->phase = PIECE_WAITING;
}

enum piece_result piece_step(struct piece *p)
{
    struct mpi *mpi = &p->job->mpi;
    bool done = true;

    if (p->phase == PIECE_WAITING)
        return have_consumed(p) ? start_phase(p) : PIECE_STILL;
    if (p->n_requests && mpi->abi->test(mpi, p->requests, p->n_requests, &done))
        return PIECE_FAILED;
    if (!done || !have_published(p))
        return PIECE_STILL;
    if (p->phase == PIECE_SCATTER) {
        combine_mine(p);
        if (p->kind == FRIT_COLLECTIVE_ALL_REDUCE)
            return start_gather(p);
    } else {
        store_gathered(p);
    }
    set_consumed(p);
    p->phase = PIECE_FREE;
    return PIECE_DONE;
}
