/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a physical device: extensions, identity, limits, features, memory and its queue family.
 * Threads: one at a time for each adapter. */
#include "adapter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "plugin.h"

/* Optional extensions, enabled where a device has them. */
enum {
    EXT_ATOMIC_FLOAT,
    EXT_BFLOAT16,
    EXT_BUDGET,
    EXT_CLOCK,
    EXT_MATRIX,
    EXT_PCI,
    EXT_SHARED_LAYOUT,
    EXT_SUBGROUP_SIZE,
    N_EXTENSIONS
};

static const char *const extension_names[N_EXTENSIONS] = {
    [EXT_ATOMIC_FLOAT] = VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
    [EXT_BFLOAT16] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
    [EXT_BUDGET] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
    [EXT_CLOCK] = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME,
    [EXT_MATRIX] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
    [EXT_PCI] = VK_EXT_PCI_BUS_INFO_EXTENSION_NAME,
    [EXT_SHARED_LAYOUT] = VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME,
    [EXT_SUBGROUP_SIZE] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
};

/* Sets `found` for each optional extension that the device has, and lists these in `out`. */
static frit_status read_extensions(const struct instance *instance, struct adapter *out,
                                   bool found[N_EXTENSIONS], frit_err *err)
{
    VkExtensionProperties *all;
    uint32_t n = 0;
    VkResult result = instance->api.EnumerateDeviceExtensionProperties(out->handle, NULL, &n, NULL);

    if (result < 0)
        return vulkan_fail(instance, err, result, "reading the extensions of a device");
    all = vulkan_alloc(instance, (n + 1) * sizeof *all);
    if (!all)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory to read the extensions of a device");
    result = instance->api.EnumerateDeviceExtensionProperties(out->handle, NULL, &n, all);
    for (uint32_t i = 0; i < n && result >= 0; i++)
        for (uint32_t k = 0; k < N_EXTENSIONS; k++)
            if (strcmp(all[i].extensionName, extension_names[k]) == 0 && !found[k]) {
                found[k] = true;
                out->extensions[out->n_extensions++] = extension_names[k];
            }
    vulkan_free(instance, all);
    return FRIT_OK;
}

/* ---- properties ---- */

static uint32_t device_type(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return FRIT_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return FRIT_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return FRIT_DEVICE_SOFTWARE;
    default:
        return FRIT_DEVICE_UNKNOWN;
    }
}

static void print_hex(const uint8_t *bytes, char out[2 * VK_UUID_SIZE + 1])
{
    for (uint32_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", bytes[i]);
}

/* Sets the texts and the UUID that identify the device and its driver. */
static void read_names(struct adapter *out, const VkPhysicalDeviceProperties *properties,
                       const VkPhysicalDeviceVulkan11Properties *ids,
                       const VkPhysicalDeviceVulkan12Properties *driver)
{
    char device_uuid[2 * VK_UUID_SIZE + 1], driver_uuid[2 * VK_UUID_SIZE + 1];
    char cache_uuid[2 * VK_UUID_SIZE + 1];

    print_hex(properties->pipelineCacheUUID, cache_uuid);
    print_hex(ids->deviceUUID, device_uuid);
    print_hex(ids->driverUUID, driver_uuid);
    memcpy(out->uuid, ids->deviceUUID, sizeof out->uuid);
    snprintf(out->name, sizeof out->name, "%s", properties->deviceName);
    snprintf(out->stable_id, sizeof out->stable_id, "%.8s-%.4s-%.4s-%.4s-%.12s", device_uuid,
             device_uuid + 8, device_uuid + 12, device_uuid + 16, device_uuid + 20);
    snprintf(out->api_version_text, sizeof out->api_version_text, "%u.%u.%u",
             VK_API_VERSION_MAJOR(out->api_version), VK_API_VERSION_MINOR(out->api_version),
             VK_API_VERSION_PATCH(out->api_version));
    snprintf(out->driver_version, sizeof out->driver_version, "%s %s", driver->driverName,
             driver->driverInfo);
    /* The same for another card of the kind: what a pipeline cache's header has, and the driver. */
    snprintf(out->fingerprint, sizeof out->fingerprint,
             "%04" PRIx32 "-%04" PRIx32 "-%s-%s-%08" PRIx32, properties->vendorID,
             properties->deviceID, cache_uuid, driver_uuid, properties->driverVersion);
}

/* The subgroup size to require of pipelines.  0 unless the device supports what kernels with
 * subgroups need: a required size, full subgroups, shuffles and ballots, of 64-bit types too. */
static uint32_t subgroup_size(const struct adapter *out,
                              const VkPhysicalDeviceVulkan11Properties *properties,
                              const VkPhysicalDeviceSubgroupSizeControlProperties *control)
{
    const VkSubgroupFeatureFlags wanted = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                          VK_SUBGROUP_FEATURE_BALLOT_BIT |
                                          VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    const bool supported =
        out->type != FRIT_DEVICE_SOFTWARE && out->features.v12.shaderSubgroupExtendedTypes &&
        out->features.subgroup.subgroupSizeControl && out->features.subgroup.computeFullSubgroups &&
        control->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT &&
        properties->subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT &&
        (properties->subgroupSupportedOperations & wanted) == wanted;

    return supported ? properties->subgroupSize : 0;
}

static void read_properties(const struct instance *instance, const bool found[N_EXTENSIONS],
                            struct adapter *out)
{
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceSubgroupSizeControlProperties control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
        .pNext = found[EXT_PCI] ? &pci : NULL};
    VkPhysicalDeviceMaintenance3Properties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
        .pNext = found[EXT_SUBGROUP_SIZE] ? &control : control.pNext};
    VkPhysicalDeviceVulkan12Properties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = &sizes};
    VkPhysicalDeviceVulkan11Properties ids = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &driver};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &ids};

    instance->api.GetPhysicalDeviceProperties2(out->handle, &all);
    out->api_version = all.properties.apiVersion;
    out->type = device_type(all.properties.deviceType);
    out->limits = all.properties.limits;
    out->vulkan12 = driver;
    out->heaps[0].max_block = out->heaps[1].max_block = ids.maxMemoryAllocationSize;
    out->subgroup_size = subgroup_size(out, &ids, &control);
    out->max_subgroups = control.maxComputeWorkgroupSubgroups;
    read_names(out, &all.properties, &ids, &driver);
    if (found[EXT_PCI])
        snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.%x", pci.pciDomain & 0xffff,
                 pci.pciBus & 0xff, pci.pciDevice & 0xff, pci.pciFunction & 0xf);
}

/* ---- features ---- */

/* Links the feature structs to a chain, without those of absent extensions. */
static void *link_chain(struct features *features, const bool found[N_EXTENSIONS])
{
    void *next = NULL;

    features->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    features->atomic.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    features->matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    features->bfloat16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    features->shared.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR;
    features->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    features->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    if (found[EXT_SUBGROUP_SIZE]) {
        features->subgroup.pNext = next;
        next = &features->subgroup;
    }
    if (found[EXT_ATOMIC_FLOAT]) {
        features->atomic.pNext = next;
        next = &features->atomic;
    }
    if (found[EXT_MATRIX]) {
        features->matrix.pNext = next;
        next = &features->matrix;
    }
    if (found[EXT_BFLOAT16]) {
        features->bfloat16.pNext = next;
        next = &features->bfloat16;
    }
    if (found[EXT_SHARED_LAYOUT]) {
        features->shared.pNext = next;
        next = &features->shared;
    }
    features->v12.pNext = next;
    features->v11.pNext = &features->v12;
    features->core.pNext = &features->v11;
    return &features->core;
}

static void read_features(const struct instance *instance, const bool found[N_EXTENSIONS],
                          struct adapter *out)
{
    struct features all = {0};

    instance->api.GetPhysicalDeviceFeatures2(out->handle, link_chain(&all, found));
#define VULKAN_CORE_FEATURE(name) out->features.core.features.name = all.core.features.name;
#define VULKAN_FEATURE(member, name, TYPE, struct, OTHER_TYPE, other_struct) \
    out->features.member.name = all.member.name;
#define VULKAN_MATRIX_FEATURE VULKAN_FEATURE
#include "features.def"
    out->has_matrices = found[EXT_MATRIX];
    out->has_bfloat16 = found[EXT_BFLOAT16];
    out->has_shared_layout = found[EXT_SHARED_LAYOUT];
    out->has_subgroup_control = found[EXT_SUBGROUP_SIZE];
    out->has_atomic_float = found[EXT_ATOMIC_FLOAT];
}

const void *adapter_features(struct adapter *adapter)
{
    const bool found[N_EXTENSIONS] = {[EXT_SUBGROUP_SIZE] = adapter->has_subgroup_control,
                                      [EXT_ATOMIC_FLOAT] = adapter->has_atomic_float,
                                      [EXT_MATRIX] = adapter->has_matrices,
                                      [EXT_BFLOAT16] = adapter->has_bfloat16,
                                      [EXT_SHARED_LAYOUT] = adapter->has_shared_layout};

    return link_chain(&adapter->features, found);
}

/* ---- matrices ---- */

/* The dtype of elements; FRIT_DTYPE_LIMIT: none that kernels have matrices of. */
static uint32_t element_dtype(VkComponentTypeKHR type)
{
    switch ((uint32_t)type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
        return FRIT_F16;
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
        return FRIT_F32;
    case VK_COMPONENT_TYPE_BFLOAT16_KHR:
        return FRIT_BF16;
    default:
        return FRIT_DTYPE_LIMIT;
    }
}

/* Adds a shape with sums of 32 bits, if the list has room. */
static void add_shape(struct adapter *out, const VkCooperativeMatrixPropertiesKHR *shape)
{
    const uint32_t dtype = element_dtype(shape->AType);

    if (shape->scope != VK_SCOPE_SUBGROUP_KHR || shape->BType != shape->AType ||
        shape->ResultType != shape->CType || shape->saturatingAccumulation ||
        (dtype != FRIT_F16 && dtype != FRIT_BF16) || element_dtype(shape->CType) != FRIT_F32 ||
        out->n_shapes == KIR_SHAPES)
        return;
    out->shapes[out->n_shapes++] = (struct kir_fragment_shape){
        shape->MSize, shape->NSize, shape->KSize, .dtype = dtype, .sum = FRIT_F32};
}

/* Lists the shapes of matrices; none where the option forbids them. */
static frit_status read_shapes(const struct instance *instance, struct adapter *out, frit_err *err)
{
    VkCooperativeMatrixPropertiesKHR *all;
    uint32_t n = 0;
    VkResult result;

    if (!out->features.matrix.cooperativeMatrix || !out->features.v12.vulkanMemoryModel ||
        !instance->api.GetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
        instance->options.no_matrices)
        return FRIT_OK;
    result = instance->api.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(out->handle, &n, NULL);
    if (result < 0)
        return FRIT_OK;
    all = vulkan_alloc(instance, (n + 1) * sizeof *all);
    if (!all)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory to read the matrices of a device");
    for (uint32_t i = 0; i < n; i++)
        all[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    result = instance->api.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(out->handle, &n, all);
    for (uint32_t i = 0; i < n && result >= 0; i++)
        add_shape(out, &all[i]);
    vulkan_free(instance, all);
    return FRIT_OK;
}

/* ---- memory ---- */

static uint32_t count_bits(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

/* The type with the most wished properties, then with the fewest superfluous ones. */
uint32_t adapter_memory_type(const struct adapter *adapter, enum buffer_memory kind, uint32_t mask)
{
    enum {
        LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
        MAPPED = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
        USABLE = LOCAL | CACHED | MAPPED /* types with any other property are not used */
    };
    static const struct {
        uint32_t must, wish; /* properties */
    } kinds[] = {
        [MEMORY_DEVICE] = {0, LOCAL},
        [MEMORY_MAPPED] = {LOCAL | MAPPED | CACHED, 0},
        [MEMORY_STAGING] = {MAPPED, CACHED},
        [MEMORY_PARAMS] = {MAPPED, LOCAL},
    };
    const uint32_t must = kinds[kind].must, wish = kinds[kind].wish;
    uint32_t best = UINT32_MAX, best_score = 0;

    for (uint32_t i = 0; i < adapter->memory_properties.memoryTypeCount; i++) {
        uint32_t flags = adapter->memory_properties.memoryTypes[i].propertyFlags, score;
        bool in_heap = adapter->memory_properties.memoryTypes[i].heapIndex == adapter->device_heap;

        if (!(mask >> i & 1) || (flags & must) != must || flags & ~(uint32_t)USABLE ||
            (kind <= MEMORY_MAPPED && !in_heap))
            continue;
        score = 1 + 8 * count_bits(flags & wish) + 4 - count_bits(flags & USABLE & ~(must | wish));
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/* Index of the largest device-local heap; without one, of the largest heap. */
static uint32_t largest_heap(const VkPhysicalDeviceMemoryProperties *memory)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < memory->memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &memory->memoryHeaps[i], *other = &memory->memoryHeaps[best];
        bool local = heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
        bool other_local = other->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;

        if (local != other_local ? local : heap->size > other->size)
            best = i;
    }
    return best;
}

uint64_t adapter_budget(const struct instance *instance, const struct adapter *adapter)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};

    if (!adapter->has_memory_budget)
        return 0;
    instance->api.GetPhysicalDeviceMemoryProperties2(adapter->handle, &all);
    return budget.heapBudget[adapter->device_heap];
}

/* Size of the heap that staging memory comes from; 0: there is no such memory. */
static uint64_t staging_heap_bytes(const struct adapter *adapter)
{
    const uint32_t type = adapter_memory_type(adapter, MEMORY_STAGING, UINT32_MAX);

    return type == UINT32_MAX
               ? 0
               : adapter->memory_properties
                     .memoryHeaps[adapter->memory_properties.memoryTypes[type].heapIndex]
                     .size;
}

/* Sets all but `budget` and `max_block`. */
static void fill_heap(frit_heap *heap, uint32_t kind, uint64_t bytes)
{
    heap->struct_size = sizeof *heap;
    heap->kind = kind;
    heap->bytes = bytes;
    heap->granularity = VULKAN_GRANULARITY;
}

static void read_memory(const struct instance *instance, const bool found[N_EXTENSIONS],
                        struct adapter *out)
{
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};

    instance->api.GetPhysicalDeviceMemoryProperties2(out->handle, &all);
    out->memory_properties = all.memoryProperties;
    out->has_memory_budget = found[EXT_BUDGET];
    out->device_heap = largest_heap(&out->memory_properties);
    fill_heap(&out->heaps[0], FRIT_HEAP_DEVICE,
              out->memory_properties.memoryHeaps[out->device_heap].size);
    out->heaps[0].budget = adapter_budget(instance, out);
    fill_heap(&out->heaps[1], FRIT_HEAP_PINNED, staging_heap_bytes(out));
    out->mappable = out->type != FRIT_DEVICE_DISCRETE && !instance->options.force_staging &&
                    adapter_memory_type(out, MEMORY_MAPPED, UINT32_MAX) != UINT32_MAX;
}

/* ---- the adapter ---- */

/* Index of the first queue family with compute and graphics, which is the best tested one of every
 * driver; without one, of the first family with compute; UINT32_MAX: there is none. */
static uint32_t find_queue_family(const struct instance *instance, VkPhysicalDevice handle,
                                  uint32_t *timestamp_bits)
{
    VkQueueFamilyProperties families[32];
    uint32_t n = sizeof families / sizeof *families, found = UINT32_MAX;

    instance->api.GetPhysicalDeviceQueueFamilyProperties(handle, &n, families);
    for (uint32_t i = n; i-- > 0;) {
        const VkQueueFlags flags = families[i].queueFlags;

        if (!(flags & VK_QUEUE_COMPUTE_BIT) || families[i].queueCount == 0)
            continue;
        if (found == UINT32_MAX || flags & VK_QUEUE_GRAPHICS_BIT ||
            !(families[found].queueFlags & VK_QUEUE_GRAPHICS_BIT))
            found = i;
    }
    *timestamp_bits = found == UINT32_MAX ? 0 : families[found].timestampValidBits;
    return found;
}

/* What the device lacks that the driver needs; NULL: nothing. */
static const char *missing_requirement(const struct adapter *adapter)
{
    if (adapter->queue_family == UINT32_MAX)
        return "a compute queue";
    if (!adapter->features.v12.timelineSemaphore)
        return "timelineSemaphore";
    if (!adapter->features.v12.bufferDeviceAddress)
        return "bufferDeviceAddress";
    return adapter->features.core.features.shaderInt64 ? NULL : "shaderInt64";
}

static void mark_unusable(struct adapter *out, const char *missing)
{
    size_t used = strlen(out->name);

    snprintf(out->name + used, sizeof out->name - used, " (lacks %s)", missing);
    out->reason = FRIT_REASON_RUNTIME_TOO_OLD;
}

/* For a device without Vulkan 1.2 reads only what identifies it.  False: it has Vulkan 1.2. */
static bool read_outdated(const struct instance *instance, struct adapter *out)
{
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};

    instance->api.GetPhysicalDeviceProperties2(out->handle, &all);
    if (all.properties.apiVersion >= VK_API_VERSION_1_2)
        return false;
    out->type = device_type(all.properties.deviceType);
    out->api_version = all.properties.apiVersion;
    snprintf(out->name, sizeof out->name, "%s", all.properties.deviceName);
    snprintf(out->stable_id, sizeof out->stable_id, "%04" PRIx32 "-%04" PRIx32,
             all.properties.vendorID, all.properties.deviceID);
    mark_unusable(out, "Vulkan 1.2");
    return true;
}

frit_status adapter_read(const struct instance *instance, VkPhysicalDevice handle,
                         struct adapter *out, frit_err *err)
{
    bool found[N_EXTENSIONS] = {false};
    frit_status status;

    *out = (struct adapter){.handle = handle};
    if (read_outdated(instance, out))
        return FRIT_OK;
    status = read_extensions(instance, out, found, err);
    if (status)
        return status;
    out->queue_family = find_queue_family(instance, handle, &out->timestamp_bits);
    out->has_calibrated_clock = found[EXT_CLOCK];
    read_features(instance, found, out);
    read_properties(instance, found, out);
    read_memory(instance, found, out);
    status = read_shapes(instance, out, err);
    if (status)
        return status;
    if (missing_requirement(out))
        mark_unusable(out, missing_requirement(out));
    return FRIT_OK;
}
