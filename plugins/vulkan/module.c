/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the words of another plugin are a module of FRIT_FORMAT_SPIRV for this device: its header
 * and what stands before its functions, as far as a Vulkan driver would not refuse it but crash. */
#include "module.h"

#include <inttypes.h>
#include <string.h>

#include "emit/spirv/grammar.h"

enum { HEADER_WORDS = 5, OLDEST = 0x00010000 };

/* What is gathered of a module. */
struct facts {
    uint32_t n_entries;
    bool entry_fits; /* the last entry point is GLCompute "main" */
    bool physical;
    uint32_t group[3]; /* zeros without a LocalSize */
    bool has_own_size; /* the built-in WorkgroupSize, which stands in for LocalSize */
    bool has_descriptors;
    uint32_t missing; /* a capability that the device does not have, 0: none */
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

static bool is_main(const uint32_t *inst, uint32_t n)
{
    static const char name[8] = "main";

    return n >= 5 && inst[1] == SPV_EXECUTION_GLCOMPUTE && memcmp(inst + 3, name, sizeof name) == 0;
}

/* An instruction of `n` words. */
static void read_inst(const struct device *device, const uint32_t *inst, uint32_t n,
                      struct facts *facts)
{
    switch (inst[0] & 0xffff) {
    case SPV_CAPABILITY:
        if (n >= 2 && !has_capability(device, inst[1]))
            facts->missing = inst[1];
        break;
    case SPV_MEMORY_MODEL:
        facts->physical = n >= 3 && inst[1] == SPV_ADDRESSING_PHYSICAL_64;
        break;
    case SPV_ENTRY_POINT:
        facts->n_entries++;
        facts->entry_fits = is_main(inst, n);
        break;
    case SPV_EXECUTION_MODE:
        if (n >= 6 && inst[2] == SPV_MODE_LOCAL_SIZE)
            memcpy(facts->group, inst + 3, sizeof facts->group);
        break;
    case SPV_DECORATE:
        if (n < 4)
            break;
        facts->has_own_size |=
            inst[2] == SPV_DEC_BUILT_IN && inst[3] == SPV_BUILT_IN_WORKGROUP_SIZE;
        facts->has_descriptors |= inst[2] == SPV_DEC_BINDING || inst[2] == SPV_DEC_DESCRIPTOR_SET;
        break;
    default:
        break;
    }
}

/* FRIT_INVALID with the reason where the words are no instructions. */
static frit_status read_module(const struct device *device, const uint32_t *words, uint32_t n,
                               struct facts *facts, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;

    if (n < HEADER_WORDS || words[0] != SPV_MAGIC)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a " FRIT_FORMAT_SPIRV " of %" PRIu32
                         " words that is no SPIR-V: it begins with %#" PRIx32,
                         n, n ? words[0] : 0);
    if (words[1] < OLDEST || words[1] > SPV_VERSION)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a module of SPIR-V %" PRIu32 ".%" PRIu32 "; " FRIT_FORMAT_SPIRV
                         " ends with 1.5",
                         words[1] >> 16 & 0xff, words[1] >> 8 & 0xff);
    for (uint32_t at = HEADER_WORDS, length; at < n; at += length) {
        length = words[at] >> 16;
        if (length == 0 || length > n - at)
            return plug_fail(plug, err, FRIT_INVALID,
                             "an instruction of %" PRIu32 " words at word %" PRIu32
                             " of a module of %" PRIu32,
                             length, at, n);
        read_inst(device, words + at, length, facts);
    }
    return FRIT_OK;
}

/* NULL, or what a module lacks on every device. */
static const char *defect(const struct facts *facts)
{
    if (facts->n_entries != 1 || !facts->entry_fits)
        return "one entry point, GLCompute \"main\", alone";
    if (!facts->physical)
        return "the addressing model PhysicalStorageBuffer64";
    if (facts->has_descriptors)
        return "its arguments by address: there are no descriptors";
    if (facts->has_own_size || !facts->group[0] || !facts->group[1] || !facts->group[2])
        return "a LocalSize, which the built-in WorkgroupSize does not replace";
    return NULL;
}

static bool group_fits(const VkPhysicalDeviceLimits *limits, const uint32_t group[3])
{
    uint64_t lanes = 1;

    for (uint32_t d = 0; d < 3; d++) {
        if (group[d] > limits->maxComputeWorkGroupSize[d])
            return false;
        lanes *= group[d];
    }
    return lanes <= limits->maxComputeWorkGroupInvocations;
}

frit_status module_check(const struct device *device, const uint32_t *words, uint32_t n,
                         uint32_t group[3], frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const VkPhysicalDeviceLimits *limits = &device->adapter->limits;
    struct facts facts = {0};
    frit_status status = read_module(device, words, n, &facts, err);

    if (status)
        return status;
    if (defect(&facts))
        return plug_fail(plug, err, FRIT_INVALID, "a module for " FRIT_FORMAT_SPIRV " needs %s",
                         defect(&facts));
    if (facts.missing)
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "%s does not have the SPIR-V capability %" PRIu32 " of a module",
                         device->adapter->name, facts.missing);
    if (!group_fits(limits, facts.group))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "a module with groups of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                         " lanes; %s takes %" PRIu32,
                         facts.group[0], facts.group[1], facts.group[2], device->adapter->name,
                         limits->maxComputeWorkGroupInvocations);
    memcpy(group, facts.group, sizeof facts.group);
    return FRIT_OK;
}
