/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers.  Each has one Vulkan allocation of its own: the host suballocates large buffers, so the
 * number of allocations stays far below the limits of Vulkan drivers. */
#include "buffer.h"

#include <inttypes.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"

/* Allocates, binds and maps the memory of a buffer. */
static frit_status bind_memory(struct device *device, enum buffer_memory kind, frit_memory *buffer,
                               frit_err *err)
{
    const struct device_api *api = &device->api;
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .pNext = &flags};
    VkMemoryRequirements required;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkResult result;

    api->GetBufferMemoryRequirements(device->handle, buffer->handle, &required);
    allocate.allocationSize = required.size;
    allocate.memoryTypeIndex = adapter_memory_type(device->adapter, kind, required.memoryTypeBits);
    if (allocate.memoryTypeIndex == UINT32_MAX)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "%s has no suitable memory type for a buffer", device->adapter->name);
    result = api->AllocateMemory(device->handle, &allocate, NULL, &memory);
    buffer->memory = memory;
    if (!result)
        result = api->BindBufferMemory(device->handle, buffer->handle, buffer->memory, 0);
    if (!result && kind != MEMORY_DEVICE)
        result = api->MapMemory(device->handle, buffer->memory, 0, VK_WHOLE_SIZE, 0,
                                (void **)&buffer->mapped);
    return result ? vulkan_fail(device->instance, err, result, "%s: allocating %" PRIu64 " bytes",
                                device->adapter->name, buffer->bytes)
                  : FRIT_OK;
}

frit_status buffer_create(struct device *device, enum buffer_memory kind, uint64_t bytes,
                          frit_memory *out, frit_err *err)
{
    const VkBufferCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = (bytes + VULKAN_ALIGN - 1) & ~(uint64_t)(VULKAN_ALIGN - 1),
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    VkBuffer handle = VK_NULL_HANDLE;
    VkResult result;
    frit_status status;

    *out = (frit_memory){.bytes = bytes};
    if (create.size < bytes)
        return plug_fail(&device->instance->plug, err, FRIT_NO_DEVICE_MEMORY,
                         "a buffer of %" PRIu64 " bytes is too large", bytes);
    result = device->api.CreateBuffer(device->handle, &create, NULL, &handle);
    out->handle = handle;
    if (result)
        return vulkan_fail(device->instance, err, result,
                           "%s: creating a buffer of %" PRIu64 " bytes", device->adapter->name,
                           bytes);
    status = bind_memory(device, kind, out, err);
    if (!status) {
        info.buffer = out->handle;
        out->address = device->api.GetBufferDeviceAddress(device->handle, &info);
        if (out->address % VULKAN_ALIGN)
            status = plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                               "%s: the address of a buffer, %#" PRIx64 ", is not a multiple of %d",
                               device->adapter->name, out->address, VULKAN_ALIGN);
    }
    if (status)
        buffer_destroy(device, out);
    return status;
}

void buffer_destroy(struct device *device, frit_memory *buffer)
{
    device->api.DestroyBuffer(device->handle, buffer->handle, NULL);
    device->api.FreeMemory(device->handle, buffer->memory, NULL);
    *buffer = (frit_memory){0};
}

/* ---- slots ---- */

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct device *device = self;
    const enum buffer_memory kind = desc->heap                  ? MEMORY_STAGING
                                    : device->adapter->mappable ? MEMORY_MAPPED
                                                                : MEMORY_DEVICE;
    frit_memory *buffer = vulkan_alloc(device->instance, sizeof *buffer);
    frit_status status;

    if (!buffer)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for the description of a buffer");
    status = buffer_create(device, kind, desc->bytes, buffer, err);
    if (status) {
        vulkan_free(device->instance, buffer);
        return status;
    }
    out->memory = buffer;
    out->address = buffer->address;
    out->host_pointer = buffer->mapped;
    return FRIT_OK;
}

void buffer_free(void *self, frit_memory *memory)
{
    struct device *device = self;

    if (!memory)
        return;
    buffer_destroy(device, memory);
    vulkan_free(device->instance, memory);
}

uint64_t buffer_budget(void *self, uint32_t heap)
{
    const struct device *device = self;
    const uint64_t budget = heap ? 0 : adapter_budget(device->instance, device->adapter);

    return budget ? budget : device->adapter->heaps[heap].bytes;
}
