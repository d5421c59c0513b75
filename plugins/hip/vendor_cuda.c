/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: the driver API and NVRTC. */
#include "vendor.h"

#include <stdio.h>

#include <frit/backend.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"

enum { LEAST_MAJOR = 7 /* of the compute capability: __grid_constant__, independent threads */ };

static bool read_arch(const struct instance *instance, struct adapter *adapter)
{
    (void)instance;
    snprintf(adapter->arch, sizeof adapter->arch, "sm_%d%d",
             adapter->attributes[ATTRIBUTE_MAJOR], adapter->attributes[ATTRIBUTE_MINOR]);
    return adapter->attributes[ATTRIBUTE_MAJOR] >= LEAST_MAJOR;
}

static gpu_result enter(const struct device *device, struct scope *scope)
{
    (void)scope;
    return device->api->ContextPush(device->context);
}

static void leave(const struct device *device, const struct scope *scope)
{
    gpu_context popped;

    (void)scope;
    (void)device->api->ContextPop(&popped);
}

static gpu_result open_context(struct device *device)
{
    return device->api->PrimaryContextRetain(&device->context, device->adapter->handle);
}

static void close_context(struct device *device)
{
    (void)device->api->PrimaryContextRelease(device->adapter->handle);
}

static const char *const libraries[] = {"libcuda.so.1", NULL};
static const char *const compilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
static const char *const options[] = {"--gpu-architecture=", "--fmad=false", "--std=c++17",
                                      "--device-as-default-execution-space", NULL};
static const frit_str formats[] = {{FRIT_FORMAT_CUBIN, sizeof FRIT_FORMAT_CUBIN - 1},
                                   {FRIT_FORMAT_PTX, sizeof FRIT_FORMAT_PTX - 1}};

const struct vendor vendor = {
    .name = "cuda",
    .libraries = libraries,
    .compilers = compilers,
    .hint = "install NVIDIA's driver (libcuda.so.1) and NVRTC 12 or 13",
    .visible_variable = "CUDA_VISIBLE_DEVICES",
    .device_file = "/dev/nvidiactl",
    .attributes =
        {
            [ATTRIBUTE_MAX_THREADS] = 1,
            [ATTRIBUTE_SHARED_BYTES] = 8,
            [ATTRIBUTE_WARP_SIZE] = 10,
            [ATTRIBUTE_MULTIPROCESSORS] = 16,
            [ATTRIBUTE_INTEGRATED] = 18,
            [ATTRIBUTE_COMPUTE_MODE] = 20,
            [ATTRIBUTE_CACHE_BYTES] = 38,
            [ATTRIBUTE_MAJOR] = 75,
            [ATTRIBUTE_MINOR] = 76,
        },
    .dialect = CTEXT_CUDA,
    .options = options,
    .formats = formats,
    .n_formats = sizeof formats / sizeof *formats,
    .native_stream = "cuda.stream",
    .native_context = "cuda.context",
    .native_pointer = "cuda.ptr",
    .read_arch = read_arch,
    .enter = enter,
    .leave = leave,
    .open = open_context,
    .close = close_context,
};
