/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's instance: the engine whose ranks are threads of this process. */
#ifndef LOCAL_LOCAL_H
#define LOCAL_LOCAL_H

#include <pthread.h>

#include "util/plug.h"

enum { LOCAL_MAX_RANKS = 64 };

struct communicator;

struct local {
    struct plug plug;
    uint64_t opened_ns;   /* part of its ids: no other instance has them */
    pthread_mutex_t lock; /* of what follows; taken before a communicator's lock */
    uint64_t n_ids;
    struct communicator *communicators;
};

#endif
