/* SPDX-License-Identifier: Apache-2.0 */
#include "device/retired.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"

/* In the order of `value`. */
struct retired {
    pthread_mutex_t lock;
    struct retired_entry *first, *last;
    atomic_uint_least64_t oldest; /* value of the first one; UINT64_MAX: there is none */
};

frit_status retired_create(struct retired **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    atomic_init(&(*out)->oldest, UINT64_MAX);
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

/* Inside the lock. */
static void note_oldest(struct retired *retired)
{
    atomic_store(&retired->oldest, retired->first ? retired->first->value : UINT64_MAX);
}

void retired_add(frit_device *device, struct retired_entry *entry)
{
    struct retired *retired = device->retired;

    entry->next = NULL;
    pthread_mutex_lock(&retired->lock);
    entry->value = atomic_load(&device->last_value);
    *(retired->first ? &retired->last->next : &retired->first) = entry;
    retired->last = entry;
    note_oldest(retired);
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
    if (entry && entry->value > atomic_load(&device->reached))
        entry = NULL;
    if (entry) {
        retired->first = entry->next;
        note_oldest(retired);
    }
    pthread_mutex_unlock(&retired->lock);
    return entry;
}

void retired_reap(frit_device *device)
{
    struct retired_entry *entry;

    while (atomic_load_explicit(&device->retired->oldest, memory_order_relaxed) <=
               atomic_load_explicit(&device->reached, memory_order_relaxed) &&
           (entry = take_first(device)))
        entry->destroy(entry);
}
