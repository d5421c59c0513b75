/* SPDX-License-Identifier: Apache-2.0 */
/* A device of the application in the place of one that this driver makes. */
#ifndef VULKAN_ADOPT_H
#define VULKAN_ADOPT_H

#include <frit/backend.h>
#include <frit/status.h>

struct device;

/* Takes the application's objects, of which nothing is to be destroyed; on failure too the device
 * is to be closed. */
frit_status device_adopt(struct device *device, const frit_open_params *params, frit_err *err);

#endif
