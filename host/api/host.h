/* SPDX-License-Identifier: Apache-2.0 */
/* The host object. */
#ifndef API_HOST_H
#define API_HOST_H

#include <pthread.h>
#include <stdbool.h>

#include <frit/frit.h>

#include "api/job.h"

struct conf;
struct registry;

struct frit_host {
    struct conf *conf;
    struct registry *registry;
    uint64_t seed;        /* of devices that are opened; under the lock */
    pthread_mutex_t lock; /* of the rest */
    frit_device *devices;
    bool has_timeline; /* it records; constant once open */
    struct host_job job;
};

#endif
