/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of other plugins: code objects in the formats of vendor.formats (frit/backend.h). */
#ifndef HIP_FOREIGN_H
#define HIP_FOREIGN_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

struct device;
struct frit_queue;

/* Slots `kernel_load` and `kernel_unload` of frit.backend/1. */
frit_status foreign_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                         frit_kernel **kernel, frit_err *err);
void foreign_unload(void *self, frit_kernel *kernel);

/* Negative with a message for a DISPATCH that cannot be enqueued. */
frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err);
/* Needs the queue's lock. */
frit_status foreign_enqueue(struct frit_queue *queue, const frit_cmd *cmd, frit_err *err);

#endif
