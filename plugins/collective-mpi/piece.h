/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of an operation under way: some elements of one buffer.
 *
 * Each rank owns a part.  In the first phase it gets its part from all ranks and combines it; in
 * the second all get it from it.  An all_reduce has both phases, a reduce_scatter the first alone,
 * an all_gather and a broadcast the second.  Every element is so combined on one rank, in the order
 * of ranks, whatever the pieces are.
 *
 * What others need is copied to the rank's segment.  Ranks on the same host read it there; to
 * others it is sent. */
#ifndef MPI_PIECE_H
#define MPI_PIECE_H

#include <frit/collective.h>

#include "job.h"
#include "segment.h"

/* WAITING: others still read what the piece before this one has published. */
enum piece_phase { PIECE_FREE, PIECE_WAITING, PIECE_SCATTER, PIECE_GATHER };

enum piece_result { PIECE_STILL, PIECE_MOVED, PIECE_DONE, PIECE_FAILED };

struct piece {
    enum piece_phase phase;
    struct job *job;
    uint32_t rank, size;
    uint32_t slot;
    int tag; /* the first of two */
    uint32_t kind, combine, root;
    frit_collective_buffer buffer;
    uint64_t at, count; /* elements of the buffer, or of a rank's part of it */
    uint64_t number;    /* of pieces in this slot */
    bool is_streamed;   /* stores to the segment go past the caches */
    struct segment *mine;
    uint32_t n_near;
    struct segment *const *near; /* of each rank; NULL: this rank, or one of another host */
    uint64_t part_bytes;         /* room for a part */
    char *receive;               /* room for a part of each rank */
    int n_requests;
    union mpi_handle requests[]; /* 2 * size */
};

/* Segments are the group's.  NULL: no memory. */
struct piece *piece_create(struct job *job, uint32_t rank, uint32_t size, uint32_t slot, int tag,
                           struct segment *mine, struct segment *const *near);
/* Frees it when its requests have ended, or keeps it until the process ends if they do not, and
 * returns false: the segment must be kept, too. */
bool piece_drop(struct piece *piece);

/* Elements from `at` on that a piece of this kind takes. */
uint64_t piece_count(const struct piece *piece, uint32_t kind, const frit_collective_buffer *buffer,
                     uint64_t at);
/* Kind, combine, root, buffer, at, count and is_streamed are set. */
void piece_start(struct piece *piece);
enum piece_result piece_step(struct piece *piece);

#endif
