/* SPDX-License-Identifier: Apache-2.0 */
/* From modules to pipelines. */
#ifndef VULKAN_COMPILE_H
#define VULKAN_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "api.h"
#include "driver.h"

struct adapter;
struct code;
struct device;
struct spirv_code;

/* The pipelines of this kind, aligned or any, where the block is `inside`.  Threads: any. */
frit_status code_make_far(struct device *device, struct code *code, enum far_kind kind,
                          bool aligned, frit_err *err);
/* The entry point "main" of a module's words; `subgroups`: it needs what the target promises. */
frit_status compile_pipeline(struct device *device, const struct spirv_code *code, VkPipeline *out,
                             frit_err *err);
/* Lanes of a kernel's group at most. */
uint32_t compile_lanes(const struct adapter *adapter);
/* The device's part in making kernels: facts, layout, cache. */
frit_status compile_open(struct device *device, frit_err *err);
void compile_close(struct device *device);

#endif
