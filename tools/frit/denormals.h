/* SPDX-License-Identifier: Apache-2.0 */
/* How a device treats denormals. */
#ifndef FRIT_DENORMALS_H
#define FRIT_DENORMALS_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>

/* Whether the device takes the smallest denormal of FRIT_F32 or FRIT_F64 for zero in x + x or
 * x > 0. */
bool denormals_are_zero(frit_device *device, uint32_t dtype);

#endif
