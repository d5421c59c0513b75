/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver knows of HIP without its headers, held against those of HIP 5.2: numbers, and the
 * place of the architecture's name.  headers_types.cpp holds the functions. */
#include "unit.h"

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "hip/vendor_hip.c"

/* What vendor_hip.c refers to; nothing here calls it. */
const struct product_functions product_lt = {0}, product_rocblas = {0};

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

SAME(GPU_SUCCESS, hipSuccess);
SAME(GPU_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(GPU_NO_DEVICE, hipErrorNoDevice);
SAME(GPU_NO_SUCH_DEVICE, hipErrorInvalidDevice);
SAME(GPU_NOT_READY, hipErrorNotReady);
SAME(GPU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(GPU_EVENT_BLOCKING_SYNC, hipEventBlockingSync);
SAME(GPU_EVENT_NO_TIMING, hipEventDisableTiming);
SAME(GPU_HOST_PORTABLE, hipHostMallocPortable);
SAME(GPU_HOST_MAPPED, hipHostMallocMapped);
SAME(GPU_CAPTURE_RELAXED, hipStreamCaptureModeRelaxed);
SAME(ARCH_OFFSET, offsetof(hipDeviceProp_t, gcnArchName));
SAME(ARCH_BYTES, sizeof(((hipDeviceProp_t *)0)->gcnArchName));
_Static_assert(PROPERTIES_BYTES >= 2 * sizeof(hipDeviceProp_t), "more than any version writes");

static void launches_end(void **state)
{
    (void)state;
    assert_ptr_equal(GPU_LAUNCH_BUFFER, HIP_LAUNCH_PARAM_BUFFER_POINTER);
    assert_ptr_equal(GPU_LAUNCH_BUFFER_SIZE, HIP_LAUNCH_PARAM_BUFFER_SIZE);
    assert_ptr_equal(vendor.launch_end, HIP_LAUNCH_PARAM_END);
}

static void attributes(void **state)
{
    static const int numbers[N_ATTRIBUTES] = {
        [ATTRIBUTE_MAX_THREADS] = hipDeviceAttributeMaxThreadsPerBlock,
        [ATTRIBUTE_SHARED_BYTES] = hipDeviceAttributeMaxSharedMemoryPerBlock,
        [ATTRIBUTE_MOST_SHARED_BYTES] = hipDeviceAttributeMaxSharedMemoryPerBlock,
        [ATTRIBUTE_WARP_SIZE] = hipDeviceAttributeWarpSize,
        [ATTRIBUTE_MULTIPROCESSORS] = hipDeviceAttributeMultiprocessorCount,
        [ATTRIBUTE_INTEGRATED] = hipDeviceAttributeIntegrated,
        [ATTRIBUTE_COMPUTE_MODE] = hipDeviceAttributeComputeMode,
        [ATTRIBUTE_CACHE_BYTES] = hipDeviceAttributeL2CacheSize,
        [ATTRIBUTE_MAJOR] = hipDeviceAttributeComputeCapabilityMajor,
        [ATTRIBUTE_MINOR] = hipDeviceAttributeComputeCapabilityMinor,
    };

    (void)state;
    for (int i = 0; i < N_ATTRIBUTES; i++)
        assert_int_equal(vendor.attributes[i], numbers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_end),
        cmocka_unit_test(attributes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
