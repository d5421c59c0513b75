/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory that a device and other libraries of the process use together, without copies.  Offered by
 * a plugin with a backend whose memory has addresses that others know too; optional.  Memory of the
 * host is not meant: see import_host. */
#ifndef FRIT_EXTMEM_H
#define FRIT_EXTMEM_H

#include <frit/backend.h>

#define FRIT_EXTMEM_TABLE "frit.extmem/1"

/* Where memory is, by the numbers of DLPack. */
typedef struct frit_extmem_where {
    int32_t kind;   /* 2: CUDA, 10: ROCm */
    int32_t number; /* of the device, as the runtime of that kind counts */
} frit_extmem_where;

/* Memory of the application. */
typedef struct frit_extmem_desc {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t address; /* a multiple of the device's align_bytes */
    uint64_t bytes;
} frit_extmem_desc;

typedef struct frit_extmem_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  required.  Where the memory of a device is.  `device` is what device_open
     * returned, here and below. */
    void (*where)(void *device, frit_extmem_where *out);
    /* [any] +nonblock  required.  The address of an allocation; 0: it has none there. */
    uint64_t (*address)(void *device, frit_memory *memory);
    /* [any] +mayblock  required.  Memory whose bytes are those of the application, which lie where
     * `where` says, from here until `free`, which leaves them alone.  It takes nothing of a heap.
     * Waits for what the runtime's default stream has to do.  FRIT_UNSUPPORTED: not these bytes. */
    frit_status (*import)(void *device, const frit_extmem_desc *desc, frit_allocation *out,
                          frit_err *err);
} frit_extmem_table;

FRIT_STATIC_ASSERT(sizeof(frit_extmem_where) == 8, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_extmem_desc) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_extmem_table, import) == 32, "0.2");

#endif
