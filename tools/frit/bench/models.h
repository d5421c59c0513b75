/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `frit bench DEVICE` that are parts of models, or whole ones: attention, steps of a
 * transformer. */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include <stddef.h>

#include <frit/frit.h>

struct bench;

int bench_models(const struct bench *bench, frit_device *device, const frit_device_desc *desc);
/* Their names; NULL beyond the last. */
const char *bench_model_at(size_t index);

#endif
