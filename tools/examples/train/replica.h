/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas: threads that each compute the gradients of their part of every batch, in a stream of
 * their own, on one device or on several.
 *
 * Threads: the functions here are for one thread. */
#ifndef TRAIN_REPLICA_H
#define TRAIN_REPLICA_H

#include "train/network.h"
#include <pthread.h>
#include <semaphore.h>

enum { MAX_REPLICAS = 16 };

struct replica {
    const struct network *network;
    frit_device *device;
    /* The part of the batch, and parameters, which may be of another device; set before a start,
     * not changed until the wait. */
    const float *pixels;
    const int32_t *labels;
    uint32_t n;
    frit_tensor *const *params;
    /* Results, which are the caller's, on the replica's device. */
    frit_tensor *loss, *grads[MAX_PARAMS];
    frit_status status;
    frit_err err;
    /* The thread. */
    pthread_t thread;
    sem_t start, done;
    int is_running, ends;
};

/* Starts the thread; false: there are too many. */
int replica_open(struct replica *replica, const struct network *network, frit_device *device);
void replica_close(struct replica *replica);

void replica_start(struct replica *replica);
frit_status replica_wait(struct replica *replica); /* the text is in replica->err */

#endif
