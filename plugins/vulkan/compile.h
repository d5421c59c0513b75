/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation of the kernel compiler's modules to Vulkan pipelines.  Threads: any. */
#ifndef VULKAN_COMPILE_H
#define VULKAN_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "emit/spirv/spirv.h"

#include "api.h"

struct device;

/* Where a kernel reads its argument block (arg_block.h).  A submitted launch has it in push
 * constants if it fits there, and in memory otherwise.  Replays of a recording change words of the
 * block, but not the push constants of its command buffer; the kernel then reads these words in
 * memory, by pipelines of its own for captures. */
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
struct kernel_code {
    uint32_t n_phases;
    bool block_is_pushed; /* a submitted launch has its argument block in push constants */
    struct pipelines *submit;
    /* Of phases with fragments, which take long to compile: the module for arguments at any
     * address, whose pipeline is NULL until compile_for_any creates it, under the same lock. */
    struct spirv_code *submit_any;
    /* Empty unless `block_is_pushed`: otherwise captures use `submit`.  A pipeline is NULL until
     * compile_for_capture creates it, under the device's `pipelines_lock`. */
    struct pipelines *capture[CAPTURE_MODES];
    struct phase_modules *capture_modules[CAPTURE_MODES];
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
/* Makes sure that `code` has the pipelines of submitted launches with arguments at any address. */
frit_status compile_for_any(struct device *device, struct kernel_code *code, frit_err *err);
/* Makes sure that `code` has the pipelines of one mode, or of submitted launches, either for
 * aligned arguments or for any. */
frit_status compile_for_capture(struct device *device, struct kernel_code *code,
                                enum block_mode mode, bool aligned, frit_err *err);

#endif
