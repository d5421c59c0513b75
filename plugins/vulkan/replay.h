/* SPDX-License-Identifier: Apache-2.0 */
/* Replays of recordings. */
#ifndef VULKAN_REPLAY_H
#define VULKAN_REPLAY_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/status.h>

struct device;

/* Allocates the regions of all instances and records the first instance, for a recording that is
 * complete otherwise.  Needs the queue's lock. */
frit_status replay_open(struct device *device, frit_recording *recording, frit_err *err);

/* Slot `replay` of frit.capture/1. */
frit_status replay_submit(void *self, frit_recording *recording, const void *params,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value,
                          frit_err *err);

#endif
