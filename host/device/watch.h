/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers of a device: they are called for each op that is recorded and each plan that has run.
 *
 * Without a watcher a hook is one load.  After watch_take has returned, the removed watcher is not
 * called any more.  Threads: any; a watcher has a lock of its own for what it keeps. */
#ifndef DEVICE_WATCH_H
#define DEVICE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>

struct run;
struct segment_call;
struct slot;
struct watch;

/* Each function may be NULL. */
struct watcher {
    /* Inside the stream's lock: the op was recorded.  May not wait, nor enter another lock than its
     * own. */
    void (*recorded)(struct watcher *watcher, const struct segment_call *call);
    /* Inside the lock of the slot's home, likewise: the program takes the value, which is READY. */
    void (*taken)(struct watcher *watcher, const struct slot *slot);
    /* No lock is held: the plan ran; buffers of values that were not wanted are gone. */
    void (*ran)(struct watcher *watcher, const struct run *run);
};

enum watch_place { WATCH_INSPECT, WATCH_TRACE, WATCHERS };

/* Of a device; all zero is nobody. */
struct watch {
    atomic_uint count;  /* of the watchers */
    atomic_uint inside; /* hooks under way */
    _Atomic(struct watcher *) at[WATCHERS];
};

/* False: there is one at this place already. */
bool watch_add(struct watch *watch, enum watch_place place, struct watcher *watcher);
/* Removes the watcher of a place, and waits until no hook uses it; NULL: there is none. */
struct watcher *watch_take(struct watch *watch, enum watch_place place);

/* The watcher of a place; NULL: there is none. */
static inline struct watcher *watch_at(struct watch *watch, enum watch_place place)
{
    return atomic_load(&watch->at[place]);
}

static inline bool watch_is_on(const struct watch *watch)
{
    return atomic_load_explicit(&watch->count, memory_order_relaxed) > 0;
}

void watch_recorded(struct watch *watch, const struct segment_call *call);
void watch_taken(struct watch *watch, const struct slot *slot);
void watch_ran(struct watch *watch, const struct run *run);

#endif
