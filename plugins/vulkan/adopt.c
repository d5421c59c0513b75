/* SPDX-License-Identifier: Apache-2.0 */
/* Adopts the application's Vulkan objects.  Their VkInstance and VkPhysicalDevice are not the
 * handles of the driver's own enumeration, so the functions of the instance and the properties of
 * the adapter are read again: Vulkan objects may only be used with functions of their own
 * instance. */
#include "adopt.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "device.h"
#include "loader.h"

/* ---- native objects ---- */

enum native {
    NATIVE_INSTANCE,
    NATIVE_PHYSICAL_DEVICE,
    NATIVE_DEVICE,
    NATIVE_QUEUE,
    NATIVE_QUEUE_FAMILY,
    NATIVE_FEATURES,
    N_NATIVES
};

static const char *const native_names[N_NATIVES] = {
    [NATIVE_INSTANCE] = "vk.instance",
    [NATIVE_PHYSICAL_DEVICE] = "vk.physical_device",
    [NATIVE_DEVICE] = "vk.device",
    [NATIVE_QUEUE] = "vk.queue",
    [NATIVE_QUEUE_FAMILY] = "vk.queue_family",
    [NATIVE_FEATURES] = "vk.features",
};

/* N_NATIVES: the name is unknown. */
static uint32_t native_of(frit_str name)
{
    for (uint32_t i = 0; i < N_NATIVES; i++)
        if (plug_is(name, (frit_str){native_names[i], strlen(native_names[i])}))
            return i;
    return N_NATIVES;
}

static frit_status collect_natives(const struct instance *instance, const frit_open_params *params,
                                   void *natives[N_NATIVES], frit_err *err)
{
    for (uint32_t i = 0; i < params->n_natives; i++) {
        const frit_native_object *given = &params->natives[i];
        const uint32_t native = native_of(given->name);

        if (native == N_NATIVES)
            return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "unknown native object '%.*s'",
                             (int)given->name.len, given->name.ptr);
        natives[native] = given->object;
    }
    for (uint32_t i = 0; i < N_NATIVES; i++)
        if (!natives[i])
            return plug_fail(&instance->plug, err, FRIT_INVALID, "native object '%s' is missing",
                             native_names[i]);
    return FRIT_OK;
}

/* ---- enabled features ---- */

/* A struct in an application's chain of features, and the feature's VkBool32 in it. */
struct feature_source {
    VkStructureType type;
    size_t offset;
};

static const struct feature {
    const char *name;
    size_t offset; /* of its VkBool32 in struct adapter */
    struct feature_source sources[2];
    bool is_optional;
} feature_rows[] = {
#define SOURCE(TYPE, type, member)                                                         \
    {                                                                                      \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, offsetof(VkPhysicalDevice##type, member) \
    }
#define VULKAN_CORE_FEATURE(name)                                                                  \
    {#name,                                                                                        \
     offsetof(struct adapter, features.core.features.name),                                        \
     {SOURCE(FEATURES_2, Features2, features.name), SOURCE(FEATURES_2, Features2, features.name)}, \
     false},
#define VULKAN_FEATURE(member, name, TYPE, type, OTHER_TYPE, other_type) \
    {#name,                                                              \
     offsetof(struct adapter, features.member.name),                     \
     {SOURCE(TYPE, type, name), SOURCE(OTHER_TYPE, other_type, name)},   \
     false},
#define VULKAN_MATRIX_FEATURE(member, name, TYPE, type, OTHER_TYPE, other_type) \
    {#name,                                                                     \
     offsetof(struct adapter, features.member.name),                            \
     {SOURCE(TYPE, type, name), SOURCE(OTHER_TYPE, other_type, name)},          \
     true},
#include "features.def"
#undef SOURCE
};

static VkBool32 *bool_at(void *structure, size_t offset)
{
    return (VkBool32 *)(void *)((char *)structure + offset);
}

static bool is_set(const void *structure, size_t offset)
{
    return *(const VkBool32 *)(const void *)((const char *)structure + offset);
}

/* Whether a struct in the chain enables the feature. */
static bool is_enabled(const struct feature *feature, const VkBaseInStructure *chain)
{
    for (; chain; chain = chain->pNext)
        for (size_t i = 0; i < sizeof feature->sources / sizeof *feature->sources; i++)
            if (feature->sources[i].type == chain->sType &&
                is_set(chain, feature->sources[i].offset))
                return true;
    return false;
}

/* FRIT_UNSUPPORTED unless every feature of features.def that the physical device has is enabled,
 * but for those of matrices.  The properties from enumerate, and compiled kernels, assume that it
 * is. */
static frit_status check_features(const struct device *device, const VkBaseInStructure *chain,
                                  frit_err *err)
{
    assert(chain);
    if (chain->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
        return plug_fail(&device->instance->plug, err, FRIT_INVALID,
                         "'vk.features' is not a VkPhysicalDeviceFeatures2");
    for (size_t i = 0; i < sizeof feature_rows / sizeof *feature_rows; i++) {
        VkBool32 *has = bool_at(&device->adopted->adapter, feature_rows[i].offset);

        if (!*has || is_enabled(&feature_rows[i], chain))
            continue;
        if (!feature_rows[i].is_optional)
            return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                             "'vk.device' was created without %s, which %s has",
                             feature_rows[i].name, device->adapter->name);
        *has = false;
    }
    return FRIT_OK;
}

/* ---- the device ---- */

/* Makes `family` the queue family of the adapter. */
static frit_status set_queue_family(const struct instance *instance, struct adapter *adapter,
                                    uint32_t family, frit_err *err)
{
    VkQueueFamilyProperties families[32];
    uint32_t n = sizeof families / sizeof *families;

    instance->api.GetPhysicalDeviceQueueFamilyProperties(adapter->handle, &n, families);
    if (family >= n || !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return plug_fail(&instance->plug, err, FRIT_INVALID,
                         "'vk.queue_family' is %u, which is not a family with compute", family);
    adapter->queue_family = family;
    adapter->timestamp_bits = families[family].timestampValidBits;
    return FRIT_OK;
}

/* Fills `adopted`, whose instance is a copy of the plugin's. */
static frit_status read_adopted(struct adopted *adopted, void *const natives[N_NATIVES],
                                frit_err *err)
{
    struct instance *instance = &adopted->instance;
    const char *missing;
    frit_status status;

    instance->handle = natives[NATIVE_INSTANCE];
    instance->messenger = VK_NULL_HANDLE;
    instance->adapters = NULL;
    instance->n_adapters = 0;
    missing = loader_load_instance(instance);
    if (missing)
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "'vk.instance' has no function %s",
                         missing);
    status = adapter_read(instance, natives[NATIVE_PHYSICAL_DEVICE], &adopted->adapter, err);
    if (status)
        return status;
    if (adopted->adapter.reason)
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "%s", adopted->adapter.name);
    assert(natives[NATIVE_QUEUE_FAMILY]);
    return set_queue_family(instance, &adopted->adapter,
                            *(const uint32_t *)natives[NATIVE_QUEUE_FAMILY], err);
}

frit_status adopt_device(struct device *device, const frit_open_params *params, frit_err *err)
{
    const struct adapter *listed = device->adapter;
    void *natives[N_NATIVES] = {NULL};
    struct adopted *adopted;
    frit_status status = collect_natives(device->instance, params, natives, err);

    if (status)
        return status;
    adopted = vulkan_alloc(device->instance, sizeof *adopted);
    if (!adopted)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for an adopted device");
    device->adopted = adopted;
    adopted->instance = *device->instance;
    device->instance = &adopted->instance;
    status = read_adopted(adopted, natives, err);
    if (status)
        return status;
    if (strcmp(adopted->adapter.stable_id, listed->stable_id) != 0)
        return plug_fail(&adopted->instance.plug, err, FRIT_INVALID,
                         "'vk.physical_device' is %s, not %s", adopted->adapter.name, listed->name);
    device->adapter = &adopted->adapter;
    device->queue.handle = natives[NATIVE_QUEUE];
    device->handle = natives[NATIVE_DEVICE];
    return check_features(device, natives[NATIVE_FEATURES], err);
}
