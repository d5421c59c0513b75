/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: host memory, counted against the option memory_bytes.
 *
 * The system clears a page when it is first touched, which costs many times more than reading it
 * with small pages.  So what is large enough begins at a large page and asks for large pages; it is
 * the host's pools that keep memory from going back. */
#include <sys/mman.h>

#include "cpu.h"

#define LARGE_PAGE ((uint64_t)2 << 20)

static void *take(const struct plug *plug, uint64_t bytes, uint64_t align)
{
    void *data;

    if (bytes < LARGE_PAGE)
        return plug_alloc(plug, bytes, align);
    if (bytes > UINT64_MAX - LARGE_PAGE)
        return NULL;
    bytes = (bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    data = plug_alloc(plug, bytes, align > LARGE_PAGE ? align : LARGE_PAGE);
    if (data)
        (void)madvise(data, bytes, MADV_HUGEPAGE); /* a wish */
    return data;
}

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    frit_status status = budget_take(&device->budget, desc->bytes, err);
    struct buffer *buffer;
    char *data;

    if (status)
        return status;
    buffer = plug_alloc(plug, sizeof *buffer, _Alignof(struct buffer));
    data = buffer ? take(plug, desc->bytes, desc->align) : NULL;
    if (!data) {
        plug_free(plug, buffer);
        return budget_fail(&device->budget, desc->bytes, err);
    }
    buffer->memory = (struct serial_memory){data, desc->bytes};
    out->memory = buffer;
    out->address = (uint64_t)(uintptr_t)data;
    out->host_pointer = data;
    return FRIT_OK;
}

void buffer_free(void *self, void *memory)
{
    struct device *device = self;
    struct buffer *buffer = memory;

    if (!buffer)
        return;
    budget_give(&device->budget, buffer->memory.bytes);
    plug_free(&device->instance->plug, buffer->memory.data);
    plug_free(&device->instance->plug, buffer);
}

void *native_get(void *device, void *object, frit_str name)
{
    const struct buffer *buffer = object;

    (void)device;
    return buffer && plug_is(name, FRIT_STR("host.ptr")) ? buffer->memory.data : NULL;
}
