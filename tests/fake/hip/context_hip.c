/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's current device of a thread, and the properties of devices. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

struct gpu_context_object contexts[FAKE_MAX_DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2},
                                                        {.device = 3}, {.device = 4}, {.device = 5},
                                                        {.device = 6}, {.device = 7}};

static _Thread_local int current_device;

gpu_context context_current(void)
{
    return &contexts[current_device];
}

gpu_result fake_GetDevice(int *device)
{
    gpu_result result = call_begin("GetDevice");

    if (!result)
        *device = current_device;
    return result;
}

/* An error may be one of earlier work: the device is set all the same. */
gpu_result fake_SetDevice(int device)
{
    gpu_result result = call_begin("SetDevice");

    if (device < 0 || (uint32_t)device >= fake_gpu.n_devices)
        return FAKE_INVALID_DEVICE;
    current_device = device;
    return result;
}

/* ---- properties ---- */

/* sizeof(hipDeviceProp_t) and offsetof(.., gcnArchName), of HIP 5 and HIP 6. */
enum { R0000_BYTES = 792, R0000_ARCH = 396, R0600_BYTES = 1472, R0600_ARCH = 1160 };

static gpu_result get_properties(char *out, int device, size_t bytes, size_t arch)
{
    if (device < 0 || (uint32_t)device >= fake_gpu.n_devices)
        return FAKE_INVALID_DEVICE;
    memset(out, 0x5a, bytes);
    snprintf(out, 256, "Fake AMD GPU");
    snprintf(out + arch, 256, "%s", "gfx90a:sramecc+:xnack-");
    return GPU_SUCCESS;
}

gpu_result fake_GetProperties(void *out, int device)
{
    gpu_result result = call_begin("GetProperties");

    return result ? result : get_properties(out, device, R0000_BYTES, R0000_ARCH);
}

#if FAKE_HIP >= 6
gpu_result fake_GetPropertiesR0600(void *out, int device)
{
    gpu_result result = call_begin("GetPropertiesR0600");

    return result ? result : get_properties(out, device, R0600_BYTES, R0600_ARCH);
}
#endif

/* ---- an application's ---- */

static void *current(void)
{
    return (void *)(uintptr_t)(current_device + 1);
}

static uint32_t get_depth(void)
{
    return 0;
}

static void *use_device(int device)
{
    current_device = device;
    return NULL;
}

static void unuse_device(void)
{
    current_device = 0;
}

void context_setup(struct fake_gpu *control)
{
    control->current = current;
    control->depth = get_depth;
    control->use_device = use_device;
    control->unuse_device = unuse_device;
}
