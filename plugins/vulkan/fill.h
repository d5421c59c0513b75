/* SPDX-License-Identifier: Apache-2.0 */
/* FILL. */
#ifndef VULKAN_FILL_H
#define VULKAN_FILL_H

#include <frit/backend.h>
#include <frit/status.h>

struct recording;

frit_status record_fill(struct recording *r, const frit_cmd *cmd, frit_err *err);

#endif
