/* SPDX-License-Identifier: Apache-2.0 */
/* The current device of the calling thread, which belongs to the application: every function of the
 * driver that calls the runtime enters its device first and leaves it before it returns. */
#ifndef HIP_SCOPE_H
#define HIP_SCOPE_H

#include <frit/status.h>

#include "vendor.h"

/* On failure the device was not entered. */
frit_status scope_enter(const struct device *device, struct scope *scope, frit_err *err);
void scope_leave(const struct device *device, const struct scope *scope);

/* For functions that release objects, which do so as well as they can on failure too: the runtime
 * frees most objects without a current device.  scope_leave follows either way. */
void scope_try(const struct device *device, struct scope *scope);

#endif
