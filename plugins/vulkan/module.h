/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of FRIT_FORMAT_SPIRV, before Vulkan gets them.  Threads: any. */
#ifndef VULKAN_MODULE_H
#define VULKAN_MODULE_H

#include "driver.h"

/* `group` gets the lanes of its groups.  FRIT_INVALID for words that are no module of the format,
 * FRIT_UNSUPPORTED for one that wants more than the device has. */
frit_status module_check(const struct device *device, const uint32_t *words, uint32_t n,
                         uint32_t group[3], frit_err *err);

#endif
