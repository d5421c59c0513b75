/* SPDX-License-Identifier: Apache-2.0 */
#include "device/limits.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"

#include <frit/backend.h>

static uint64_t bytes_spanned(const frit_arg_sig *arg)
{
    uint64_t reach = 0;

    for (uint32_t d = 0; d < arg->rank; d++)
        reach += (uint64_t)llabs(arg->strides[d]) * (uint64_t)(arg->dims[d] - (arg->dims[d] > 0));
    return frit_storage_bytes(arg->dtype, (int64_t)reach + 1);
}

frit_status limits_check_args(const frit_device *device, const frit_signature *signature,
                              frit_err *err)
{
    const frit_device_info *info = device->info;
    uint32_t used = 0;

    for (uint32_t i = 0; i < signature->n_in + signature->n_out; i++) {
        const frit_arg_sig *arg = &signature->args[i];

        if (arg->dtype == FRIT_NO_DTYPE)
            continue;
        used++;
        if (info->max_binding && bytes_spanned(arg) > info->max_binding)
            return fail(err, FRIT_UNSUPPORTED,
                        "%s: an argument spans more than %llu bytes, the most of a launch",
                        device->name, (unsigned long long)info->max_binding);
    }
    if (info->max_bindings && used > info->max_bindings)
        return fail(err, FRIT_UNSUPPORTED, "%s: %u arguments, %u are the most of a launch",
                    device->name, used, info->max_bindings);
    return FRIT_OK;
}

frit_status limits_check_grid(const frit_device *device, const uint32_t grid[3],
                              const uint32_t group[3], const char *slot, frit_err *err)
{
    const frit_device_info *info = device->info;
    uint32_t most = info->max_group ? info->max_group : 1;
    uint64_t lanes = 1;

    for (uint32_t d = 0; d < 3; d++) {
        uint32_t groups = info->max_grid[d] ? info->max_grid[d] : INT32_MAX;

        if (grid[d] > groups)
            return fail(err, FRIT_INTERNAL,
                        "%s: %s requests a grid of %u groups, the device declared %u", device->name,
                        slot, grid[d], groups);
        if (__builtin_mul_overflow(lanes, group[d] ? group[d] : 1, &lanes))
            lanes = UINT64_MAX;
    }
    if (lanes > most)
        return fail(err, FRIT_INTERNAL,
                    "%s: %s requests a group of %llu lanes, the device declared %u", device->name,
                    slot, (unsigned long long)lanes, most);
    return FRIT_OK;
}
