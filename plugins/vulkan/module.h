/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of SPIR-V modules of other plugins before Vulkan gets them. */
#ifndef VULKAN_MODULE_H
#define VULKAN_MODULE_H

#include <stdint.h>

#include <frit/status.h>

struct device;

/* Checks a module of `n` words in the format FRIT_FORMAT_SPIRV.  FRIT_INVALID: the words are no
 * such module; FRIT_UNSUPPORTED: the device lacks what it needs; both with a message.  Otherwise
 * `local_size` is set to the module's LocalSize.  Threads: any. */
frit_status module_check(const struct device *device, const uint32_t *words, uint32_t n,
                         uint32_t local_size[3], frit_err *err);

#endif
