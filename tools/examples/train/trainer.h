/* SPDX-License-Identifier: Apache-2.0 */
/* A network that is trained: parameters, optimiser, replicas. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "train/data.h"
#include "train/replica.h"
#include <frit/train.h>

struct trainer {
    const struct network *network;
    frit_device *device; /* of the parameters */
    frit_tensor *params[MAX_PARAMS];
    frit_optimizer *optimizer;
    uint32_t n_replicas; /* 1: the calling thread computes, and there are none */
    struct replica replicas[MAX_REPLICAS];
};

/* Replica i is on devices[i % n_devices]; the parameters are on the first.  On failure
 * trainer_close is due as well. */
frit_status trainer_open(struct trainer *trainer, const struct network *network,
                         frit_device *const *devices, uint32_t n_devices, uint32_t n_replicas,
                         uint64_t seed, const frit_optimizer_config *config, frit_err *err);
void trainer_close(struct trainer *trainer);

/* Records, or with replicas runs, a step with a batch of n images, a multiple of the number of
 * replicas.  `loss` is the caller's. */
frit_status trainer_step(struct trainer *trainer, const float *pixels, const int32_t *labels,
                         uint32_t n, frit_tensor **loss, frit_err *err);

/* The number of images that get their right label. */
frit_status trainer_test(struct trainer *trainer, const struct images *images, uint32_t *right,
                         frit_err *err);

#endif
