/* SPDX-License-Identifier: Apache-2.0 */
/* Checking the SPIR-V of a module: spirv-val takes it, and a Vulkan device makes of it what eval
 * does.  Everything that fails fails the test. */
#ifndef TESTS_EMIT_SPIRV_RIG_H
#define TESTS_EMIT_SPIRV_RIG_H

#include "kernels/emit/spirv/vulkan_rig.h"

/* A device with everything, for tests that only look at words. */
extern const struct spirv_target spirv_rich;

/* Emits a phase and has it validated; to be ended by spirv_fini. */
void spirv_rig_emit(const struct kir_module *m, uint32_t phase, const struct spirv_target *target,
                    bool aligned, struct spirv_code *out);
/* How often an instruction occurs in the code. */
uint32_t spirv_rig_count(const struct spirv_code *code, uint32_t op);

/* An argument's contents before and, as eval and the device leave them, after. */
struct spirv_rig_arg {
    const void *data;
    uint64_t bytes;
};

struct spirv_rig_run {
    const struct kir_module *module;
    const uint64_t *words;
    const struct spirv_rig_arg *args;
    const uint32_t (*grid)[3];
    uint32_t ulps;     /* floats may differ by that many */
    bool no_subgroups; /* even where the device has them */
    bool aligned_only; /* it has matrices in arguments */
};

/* Whether arguments are aligned and the block lies in push constants or not, shuffles are allowed
 * or not: all that the device has of these. */
void spirv_rig_check(struct vulkan_rig *rig, const struct spirv_rig_run *run);

#endif
