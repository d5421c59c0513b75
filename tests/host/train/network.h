/* SPDX-License-Identifier: Apache-2.0 */
/* A network of two layers and how it is trained, as a program would; expected.py trains it too. */
#ifndef TESTS_TRAIN_NETWORK_H
#define TESTS_TRAIN_NETWORK_H

#include "train/values.h"

enum { N_PARAMS = 4 };

struct network {
    frit_device *device;
    uint32_t dtype; /* of all but the loss */
    frit_scaler *scaler;
    frit_optimizer *optimizer;
    frit_tensor *params[N_PARAMS];
    frit_tensor *data, *classes;
    frit_err err; /* of the last call that failed */
};

static inline frit_tensor *network_param(const struct network *n, frit_dims dims, int seed)
{
    return seed ? tensor_of(n->device, n->dtype, dims, seed, 16)
                : frit_zeros(n->device, n->dtype, dims);
}

static inline frit_status network_open(struct network *n, frit_device *device, uint32_t dtype,
                                       const frit_optimizer_config *config)
{
    static const int32_t classes[] = {0, 2, 1, 1, 0, 2};

    *n = (struct network){.device = device, .dtype = dtype, .scaler = config->scaler};
    n->err.struct_size = sizeof(n->err);
    n->params[0] = network_param(n, FRIT_SHAPE(4, 8), 1);
    n->params[1] = network_param(n, FRIT_SHAPE(8), 0);
    n->params[2] = network_param(n, FRIT_SHAPE(8, 3), 2);
    n->params[3] = network_param(n, FRIT_SHAPE(3), 0);
    n->data = tensor_of(device, dtype, FRIT_SHAPE(6, 4), 5, 8);
    n->classes = frit_from_host(device, FRIT_I32, FRIT_SHAPE(6), classes, sizeof(classes));
    return frit_optimizer_create(config, n->params, N_PARAMS, &n->optimizer, &n->err);
}

static inline void network_begin(struct network *n, frit_device *device,
                                 const frit_optimizer_config *config)
{
    if (network_open(n, device, FRIT_F32, config))
        fail_msg("%s", n->err.text);
}

static inline void network_end(struct network *n)
{
    frit_optimizer_destroy(n->optimizer);
    for (int i = 0; i < N_PARAMS; i++)
        frit_release(n->params[i]);
    frit_release(n->data);
    frit_release(n->classes);
}

/* The loss of the data, in the open scope. */
static inline frit_tensor *network_loss(struct network *n)
{
    frit_tensor *const *p = n->params;
    frit_tensor *hidden = frit_tanh(frit_add(frit_matmul(n->data, p[0]), p[1]));
    frit_tensor *logits = frit_add(frit_matmul(hidden, p[2]), p[3]);

    return frit_loss_cross_entropy(n->dtype == FRIT_F32 ? logits : frit_cast(logits, FRIT_F32),
                                   n->classes, 1);
}

static inline frit_status network_update(struct network *n, frit_tensor *loss)
{
    frit_status st;

    if (n->scaler)
        loss = frit_scaler_scale(n->scaler, loss);
    st = frit_grad_backward(loss, &n->err);
    if (!st)
        st = frit_optimizer_step(n->optimizer, n->params, NULL, &n->err);
    if (!st && n->scaler)
        st = frit_scaler_update(n->scaler, &n->err);
    return st;
}

/* A step, whose loss is the caller's; NULL: it was not recorded. */
static inline frit_tensor *network_try(struct network *n)
{
    const frit_scope scope = frit_scope_begin(n->device);
    frit_status st = frit_grad_begin(n->device, &n->err);
    frit_tensor *loss = NULL;

    for (int i = 0; i < N_PARAMS && !st; i++)
        st = frit_grad_watch(n->params[i], &n->err);
    if (!st) {
        loss = network_loss(n);
        st = network_update(n, loss);
    }
    if (!st)
        frit_keep(loss);
    frit_grad_end(n->device);
    frit_scope_end(scope);
    return st ? NULL : loss;
}

static inline frit_tensor *network_step(struct network *n)
{
    frit_tensor *loss = network_try(n);

    if (!loss)
        fail_msg("%s", n->err.text);
    return loss;
}

#endif
