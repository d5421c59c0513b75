/* SPDX-License-Identifier: Apache-2.0 */
/* A host and a device for tests that must pass on every driver with a kernel compiler; the
 * environment variable FRIT_TEST_DEVICE selects the device, cpu:0 by default.  Runs wait for
 * compilation, and no op may run on a fallback device. */
#ifndef DEVICE_RIG_H
#define DEVICE_RIG_H

#include "unit.h"

#include <stdbool.h>

#include <frit/frit.h>
#include <frit/inspect.h>

struct rig {
    frit_host *host;
    frit_device *dev;
    bool may_run_by_ops; /* programs may be replaced by their ops */
};

/* A build with sanitizers, without FRIT_TEST_LONG=1: such a test runs a part of its cases where the
 * time goes into compilers and processes. */
bool rig_is_short(void);

void rig_open(struct rig *rig);
/* With settings of the test's own, at most RIG_SETTINGS. */
enum { RIG_SETTINGS = 8 };
void rig_open_with(struct rig *rig, const frit_setting *settings, uint64_t n_settings);
/* Fails the test if a tensor or buffer is left, or if an op ran on a fallback. */
void rig_close(struct rig *rig);
frit_stats rig_stats(const struct rig *rig);
/* How many elements a tensor of these dimensions has. */
uint64_t rig_count(frit_dims dims);
/* `count` pseudo-random numbers between -4 and 4, malloc'd; the same in every run. */
float *rig_numbers(uint64_t count);
frit_tensor *rig_tensor(struct rig *rig, frit_dims dims, const float *numbers);
/* A malloc'd copy of the tensor's elements; releases the tensor. */
float *rig_read(frit_tensor *tensor);
/* |got - want| is at most `ulps` units in the last place of f32 at `scale`. */
bool rig_near(double got, double want, double scale, double ulps);

#endif
