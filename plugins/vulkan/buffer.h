/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: a VkBuffer with memory of its own, for the host's blocks and for the driver's rings.
 * Threads: any, one at a time for each buffer. */
#ifndef VULKAN_BUFFER_H
#define VULKAN_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

#include "gpu/memory.h"

#include "adapter.h"
#include "api.h"

struct device;

/* Every buffer's address is a multiple of VULKAN_ALIGN; VULKAN_GRANULARITY is the allocation
 * granularity that the driver reports for its heaps.  Both in bytes. */
enum { VULKAN_ALIGN = 256, VULKAN_GRANULARITY = 1 << 16 };

/* Creates a buffer and allocates its memory, which is mapped unless `kind` is MEMORY_DEVICE.  On
 * failure `out` is zeroed. */
frit_status buffer_create(struct device *device, enum buffer_memory kind, uint64_t bytes,
                          frit_memory *out, frit_err *err);
void buffer_destroy(struct device *device, frit_memory *buffer); /* a zeroed one too */

/* Slots `alloc`, `free` and `heap_budget` of frit.backend/1. */
frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void buffer_free(void *self, frit_memory *memory);
uint64_t buffer_budget(void *self, uint32_t heap);

#endif
