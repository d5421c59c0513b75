/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the targets of the kernel compiler from the features, limits and properties of an
 * adapter. */
#include "target.h"

#include <frit/types.h>

#include "emit/spirv/spirv.h"
#include "ir/target.h"

#include "adapter.h"

/* Lanes of a group.  A thread (invocation) has LANES_PER_THREAD of them, so that it loads 16 bytes
 * of 32-bit elements at once. */
enum { USUAL_LANES = 1024, LANES_PER_THREAD = 4, TEAM_LANES_PER_THREAD = 8 };

/* Lanes of the largest groups, and bytes of a slab of rows that a lane keeps in registers: 512
 * threads of 64 words, for which a GPU's multiprocessor has room beside what else they compute. */
enum { MAX_LANES = 2048, SLAB_BYTES = 64 };

/* Of a group's shared memory for the operands of products, on an H100 with driver 580: 28 TFLOP/s
 * where sums of blocks took its use to 45 KiB, 42 without them. */
enum { TILE_BYTES = 16384 };

/* Bytes of shared memory that the emitter uses for each lane when lanes exchange values. */
enum { EXCHANGE_BYTES = 12 };

/* Mesa's llvmpipe leaves all loops of a thread after this many iterations in total. */
enum { MAX_LOOP_ROUNDS = 65535 };

/* Groups that run at the same time.  Assumed, since Vulkan does not report it. */
enum { SOFTWARE_UNITS = 8, GPU_UNITS = 512 };

enum { MAX_BINDINGS = 64 };

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The largest power of two that is at most `n`. */
static uint32_t floor_power_of_two(uint32_t n)
{
    uint32_t power = 1;

    while (power * 2 <= n)
        power *= 2;
    return power;
}

/* Whether shaders may request exact 16-bit floats, whatever they request of 32 and 64 bits. */
static bool float16_is_exact(const struct adapter *adapter)
{
    const VkPhysicalDeviceVulkan12Properties *floats = &adapter->vulkan12;
    const VkShaderFloatControlsIndependence all = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;

    return adapter->features.v12.shaderFloat16 && floats->shaderSignedZeroInfNanPreserveFloat16 &&
           floats->shaderDenormPreserveFloat16 && floats->shaderRoundingModeRTEFloat16 &&
           floats->denormBehaviorIndependence == all && floats->roundingModeIndependence == all;
}

/* Sets the float controls that shaders request.  A device may demand that a shader requests the
 * same for all widths; then a control is requested only if both 32 and 64 bits support it. */
static void fill_floats(const struct adapter *adapter, struct spirv_target *out)
{
    const VkPhysicalDeviceVulkan12Properties *floats = &adapter->vulkan12;
    const VkShaderFloatControlsIndependence none = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;

    out->keep_special32 = floats->shaderSignedZeroInfNanPreserveFloat32;
    out->keep_special64 = floats->shaderSignedZeroInfNanPreserveFloat64;
    out->keep_denormal32 = floats->shaderDenormPreserveFloat32;
    out->keep_denormal64 = floats->shaderDenormPreserveFloat64;
    out->round_even32 = floats->shaderRoundingModeRTEFloat32;
    out->round_even64 = floats->shaderRoundingModeRTEFloat64;
    out->float16 = float16_is_exact(adapter);
    if (floats->denormBehaviorIndependence == none && out->keep_denormal32 != out->keep_denormal64)
        out->keep_denormal32 = out->keep_denormal64 = false;
    if (floats->roundingModeIndependence == none && out->round_even32 != out->round_even64)
        out->round_even32 = out->round_even64 = false;
}

static void fill_matrices(const struct adapter *adapter, struct spirv_target *out)
{
    const struct features *features = &adapter->features;

    out->matrices = adapter->subgroup_size && adapter->n_shapes &&
                    features->matrix.cooperativeMatrix && features->v12.vulkanMemoryModel;
    out->shares_tiles = features->shared.workgroupMemoryExplicitLayout &&
                        features->shared.workgroupMemoryExplicitLayout16BitAccess;
    out->matrices_f16 = out->matrices && features->v12.shaderFloat16;
    out->matrices_bf16 = out->matrices && features->bfloat16.shaderBFloat16Type &&
                         features->bfloat16.shaderBFloat16CooperativeMatrix;
}

void target_fill_spirv(const struct adapter *adapter, struct spirv_target *out)
{
    const VkPhysicalDeviceLimits *limits = &adapter->limits;

    *out = (struct spirv_target){
        .max_threads =
            min_u32(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]),
        .shared_bytes = limits->maxComputeSharedMemorySize,
        .push_bytes = min_u32(limits->maxPushConstantsSize, MAX_PUSH_BYTES),
        .subgroup = adapter->subgroup_size,
        .float64 = adapter->features.core.features.shaderFloat64,
        .store8 = adapter->features.v12.storageBuffer8BitAccess,
        .store16 = adapter->features.v11.storageBuffer16BitAccess,
        .atomic_i64 = adapter->features.v12.shaderBufferInt64Atomics,
        .atomic_f32 = adapter->features.atomic.shaderBufferFloat32AtomicAdd,
    };
    fill_matrices(adapter, out);
    if (adapter->subgroup_size)
        out->max_threads =
            min_u32(out->max_threads, adapter->subgroup_size * adapter->max_subgroups);
    out->max_threads = floor_power_of_two(out->max_threads);
    fill_floats(adapter, out);
}

static uint32_t group_lanes(const struct spirv_target *target, uint32_t most)
{
    return min_u32(most, target->max_threads * LANES_PER_THREAD);
}

/* Of a group whose lanes hold fragments; 0: the device multiplies none. */
static uint32_t fragment_lanes(const struct spirv_target *target)
{
    return target->matrices ? target->max_threads * TEAM_LANES_PER_THREAD : 0;
}

uint32_t target_max_lanes(const struct adapter *adapter)
{
    struct spirv_target target;
    uint32_t lanes, with_fragments;

    target_fill_spirv(adapter, &target);
    lanes = group_lanes(&target, MAX_LANES);
    with_fragments = fragment_lanes(&target);
    return lanes > with_fragments ? lanes : with_fragments;
}

/* Whether Fma rounds once.  Vulkan allows both; true for Vulkan drivers that are known to compile
 * it to an instruction of the device. */
static bool has_fused_fma(const struct adapter *adapter)
{
    return adapter->vulkan12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

/* Whether the error of Exp2 is below 2^-21: Vulkan allows more where the power is far from 1. */
static bool has_exact_exp2(const struct adapter *adapter)
{
    return adapter->vulkan12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

/* The adapter's shapes with elements that the target takes. */
static void fill_shapes(const struct adapter *adapter, const struct spirv_target *target,
                        struct kir_target *out)
{
    out->team = target->matrices ? target->subgroup : 0;
    out->fragment_lanes = fragment_lanes(target);
    out->reuses_tiles = target->shares_tiles;
    out->fragment_bytes = target->matrices ? target->shared_bytes : 0;
    for (uint32_t i = 0; i < adapter->n_shapes; i++)
        if (adapter->shapes[i].dtype == FRIT_BF16 ? target->matrices_bf16 : target->matrices_f16)
            out->shapes[out->n_shapes++] = adapter->shapes[i];
}

void target_fill_kernels(const struct adapter *adapter, const struct spirv_target *target,
                         struct kir_target *out)
{
    const uint32_t lanes = group_lanes(target, USUAL_LANES);
    const uint32_t exchanged = lanes * EXCHANGE_BYTES;

    *out = (struct kir_target){
        .lanes = lanes,
        .lanes_per_row = lanes,
        .max_lanes = group_lanes(target, MAX_LANES),
        .near_lanes = target->subgroup * LANES_PER_THREAD, /* lanes of one subgroup */
        .units = adapter->type == FRIT_DEVICE_SOFTWARE ? SOFTWARE_UNITS : GPU_UNITS,
        .group_bytes = target->shared_bytes > exchanged ? target->shared_bytes - exchanged : 0,
        .lane_bytes = EXCHANGE_BYTES,
        .tuning = {.slab_bytes = SLAB_BYTES, .tile_bytes = TILE_BYTES},
        .stages_tiles = adapter->type != FRIT_DEVICE_SOFTWARE,
        .bindings = MAX_BINDINGS,
        .launch_args = MAX_LAUNCH_ARGS,
        .launch_words = MAX_LAUNCH_WORDS,
        .max_rounds = adapter->type == FRIT_DEVICE_SOFTWARE ? MAX_LOOP_ROUNDS : 0,
        .align_bytes = SPIRV_ALIGN,
        .fma = has_fused_fma(adapter),
        .exp2 = has_exact_exp2(adapter),
        .f64 = target->float64,
        .i64 = true,
        .denormals = target->keep_denormal32,
        .atomic_f32 = target->atomic_f32,
        .store_bytes = 1,
    };
    fill_shapes(adapter, target, out);
}
