/* SPDX-License-Identifier: Apache-2.0 */
/* The device's context is the one that the runtime's own API uses, unless the application gave
 * another: so addresses mean the same to both. */
#include "extmem.h"

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "scope.h"
#include "vendor.h"

void extmem_where(void *self, frit_extmem_where *out)
{
    const struct device *device = self;

    *out = (frit_extmem_where){vendor.extmem_kind, device->adapter->handle};
}

uint64_t extmem_address(void *self, frit_memory *memory)
{
    (void)self;
    return memory && !memory->is_pinned ? memory->address : 0;
}

frit_status extmem_import(void *self, const frit_extmem_desc *desc, frit_allocation *out,
                          frit_err *err)
{
    struct device *device = self;
    frit_memory *memory = hip_alloc(device->instance, sizeof *memory);
    struct scope scope;
    frit_status status;

    if (!memory)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for the description of memory");
    status = scope_enter(device, &scope, err);
    if (!status) {
        gpu_result result = device->api->StreamSynchronize(NULL);

        if (result)
            status = hip_fail(device->instance, err, result, "%s: waiting for the default stream",
                              device->adapter->name);
        scope_leave(device, &scope);
    }
    if (status) {
        hip_free(device->instance, memory);
        return status;
    }
    /* Without a handle there is nothing that buffer_free gives back. */
    *memory = (frit_memory){.bytes = desc->bytes, .address = desc->address};
    out->memory = memory;
    out->address = desc->address;
    return FRIT_OK;
}
