/* SPDX-License-Identifier: Apache-2.0 */
/* TIMESTAMP commands and the device's clock (frit.profile/1). */
#ifndef HIP_TIMESTAMP_H
#define HIP_TIMESTAMP_H

#include <stdint.h>

#include <frit/profile.h>
#include <frit/status.h>

struct frit_queue;

/* Enqueues the write of a timestamp to a device address.  Needs the queue's lock. */
frit_status timestamp_enqueue(struct frit_queue *queue, uint64_t address, frit_err *err);

/* Slot `clock` of frit.profile/1. */
frit_status timestamp_clock(void *self, frit_clock *out, frit_err *err);

#endif
