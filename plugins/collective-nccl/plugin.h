/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's instance. */
#ifndef NCCL_PLUGIN_H
#define NCCL_PLUGIN_H

#include <pthread.h>

#include "library.h"

struct communicator;

struct instance {
    struct plug plug; /* first: util/plug.h */
    struct library_options options[VENDORS];
    pthread_mutex_t lock; /* of what follows; taken before a communicator's lock */
    struct library libraries[VENDORS];
    struct communicator *communicators;
    uint32_t n_threads; /* of ranks that have not ended, though nobody waits for them any more */
};

#endif
