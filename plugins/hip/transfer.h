/* SPDX-License-Identifier: Apache-2.0 */
/* Data between host memory and buffers. */
#ifndef HIP_TRANSFER_H
#define HIP_TRANSFER_H

#include <frit/backend.h>
#include <frit/status.h>

/* Slots `write` and `read` of frit.backend/1. */
frit_status transfer_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                           frit_err *err);
frit_status transfer_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                          frit_err *err);

#endif
