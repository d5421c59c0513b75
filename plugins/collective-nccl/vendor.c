/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor.h"

#include <stddef.h>

/* ---- CUDA: the device's object is its context ---- */

static int cuda_enter(const struct gpu *gpu, void *device, struct scope *scope)
{
    (void)scope;
    return gpu->ContextPush(device);
}

static void cuda_leave(const struct gpu *gpu, const struct scope *scope)
{
    gpu_context popped;

    (void)scope;
    (void)gpu->ContextPop(&popped);
}

static int cuda_number(const struct gpu *gpu, int *out)
{
    return gpu->ContextGetDevice(out);
}

/* ---- HIP: it is a pointer to its number ---- */

static int hip_enter(const struct gpu *gpu, void *device, struct scope *scope)
{
    const int *number = device;
    const int result = gpu->GetDevice(&scope->previous);

    return result ? result : gpu->SetDevice(*number);
}

static void hip_leave(const struct gpu *gpu, const struct scope *scope)
{
    (void)gpu->SetDevice(scope->previous);
}

static int hip_number(const struct gpu *gpu, int *out)
{
    return gpu->GetDevice(out);
}

static const char *const nccl[] = {"libnccl.so.2", NULL};
static const char *const rccl[] = {"librccl.so.1", NULL};
static const char *const cuda[] = {"libcuda.so.1", NULL};
static const char *const hip[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL};

const struct vendor vendors[VENDORS] = {
    [VENDOR_CUDA] = {.space = FRIT_STR_INIT("cuda.ptr"),
                     .name = "NCCL",
                     .libraries = nccl,
                     .stem = "libnccl.so",
                     .runtimes = cuda,
                     .hint =
                         "install NCCL 2.14 or later, or set its file name by the option `nccl`",
                     .library_option = FRIT_STR_INIT("nccl"),
                     .runtime_option = FRIT_STR_INIT("cuda"),
                     .enter = cuda_enter,
                     .leave = cuda_leave,
                     .get_number = cuda_number},
    [VENDOR_HIP] = {.space = FRIT_STR_INIT("hip.ptr"),
                    .is_hip = true,
                    .name = "RCCL",
                    .libraries = rccl,
                    .stem = "librccl.so",
                    .runtimes = hip,
                    .hint = "install RCCL 2.14 or later, or set its file name by the option `rccl`",
                    .library_option = FRIT_STR_INIT("rccl"),
                    .runtime_option = FRIT_STR_INIT("hip"),
                    .enter = hip_enter,
                    .leave = hip_leave,
                    .get_number = hip_number},
};
