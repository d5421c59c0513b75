/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody has any more and launches in flight may still need, until they have run: programs,
 * and what their prepare answered.  Nobody waits for the device to free it.
 *
 * An entry is part of its owner's structure; entries are destroyed in the order in which they came.
 * Threads: any. */
#ifndef DEVICE_RETIRED_H
#define DEVICE_RETIRED_H

#include <frit/frit.h>

#include "memory/point.h"

struct retired;

struct retired_entry {
    struct retired_entry *next;
    struct points newest; /* values of the device's queues when it came */
    void (*destroy)(struct retired_entry *entry);
};

frit_status retired_create(struct retired **out, frit_err *err);
/* Destroys all that are left.  NULL does nothing. */
void retired_destroy(struct retired *retired);
/* No launch will need it that was not submitted before. */
void retired_add(frit_device *device, struct retired_entry *entry);
/* Destroys those whose launches are known to have run by now; not inside a lock. */
void retired_reap(frit_device *device);

#endif
