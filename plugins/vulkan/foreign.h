/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign kernels: SPIR-V modules of other plugins, which launch them by DISPATCH commands. */
#ifndef VULKAN_FOREIGN_H
#define VULKAN_FOREIGN_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

struct device;
struct recorder;

/* Module formats that foreign_load accepts. */
extern const frit_str foreign_formats[1];

/* Slots `kernel_load` and `kernel_unload` of frit.backend/1. */
frit_status foreign_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                         frit_kernel **kernel, frit_err *err);
void foreign_unload(void *self, frit_kernel *kernel);

/* Negative with a message for a DISPATCH that foreign_record cannot record. */
frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err);
/* Records a DISPATCH that was checked.  Needs the queue's lock. */
frit_status foreign_record(struct recorder *r, const frit_cmd *cmd, frit_err *err);

#endif
