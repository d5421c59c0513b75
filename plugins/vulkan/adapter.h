/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters: what the driver reads about each physical device, once, before any device is opened. */
#ifndef VULKAN_ADAPTER_H
#define VULKAN_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

#include "ir/target.h"

#include "api.h"

struct instance;

/* The feature structs of Vulkan that the driver reads and enables; adapter_features links them to a
 * chain.  Only the features of features.def are ever set. */
struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR shared;
};

/* Where a buffer's memory lies and whether the host maps it. */
enum buffer_memory {
    MEMORY_DEVICE,  /* device memory that the host does not map */
    MEMORY_MAPPED,  /* device memory that the host maps */
    MEMORY_STAGING, /* host memory that the host reads fast */
    MEMORY_PARAMS   /* mapped memory that kernels read fast; the host only writes it */
};

struct adapter {
    VkPhysicalDevice handle;
    uint32_t reason;         /* FRIT_REASON_* why no device can be opened; 0: it can */
    uint32_t type;           /* FRIT_DEVICE_* */
    uint32_t queue_family;   /* index of the queue family that is used */
    uint32_t timestamp_bits; /* valid bits of a timestamp of that family; 0: no timestamps */
    uint32_t api_version;    /* as VK_MAKE_API_VERSION encodes it */
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + 64]; /* ends with what is missing, if anything */
    char stable_id[40];                               /* the device UUID */
    char pci[16];                                     /* "domain:bus:device.function" or "" */
    char driver_version[VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE];
    char api_version_text[16];
    char fingerprint[96]; /* of the kind of device, driver and driver version: key of caches */
    uint8_t uuid[VK_UUID_SIZE];
    VkPhysicalDeviceMemoryProperties memory_properties;
    uint32_t device_heap; /* index of the Vulkan heap that buffers are allocated from */
    bool mappable;        /* the host maps device memory; transfers need no staging */
    frit_heap heaps[2];   /* device memory; pinned host memory */
    VkPhysicalDeviceLimits limits;
    VkPhysicalDeviceVulkan12Properties vulkan12; /* driver ID, float controls */
    struct features features; /* the features that are enabled when the driver creates the device */
    bool has_matrices;        /* VK_KHR_cooperative_matrix */
    bool has_bfloat16;        /* VK_KHR_shader_bfloat16 */
    bool has_shared_layout;   /* VK_KHR_workgroup_memory_explicit_layout */
    bool has_subgroup_control; /* VK_EXT_subgroup_size_control */
    bool has_atomic_float;     /* VK_EXT_shader_atomic_float */
    bool has_memory_budget;    /* VK_EXT_memory_budget */
    bool has_calibrated_clock; /* VK_EXT_calibrated_timestamps */
    uint32_t subgroup_size;    /* required of pipelines with subgroups; 0: none may use them */
    uint32_t max_subgroups;    /* of a workgroup, if `subgroup_size` is required */
    uint32_t n_extensions;
    uint32_t n_shapes; /* of the matrices that a subgroup multiplies */
    struct kir_fragment_shape shapes[KIR_SHAPES];
    const char *extensions[8]; /* enabled when the driver creates the device */
};

/* Reads everything about a physical device.  For a device that cannot be used it sets `reason`,
 * appends what is missing to `name` and returns FRIT_OK. */
frit_status adapter_read(const struct instance *instance, VkPhysicalDevice handle,
                         struct adapter *out, frit_err *err);
/* The chain of `features` for VkDeviceCreateInfo.pNext; points into the adapter. */
const void *adapter_features(struct adapter *adapter);
/* Index of the best memory type for `kind` among the types whose bits are set in `mask`;
 * UINT32_MAX: none of them is suitable. */
uint32_t adapter_memory_type(const struct adapter *adapter, enum buffer_memory kind, uint32_t mask);
/* Bytes of device memory that this process may use at present; 0: the device does not report it. */
uint64_t adapter_budget(const struct instance *instance, const struct adapter *adapter);

#endif
