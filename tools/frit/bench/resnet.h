/* SPDX-License-Identifier: Apache-2.0 */
/* The row of `frit bench DEVICE` that is a whole network: ResNet-50. */
#ifndef BENCH_RESNET_H
#define BENCH_RESNET_H

#include <frit/frit.h>

struct bench;

extern const char bench_resnet_name[];

int bench_resnet(const struct bench *bench, frit_device *device, const frit_device_desc *desc);

#endif
