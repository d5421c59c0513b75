/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel compiler and its SPIR-V emitter need to know about an adapter.  Threads: any. */
#ifndef VULKAN_TARGET_H
#define VULKAN_TARGET_H

#include <stdint.h>

struct adapter;
struct kir_target;
struct spirv_target;

/* Limits that the driver sets itself. */
enum {
    MAX_SPACE_WORDS = 4096,   /* arguments and parameters of one space; words of a DISPATCH */
    MAX_LAUNCH_WORDS = 65536, /* arguments and parameters of all spaces of a kernel */
    MAX_LAUNCH_ARGS = 16384,  /* arguments of all spaces of a launch */
    MAX_PUSH_BYTES = 256      /* push constants that are used, even if the device has more */
};

void target_fill_spirv(const struct adapter *adapter, struct spirv_target *out);
/* `target` is that of target_fill_spirv for the same adapter. */
void target_fill_kernels(const struct adapter *adapter, const struct spirv_target *target,
                         struct kir_target *out);
/* The most lanes that a group of the kernel compiler has on this adapter. */
uint32_t target_max_lanes(const struct adapter *adapter);

#endif
