/* SPDX-License-Identifier: Apache-2.0 */
/* The one device. */
#ifndef REFERENCE_DEVICE_H
#define REFERENCE_DEVICE_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

/* Slots of frit.backend/1; contracts there. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
frit_status device_compute_info(void *instance, uint32_t index, frit_compute_info *out,
                                frit_err *err);
void device_close(void *self);

#endif
