/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Kernels of other plugins in the format host-fn/1: functions of this process, called where the
 * queue meets them. */
#ifndef UTIL_KERNEL_H
#define UTIL_KERNEL_H

#include <frit/backend.h>

#include "util/plug.h"

/* What frit_device_info.formats is for a driver that takes only these. */
extern const frit_str kernel_formats[1];

/* As the slots of frit.backend/1. */
frit_status kernel_load(const struct plug *plug, frit_str format, const void *bytes,
                        uint64_t n_bytes, frit_kernel **kernel, frit_err *err);
void kernel_unload(const struct plug *plug, frit_kernel *kernel);

/* FRIT_INVALID with a text for a DISPATCH without its kernel or launch. */
frit_status kernel_check(const struct plug *plug, const frit_cmd *cmd, frit_err *err);
/* A DISPATCH that passed the check; what the function says. */
frit_status kernel_run(const frit_cmd *cmd, frit_err *err);

#endif
