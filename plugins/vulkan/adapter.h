/* SPDX-License-Identifier: Apache-2.0 */
/* What a physical device is and has. */
#ifndef VULKAN_ADAPTER_H
#define VULKAN_ADAPTER_H

#include <stdint.h>

#include <frit/status.h>

#include "api.h"
#include "driver.h"

struct adapter;
struct instance;

/* Bytes of the heap of buffers that this process should stay below, 0: not known. */
uint64_t adapter_budget(const struct instance *instance, const struct adapter *adapter);
/* Reads the adapter's facts; `reason` and the end of `name` say what it lacks. */
frit_status adapter_read(const struct instance *instance, VkPhysicalDevice handle,
                         struct adapter *out, frit_err *err);
/* The features in a chain that VkDeviceCreateInfo takes. */
const void *adapter_features(struct adapter *adapter);
/* The best type among those of the mask, UINT32_MAX if none will do. */
uint32_t adapter_memory_type(const struct adapter *adapter, enum memory_kind kind, uint32_t mask);

#endif
