/* SPDX-License-Identifier: Apache-2.0 */
/* A device of the application in the place of one that this driver makes.  Its instance and its
 * physical device are other handles than those of enumerate; what is known of them is read again,
 * so that no function of one instance meets an object of another. */
#include "adopt.h"

#include <stddef.h>
#include <string.h>

#include "adapter.h"
#include "driver.h"
#include "loader.h"
#include "plugin.h"

/* ---- the objects ---- */

enum object {
    VK_INSTANCE,
    VK_PHYSICAL_DEVICE,
    VK_DEVICE,
    VK_QUEUE,
    VK_FAMILY,
    VK_FEATURES,
    N_OBJECTS
};

static const char *const object_names[N_OBJECTS] = {
    [VK_INSTANCE] = "vk.instance",   [VK_PHYSICAL_DEVICE] = "vk.physical_device",
    [VK_DEVICE] = "vk.device",       [VK_QUEUE] = "vk.queue",
    [VK_FAMILY] = "vk.queue_family", [VK_FEATURES] = "vk.features",
};

static uint32_t find_object(frit_str name)
{
    for (uint32_t i = 0; i < N_OBJECTS; i++)
        if (plug_is(name, (frit_str){object_names[i], strlen(object_names[i])}))
            return i;
    return N_OBJECTS;
}

static frit_status read_objects(const struct instance *instance, const frit_open_params *params,
                                void *objects[N_OBJECTS], frit_err *err)
{
    for (uint32_t i = 0; i < params->n_natives; i++) {
        const frit_native_object *native = &params->natives[i];
        const uint32_t object = find_object(native->name);

        if (object == N_OBJECTS)
            return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED,
                             "an object '%.*s' of the application", (int)native->name.len,
                             native->name.ptr);
        objects[object] = native->object;
    }
    for (uint32_t i = 0; i < N_OBJECTS; i++)
        if (!objects[i])
            return plug_fail(&instance->plug, err, FRIT_INVALID,
                             "objects of the application without '%s'", object_names[i]);
    return FRIT_OK;
}

/* ---- the features that it was made with ---- */

#define MEMBER(type, member) offsetof(type, member)
#define CORE(member)         MEMBER(struct features, core.features.member)
#define V11(member)          MEMBER(struct features, v11.member)
#define V12(member)          MEMBER(struct features, v12.member)
#define SUBGROUP(member)     MEMBER(struct features, subgroup.member)

/* What this driver enables where the physical device has it. */
static const struct {
    const char *name;
    size_t at; /* in struct features */
} features[] = {
    {"shaderFloat64", CORE(shaderFloat64)},
    {"shaderInt64", CORE(shaderInt64)},
    {"storageBuffer16BitAccess", V11(storageBuffer16BitAccess)},
    {"storageBuffer8BitAccess", V12(storageBuffer8BitAccess)},
    {"shaderFloat16", V12(shaderFloat16)},
    {"shaderBufferInt64Atomics", V12(shaderBufferInt64Atomics)},
    {"shaderSubgroupExtendedTypes", V12(shaderSubgroupExtendedTypes)},
    {"timelineSemaphore", V12(timelineSemaphore)},
    {"bufferDeviceAddress", V12(bufferDeviceAddress)},
    {"subgroupSizeControl", SUBGROUP(subgroupSizeControl)},
    {"computeFullSubgroups", SUBGROUP(computeFullSubgroups)},
    {"shaderBufferFloat32AtomicAdd", MEMBER(struct features, atomic.shaderBufferFloat32AtomicAdd)},
};

/* Where they stand in the structs of an application's chain. */
static const struct {
    VkStructureType type;
    size_t from, to; /* in that struct; in struct features */
} sources[] = {
#define SOURCE(TYPE, type, member, to)                                                       \
    {                                                                                        \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, MEMBER(VkPhysicalDevice##type, member), to \
    }
    SOURCE(FEATURES_2, Features2, features.shaderFloat64, CORE(shaderFloat64)),
    SOURCE(FEATURES_2, Features2, features.shaderInt64, CORE(shaderInt64)),
    SOURCE(VULKAN_1_1_FEATURES, Vulkan11Features, storageBuffer16BitAccess,
           V11(storageBuffer16BitAccess)),
    SOURCE(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, storageBuffer16BitAccess,
           V11(storageBuffer16BitAccess)),
    SOURCE(VULKAN_1_2_FEATURES, Vulkan12Features, storageBuffer8BitAccess,
           V12(storageBuffer8BitAccess)),
    SOURCE(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, storageBuffer8BitAccess,
           V12(storageBuffer8BitAccess)),
    SOURCE(VULKAN_1_2_FEATURES, Vulkan12Features, shaderFloat16, V12(shaderFloat16)),
    SOURCE(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderFloat16,
           V12(shaderFloat16)),
    SOURCE(VULKAN_1_2_FEATURES, Vulkan12Features, shaderBufferInt64Atomics,
           V12(shaderBufferInt64Atomics)),
    SOURCE(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features, shaderBufferInt64Atomics,
           V12(shaderBufferInt64Atomics)),
    SOURCE(VULKAN_1_2_FEATURES, Vulkan12Features, shaderSubgroupExtendedTypes,
           V12(shaderSubgroupExtendedTypes)),
    SOURCE(SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, ShaderSubgroupExtendedTypesFeatures,
           shaderSubgroupExtendedTypes, V12(shaderSubgroupExtendedTypes)),
    SOURCE(VULKAN_1_2_FEATURES, Vulkan12Features, timelineSemaphore, V12(timelineSemaphore)),
    SOURCE(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, timelineSemaphore,
           V12(timelineSemaphore)),
    SOURCE(VULKAN_1_2_FEATURES, Vulkan12Features, bufferDeviceAddress, V12(bufferDeviceAddress)),
    SOURCE(BUFFER_DEVICE_ADDRESS_FEATURES, BufferDeviceAddressFeatures, bufferDeviceAddress,
           V12(bufferDeviceAddress)),
    SOURCE(VULKAN_1_3_FEATURES, Vulkan13Features, subgroupSizeControl,
           SUBGROUP(subgroupSizeControl)),
    SOURCE(SUBGROUP_SIZE_CONTROL_FEATURES, SubgroupSizeControlFeatures, subgroupSizeControl,
           SUBGROUP(subgroupSizeControl)),
    SOURCE(VULKAN_1_3_FEATURES, Vulkan13Features, computeFullSubgroups,
           SUBGROUP(computeFullSubgroups)),
    SOURCE(SUBGROUP_SIZE_CONTROL_FEATURES, SubgroupSizeControlFeatures, computeFullSubgroups,
           SUBGROUP(computeFullSubgroups)),
    SOURCE(SHADER_ATOMIC_FLOAT_FEATURES_EXT, ShaderAtomicFloatFeaturesEXT,
           shaderBufferFloat32AtomicAdd,
           MEMBER(struct features, atomic.shaderBufferFloat32AtomicAdd)),
#undef SOURCE
};

static VkBool32 bool_at(const void *of, size_t at)
{
    return *(const VkBool32 *)(const void *)((const char *)of + at);
}

/* What the chain enables of that. */
static void read_enabled(const VkBaseInStructure *chain, struct features *out)
{
    for (; chain; chain = chain->pNext)
        for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
            if (sources[i].type == chain->sType && bool_at(chain, sources[i].from))
                *(VkBool32 *)(void *)((char *)out + sources[i].to) = VK_TRUE;
}

static frit_status check_features(const struct device *device, const VkBaseInStructure *chain,
                                  frit_err *err)
{
    struct features enabled = {0};

    if (chain->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
        return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                         "'vk.features' is no VkPhysicalDeviceFeatures2");
    read_enabled(chain, &enabled);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (bool_at(&device->adapter->features, features[i].at) &&
            !bool_at(&enabled, features[i].at))
            return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                             "%s has %s, which 'vk.device' was made without", device->adapter->name,
                             features[i].name);
    return FRIT_OK;
}

/* ---- the device ---- */

static frit_status check_family(const struct instance *instance, struct adapter *adapter,
                                uint32_t family, frit_err *err)
{
    VkQueueFamilyProperties families[32];
    uint32_t n = sizeof families / sizeof *families;

    instance->api.GetPhysicalDeviceQueueFamilyProperties(adapter->handle, &n, families);
    if (family >= n || !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return plug_fail(&instance->plug, err, FRIT_INVALID,
                         "'vk.queue_family' is %u, which does not compute", family);
    adapter->family = family;
    adapter->stamp_bits = families[family].timestampValidBits;
    return FRIT_OK;
}

/* The driver's own view of the application's instance and physical device. */
static frit_status look(struct adopted *adopted, void *const objects[N_OBJECTS], frit_err *err)
{
    struct instance *instance = &adopted->instance;
    const char *missing;
    frit_status status;

    instance->handle = objects[VK_INSTANCE];
    instance->messenger = VK_NULL_HANDLE;
    instance->adapters = NULL;
    instance->n_adapters = 0;
    missing = loader_functions(instance);
    if (missing)
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "'vk.instance' has no %s",
                         missing);
    status = adapter_read(instance, objects[VK_PHYSICAL_DEVICE], &adopted->adapter, err);
    if (status)
        return status;
    if (adopted->adapter.reason)
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "%s", adopted->adapter.name);
    return check_family(instance, &adopted->adapter, *(const uint32_t *)objects[VK_FAMILY], err);
}

frit_status device_adopt(struct device *device, const frit_open_params *params, frit_err *err)
{
    const struct adapter *wanted = device->adapter;
    void *objects[N_OBJECTS] = {NULL};
    struct adopted *adopted;
    frit_status status = read_objects(device->instance, params, objects, err);

    if (status)
        return status;
    adopted = vulkan_alloc(device->instance, sizeof *adopted);
    if (!adopted)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory to adopt a device");
    device->adopted = adopted;
    adopted->instance = *device->instance;
    device->instance = &adopted->instance;
    status = look(adopted, objects, err);
    if (status)
        return status;
    if (strcmp(adopted->adapter.stable_id, wanted->stable_id) != 0)
        return plug_fail(&adopted->instance.plug, err, FRIT_INVALID,
                         "'vk.physical_device' is %s, not %s", adopted->adapter.name, wanted->name);
    device->adapter = &adopted->adapter;
    device->queue.handle = objects[VK_QUEUE];
    device->handle = objects[VK_DEVICE];
    return check_features(device, objects[VK_FEATURES], err);
}
