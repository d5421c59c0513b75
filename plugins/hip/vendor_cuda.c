/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: the driver API and NVRTC. */
#include "vendor.h"

#include <stdio.h>

#include <frit/backend.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "product_library.h"

/* Of the compute capability: __grid_constant__, independent threads; instructions that no later one
 * has, wgmma. */
enum { LEAST_MAJOR = 7, OWN_MAJOR = 9 };

static bool read_arch(const struct instance *instance, struct adapter *adapter)
{
    const int major = adapter->attributes[ATTRIBUTE_MAJOR];

    (void)instance;
    snprintf(adapter->arch, sizeof adapter->arch, "sm_%d%d%s", major,
             adapter->attributes[ATTRIBUTE_MINOR], major == OWN_MAJOR ? "a" : "");
    return major >= LEAST_MAJOR;
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

static gpu_result enable_peer(const struct device *to, const struct device *from)
{
    return to->api->ContextEnablePeer(from->context, 0);
}

static gpu_result copy_peer(const struct device *to, gpu_ptr to_address, const struct device *from,
                            gpu_ptr from_address, size_t bytes, gpu_stream stream)
{
    return to->api->ContextCopyPeer(to_address, to->context, from_address, from->context, bytes,
                                    stream);
}

static const char *const libraries[] = {"libcuda.so.1", NULL};
static const char *const compilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
static const char *const options[] = {"--gpu-architecture=", "--fmad=false", "--std=c++17",
                                      "--device-as-default-execution-space", NULL};
/* Attention on fragments, whose texts take longest, is as fast without some passes; attention of
 * F32 is a twelfth slower (NVRTC 13.0 on an H100). */
static const struct newer_option newer_options[] = {
    {"--minimal", 1209, false},
    {"--Ofast-compile=min", 1300, true},
    {NULL, 0, false},
};
static const frit_str formats[] = {{FRIT_FORMAT_CUBIN, sizeof FRIT_FORMAT_CUBIN - 1},
                                   {FRIT_FORMAT_PTX, sizeof FRIT_FORMAT_PTX - 1}};

static const char *const lt_files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
static const struct product_library product_libraries[] = {
    {"cublaslt", lt_files, &product_lt},
    {0},
};

static const struct lt_numbers lt = {
    .compute_f32 = 68,
    .compute_tf32 = 77,
    .compute_f64 = 70,
    .op_n = 0,
    .op_t = 1,
    .desc_op_a = 3,
    .desc_op_b = 4,
    .desc_epilogue = 7,
    .desc_bias = 8,
    .layout_batches = 5,
    .layout_batch_step = 6,
    .max_workspace = 1,
    .reductions = 3,
    .min_aligns = 5,
    .result_bytes = 96,
    .result_workspace = 64,
    .result_state = 72,
};

const struct vendor vendor = {
    .name = "cuda",
    .libraries = libraries,
    .compilers = compilers,
    .compiler_name = "NVRTC",
    .hint = "install NVIDIA's driver (libcuda.so.1) and NVRTC 12 or 13",
    .visible_variable = "CUDA_VISIBLE_DEVICES",
    .device_file = "/dev/nvidiactl",
    .attributes =
        {
            [ATTRIBUTE_MAX_THREADS] = 1,
            [ATTRIBUTE_SHARED_BYTES] = 8,
            [ATTRIBUTE_MOST_SHARED_BYTES] = 97,
            [ATTRIBUTE_WARP_SIZE] = 10,
            [ATTRIBUTE_MULTIPROCESSORS] = 16,
            [ATTRIBUTE_INTEGRATED] = 18,
            [ATTRIBUTE_COMPUTE_MODE] = 20,
            [ATTRIBUTE_CACHE_BYTES] = 38,
            [ATTRIBUTE_MAJOR] = 75,
            [ATTRIBUTE_MINOR] = 76,
        },
    .launch_end = NULL, /* CU_LAUNCH_PARAM_END */
    .dialect = CTEXT_CUDA,
    .options = options,
    .newer_options = newer_options,
    .formats = formats,
    .n_formats = sizeof formats / sizeof *formats,
    .product_libraries = product_libraries,
    .lt = &lt,
    .native_stream = "cuda.stream",
    .native_context = "cuda.context",
    .native_pointer = "cuda.ptr",
    .extmem_kind = 2,
    .read_arch = read_arch,
    .enter = enter,
    .leave = leave,
    .open = open_context,
    .close = close_context,
    .enable_peer = enable_peer,
    .copy_peer = copy_peer,
};
