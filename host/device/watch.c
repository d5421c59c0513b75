/* SPDX-License-Identifier: Apache-2.0 */
/* A hook enters (`inside`) before it looks for watchers; watch_take clears a place and
 * then waits until no hook is inside. */
#include "device/watch.h"

#include <sched.h>
#include <stddef.h>

bool watch_add(struct watch *watch, enum watch_place place, struct watcher *watcher)
{
    struct watcher *nobody = NULL;

    if (!atomic_compare_exchange_strong(&watch->at[place], &nobody, watcher))
        return false;
    atomic_fetch_add(&watch->count, 1);
    return true;
}

struct watcher *watch_take(struct watch *watch, enum watch_place place)
{
    struct watcher *watcher = atomic_exchange(&watch->at[place], NULL);

    if (!watcher)
        return NULL;
    atomic_fetch_sub(&watch->count, 1);
    while (atomic_load(&watch->inside))
        sched_yield();
    return watcher;
}

void watch_recorded(struct watch *watch, const struct segment_call *call)
{
    atomic_fetch_add(&watch->inside, 1);
    for (unsigned i = 0; i < WATCHERS; i++) {
        struct watcher *watcher = atomic_load(&watch->at[i]);

        if (watcher && watcher->recorded)
            watcher->recorded(watcher, call);
    }
    atomic_fetch_sub(&watch->inside, 1);
}

void watch_taken(struct watch *watch, const struct slot *slot)
{
    atomic_fetch_add(&watch->inside, 1);
    for (unsigned i = 0; i < WATCHERS; i++) {
        struct watcher *watcher = atomic_load(&watch->at[i]);

        if (watcher && watcher->taken)
            watcher->taken(watcher, slot);
    }
    atomic_fetch_sub(&watch->inside, 1);
}

void watch_ran(struct watch *watch, const struct run *run)
{
    atomic_fetch_add(&watch->inside, 1);
    for (unsigned i = 0; i < WATCHERS; i++) {
        struct watcher *watcher = atomic_load(&watch->at[i]);

        if (watcher && watcher->ran)
            watcher->ran(watcher, run);
    }
    atomic_fetch_sub(&watch->inside, 1);
}
