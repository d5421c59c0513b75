/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and what they say about themselves. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#ifdef FAKE_HIP
#define DEVICE_NAME "Fake AMD GPU"
#else
#define DEVICE_NAME "Fake NVIDIA GPU"
#endif

/* The vendor's numbers of attributes. */
static const struct attribute {
    int number, value;
} attributes[] = {
#ifdef FAKE_HIP
    {6, 0},                /* hipDeviceAttributeComputeMode */
    {16, 0},               /* hipDeviceAttributeIntegrated */
    {19, 4 << 20},         /* hipDeviceAttributeL2CacheSize */
    {23, 9},               /* hipDeviceAttributeComputeCapabilityMajor */
    {56, FAKE_THREADS},    /* hipDeviceAttributeMaxThreadsPerBlock */
    {61, 0},               /* hipDeviceAttributeComputeCapabilityMinor */
    {63, FAKE_PROCESSORS}, /* hipDeviceAttributeMultiprocessorCount */
    {74, FAKE_SHARED},     /* hipDeviceAttributeMaxSharedMemoryPerBlock */
    {87, FAKE_WARP},       /* hipDeviceAttributeWarpSize */
#else
    {1, FAKE_THREADS},      /* CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    {8, FAKE_PLAIN_SHARED}, /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK */
    {10, FAKE_WARP / 2},    /* CU_DEVICE_ATTRIBUTE_WARP_SIZE */
    {16, FAKE_PROCESSORS},  /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    {18, 0},                /* CU_DEVICE_ATTRIBUTE_INTEGRATED */
    {20, 0},                /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */
    {38, 4 << 20},          /* CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE */
    {75, 9},                /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    {76, 0},                /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR */
    {97, FAKE_SHARED},      /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
#endif
};

#ifdef FAKE_HIP
enum { COMPUTE_MODE = 6 };
#else
enum { COMPUTE_MODE = 20 };
#endif

static bool has_device(int device)
{
    return device >= 0 && (uint32_t)device < fake_gpu.n_devices && device < FAKE_MAX_DEVICES;
}

gpu_result fake_DeviceGetCount(int *count)
{
    gpu_result result = call_begin("DeviceGetCount");

    *count = 0;
    if (!result)
        *count = (int)fake_gpu.n_devices;
    return result;
}

gpu_result fake_DeviceGet(int *device, int index)
{
    gpu_result result = call_begin("DeviceGet");

    if (result || !has_device(index))
        return result ? result : FAKE_INVALID_DEVICE;
    *device = index;
    return GPU_SUCCESS;
}

gpu_result fake_DeviceGetName(char *name, int capacity, int device)
{
    gpu_result result = call_begin("DeviceGetName");

    if (result || !has_device(device) || capacity <= 0)
        return result ? result : FAKE_INVALID_DEVICE;
    snprintf(name, (size_t)capacity, "%s", DEVICE_NAME);
    return GPU_SUCCESS;
}

gpu_result fake_DeviceGetAttribute(int *value, int number, int device)
{
    gpu_result result = call_begin("DeviceGetAttribute");

    if (result || !has_device(device))
        return result ? result : FAKE_INVALID_DEVICE;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].number != number)
            continue;
        *value =
            number == COMPUTE_MODE && device == 0 ? fake_gpu.compute_mode : attributes[i].value;
        return GPU_SUCCESS;
    }
    return FAKE_INVALID_VALUE;
}

gpu_result fake_DeviceTotalMem(size_t *bytes, int device)
{
    gpu_result result = call_begin("DeviceTotalMem");

    if (result || !has_device(device))
        return result ? result : FAKE_INVALID_DEVICE;
    *bytes = fake_gpu.device_bytes;
    return GPU_SUCCESS;
}

gpu_result fake_DeviceGetPCIBusId(char *id, int capacity, int device)
{
    gpu_result result = call_begin("DeviceGetPCIBusId");

    if (result || !has_device(device) || capacity < 13)
        return result ? result : FAKE_INVALID_VALUE;
    snprintf(id, (size_t)capacity, "0000:%02x:00.0", 0x17 + device);
    return GPU_SUCCESS;
}

gpu_result fake_DeviceGetUuid(void *uuid, int device)
{
    gpu_result result = call_begin("DeviceGetUuid");

    if (result || !has_device(device))
        return result ? result : FAKE_INVALID_DEVICE;
    memset(uuid, 0xa0 + device, 16);
    return GPU_SUCCESS;
}
