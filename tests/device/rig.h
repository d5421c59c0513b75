/* SPDX-License-Identifier: Apache-2.0 */
/* A device for tests of what every driver with a kernel compiler gives: FRIT_TEST_DEVICE, by
 * default cpu:0.  Compiled code is waited for, and nothing may run elsewhere. */
#ifndef DEVICE_RIG_H
#define DEVICE_RIG_H

#include "unit.h"

#include <stdbool.h>

#include <frit/frit.h>
#include <frit/inspect.h>

struct rig {
    frit_host *host;
    frit_device *dev;
};

void rig_open(struct rig *rig);
/* Nothing is left over. */
void rig_close(struct rig *rig);
frit_stats rig_stats(const struct rig *rig);
/* `count` numbers of a tensor of these dims; the same in every run, between -4 and 4. */
float *rig_numbers(uint64_t count);
frit_tensor *rig_tensor(struct rig *rig, frit_dims dims, const float *numbers);
/* A malloc'd copy of what the tensor has; the tensor is released. */
float *rig_read(frit_tensor *tensor);
/* |got - want| is at most `ulps` units in the last place of f32 at `scale`. */
bool rig_near(double got, double want, double scale, double ulps);

#endif
