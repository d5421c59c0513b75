/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the header of a SPIR-V module and the instructions before its functions.  Only what could
 * crash a Vulkan driver, or what FRIT_FORMAT_SPIRV rules out, is checked; the rest is left to the
 * Vulkan driver. */
#include "module.h"

#include <inttypes.h>
#include <string.h>

#include "emit/spirv/grammar.h"

#include "adapter.h"
#include "device.h"
#include "plugin.h"

enum { HEADER_WORDS = 5, OLDEST_VERSION = 0x00010000 };

/* What a module declares. */
struct module_info {
    uint32_t n_entry_points;
    bool is_compute_main;    /* the last entry point is "main" of GLCompute */
    bool is_physical;        /* its addressing model is PhysicalStorageBuffer64 */
    uint32_t local_size[3];  /* zeros without a LocalSize */
    bool has_workgroup_size; /* a built-in WorkgroupSize, which overrides LocalSize */
    bool has_descriptors;
    uint32_t missing_capability; /* of the device; 0: none is missing */
};

static bool has_capability(const struct device *device, uint32_t capability)
{
    const struct spirv_target *target = &device->target;

    switch (capability) {
    case SPV_CAP_SHADER:
    case SPV_CAP_INT64:
    case SPV_CAP_GROUP:
    case SPV_CAP_PHYSICAL_ADDRESSES:
        return true;
    case SPV_CAP_FLOAT16:
        return device->adapter->features.v12.shaderFloat16;
    case SPV_CAP_FLOAT64:
        return target->float64;
    case SPV_CAP_INT64_ATOMICS:
        return target->atomic_i64;
    case SPV_CAP_GROUP_BALLOT:
    case SPV_CAP_GROUP_SHUFFLE:
        return target->subgroup != 0;
    case SPV_CAP_STORE_16:
        return target->store16;
    case SPV_CAP_STORE_8:
        return target->store8;
    case SPV_CAP_DENORM_PRESERVE:
        return target->keep_denormal32;
    case SPV_CAP_SIGNED_ZERO_INF_NAN_PRESERVE:
        return target->keep_special32;
    case SPV_CAP_ROUNDING_MODE_RTE:
        return target->round_even32;
    case SPV_CAP_ATOMIC_F32_ADD:
        return target->atomic_f32;
    default:
        return false;
    }
}

static bool is_compute_main_entry(const uint32_t *inst, uint32_t n)
{
    static const char name[8] = "main";

    return n >= 5 && inst[1] == SPV_EXECUTION_GLCOMPUTE && memcmp(inst + 3, name, sizeof name) == 0;
}

/* Reads an instruction of `n` words. */
static void read_inst(const struct device *device, const uint32_t *inst, uint32_t n,
                      struct module_info *info)
{
    switch (inst[0] & 0xffff) {
    case SPV_CAPABILITY:
        if (n >= 2 && !has_capability(device, inst[1]))
            info->missing_capability = inst[1];
        break;
    case SPV_MEMORY_MODEL:
        info->is_physical = n >= 3 && inst[1] == SPV_ADDRESSING_PHYSICAL_64;
        break;
    case SPV_ENTRY_POINT:
        info->n_entry_points++;
        info->is_compute_main = is_compute_main_entry(inst, n);
        break;
    case SPV_EXECUTION_MODE:
        if (n >= 6 && inst[2] == SPV_MODE_LOCAL_SIZE)
            memcpy(info->local_size, inst + 3, sizeof info->local_size);
        break;
    case SPV_DECORATE:
        if (n < 4)
            break;
        info->has_workgroup_size |=
            inst[2] == SPV_DEC_BUILT_IN && inst[3] == SPV_BUILT_IN_WORKGROUP_SIZE;
        info->has_descriptors |= inst[2] == SPV_DEC_BINDING || inst[2] == SPV_DEC_DESCRIPTOR_SET;
        break;
    default:
        break;
    }
}

/* FRIT_INVALID with a message if the words are not a sequence of instructions. */
static frit_status read_module(const struct device *device, const uint32_t *words, uint32_t n,
                               struct module_info *info, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;

    if (n < HEADER_WORDS || words[0] != SPV_MAGIC)
        return plug_fail(plug, err, FRIT_INVALID,
                         "no SPIR-V: a " FRIT_FORMAT_SPIRV " module of %" PRIu32
                         " words that begins with %#" PRIx32,
                         n, n ? words[0] : 0);
    if (words[1] < OLDEST_VERSION || words[1] > SPV_VERSION)
        return plug_fail(plug, err, FRIT_INVALID,
                         "module of SPIR-V %" PRIu32 ".%" PRIu32 "; " FRIT_FORMAT_SPIRV
                         " allows 1.0 to 1.5",
                         words[1] >> 16 & 0xff, words[1] >> 8 & 0xff);
    for (uint32_t at = HEADER_WORDS, length; at < n; at += length) {
        length = words[at] >> 16;
        if (length == 0 || length > n - at)
            return plug_fail(plug, err, FRIT_INVALID,
                             "instruction of %" PRIu32 " words at word %" PRIu32
                             " of a module of %" PRIu32 " words",
                             length, at, n);
        read_inst(device, words + at, length, info);
    }
    return FRIT_OK;
}

/* The rule of FRIT_FORMAT_SPIRV that a module breaks, to follow "must have"; NULL: none. */
static const char *unmet_rule(const struct module_info *info)
{
    if (info->n_entry_points != 1 || !info->is_compute_main)
        return "exactly one entry point, GLCompute \"main\"";
    if (!info->is_physical)
        return "the addressing model PhysicalStorageBuffer64";
    if (info->has_descriptors)
        return "no descriptors";
    if (info->has_workgroup_size || !info->local_size[0] || !info->local_size[1] ||
        !info->local_size[2])
        return "a LocalSize and no built-in WorkgroupSize";
    return NULL;
}

static bool fits_limits(const VkPhysicalDeviceLimits *limits, const uint32_t local_size[3])
{
    uint64_t invocations = 1;

    for (uint32_t d = 0; d < 3; d++) {
        if (local_size[d] > limits->maxComputeWorkGroupSize[d])
            return false;
        invocations *= local_size[d];
    }
    return invocations <= limits->maxComputeWorkGroupInvocations;
}

frit_status module_check(const struct device *device, const uint32_t *words, uint32_t n,
                         uint32_t local_size[3], frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const VkPhysicalDeviceLimits *limits = &device->adapter->limits;
    struct module_info info = {0};
    frit_status status = read_module(device, words, n, &info, err);

    if (status)
        return status;
    if (unmet_rule(&info))
        return plug_fail(plug, err, FRIT_INVALID, "a " FRIT_FORMAT_SPIRV " module must have %s",
                         unmet_rule(&info));
    if (info.missing_capability)
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "%s does not support the SPIR-V capability %" PRIu32 " of a module",
                         device->adapter->name, info.missing_capability);
    if (!fits_limits(limits, info.local_size))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "module with workgroups of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                         " invocations; %s supports %" PRIu32,
                         info.local_size[0], info.local_size[1], info.local_size[2],
                         device->adapter->name, limits->maxComputeWorkGroupInvocations);
    memcpy(local_size, info.local_size, sizeof info.local_size);
    return FRIT_OK;
}
