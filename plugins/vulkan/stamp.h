/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps. */
#ifndef VULKAN_STAMP_H
#define VULKAN_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/profile.h>
#include <frit/status.h>

#include "api.h"

struct batch;
struct device;

/* stamp.c: a timestamp, for 8 bytes at a multiple of 8. */
frit_status stamps_add(struct device *device, struct batch *batch, VkBuffer to, uint64_t offset,
                       frit_err *err);
/* Copies the timestamps recorded so far to where they are wanted; whether there were any. */
bool stamps_copy(struct device *device, struct batch *batch);
void stamps_reset(struct batch *batch); /* when it begins again */
void stamps_destroy(struct device *device, struct batch *batch);
frit_status device_clock(void *self, frit_clock *out, frit_err *err);

#endif
