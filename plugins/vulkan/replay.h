/* SPDX-License-Identifier: Apache-2.0 */
/* Command buffers of recordings, and what a replay writes for one. */
#ifndef VULKAN_REPLAY_H
#define VULKAN_REPLAY_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

struct device;

/* Room for the instances, and the first of them; under the queue's lock, once words and kernels are
 * there. */
frit_status capture_instances(struct device *device, frit_recording *recording, frit_err *err);

frit_status capture_replay(void *self, frit_recording *recording, const void *block,
                           const frit_point *waits, uint32_t n_waits, uint64_t *value,
                           frit_err *err);

#endif
