/* SPDX-License-Identifier: Apache-2.0 */
/* The one device. */
#ifndef CPU_DEVICE_H
#define CPU_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

struct instance;

/* Whether products of BF16 are by dot2, with machine code and without. */
bool device_has_dot2(const struct instance *instance);

/* Slots of frit.backend/1 and frit.native/1; contracts there. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
frit_status device_compute_info(void *instance, uint32_t index, frit_compute_info *out,
                                frit_err *err);
void device_close(void *self);
frit_status device_queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                                frit_err *err);
void device_queue_destroy(void *self, frit_queue *queue);

#endif
