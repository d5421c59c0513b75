/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

#include <string.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "vendor.h"

static bool is_name(frit_str name, const char *known)
{
    return known && plug_is(name, (frit_str){known, strlen(known)});
}

frit_status native_adopt(struct device *device, const frit_open_params *params, gpu_stream *stream,
                         frit_err *err)
{
    for (uint32_t i = 0; i < params->n_natives; i++) {
        const frit_native_object *native = &params->natives[i];

        if (is_name(native->name, vendor.native_stream)) {
            *stream = native->object;
        } else if (is_name(native->name, vendor.native_context)) {
            device->context = native->object;
            device->context_is_adopted = true;
        } else {
            return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                             "a device that uses an object '%.*s' of the application",
                             (int)(native->name.len < 32 ? native->name.len : 32),
                             native->name.ptr ? native->name.ptr : "");
        }
    }
    return FRIT_OK;
}

void *native_get(void *self, frit_memory *memory, frit_str name)
{
    const struct device *device = self;

    if (memory)
        return is_name(name, vendor.native_pointer) ? (void *)(uintptr_t)memory->address : NULL;
    if (is_name(name, vendor.native_pointer))
        return vendor.native_context ? (void *)device->context
                                     : (void *)(uintptr_t)&device->adapter->handle;
    if (is_name(name, vendor.native_stream))
        return device->queues[0]->stream;
    return is_name(name, vendor.native_context) ? device->context : NULL;
}
