/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opening, closing and memory of a device. */
#ifndef REMOTE_DEVICE_H
#define REMOTE_DEVICE_H

#include <frit/backend.h>

struct kit_device;

frit_status remote_open(struct kit_device *device, frit_err *err);
void remote_close(struct kit_device *device);

/* Slots of frit.backend/1. */
frit_status remote_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void remote_free(void *self, frit_memory *memory);

#endif
