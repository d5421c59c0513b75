/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: device memory and pinned host memory.  Threads: any, one at a time for each buffer. */
#ifndef HIP_BUFFER_H
#define HIP_BUFFER_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

#include "gpu/memory.h"

struct device;

/* Every buffer's address is a multiple of BUFFER_ALIGN; BUFFER_GRANULARITY is the allocation
 * granularity that the driver reports for its heaps.  Both in bytes. */
enum { BUFFER_ALIGN = 256, BUFFER_GRANULARITY = 1 << 16 };

/* The device must be entered.  On failure `out` is zeroed. */
frit_status buffer_create(struct device *device, bool pinned, uint64_t bytes, frit_memory *out,
                          frit_err *err);
void buffer_destroy(struct device *device, frit_memory *buffer); /* a zeroed one too */

/* Slots `alloc`, `free` and `heap_budget` of frit.backend/1. */
frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void buffer_free(void *self, frit_memory *memory);
uint64_t buffer_budget(void *self, uint32_t heap);

#endif
