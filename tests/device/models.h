/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks of the kinds that people run, of any batch and extent, with or without training.
 */
#ifndef DEVICE_MODELS_H
#define DEVICE_MODELS_H

#include "device/rig.h"

#include <frit/train.h>

enum { MODEL_WEIGHTS = 12 };

/* Items, and the length of each: tokens, or a side of an image. */
struct model_size {
    int64_t batch, extent;
};

struct model_kind {
    const char *name;
    uint32_t n_weights;
    frit_dims weights[MODEL_WEIGHTS]; /* the same for all sizes */
    frit_dims (*input)(struct model_size size);
    frit_tensor *(*forward)(frit_tensor *const *weights, frit_tensor *x, struct model_size size);
};

/* "attention" "transformer" "conv"; the test fails where there is none. */
const struct model_kind *model_kind_named(const char *name);

struct model {
    const struct model_kind *kind;
    frit_device *device;
    struct model_size size;
    frit_tensor *x, *weights[MODEL_WEIGHTS];
    frit_optimizer *optimizer; /* NULL: no training */
};

/* The same numbers in each model of a kind and size.  `config` NULL: no training. */
void model_open(struct model *model, frit_device *device, const struct model_kind *kind,
                struct model_size size, const frit_optimizer_config *config);
void model_close(struct model *model);
/* A step: the network's results, or with training its loss, the mean square of the results less
 * 1/2, after which all weights are updated.  Recorded; the caller's. */
frit_tensor *model_step(struct model *model);

#endif
