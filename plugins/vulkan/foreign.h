/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of other plugins' programs. */
#ifndef VULKAN_FOREIGN_H
#define VULKAN_FOREIGN_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

struct device;
struct recording;

frit_status foreign_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                         frit_kernel **kernel, frit_err *err);
void foreign_unload(void *self, frit_kernel *kernel);

/* A DISPATCH of a kernel of foreign_load. */
frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err);
frit_status record_foreign(struct recording *r, const frit_cmd *cmd, frit_err *err);

#endif
