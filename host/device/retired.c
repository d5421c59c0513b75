/* SPDX-License-Identifier: Apache-2.0 */
#include "device/retired.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/wait.h"

/* In the order of `newest`. */
struct retired {
    pthread_mutex_t lock;
    struct retired_entry *first, *last;
    atomic_bool waits; /* the list is not empty */
};

frit_status retired_create(struct retired **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

void retired_destroy(struct retired *retired)
{
    if (!retired)
        return;
    for (struct retired_entry *entry; (entry = retired->first);) {
        retired->first = entry->next;
        entry->destroy(entry);
    }
    pthread_mutex_destroy(&retired->lock);
    free(retired);
}

void retired_add(frit_device *device, struct retired_entry *entry)
{
    struct retired *retired = device->retired;

    entry->next = NULL;
    pthread_mutex_lock(&retired->lock);
    device_submitted(device, &entry->newest);
    *(retired->first ? &retired->last->next : &retired->first) = entry;
    retired->last = entry;
    atomic_store(&retired->waits, true);
    pthread_mutex_unlock(&retired->lock);
    retired_reap(device);
}

/* NULL: what remains waits. */
static struct retired_entry *take_first(frit_device *device)
{
    struct retired *retired = device->retired;
    struct retired_entry *entry;

    pthread_mutex_lock(&retired->lock);
    entry = retired->first;
    if (entry && !device_knows_reached(device, &entry->newest))
        entry = NULL;
    if (entry) {
        retired->first = entry->next;
        atomic_store(&retired->waits, retired->first != NULL);
    }
    pthread_mutex_unlock(&retired->lock);
    return entry;
}

void retired_reap(frit_device *device)
{
    struct retired_entry *entry;

    while (atomic_load_explicit(&device->retired->waits, memory_order_relaxed) &&
           (entry = take_first(device)))
        entry->destroy(entry);
}
