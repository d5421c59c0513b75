/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: one for each physical device of the VkInstance, which the first enumerate creates. */
#include "device.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "adopt.h"
#include "compile.h"
#include "foreign.h"
#include "loader.h"
#include "plugin.h"
#include "target.h"

_Static_assert(offsetof(struct device, kernels) == 0, "as the slots of gpu/program.h expect");

/* ---- enumerate ---- */

static bool is_listed(const struct instance *instance, const struct adapter *adapter)
{
    for (uint32_t i = 0; i < instance->n_adapters; i++)
        if (strcmp(instance->adapters[i].stable_id, adapter->stable_id) == 0)
            return true;
    return false;
}

/* If several Vulkan drivers offer the same device, only the first of them is listed. */
static frit_status read_adapters(struct instance *instance, frit_err *err)
{
    VkPhysicalDevice handles[64];
    uint32_t n = sizeof handles / sizeof *handles;
    VkResult result = instance->api.EnumeratePhysicalDevices(instance->handle, &n, handles);
    frit_status status = FRIT_OK;

    if (result < 0)
        return vulkan_fail(instance, err, result, "enumerating physical devices");
    instance->adapters = vulkan_alloc(instance, (n + 1) * sizeof *instance->adapters);
    if (!instance->adapters)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for %u devices", n);
    for (uint32_t i = 0; i < n && !status; i++) {
        struct adapter *adapter = &instance->adapters[instance->n_adapters];

        status = adapter_read(instance, handles[i], adapter, err);
        if (!status && !is_listed(instance, adapter))
            instance->n_adapters++;
    }
    if (n == 0) {
        snprintf(instance->unavailable_text, sizeof instance->unavailable_text,
                 "%s lists no devices", instance->library_path);
        instance->unavailable_reason = FRIT_REASON_NO_DEVICE;
    }
    return status;
}

/* Creates the VkInstance and reads its physical devices, the first time.  After a failure the next
 * call tries again. */
static frit_status open_instance(struct instance *instance, frit_err *err)
{
    frit_status status;

    if (instance->adapters || instance->unavailable_reason)
        return FRIT_OK;
    status = loader_open(instance, err);
    if (!status && !instance->unavailable_reason)
        status = read_adapters(instance, err);
    if (status || instance->unavailable_reason) {
        loader_close(instance);
        vulkan_free(instance, instance->adapters);
        instance->adapters = NULL;
        instance->n_adapters = 0;
    }
    return status;
}

static frit_str text(const char *terminated)
{
    return (frit_str){terminated, strlen(terminated)};
}

static uint8_t dtype_use(const struct adapter *adapter, uint32_t dtype)
{
    const bool has_f64 = adapter->features.core.features.shaderFloat64;

    if (kir_type_of(dtype) != KIR_VOID && (dtype != FRIT_F64 || has_f64))
        return FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC;
    return frit_storage_bytes(dtype, 1) ? FRIT_DTYPE_STORAGE : 0;
}

/* Bandwidth and latency of the link to a discrete device, assumed because Vulkan does not report
 * them: those of PCIe 3.0 with 16 lanes, and of a small copy with a wait for it. */
enum { PCIE_BYTES_PER_US = 12000, PCIE_LATENCY_NS = 10000 };

/* Vulkan's limits on the range of a storage buffer and on the size of a grid do not apply:
 * arguments are addresses, and launch.c splits grids. */
static void fill_limits(const struct adapter *adapter, frit_device_info *out)
{
    out->align_bytes = VULKAN_ALIGN;
    out->max_bindings = MAX_LAUNCH_ARGS;
    out->group_memory = adapter->limits.maxComputeSharedMemorySize;
    out->max_group = target_max_lanes(adapter);
    out->n_heaps = sizeof adapter->heaps / sizeof adapter->heaps[0];
    out->heap_stride = sizeof adapter->heaps[0];
    out->heaps = adapter->heaps;
    if (adapter->type == FRIT_DEVICE_DISCRETE) {
        out->link_bytes_per_s = PCIE_BYTES_PER_US * 1000000ull;
        out->link_latency_ns = PCIE_LATENCY_NS;
    }
    out->caps = FRIT_CAP_I64 | (adapter->mappable ? FRIT_CAP_HOST_VISIBLE : 0) |
                (adapter->features.core.features.shaderFloat64 ? FRIT_CAP_F64 : 0);
    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] = dtype_use(adapter, dtype);
}

static void fill_info(const struct instance *instance, uint32_t index, frit_device_info *out)
{
    const struct adapter *adapter = &instance->adapters[index];

    *out = (frit_device_info){
        .struct_size = sizeof *out,
        .type = adapter->type,
        .index = index,
        .reason = adapter->reason,
        .stable_id = text(adapter->stable_id),
        .name = text(adapter->name),
        .pci = text(adapter->pci),
        .driver_version = text(adapter->driver_version),
        .runtime_version = text(adapter->api_version_text),
        .runtime_path = text(instance->library_path),
        .fingerprint = text(adapter->fingerprint),
        .n_formats = sizeof foreign_formats / sizeof *foreign_formats,
        .formats = foreign_formats,
    };
    memcpy(out->uuid, adapter->uuid, sizeof out->uuid);
    fill_limits(adapter, out);
}

frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    struct instance *instance = self;
    frit_status status = open_instance(instance, err);

    *count = 0;
    if (status)
        return status;
    *count = instance->n_adapters;
    driver->reason = instance->unavailable_reason;
    driver->detail = text(instance->unavailable_text);
    for (uint32_t i = 0; i < instance->n_adapters && i < capacity; i++) {
        frit_device_info *info = plug_info_at(&instance->plug, out, stride, i, err);

        if (!info)
            return FRIT_INCOMPATIBLE;
        fill_info(instance, i, info);
    }
    return FRIT_OK;
}

frit_status device_compute_info(void *self, uint32_t index, frit_compute_info *out, frit_err *err)
{
    const struct instance *instance = self;
    frit_status status = plug_check_index(&instance->plug, index, instance->n_adapters, err);

    if (status)
        return status;
    out->is_slow = instance->adapters[index].type == FRIT_DEVICE_SOFTWARE;
    out->text = text(instance->adapters[index].driver_version);
    return FRIT_OK;
}

/* ---- open and close ---- */

static frit_status load_functions(struct device *device, frit_err *err)
{
    const struct instance *instance = device->instance;
    const char *missing = NULL;

#define VULKAN_DEVICE(name)                                                                       \
    device->api.name = (PFN_vk##name)instance->api.GetDeviceProcAddr(device->handle, "vk" #name); \
    missing = device->api.name ? missing : "vk" #name;
#define VULKAN_CLOCK(name)                     \
    if (device->adapter->has_calibrated_clock) \
        device->api.name =                     \
            (PFN_vk##name)instance->api.GetDeviceProcAddr(device->handle, "vk" #name);
#include "syms.def"
    if (device->adopted && !device->api.GetCalibratedTimestampsEXT)
        device->adopted->adapter.has_calibrated_clock = false; /* extension not enabled */
    return missing ? plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "%s has no %s",
                               device->adapter->name, missing)
                   : FRIT_OK;
}

static frit_status create_device(struct device *device, struct adapter *adapter, frit_err *err)
{
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = adapter->queue_family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .pNext = adapter_features(adapter),
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue,
                                       .enabledExtensionCount = adapter->n_extensions,
                                       .ppEnabledExtensionNames = adapter->extensions};
    VkResult result =
        device->instance->api.CreateDevice(adapter->handle, &create, NULL, &device->handle);

    if (result)
        return vulkan_fail(device->instance, err, result, "creating a device on %s", adapter->name);
    return FRIT_OK;
}

frit_status device_open(void *self, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err)
{
    struct instance *instance = self;
    struct device *device;
    frit_status status;

    *out = NULL;
    if (index >= instance->n_adapters || instance->adapters[index].reason)
        return plug_fail(&instance->plug, err, FRIT_INVALID,
                         "vulkan:%u is not a usable device; %u devices are listed", index,
                         instance->n_adapters);
    device = vulkan_alloc(instance, sizeof *device);
    if (!device)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory to open vulkan:%u",
                         index);
    device->instance = instance;
    device->adapter = &instance->adapters[index];
    device->queue.loss.on_lost = params->lost;
    device->queue.loss.ctx = params->ctx;
    status = params->n_natives ? adopt_device(device, params, err)
                               : create_device(device, &instance->adapters[index], err);
    if (!status)
        status = load_functions(device, err);
    if (!status)
        status = queue_open(device, err);
    if (!status)
        status = compile_open(device, err);
    if (status)
        device_close(device);
    else
        *out = device;
    return status;
}

void device_close(void *self)
{
    struct device *device = self;
    struct adopted *adopted = device->adopted;

    queue_close(device);
    compile_close(device);
    if (device->handle && device->api.DestroyDevice && !adopted)
        device->api.DestroyDevice(device->handle, NULL);
    vulkan_free(device->instance, device);
    if (adopted)
        vulkan_free(&adopted->instance, adopted);
}
