/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: blocks of host memory, counted against the option memory_bytes. */
#include "reference.h"

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct device *device = self;
    uint64_t align = desc->align > 64 ? desc->align : 64; /* room for the header */
    frit_status status = budget_take(&device->budget, desc->bytes, err);
    struct buffer *buffer;

    if (status)
        return status;
    buffer = desc->bytes <= UINT64_MAX - align
                 ? plug_alloc(&device->instance->plug, align + desc->bytes, align)
                 : NULL;
    if (!buffer)
        return budget_fail(&device->budget, desc->bytes, err);
    buffer->memory = (struct serial_memory){(char *)buffer + align, desc->bytes};
    out->memory = buffer;
    out->address = (uint64_t)(uintptr_t)buffer->memory.data;
    out->host_pointer = buffer->memory.data;
    return FRIT_OK;
}

void buffer_free(void *self, void *memory)
{
    struct device *device = self;
    struct buffer *buffer = memory;

    if (!buffer)
        return;
    budget_give(&device->budget, buffer->memory.bytes);
    plug_free(&device->instance->plug, buffer);
}

void *native_get(void *device, void *object, frit_str name)
{
    const struct buffer *buffer = object;

    (void)device;
    return buffer && plug_is(name, FRIT_STR("host.ptr")) ? buffer->memory.data : NULL;
}
