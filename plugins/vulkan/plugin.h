/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin. */
#ifndef VULKAN_PLUGIN_H
#define VULKAN_PLUGIN_H

#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

#include "api.h"

struct instance;

/* plug_fail for a call of Vulkan that gave `result`, which has a status and is appended in words.
 */
frit_status vulkan_refused(const struct instance *instance, frit_err *err, VkResult result,
                           const char *format, ...) FRIT_PRINTF(4, 5);
/* What happened before, told to a caller. */
void vulkan_retell(const struct instance *instance, frit_err *err, const frit_err *told);
/* Zeroed. */
void *vulkan_alloc(const struct instance *instance, uint64_t bytes);
void vulkan_free(const struct instance *instance, void *memory);

#endif
