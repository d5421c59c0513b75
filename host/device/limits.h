/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one launch that the device declared; no launch spec may exceed them. */
#ifndef DEVICE_LIMITS_H
#define DEVICE_LIMITS_H

#include <frit/frit.h>
#include <frit/program.h>

/* FRIT_UNSUPPORTED: more arguments than it takes, or one that spans too many bytes. */
frit_status limits_check_args(const frit_device *device, const frit_signature *signature,
                              frit_err *err);
/* FRIT_INTERNAL: more groups, or lanes in a group, than the device takes.  `slot` is the slot that
 * requested them, for the text. */
frit_status limits_check_grid(const frit_device *device, const uint32_t grid[3],
                              const uint32_t group[3], const char *slot, frit_err *err);

#endif
