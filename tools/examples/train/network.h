/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of tools/models, with random weights. */
#ifndef TRAIN_NETWORK_H
#define TRAIN_NETWORK_H

#include <frit/frit.h>

enum { MAX_PARAMS = 8 };

struct network {
    const char *name; /* "cnn" "mlp" */
    uint32_t n_params;
    struct {
        const char *name; /* as in the text program: "conv1_w" */
        frit_dims dims;
        int64_t fan_in; /* random values within 1 / sqrt(fan_in), as PyTorch makes them; or 0: */
        double value;
    } params[MAX_PARAMS];
    /* The logits f32[n, CLASSES] of images f32[n, SIDE, SIDE], recorded. */
    frit_tensor *(*logits)(frit_tensor *const *params, frit_tensor *images);
};

/* NULL: there is no such network. */
const struct network *network_named(const char *name);

uint64_t network_size(const struct network *network); /* number of weights */

/* Writes the parameters, which are the caller's; a failure is in the tensors. */
void network_init(const struct network *network, frit_device *device, uint64_t seed,
                  frit_tensor **params);

#endif
