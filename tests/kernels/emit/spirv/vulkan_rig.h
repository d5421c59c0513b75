/* SPDX-License-Identifier: Apache-2.0 */
/* A Vulkan device for tests of the SPIR-V emitter: its facts, and running a module's phases over
 * host memory.  FRIT_TEST_VULKAN in the environment is a part of the name of the device to take;
 * without it, a software device. */
#ifndef TESTS_EMIT_VULKAN_RIG_H
#define TESTS_EMIT_VULKAN_RIG_H

#include "emit/spirv/spirv.h"
#include "ir/target.h"

struct vulkan_rig;

/* NULL with a text on stderr: there is no such device. */
struct vulkan_rig *vulkan_open(void);
void vulkan_close(struct vulkan_rig *rig);
const struct spirv_target *vulkan_target(const struct vulkan_rig *rig);
const char *vulkan_name(const struct vulkan_rig *rig);
/* A device made of the processor: its arithmetic is that of the machine, but for fma. */
bool vulkan_is_software(const struct vulkan_rig *rig);
/* Shapes of the matrices that a subgroup multiplies, with elements of 16 bits and sums of 32. */
const struct kir_fragment_shape *vulkan_shapes(const struct vulkan_rig *rig, uint32_t *n);

/* An argument: `bytes` that are copied to the device, and back after.  `skew` bytes beyond an
 * address of SPIRV_ALIGN. */
struct vulkan_arg {
    void *data;
    uint64_t bytes;
    uint32_t skew;
};

/* Runs all phases, each from its code.  Every grid is done in two dispatches.  False: something
 * failed, or memory around an argument was written; a text is on stderr. */
bool vulkan_run(struct vulkan_rig *rig, const struct kir_module *module,
                const struct spirv_code *code, const uint64_t *words, const struct vulkan_arg *args,
                const uint32_t (*grid)[3]);

#endif
