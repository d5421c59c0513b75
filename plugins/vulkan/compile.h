/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation: what the kernel compiler has to know about a device, and Vulkan pipelines for its
 * modules.  Threads: any. */
#ifndef VULKAN_COMPILE_H
#define VULKAN_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "emit/spirv/spirv.h"

#include "api.h"

struct adapter;
struct device;

/* Limits that the driver sets itself. */
enum {
    MAX_SPACE_WORDS = 4096,   /* arguments and parameters of one space; words of a DISPATCH */
    MAX_LAUNCH_WORDS = 65536, /* arguments and parameters of all spaces of a kernel */
    MAX_LAUNCH_ARGS = 16384,  /* arguments of all spaces of a launch */
    MAX_PUSH_BYTES = 256      /* push constants that are used, even if the device has more */
};

/* Where a kernel reads its argument block (arg_block.h).  A submitted launch has it in push
 * constants if it fits there, and in memory otherwise.  A capture changes addresses and parameters
 * from replay to replay, which push constants of a recorded command buffer cannot; its kernels may
 * need other pipelines. */
enum block_mode {
    BLOCK_BY_ADDRESS, /* all of it in memory; its address is in push constants */
    BLOCK_SPLIT,      /* the arguments' addresses in memory, the parameters in push constants */
    CAPTURE_MODES,
    BLOCK_AS_SUBMITTED = CAPTURE_MODES
};

/* Pipelines of a phase. */
struct pipelines {
    VkPipeline any;     /* for arguments at any address */
    VkPipeline aligned; /* for arguments whose addresses are all multiples of SPIRV_ALIGN */
};

/* SPIR-V modules of a phase, for pipelines that are created on demand. */
struct phase_modules {
    struct spirv_code any, aligned;
};

/* A compiled kernel.  The arrays have one entry for each phase. */
struct code {
    uint32_t n_phases;
    bool block_is_pushed; /* a submitted launch has its argument block in push constants */
    struct pipelines *submit;
    /* Empty unless `block_is_pushed`: otherwise captures use `submit`.  A pipeline is NULL until
     * compile_for_capture creates it, under the device's `pipelines_lock`. */
    struct pipelines *capture[CAPTURE_MODES];
    struct phase_modules *modules[CAPTURE_MODES];
};

/* Initializes the device's targets, pipeline layout, pipeline cache and kernel compiler.  After a
 * failure too the caller calls compile_close. */
frit_status compile_open(struct device *device, frit_err *err);
/* Writes the pipeline cache to the host's disk cache and frees everything. */
void compile_close(struct device *device);

/* Creates a compute pipeline of the module's entry point "main", with the device's pipeline
 * layout. */
frit_status compile_pipeline(struct device *device, const struct spirv_code *code, VkPipeline *out,
                             frit_err *err);
/* Makes sure that `code` has the pipelines of one mode, either for aligned arguments or for
 * any. */
frit_status compile_for_capture(struct device *device, struct code *code, enum block_mode mode,
                                bool aligned, frit_err *err);

/* The most lanes that a group of the kernel compiler has on this device. */
uint32_t compile_max_lanes(const struct adapter *adapter);

#endif
