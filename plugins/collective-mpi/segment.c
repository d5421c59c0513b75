/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include "shared.h"

/* Messages that MPI sends at once, without a request for room first, also over TCP, where those of
 * 64 KiB are too long with their headers.  More ranks have shorter ones, so that a segment has no
 * more than 4 MiB. */
enum { PART_BYTES = 61440, PIECE_BYTES = 131072 };

uint64_t segment_part_bytes(uint32_t n_ranks)
{
    const uint64_t bytes = PIECE_BYTES / n_ranks / 64 * 64;

    return bytes < PART_BYTES ? bytes : PART_BYTES;
}

uint64_t segment_bytes(uint32_t n_ranks)
{
    return sizeof(struct segment) + N_PIECES * n_ranks * segment_part_bytes(n_ranks);
}

struct segment *segment_create(uint32_t n_ranks, bool shared, uint64_t *number)
{
    return shared_create(segment_bytes(n_ranks), shared, number);
}

struct segment *segment_open(uint64_t number, uint32_t n_ranks)
{
    return shared_open(number, segment_bytes(n_ranks));
}

void segment_close(struct segment *segment, uint32_t n_ranks)
{
    shared_close(segment, segment_bytes(n_ranks));
}
