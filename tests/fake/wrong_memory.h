/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a wrong driver for what lies beside its device's own memory: a second heap, which is
 * pinned, memory of the application, and other objects of it; memory of another device. */
#ifndef FAKE_WRONG_MEMORY_H
#define FAKE_WRONG_MEMORY_H

#include "wrong.h"

frit_status wrong_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                            uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                            frit_err *err);
/* Of a device, whatever objects of the application come with it. */
frit_status wrong_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                       frit_err *err);
/* Of the second heap. */
frit_status wrong_alloc_pinned(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                               frit_err *err);
frit_status wrong_import(void *self, const frit_import_desc *desc, frit_allocation *out,
                         frit_err *err);
void wrong_free(void *self, frit_memory *memory);
frit_status wrong_copy_from(void *self, const frit_transfer *to, const frit_peer_source *from,
                            uint64_t *value, frit_err *err);

#endif
