/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of drivers of GPUs, and checks of ranges in it.  Threads: any. */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

struct plug;

struct frit_memory {
    void *handle, *memory; /* the driver's objects; NULL: it has none */
    uint64_t bytes;        /* that were requested */
    uint64_t address;      /* device address of the first byte */
    char *mapped;          /* host address of the first byte; NULL: not mapped */
    bool is_pinned;        /* lies in the host's memory */
};

/* Whether the range lies in the memory. */
bool memory_holds(const frit_memory *memory, uint64_t offset, uint64_t bytes);
/* FRIT_INVALID with a message if the range does not lie in the memory or there is none. */
frit_status memory_check_range(const struct plug *plug, const frit_memory *memory, uint64_t offset,
                               uint64_t bytes, frit_err *err);

#endif
