/* SPDX-License-Identifier: Apache-2.0 */
/* The host object, and what the entry points share. */
#ifndef API_HOST_H
#define API_HOST_H

#include <pthread.h>

#include "load/registry.h"

struct frit_host {
    struct conf *conf;
    struct registry *registry;
    uint64_t seed;        /* of devices that are opened; under the lock */
    pthread_mutex_t lock; /* of the rest */
    frit_device *devices;
    frit_err error;    /* of the last failed call */
    bool has_timeline; /* it records; constant once open */
};

/* Keeps `err` for frit_host_error; returns `status`.  NULL host: nothing to keep it in. */
frit_status host_keep_error(frit_host *host, frit_status status, const frit_err *err);

#endif
