/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The driver's side: a device is a connection to a server.
 *
 * Slots write messages; one thread per device, the receiver, reads the replies and moves the
 * timeline.  It alone writes into memory of callers and it alone finds that the device is lost: a
 * slot that cannot send shuts the connection down, which the receiver sees. */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "kit/kit.h"
#include "util/budget.h"
#include "util/progress.h"
#include "wire.h"

/* What the plugin has of its own. */
struct remote_plugin {
    frit_str address; /* of the server; empty: none is configured */
    uint32_t fault;   /* 1: the server is to refuse launches */
    frit_device_info device;
    char reason[512]; /* why there is no device */
};

/* A buffer of the server. */
struct frit_memory {
    uint64_t number, bytes;
};

/* A message as it is written.  It only grows. */
struct packet {
    char *bytes;
    uint64_t used, capacity;
};

/* A read whose bytes have not come yet. */
struct pending_read {
    struct pending_read *next;
    uint64_t value, bytes;
    void *into;
};

/* What a device has of its own. */
struct remote {
    const struct plug *plug;
    const struct kit_device *device;
    int fd;
    uint64_t process; /* of the server, for people */
    struct budget budget;
    struct progress progress;
    pthread_t receiver;
    atomic_bool closing; /* what ends now is no loss */

    pthread_mutex_t
        sending; /* of the rest of this part; held for whole messages, values in order */
    struct packet packet;
    uint64_t last_number; /* of a buffer */

    pthread_mutex_t reading; /* of the list; never held while anything waits */
    struct pending_read *first, *last;
};

static inline struct remote_plugin *remote_plugin_of(const struct kit_instance *instance)
{
    return instance->own;
}

static inline struct remote *remote_of(const void *device)
{
    return ((const struct kit_device *)device)->own;
}

#endif
