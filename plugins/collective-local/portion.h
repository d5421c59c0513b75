/* SPDX-License-Identifier: Apache-2.0 */
/* The data of an operation that all ranks have begun, in portions that any thread may work on. */
#ifndef LOCAL_PORTION_H
#define LOCAL_PORTION_H

#include "local.h"
#include "util/operation.h"

/* What all ranks agreed on, with the buffers of each. */
struct agreed {
    uint32_t kind, combine, root, size;
    uint32_t n_buffers;
    const frit_collective_buffer *buffers[LOCAL_MAX_RANKS]; /* of a rank */
};

/* Where a portion begins, and where the next one does. */
struct portion {
    uint32_t buffer;
    uint64_t at; /* elements to be combined, or bytes to be copied */
};

/* Moves behind one portion. */
struct portion portion_next(const struct agreed *op, struct portion from);
static inline bool portion_is_end(const struct agreed *op, struct portion at)
{
    return at.buffer == op->n_buffers;
}

/* Moves the data between the two. */
void portion_run(const struct agreed *op, struct portion from, struct portion until);

#endif
