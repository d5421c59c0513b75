/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: blocks of host memory, counted against the option memory_bytes.
 *
 * A block is one piece of host memory that begins with its struct buffer.  The count is taken
 * before the memory and given back if there is none, so that threads that allocate at once cannot
 * pass the cap together. */
#include <inttypes.h>
#include <string.h>

#include "reference.h"

/* Takes `bytes` of the cap; false leaves the count as it was. */
static bool reserve(struct device *device, uint64_t bytes)
{
    uint64_t cap = device->instance->memory_bytes ? device->instance->memory_bytes : UINT64_MAX;
    uint64_t used = atomic_load(&device->in_use);

    do {
        if (used > cap || bytes > cap - used)
            return false;
    } while (!atomic_compare_exchange_weak(&device->in_use, &used, used + bytes));
    return true;
}

static void trace_use(struct device *device)
{
    const struct instance *instance = device->instance;

    if (instance->trace)
        instance->trace->counter(instance->host->self, FRIT_STR("bytes in use"),
                                 (double)atomic_load(&device->in_use));
}

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct device *device = self;
    const struct instance *instance = device->instance;
    uint64_t align = desc->align > 64 ? desc->align : 64; /* room for the header */
    struct buffer *buffer;

    if (!reserve(device, desc->bytes))
        return ref_fail(instance, err, FRIT_NO_DEVICE_MEMORY,
                        "reference: asked for %" PRIu64 " bytes with %" PRIu64 " in use of %" PRIu64
                        " (option.memory_bytes)",
                        desc->bytes, atomic_load(&device->in_use), instance->memory_bytes);
    buffer = desc->bytes <= UINT64_MAX - align
                 ? instance->core->mem_alloc(instance->host->self, align + desc->bytes, align)
                 : NULL;
    if (!buffer) {
        atomic_fetch_sub(&device->in_use, desc->bytes);
        return ref_fail(instance, err, FRIT_NO_DEVICE_MEMORY,
                        "reference: asked for %" PRIu64 " bytes with %" PRIu64
                        " in use; the process has no memory left",
                        desc->bytes, atomic_load(&device->in_use));
    }
    buffer->data = (char *)buffer + align;
    buffer->bytes = desc->bytes;
    out->memory = buffer;
    out->address = (uint64_t)(uintptr_t)buffer->data;
    out->host_pointer = buffer->data;
    trace_use(device);
    return FRIT_OK;
}

void buffer_free(void *self, void *memory)
{
    struct device *device = self;
    struct buffer *buffer = memory;

    if (!buffer)
        return;
    atomic_fetch_sub(&device->in_use, buffer->bytes);
    trace_use(device);
    device->instance->core->mem_free(device->instance->host->self, buffer);
}

bool buffer_holds(const struct buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

void *native_get(void *device, void *object, frit_str name)
{
    const frit_str pointer = FRIT_STR("host.ptr");
    const struct buffer *buffer = object;

    (void)device;
    if (!buffer || name.len != pointer.len || memcmp(name.ptr, pointer.ptr, pointer.len) != 0)
        return NULL;
    return buffer->data;
}
