/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: TIMESTAMP commands of a batch, and the device's clock (frit.profile/1). */
#ifndef VULKAN_TIMESTAMP_H
#define VULKAN_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/profile.h>
#include <frit/status.h>

#include "api.h"

struct batch;
struct device;

enum { BATCH_TIMESTAMPS = 256 /* of one batch at most */ };

/* Records a timestamp whose 8 bytes timestamps_copy writes to `to`; `offset` is a multiple of 8.
 * Needs the queue's lock. */
frit_status timestamps_add(struct device *device, struct batch *batch, VkBuffer to, uint64_t offset,
                           frit_err *err);
/* Records the copies of all timestamps that were not copied yet.  False: there were none. */
bool timestamps_copy(struct device *device, struct batch *batch);
/* Forgets all timestamps of a batch that begins anew. */
void timestamps_reset(struct batch *batch);
void timestamps_destroy(struct device *device, struct batch *batch);

/* Slot `clock` of frit.profile/1. */
frit_status timestamps_clock(void *self, frit_clock *out, frit_err *err);

#endif
