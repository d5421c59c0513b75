/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include "shared.h"

enum { PART_BYTES_LOW = 65536, PART_BYTES_HIGH = 262144, PIECE_BYTES = 1048576 };

uint64_t segment_part_bytes(uint32_t n_ranks)
{
    const uint64_t bytes = PIECE_BYTES / n_ranks / 64 * 64;

    return bytes < PART_BYTES_LOW    ? PART_BYTES_LOW
           : bytes > PART_BYTES_HIGH ? PART_BYTES_HIGH
                                     : bytes;
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
