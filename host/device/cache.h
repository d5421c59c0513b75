/* SPDX-License-Identifier: Apache-2.0 */
/* What a device keeps to be fast and can make again, under one budget of bytes: programs of
 * ops, what prepare answered, compiles that are queued, bound plans.  When there is more, entries
 * leave that were not used since they were last looked at, in the order in which they came (the
 * CLOCK algorithm, an LRU whose use is one relaxed store).
 *
 * An entry is part of its user's structure.  The user adds and removes entries and what leads to
 * them between cache_lock and cache_unlock, and takes his own locks inside of it.  Threads: any. */
#ifndef DEVICE_CACHE_H
#define DEVICE_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cache_entry;

struct cache_class {
    /* Inside the lock: removes what leads to the entry, so that nobody finds it any more; false: it
     * is in use and stays. */
    bool (*evict)(struct cache_entry *entry);
    /* Outside of it: frees an entry that was evicted. */
    void (*release)(struct cache_entry *entry);
};

struct cache_entry {
    const struct cache_class *class; /* NULL: not in the cache */
    struct cache_entry *prev, *next;
    uint64_t bytes;
    atomic_bool used; /* since it was last looked at */
};

struct cache {
    uint64_t budget;
    atomic_uint_least64_t bytes;   /* of all entries */
    atomic_uint_least64_t evicted; /* entries */
    pthread_mutex_t lock;          /* of the rest */
    struct cache_entry *first, *last;
    uint32_t n_entries;
};

void cache_init(struct cache *cache, uint64_t budget);
/* Nothing is in it. */
void cache_fini(struct cache *cache);

void cache_lock(struct cache *cache);
/* Evicts what is too much. */
void cache_unlock(struct cache *cache);

/* Inside the lock.  The entry comes last. */
void cache_add(struct cache *cache, struct cache_entry *entry, const struct cache_class *class,
               uint64_t bytes);
/* Inside the lock.  Nothing where it is not in the cache. */
void cache_remove(struct cache *cache, struct cache_entry *entry);

/* Whether there is more than the budget: what was in use could not be evicted. */
static inline bool cache_is_full(const struct cache *cache)
{
    return atomic_load_explicit(&((struct cache *)cache)->bytes, memory_order_relaxed) >
           cache->budget;
}

static inline void cache_use(struct cache_entry *entry)
{
    if (!atomic_load_explicit(&entry->used, memory_order_relaxed))
        atomic_store_explicit(&entry->used, true, memory_order_relaxed);
}

#endif
