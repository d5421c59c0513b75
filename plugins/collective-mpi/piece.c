/* SPDX-License-Identifier: Apache-2.0 */
#include "piece.h"

#include <stdlib.h>
#include <string.h>

#include "combine.h"

enum { PART_BYTES_LOW = 65536, PART_BYTES_HIGH = 524288, PIECE_BYTES = 1048576 };

static uint64_t part_room(uint32_t size)
{
    const uint64_t bytes = PIECE_BYTES / size / 64 * 64;

    return bytes < PART_BYTES_LOW    ? PART_BYTES_LOW
           : bytes > PART_BYTES_HIGH ? PART_BYTES_HIGH
                                     : bytes;
}

struct piece *piece_create(struct job *job, uint32_t rank, uint32_t size, int tag)
{
    struct piece *piece = calloc(1, sizeof *piece + 2 * (size_t)size * sizeof *piece->requests);

    if (!piece)
        return NULL;
    piece->job = job;
    piece->rank = rank;
    piece->size = size;
    piece->tag = tag;
    piece->part_bytes = part_room(size);
    piece->send = malloc(2 * size * piece->part_bytes);
    if (!piece->send) {
        free(piece);
        return NULL;
    }
    piece->receive = piece->send + size * piece->part_bytes;
    return piece;
}

void piece_drop(struct piece *piece)
{
    int done = 1;

    if (!piece)
        return;
    if (piece->phase != PIECE_FREE) {
        for (int i = 0; i < piece->n_requests; i++)
            (void)piece->job->mpi.Cancel(&piece->requests[i]);
        done = 0;
        (void)piece->job->mpi.Testall(piece->n_requests, piece->requests, &done, NULL);
    }
    if (!done)
        return; /* MPI still reads or writes it */
    free(piece->send);
    free(piece);
}

static bool has_parts(uint32_t kind)
{
    return kind == FRIT_COLLECTIVE_ALL_REDUCE;
}

uint64_t piece_count(const struct piece *piece, uint32_t kind, const frit_collective_buffer *buffer,
                     uint64_t at)
{
    const uint64_t room = piece->part_bytes / combine_element_bytes(buffer->dtype) *
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

static enum piece_result post(struct piece *p, int phase, bool is_send, uint32_t other, char *bytes,
                              uint64_t n)
{
    const struct mpi *mpi = &p->job->mpi;
    mpi_handle *request = &p->requests[p->n_requests];

    if (n == 0)
        return PIECE_MOVED;
    if (is_send ? mpi->Isend(bytes, (int)n, mpi->byte, (int)other, p->tag + phase, p->job->comm,
                             request)
                : mpi->Irecv(bytes, (int)n, mpi->byte, (int)other, p->tag + phase, p->job->comm,
                             request))
        return PIECE_FAILED;
    p->n_requests++;
    return PIECE_MOVED;
}

/* ---- phases ---- */

static enum piece_result start_scatter(struct piece *p)
{
    const uint64_t bytes = combine_element_bytes(p->buffer.dtype);
    enum piece_result result = PIECE_MOVED;
    uint64_t mine, theirs, at;

    p->phase = PIECE_SCATTER;
    p->n_requests = 0;
    (void)part(p, p->rank, &mine);
    for (uint32_t r = 0; r < p->size && result != PIECE_FAILED; r++) {
        if (r != p->rank)
            result = post(p, 0, false, r, p->receive + r * p->part_bytes, mine * bytes);
    }
    for (uint32_t k = 1; k < p->size && result != PIECE_FAILED; k++) {
        const uint32_t r = (p->rank + k) % p->size;

        at = part(p, r, &theirs);
        if (theirs)
            memcpy(p->send + r * p->part_bytes, (const char *)p->buffer.from + at * bytes,
                   theirs * bytes);
        result = post(p, 0, true, r, p->send + r * p->part_bytes, theirs * bytes);
    }
    return result;
}

/* This rank's part of all ranks, into the room that is sent. */
static void combine_mine(struct piece *p)
{
    const void *from[JOB_RANKS];
    uint64_t count, at = part(p, p->rank, &count);

    for (uint32_t r = 0; r < p->size; r++)
        from[r] = p->receive + r * p->part_bytes;
    from[p->rank] = (const char *)p->buffer.from + at * combine_element_bytes(p->buffer.dtype);
    combine_ranks(p->buffer.dtype, p->combine, from, p->size, count,
                  p->send + p->rank * p->part_bytes);
}

/* Sends this rank's part, which lies in its room. */
static enum piece_result start_gather(struct piece *p)
{
    const uint64_t bytes = combine_element_bytes(p->buffer.dtype);
    const bool has_root = p->kind == FRIT_COLLECTIVE_BROADCAST;
    enum piece_result result = PIECE_MOVED;
    uint64_t count;

    p->phase = PIECE_GATHER;
    p->n_requests = 0;
    for (uint32_t r = 0; r < p->size && result != PIECE_FAILED; r++) {
        (void)part(p, r, &count);
        if (r != p->rank && (!has_root || r == p->root))
            result = post(p, 1, false, r, p->receive + r * p->part_bytes, count * bytes);
    }
    (void)part(p, p->rank, &count);
    for (uint32_t k = 1; k < p->size && result != PIECE_FAILED; k++) {
        if (!has_root || p->rank == p->root)
            result = post(p, 1, true, (p->rank + k) % p->size, p->send + p->rank * p->part_bytes,
                          count * bytes);
    }
    return result;
}

/* What the second phase brought, to where it belongs. */
static void store_gathered(struct piece *p)
{
    const uint64_t bytes = combine_element_bytes(p->buffer.dtype);
    const bool has_root = p->kind == FRIT_COLLECTIVE_BROADCAST;

    for (uint32_t r = 0; r < p->size; r++) {
        const char *room = (r == p->rank ? p->send : p->receive) + r * p->part_bytes;
        uint64_t count, at = part(p, r, &count);

        if (count && (!has_root || r == p->root))
            memcpy((char *)p->buffer.into + at * bytes, room, count * bytes);
    }
}

static void fill_mine(struct piece *p)
{
    const uint64_t bytes = combine_element_bytes(p->buffer.dtype);

    if (p->kind != FRIT_COLLECTIVE_BROADCAST || p->rank == p->root)
        memcpy(p->send + p->rank * p->part_bytes, (const char *)p->buffer.from + p->at * bytes,
               p->count * bytes);
}

enum piece_result piece_start(struct piece *p)
{
    if (p->kind == FRIT_COLLECTIVE_ALL_REDUCE || p->kind == FRIT_COLLECTIVE_REDUCE_SCATTER)
        return start_scatter(p);
    fill_mine(p);
    return start_gather(p);
}

enum piece_result piece_step(struct piece *p)
{
    int done = 0;

    if (p->n_requests && p->job->mpi.Testall(p->n_requests, p->requests, &done, NULL))
        return PIECE_FAILED;
    if (p->n_requests && !done)
        return PIECE_STILL;
    if (p->phase == PIECE_SCATTER) {
        combine_mine(p);
        if (p->kind == FRIT_COLLECTIVE_ALL_REDUCE)
            return start_gather(p);
        memcpy((char *)p->buffer.into + p->at * combine_element_bytes(p->buffer.dtype),
               p->send + p->rank * p->part_bytes,
               p->count * combine_element_bytes(p->buffer.dtype));
    } else {
        store_gathered(p);
    }
    p->phase = PIECE_FREE;
    return PIECE_DONE;
}
