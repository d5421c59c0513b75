/* SPDX-License-Identifier: Apache-2.0 */
/* Memory. */
#ifndef VULKAN_BUFFER_H
#define VULKAN_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

#include "driver.h"

struct device;

/* Mapped unless of kind MEMORY_DEVICE. */
frit_status buffer_create(struct device *device, enum memory_kind kind, uint64_t bytes,
                          frit_memory *out, frit_err *err);
void buffer_destroy(struct device *device, frit_memory *buffer);
/* Whether the range lies in the buffer. */
bool buffer_holds(const frit_memory *buffer, uint64_t offset, uint64_t bytes);
frit_status memory_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void memory_free(void *self, frit_memory *memory);
uint64_t memory_budget(void *self, uint32_t heap);

#endif
