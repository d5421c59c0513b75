/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Vulkan's functions, one table for each level at which Vulkan returns function pointers.
 * The members are the rows of syms.def, without the prefix vk. */
#ifndef VULKAN_API_H
#define VULKAN_API_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "later.h"

struct global_api {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define VULKAN_GLOBAL(name) PFN_vk##name name;
#include "syms.def"
};

struct instance_api {
#define VULKAN_INSTANCE(name) PFN_vk##name name;
#define VULKAN_DEBUG(name)    PFN_vk##name name;
#define VULKAN_MATRIX(name)   PFN_vk##name name;
#include "syms.def"
};

struct device_api {
#define VULKAN_DEVICE(name) PFN_vk##name name;
#define VULKAN_CLOCK(name)  PFN_vk##name name;
#include "syms.def"
};

#endif
