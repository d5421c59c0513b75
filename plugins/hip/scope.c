/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include "adapter.h"
#include "device.h"
#include "plugin.h"

frit_status scope_enter(const struct device *device, struct scope *scope, frit_err *err)
{
    gpu_result result = vendor.enter(device, scope);

    scope->has_failed = result != GPU_SUCCESS;
    return result ? hip_fail(device->instance, err, result, "making %s the current device",
                             device->adapter->name)
                  : FRIT_OK;
}

void scope_leave(const struct device *device, const struct scope *scope)
{
    if (!scope->has_failed)
        vendor.leave(device, scope);
}

void scope_try(const struct device *device, struct scope *scope)
{
    (void)scope_enter(device, scope, NULL);
}
