/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas: each trains a copy of the parameters with its part of every batch, in a stream of its
 * own, and all make the same steps.  One of several is a rank of a group and has a thread; one
 * alone is neither.
 *
 * Threads: the functions here are for one thread. */
#ifndef TRAIN_REPLICA_H
#define TRAIN_REPLICA_H

#include "train/network.h"
#include <frit/dist.h>
#include <frit/train.h>
#include <pthread.h>
#include <semaphore.h>

enum { MAX_REPLICAS = 16 };

struct replica {
    const struct network *network;
    frit_device *device;
    uint64_t seed;
    frit_optimizer_config config;
    frit_group_config group; /* size 1: it is alone */
    /* The part of the batch; set before a step. */
    const float *pixels;
    const int32_t *labels;
    uint32_t n;
    /* State. */
    frit_tensor *params[MAX_PARAMS];
    frit_optimizer *optimizer;
    frit_rank *rank;
    frit_replica *sync;
    /* Results of a step: the mean loss of all replicas' parts, the caller's. */
    frit_tensor *loss;
    frit_status status;
    frit_err err;
    /* The thread. */
    frit_status (*job)(struct replica *replica);
    pthread_t thread;
    sem_t start, done;
    int is_running;
};

/* Makes parameters and optimiser, from the fields up to `group`.  With others of a group: start it
 * for all that are in this process, then wait for each; close is due also on failure. */
void replica_open(struct replica *replica);
void replica_step(struct replica *replica);
/* Waits for what was recorded; undoes a step that failed. */
void replica_sync(struct replica *replica);
void replica_close(struct replica *replica);

/* For the end of the last of these; the text is in replica->err. */
frit_status replica_wait(struct replica *replica);
/* Ends the thread and frees what is left. */
void replica_fini(struct replica *replica);

#endif
