/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device memory that is host memory, as util/hosted.h allocates it.  A driver with memory of
 * another kind completes struct frit_memory itself, and does not include this file. */
#ifndef UTIL_MEMORY_H
#define UTIL_MEMORY_H

#include <stdbool.h>

#include <frit/backend.h>

struct frit_memory {
    char *data;
    uint64_t bytes;
    void *block;      /* that `data` lies in; NULL: after this struct, or the application's */
    bool is_imported; /* the application's: not in the device's budget, and not to be freed */
};

/* Whether the bytes lie in the buffer. */
static inline bool memory_holds(const frit_memory *memory, uint64_t offset, uint64_t bytes)
{
    return offset <= memory->bytes && bytes <= memory->bytes - offset;
}

/* What the slot `alloc` reports of it. */
static inline void memory_report(frit_memory *memory, frit_allocation *out)
{
    out->memory = memory;
    out->address = (uint64_t)(uintptr_t)memory->data;
    out->host_pointer = memory->data;
}

static inline char *memory_at(const frit_memory *memory, uint64_t offset)
{
    return memory->data + offset;
}

#endif
