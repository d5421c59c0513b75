/* SPDX-License-Identifier: Apache-2.0 */
/* The bound plans of one stream, the most recently used of them.  They count in the device's cache,
 * whose eviction by another thread waits for nobody: it leaves those of a stream that runs.
 * Threads: under the baton. */
#ifndef RUN_BOUND_CACHE_H
#define RUN_BOUND_CACHE_H

#include <frit/frit.h>

#include "run/bound_plan.h"

/* A loop that goes through more different bindings than this runs them step by step. */
enum { BOUND_PLANS_MAX = 64 };

struct bound_entry {
    struct plan *plan; /* one reference */
    struct bound_plan *bound;
    uint64_t used; /* when it was last */
};

struct bound_cache {
    frit_device *device;
    pthread_mutex_t *baton; /* of the stream */
    struct bound_entry entries[BOUND_PLANS_MAX];
    uint32_t count;
    uint64_t uses;
    uint64_t serial; /* of the automaton's generation at the last sweep */
};

void bound_cache_init(struct bound_cache *cache, frit_device *device, pthread_mutex_t *baton);
/* No launch is pending. */
void bound_cache_fini(struct bound_cache *cache);

/* Iterates over the bound plans of a plan, `likely` first if it is one of them: *at counts from 0.
 * NULL at the end. */
struct bound_entry *bound_cache_next(struct bound_cache *cache, const struct plan *plan,
                                     const void *likely, uint32_t *at);
/* It ran. */
static inline void bound_cache_used(struct bound_cache *cache, struct bound_entry *entry)
{
    entry->used = ++cache->uses;
    cache_use(&entry->bound->entry);
}
/* It has other bytes than before. */
void bound_cache_recount(struct bound_cache *cache, struct bound_plan *bound);
/* Takes a bound plan over; where there are BOUND_PLANS_MAX, the longest unused one goes.  What ends
 * with one that goes has no launch pending then. */
void bound_cache_add(struct bound_cache *cache, struct plan *plan, struct bound_plan *bound);
void bound_cache_remove(struct bound_cache *cache, struct bound_entry *entry);
/* Drops those of plans that nobody else has, when a new generation began. */
void bound_cache_sweep(struct bound_cache *cache, uint64_t serial);

#endif
