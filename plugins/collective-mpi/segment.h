/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the engine that holds what a rank sends.  Ranks on the same host open each other's
 * segments and read there what would be messages else.
 *
 * Only its rank writes to a segment.  Buffers of the host are never shared: only their own process
 * touches them. */
#ifndef MPI_SEGMENT_H
#define MPI_SEGMENT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { N_PIECES = 32 }; /* of an operation that are under way at a time */

/* Of a piece; each counts pieces. */
struct segment_slot {
    alignas(64) _Atomic uint64_t published[2]; /* of a phase: what others need is in the rooms */
    alignas(64) _Atomic uint64_t consumed;     /* the rank has read what it needs of others */
};

struct segment {
    struct segment_slot slots[N_PIECES];
    alignas(4096) char rooms[]; /* of each piece a part for each rank */
};

/* Bytes of a part, and of a segment of a group of that many ranks. */
uint64_t segment_part_bytes(uint32_t n_ranks);
uint64_t segment_bytes(uint32_t n_ranks);

/* shared.h, for as many ranks. */
struct segment *segment_create(uint32_t n_ranks, bool shared, uint64_t *number);
struct segment *segment_open(uint64_t number, uint32_t n_ranks);
void segment_close(struct segment *segment, uint32_t n_ranks);

static inline char *segment_room(struct segment *segment, uint32_t piece, uint32_t rank,
                                 uint32_t n_ranks)
{
    return segment->rooms + ((uint64_t)piece * n_ranks + rank) * segment_part_bytes(n_ranks);
}

#endif
