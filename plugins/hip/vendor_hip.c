/* SPDX-License-Identifier: Apache-2.0 */
/* HIP and HIPRTC.  The current device of a thread is a number. */
#include "vendor.h"

#include <stdio.h>
#include <string.h>

#include <frit/backend.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "product_library.h"

/* hipDeviceProp_t, of which the name of the architecture is read alone: where it lies and how large
 * the struct is.  HIP 6 has changed both, and has a function with another name for the new one. */
enum {
    PROPERTIES_BYTES = 8192, /* more than any version writes */
    ARCH_OFFSET = 396,
    ARCH_OFFSET_R0600 = 1160,
    ARCH_BYTES = 256
};

/* "gfx90a:sramecc+:xnack-" is of architecture gfx90a; the whole is what code is compiled for. */
static bool read_arch(const struct instance *instance, struct adapter *adapter)
{
    const struct api *api = &instance->api;
    char properties[PROPERTIES_BYTES] = {0};
    const char *name = properties + (api->GetPropertiesR0600 ? ARCH_OFFSET_R0600 : ARCH_OFFSET);
    gpu_result result = api->GetPropertiesR0600
                            ? api->GetPropertiesR0600(properties, adapter->handle)
                        : api->GetProperties ? api->GetProperties(properties, adapter->handle)
                                             : GPU_NO_DEVICE;

    if (result || strncmp(name, "gfx", 3) != 0)
        return false;
    snprintf(adapter->arch, sizeof adapter->arch, "%.*s", (int)sizeof adapter->arch - 1, name);
    return true;
}

static gpu_result enter(const struct device *device, struct scope *scope)
{
    gpu_result result = device->api->GetDevice(&scope->previous);

    if (result || scope->previous == device->adapter->handle)
        return result;
    result = device->api->SetDevice(device->adapter->handle);
    if (result) /* it may be an error of earlier work */
        (void)device->api->SetDevice(scope->previous);
    return result;
}

static void leave(const struct device *device, const struct scope *scope)
{
    if (scope->previous != device->adapter->handle)
        (void)device->api->SetDevice(scope->previous);
}

static gpu_result open_nothing(struct device *device)
{
    (void)device;
    return GPU_SUCCESS;
}

static void close_nothing(struct device *device)
{
    (void)device;
}

static gpu_result enable_peer(const struct device *to, const struct device *from)
{
    return to->api->DeviceEnablePeer(from->adapter->handle, 0);
}

static gpu_result copy_peer(const struct device *to, gpu_ptr to_address, const struct device *from,
                            gpu_ptr from_address, size_t bytes, gpu_stream stream)
{
    return to->api->DeviceCopyPeer(to_address, to->adapter->handle, from_address,
                                   from->adapter->handle, bytes, stream);
}

static const char *const libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        NULL};
static const char *const compilers[] = {"", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5",
                                        NULL};
static const char *const options[] = {"--offload-arch=", "-ffp-contract=off", "-O3", "-std=c++17",
                                      NULL};
static const frit_str formats[] = {{FRIT_FORMAT_HSACO, sizeof FRIT_FORMAT_HSACO - 1}};

static const char *const lt_files[] = {"libhipblaslt.so.1", "libhipblaslt.so.0", NULL};
static const char *const rocblas_files[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                            "librocblas.so.0", NULL};
static const struct product_library product_libraries[] = {
    {"hipblaslt", lt_files, &product_lt},
    {"rocblas", rocblas_files, &product_rocblas},
    {0},
};

static const struct lt_numbers lt = {
    .compute_f32 = 2,
    .compute_tf32 = 6,
    .compute_f64 = 7,
    .op_n = 111,
    .op_t = 112,
    .desc_op_a = 0,
    .desc_op_b = 1,
    .desc_epilogue = 2,
    .desc_bias = 3,
    .layout_batches = 0,
    .layout_batch_step = 1,
    .max_workspace = 1,
    .result_bytes = 56,
    .result_workspace = 24,
    .result_state = 32,
};

const struct vendor vendor = {
    .name = "hip",
    .libraries = libraries,
    .compilers = compilers,
    .compiler_name = "HIPRTC",
    .hint = "install ROCm's runtime (libamdhip64.so, version 5 to 7)",
    .visible_variable = "HIP_VISIBLE_DEVICES",
    .device_file = "/dev/kfd",
    .other_file = "/dev/dxg", /* of WSL */
    .attributes =
        {
            [ATTRIBUTE_MAX_THREADS] = 56,
            [ATTRIBUTE_SHARED_BYTES] = 74,
            [ATTRIBUTE_MOST_SHARED_BYTES] = 74,
            [ATTRIBUTE_WARP_SIZE] = 87,
            [ATTRIBUTE_MULTIPROCESSORS] = 63,
            [ATTRIBUTE_INTEGRATED] = 16,
            [ATTRIBUTE_COMPUTE_MODE] = 6,
            [ATTRIBUTE_CACHE_BYTES] = 19,
            [ATTRIBUTE_MAJOR] = 23,
            [ATTRIBUTE_MINOR] = 61,
        },
    .launch_end = (void *)3, /* HIP_LAUNCH_PARAM_END */
    .dialect = CTEXT_HIP,
    .options = options,
    .formats = formats,
    .n_formats = sizeof formats / sizeof *formats,
    .product_libraries = product_libraries,
    .lt = &lt,
    .native_stream = "hip.stream",
    .native_pointer = "hip.ptr",
    .extmem_kind = 10,
    .read_arch = read_arch,
    .enter = enter,
    .leave = leave,
    .open = open_nothing,
    .close = close_nothing,
    .enable_peer = enable_peer,
    .copy_peer = copy_peer,
};
