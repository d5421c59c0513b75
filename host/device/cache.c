/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cache.h"

#include <assert.h>
#include <stddef.h>

void cache_init(struct cache *cache, uint64_t budget)
{
    cache->budget = budget;
    pthread_mutex_init(&cache->lock, NULL);
}

void cache_fini(struct cache *cache)
{
    assert(!cache->first);
    pthread_mutex_destroy(&cache->lock);
}

/* ---- the list; all inside the lock ---- */

static void link_last(struct cache *cache, struct cache_entry *entry)
{
    entry->prev = cache->last;
    entry->next = NULL;
    *(cache->last ? &cache->last->next : &cache->first) = entry;
    cache->last = entry;
}

static void unlink_entry(struct cache *cache, struct cache_entry *entry)
{
    *(entry->prev ? &entry->prev->next : &cache->first) = entry->next;
    *(entry->next ? &entry->next->prev : &cache->last) = entry->prev;
}

void cache_add(struct cache *cache, struct cache_entry *entry, const struct cache_class *class,
               uint64_t bytes)
{
    entry->class = class;
    entry->bytes = bytes;
    atomic_store_explicit(&entry->used, false, memory_order_relaxed);
    link_last(cache, entry);
    cache->n_entries++;
    atomic_fetch_add(&cache->bytes, bytes);
}

void cache_remove(struct cache *cache, struct cache_entry *entry)
{
    if (!entry->class)
        return;
    entry->class = NULL;
    unlink_entry(cache, entry);
    cache->n_entries--;
    atomic_fetch_sub(&cache->bytes, entry->bytes);
}

/* ---- eviction ---- */

/* Removes the first entry that was not used since an eviction last reached it, into `evicted`.
 * Entries that were used move to the end.  False: nothing can be evicted. */
static bool evict_one(struct cache *cache, struct cache_entry **evicted)
{
    for (uint64_t looks = 2 * (uint64_t)cache->n_entries; looks > 0; looks--) {
        struct cache_entry *entry = cache->first;
        const struct cache_class *class = entry->class;

        if (!atomic_exchange_explicit(&entry->used, false, memory_order_relaxed) &&
            class->evict(entry)) {
            cache_remove(cache, entry);
            entry->class = class; /* for its release */
            entry->next = *evicted;
            *evicted = entry;
            return true;
        }
        unlink_entry(cache, entry);
        link_last(cache, entry);
    }
    return false;
}

void cache_lock(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock);
}

void cache_unlock(struct cache *cache)
{
    struct cache_entry *evicted = NULL;

    while (atomic_load(&cache->bytes) > cache->budget && evict_one(cache, &evicted))
        atomic_fetch_add(&cache->evicted, 1);
    pthread_mutex_unlock(&cache->lock);
    for (struct cache_entry *entry = evicted, *next; entry; entry = next) {
        const struct cache_class *class = entry->class;

        next = entry->next;
        entry->class = NULL;
        class->release(entry);
    }
}
