/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the runtime: those of the application that a device uses, and those of the driver that
 * other plugins may reach (frit.native/1). */
#ifndef HIP_NATIVE_H
#define HIP_NATIVE_H

#include <frit/backend.h>
#include <frit/native.h>
#include <frit/status.h>

#include "api.h"

struct device;

/* Takes the application's objects: its context, where the vendor has contexts, and its stream for
 * the first queue.  FRIT_UNSUPPORTED with a message for another name. */
frit_status native_adopt(struct device *device, const frit_open_params *params, gpu_stream *stream,
                         frit_err *err);

/* Slot `get` of frit.native/1. */
void *native_get(void *self, frit_memory *memory, frit_str name);

#endif
