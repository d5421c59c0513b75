/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that nobody has any more, until what they launched has run: nobody waits for the device
 * to destroy one.  Threads: any. */
#ifndef DEVICE_RETIRED_H
#define DEVICE_RETIRED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct frit_device;
struct program;

/* In the order of `value`, the newest timeline value when the program came. */
struct retired {
    pthread_mutex_t lock;
    struct program *first, *last;
    atomic_uint_least64_t oldest; /* value of the first one; UINT64_MAX: there is none */
};

void retired_init(struct retired *retired);
/* Destroys all that are left. */
void retired_fini(struct retired *retired);
/* Takes a program without launches to come. */
void retired_add(struct frit_device *device, struct program *program);
/* Destroys those whose launches are known to have run by now; not inside a lock. */
void retired_reap(struct frit_device *device);

#endif
