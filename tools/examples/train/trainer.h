/* SPDX-License-Identifier: Apache-2.0 */
/* A network that is trained by one or several replicas: threads of this process, or one in each
 * process of a job (`frit launch`). */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "train/data.h"
#include "train/replica.h"

struct trainer {
    const struct network *network;
    uint32_t n_replicas; /* of all processes */
    uint32_t first;      /* number of this process's first replica */
    uint32_t n_here;
    struct replica replicas[MAX_REPLICAS]; /* of this process */
};

/* `n_replicas` of this process, or as many as the job has processes.  Replica i is on
 * devices[i % n_devices].  On failure trainer_close is due as well. */
frit_status trainer_open(struct trainer *trainer, frit_host *host, const struct network *network,
                         frit_device *const *devices, uint32_t n_devices, uint32_t n_replicas,
                         uint64_t seed, const frit_optimizer_config *config, frit_err *err);
void trainer_close(struct trainer *trainer);

void trainer_set_rate(struct trainer *trainer, double rate);
/* Records, or with replicas runs, a step with a batch of n images, a multiple of the number of
 * replicas.  `loss` is the caller's. */
frit_status trainer_step(struct trainer *trainer, const float *pixels, const int32_t *labels,
                         uint32_t n, frit_tensor **loss, frit_err *err);
/* Waits for the steps; undoes one that failed. */
frit_status trainer_sync(struct trainer *trainer, frit_err *err);

/* The number of images that get their right label. */
frit_status trainer_test(struct trainer *trainer, const struct images *images, uint32_t *right,
                         frit_err *err);

#endif
