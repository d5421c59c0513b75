/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan loader and the VkInstance of a plugin instance. */
#ifndef VULKAN_LOADER_H
#define VULKAN_LOADER_H

#include <frit/status.h>

struct instance;

/* Opens the loader and creates the VkInstance.  FRIT_OK also if this machine has no usable Vulkan;
 * then `unavailable_reason` is set. */
frit_status loader_open(struct instance *instance, frit_err *err);
/* Loads the functions of `instance->handle`.  Returns the name of one that is missing; NULL: none
 * is. */
const char *loader_load_instance(struct instance *instance);
/* Destroys the VkInstance, if there is one.  The loader stays in the process. */
void loader_close(struct instance *instance);

#endif
