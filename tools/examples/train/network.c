/* SPDX-License-Identifier: Apache-2.0 */
#include "train/network.h"

#include "train/data.h"
#include "train/random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONV1 = 16, CONV2 = 32, FLAT = CONV2 * 4, HIDDEN1 = 128, HIDDEN2 = 64 };

static frit_tensor *mlp_logits(frit_tensor *const *p, frit_tensor *images)
{
    frit_tensor *x = frit_reshape(images, FRIT_SHAPE(frit_tensor_dims(images).dim[0], PIXELS));

    x = frit_gelu(frit_linear(x, p[0], p[1]));
    x = frit_gelu(frit_linear(x, p[2], p[3]));
    return frit_linear(x, p[4], p[5]);
}

static frit_tensor *cnn_logits(frit_tensor *const *p, frit_tensor *images)
{
    const int64_t n = frit_tensor_dims(images).dim[0];
    frit_tensor *x = frit_reshape(images, FRIT_SHAPE(n, 1, SIDE, SIDE));

    x = frit_relu(frit_conv(x, p[0], p[1], .padding = {1, 1}));
    x = frit_max_pool(x, NULL, .kernel = {2, 2});
    x = frit_relu(frit_conv(x, p[2], p[3], .padding = {1, 1}));
    x = frit_max_pool(x, NULL, .kernel = {2, 2});
    x = frit_layer_norm(frit_reshape(x, FRIT_SHAPE(n, FLAT)), p[4], p[5]);
    return frit_linear(x, p[6], p[7]);
}

static const struct network networks[] = {
    {"cnn",
     8,
     {{"conv1_w", {4, {CONV1, 1, 3, 3}}, 9, 0},
      {"conv1_b", {1, {CONV1}}, 9, 0},
      {"conv2_w", {4, {CONV2, CONV1, 3, 3}}, 9 * CONV1, 0},
      {"conv2_b", {1, {CONV2}}, 9 * CONV1, 0},
      {"ln_g", {1, {FLAT}}, 0, 1},
      {"ln_b", {1, {FLAT}}, 0, 0},
      {"fc_w", {2, {FLAT, CLASSES}}, FLAT, 0},
      {"fc_b", {1, {CLASSES}}, FLAT, 0}},
     cnn_logits},
    {"mlp",
     6,
     {{"w1", {2, {PIXELS, HIDDEN1}}, PIXELS, 0},
      {"b1", {1, {HIDDEN1}}, PIXELS, 0},
      {"w2", {2, {HIDDEN1, HIDDEN2}}, HIDDEN1, 0},
      {"b2", {1, {HIDDEN2}}, HIDDEN1, 0},
      {"w3", {2, {HIDDEN2, CLASSES}}, HIDDEN2, 0},
      {"b3", {1, {CLASSES}}, HIDDEN2, 0}},
     mlp_logits},
};

const struct network *network_named(const char *name)
{
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        if (strcmp(networks[i].name, name) == 0)
            return &networks[i];
    }
    return NULL;
}

static uint64_t elements(const frit_dims *dims)
{
    uint64_t n = 1;

    for (int64_t i = 0; i < dims->rank; i++)
        n *= (uint64_t)dims->dim[i];
    return n;
}

uint64_t network_size(const struct network *network)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < network->n_params; i++)
        n += elements(&network->params[i].dims);
    return n;
}

void network_init(const struct network *network, frit_device *device, uint64_t seed,
                  frit_tensor **params)
{
    float values[HIDDEN1 * HIDDEN2]; /* of the largest one */

    for (uint32_t i = 0; i < network->n_params; i++) {
        const frit_dims dims = network->params[i].dims;
        const int64_t fan_in = network->params[i].fan_in;
        const double bound = fan_in ? 1 / sqrt((double)fan_in) : 0;
        const uint64_t n = elements(&dims);

        for (uint64_t k = 0; k < n; k++) {
            const double drawn = random_at(seed, RANDOM_WEIGHTS, i, k) * 2 - 1;

            values[k] = (float)(network->params[i].value + drawn * bound);
        }
        params[i] = frit_from_host(device, FRIT_F32, dims, values, n * sizeof(float));
    }
}
