/* SPDX-License-Identifier: Apache-2.0 */
/* A run, and its file: everything that the steps to come follow from, and what is drawn of those
 * that were. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "train/trainer.h"

enum { BATCH = 64, MAX_EPOCHS = 100000 };

struct run {
    const struct network *network;
    uint64_t seed;
    uint64_t epochs; /* planned: rates follow from it */
    uint64_t validate;
    uint64_t step; /* done */
    uint64_t
        steps_an_epoch; /* the following arrays are of epochs * steps_an_epoch, and of epochs */
    float *losses;      /* of each step */
    float *right;       /* after each epoch: images with their right label */
};

/* Makes the arrays; zero: no memory. */
int run_init(struct run *run, uint64_t n_images);
void run_fini(struct run *run);

frit_status checkpoint_save(const struct run *run, struct trainer *trainer, const char *path,
                            frit_err *err);

/* Reads what a run is called by: network, seed, epochs, validate. */
frit_status checkpoint_about(const frit_safetensors *file, struct run *run, frit_err *err);
/* The rest, after run_init and trainer_open. */
frit_status checkpoint_restore(const frit_safetensors *file, struct run *run,
                               struct trainer *trainer, frit_err *err);

#endif
