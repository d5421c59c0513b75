/* SPDX-License-Identifier: Apache-2.0 */
/* Submits. */
#ifndef VULKAN_SUBMIT_H
#define VULKAN_SUBMIT_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

struct device;

frit_status queue_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                         uint32_t stride, const frit_point *waits, uint32_t n_waits,
                         uint64_t *value, frit_err *err);

/* What could be wrong with a command. */
frit_status submit_check(struct device *device, const frit_cmd *cmd, frit_err *err);

#endif
