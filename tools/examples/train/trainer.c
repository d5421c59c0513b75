/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include "train/step.h"
#include <frit/grad.h>
#include <stdio.h>
#include <string.h>

static frit_status no_thread(frit_err *err)
{
    err->status = FRIT_BUSY;
    snprintf(err->text, sizeof(err->text), "a replica's thread cannot be started");
    return FRIT_BUSY;
}

frit_status trainer_open(struct trainer *trainer, const struct network *network,
                         frit_device *const *devices, uint32_t n_devices, uint32_t n_replicas,
                         uint64_t seed, const frit_optimizer_config *config, frit_err *err)
{
    memset(trainer, 0, sizeof(*trainer));
    trainer->network = network;
    trainer->device = devices[0];
    trainer->n_replicas = n_replicas;
    network_init(network, devices[0], seed, trainer->params);
    for (uint32_t i = 0; i < n_replicas && n_replicas > 1; i++) {
        if (!replica_open(&trainer->replicas[i], network, devices[i % n_devices]))
            return no_thread(err);
    }
    return frit_optimizer_create(config, trainer->params, network->n_params, &trainer->optimizer,
                                 err);
}

void trainer_close(struct trainer *trainer)
{
    for (uint32_t i = 0; i < trainer->n_replicas; i++)
        replica_close(&trainer->replicas[i]);
    frit_optimizer_destroy(trainer->optimizer);
    for (uint32_t i = 0; i < MAX_PARAMS; i++)
        frit_release(trainer->params[i]);
}

/* ---- one replica: forward pass, backward pass and update are one scope, and run together ---- */

static frit_status step_alone(struct trainer *trainer, const float *pixels, const int32_t *labels,
                              uint32_t n, frit_tensor **loss, frit_err *err)
{
    const frit_scope scope = frit_scope_begin(trainer->device);
    frit_status st = frit_grad_begin(trainer->device, err);

    if (!st)
        st = step_backward(trainer->network, trainer->device, trainer->params, pixels, labels, n,
                           loss, err);
    if (!st)
        st = frit_optimizer_step(trainer->optimizer, trainer->params, NULL, err);
    if (!st)
        frit_keep(*loss);
    frit_grad_end(trainer->device);
    frit_scope_end(scope);
    return st;
}

/* ---- several: gradients are averaged before the update ---- */

/* The mean of what the replicas computed, in the open scope. */
static frit_tensor *mean_of(const struct trainer *trainer, uint32_t n, frit_tensor *const *parts)
{
    frit_tensor *sum = frit_to_device(parts[0], trainer->device);

    for (uint32_t i = 1; i < n; i++)
        sum = frit_add(sum, frit_to_device(parts[i], trainer->device));
    return frit_mul_f(sum, 1.0 / n);
}

static frit_status update(struct trainer *trainer, frit_tensor **loss, frit_err *err)
{
    const frit_scope scope = frit_scope_begin(trainer->device);
    const uint32_t n = trainer->n_replicas;
    frit_tensor *grads[MAX_PARAMS], *parts[MAX_REPLICAS];
    frit_status st;

    for (uint32_t i = 0; i < trainer->network->n_params; i++) {
        for (uint32_t r = 0; r < n; r++)
            parts[r] = trainer->replicas[r].grads[i];
        grads[i] = mean_of(trainer, n, parts);
    }
    for (uint32_t r = 0; r < n; r++)
        parts[r] = trainer->replicas[r].loss;
    *loss = mean_of(trainer, n, parts);
    st = frit_optimizer_step(trainer->optimizer, trainer->params, grads, err);
    if (!st)
        frit_keep(*loss);
    frit_scope_end(scope);
    return st;
}

static void release_results(struct replica *replica)
{
    frit_release(replica->loss);
    replica->loss = NULL;
    for (uint32_t i = 0; i < MAX_PARAMS; i++) {
        frit_release(replica->grads[i]);
        replica->grads[i] = NULL;
    }
}

static frit_status step_replicas(struct trainer *trainer, const float *pixels,
                                 const int32_t *labels, uint32_t n, frit_tensor **loss,
                                 frit_err *err)
{
    const uint32_t part = n / trainer->n_replicas;
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < trainer->n_replicas; i++) {
        struct replica *replica = &trainer->replicas[i];

        replica->pixels = pixels + (size_t)i * part * PIXELS;
        replica->labels = labels + (size_t)i * part;
        replica->n = part;
        replica->params = trainer->params;
        replica_start(replica);
    }
    for (uint32_t i = 0; i < trainer->n_replicas; i++) {
        if (replica_wait(&trainer->replicas[i]) && !st) {
            st = trainer->replicas[i].status;
            *err = trainer->replicas[i].err;
        }
    }
    if (!st)
        st = update(trainer, loss, err);
    for (uint32_t i = 0; i < trainer->n_replicas; i++)
        release_results(&trainer->replicas[i]);
    return st;
}

frit_status trainer_step(struct trainer *trainer, const float *pixels, const int32_t *labels,
                         uint32_t n, frit_tensor **loss, frit_err *err)
{
    return (trainer->n_replicas > 1 ? step_replicas : step_alone)(trainer, pixels, labels, n, loss,
                                                                  err);
}

frit_status trainer_test(struct trainer *trainer, const struct images *images, uint32_t *right,
                         frit_err *err)
{
    const frit_scope scope = frit_scope_begin(trainer->device);
    frit_tensor *x = frit_from_host(trainer->device, FRIT_F32, FRIT_SHAPE(images->n, SIDE, SIDE),
                                    images->pixels, sizeof(images->pixels[0]) * images->n);
    frit_tensor *y = frit_from_host(trainer->device, FRIT_I32, FRIT_SHAPE(images->n),
                                    images->labels, sizeof(images->labels[0]) * images->n);
    frit_tensor *answers =
        frit_argmax(trainer->network->logits(trainer->params, x), .axes = FRIT_AXES(1));
    frit_tensor *count = frit_sum(frit_cast(frit_eq(frit_cast(answers, FRIT_I32), y), FRIT_F32));
    float number = 0;
    frit_status st;

    frit_keep(count);
    frit_scope_end(scope);
    st = frit_read(count, &number, sizeof(number), err);
    frit_release(count);
    *right = (uint32_t)number;
    return st;
}
