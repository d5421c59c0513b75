/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the plugin, of which each host opens one, and what every file uses of it: error
 * messages and host memory. */
#ifndef VULKAN_PLUGIN_H
#define VULKAN_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/host.h>
#include <frit/status.h>
#include <frit/types.h>

#include "util/plug.h"

#include "api.h"

struct adapter;

/* Values of the plugin's options. */
struct options {
    frit_str loader;    /* file name of the Vulkan loader */
    bool validate;      /* enables the validation layers */
    bool force_staging; /* device memory is never mapped */
    bool no_matrices;   /* kernels multiply no matrices by the device's units for that */
    frit_str dump;      /* folder to which compiled SPIR-V modules are written; empty: none */
};

/* Constant after the first enumerate that succeeded. */
struct instance {
    struct plug plug;
    const frit_host_cache *cache; /* disk cache of the host; NULL: the host has none */
    struct options options;
    void *library; /* handle of the Vulkan loader from dlopen; never closed */
    char library_path[256];
    char unavailable_text[384];  /* why there are no adapters; "" if there are some */
    uint32_t unavailable_reason; /* FRIT_REASON_* of that text; 0 without it */
    struct global_api global;
    struct instance_api api;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger; /* VK_NULL_HANDLE without validation layers */
    uint32_t n_adapters;
    struct adapter *adapters; /* NULL before the first successful enumerate; owned */
};

/* Writes an error message "vulkan: TEXT: MEANING (VkResult N)" and returns the status that
 * corresponds to `result`, which must be an error. */
frit_status vulkan_fail(const struct instance *instance, frit_err *err, VkResult result,
                        const char *format, ...) FRIT_PRINTF(4, 5);

/* Zeroed host memory; NULL: there is none. */
static inline void *vulkan_alloc(const struct instance *instance, uint64_t bytes)
{
    return plug_zalloc(&instance->plug, bytes);
}
static inline void vulkan_free(const struct instance *instance,
                               void *memory) /* NULL does nothing */
{
    plug_free(&instance->plug, memory);
}

#endif
