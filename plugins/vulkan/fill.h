/* SPDX-License-Identifier: Apache-2.0 */
/* FILL commands. */
#ifndef VULKAN_FILL_H
#define VULKAN_FILL_H

#include <frit/backend.h>
#include <frit/status.h>

struct recorder;

/* Records a FILL that was checked.  Needs the queue's lock. */
frit_status fill_record(struct recorder *r, const frit_cmd *cmd, frit_err *err);

#endif
