/* SPDX-License-Identifier: Apache-2.0 */
/* Devices on a VkDevice that the application has created. */
#ifndef VULKAN_ADOPT_H
#define VULKAN_ADOPT_H

#include <frit/backend.h>
#include <frit/status.h>

#include "adapter.h"
#include "plugin.h"

struct device;

/* The application's instance and physical device, in the form in which the driver keeps its own. */
struct adopted {
    struct instance instance;
    struct adapter adapter;
};

/* Makes `device` use the objects in `params->natives`, which it borrows.  After a failure too the
 * caller calls device_close. */
frit_status adopt_device(struct device *device, const frit_open_params *params, frit_err *err);

#endif
