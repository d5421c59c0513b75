/* SPDX-License-Identifier: Apache-2.0 */
/* Locks in this order: the baton, the device's cache.  Eviction has the second and only tries the
 * first. */
#include "run/bound_cache.h"

#include <frit/frit.h>

#include "device/device.h"
#include "plan/plan.h"

/* Ends a bound plan that no cache has any more, with its reference to the plan. */
static void end(struct bound_plan *bound, struct plan *plan)
{
    bound_plan_destroy(bound);
    plan_unref(plan);
}

/* ---- eviction ---- */

static struct bound_entry *find(struct bound_cache *cache, const void *bound)
{
    for (uint32_t i = 0; i < cache->count; i++) {
        if (cache->entries[i].bound == bound)
            return &cache->entries[i];
    }
    return NULL;
}

static void take_out(struct bound_cache *cache, struct bound_entry *entry)
{
    *entry = cache->entries[--cache->count];
}

static bool evict(struct cache_entry *entry)
{
    struct bound_plan *bound = (struct bound_plan *)entry;
    struct bound_cache *cache = bound->cache;
    struct bound_entry *found;

    if (pthread_mutex_trylock(cache->baton))
        return false;
    found = find(cache, bound);
    bound->plan = found->plan;
    take_out(cache, found);
    pthread_mutex_unlock(cache->baton);
    return true;
}

static void release(struct cache_entry *entry)
{
    struct bound_plan *bound = (struct bound_plan *)entry;

    end(bound, bound->plan);
}

static const struct cache_class bound_class = {evict, release};

/* ---- with the baton ---- */

void bound_cache_init(struct bound_cache *cache, frit_device *device, pthread_mutex_t *baton)
{
    *cache = (struct bound_cache){.device = device, .baton = baton};
}

void bound_cache_fini(struct bound_cache *cache)
{
    while (cache->count)
        bound_cache_remove(cache, &cache->entries[0]);
}

struct bound_entry *bound_cache_next(struct bound_cache *cache, const struct plan *plan,
                                     const void *likely, uint32_t *at)
{
    if (*at == 0) {
        struct bound_entry *entry = likely ? find(cache, likely) : NULL;

        *at = 1;
        if (entry && entry->plan == plan)
            return entry;
    }
    for (; *at <= cache->count; ++*at) {
        struct bound_entry *entry = &cache->entries[*at - 1];

        if (entry->plan == plan && entry->bound != likely) {
            ++*at;
            return entry;
        }
    }
    return NULL;
}

void bound_cache_remove(struct bound_cache *cache, struct bound_entry *entry)
{
    struct bound_plan *bound = entry->bound;
    struct plan *plan = entry->plan;

    take_out(cache, entry);
    cache_lock(&cache->device->cache);
    cache_remove(&cache->device->cache, &bound->entry);
    cache_unlock(&cache->device->cache);
    end(bound, plan);
}

static struct bound_entry *least_recent(struct bound_cache *cache)
{
    struct bound_entry *found = &cache->entries[0];

    for (uint32_t i = 1; i < cache->count; i++) {
        if (cache->entries[i].used < found->used)
            found = &cache->entries[i];
    }
    return found;
}

void bound_cache_add(struct bound_cache *cache, struct plan *plan, struct bound_plan *bound)
{
    if (cache->count == BOUND_PLANS_MAX)
        bound_cache_remove(cache, least_recent(cache));
    cache->entries[cache->count++] = (struct bound_entry){plan_ref(plan), bound, ++cache->uses};
    bound->cache = cache;
    cache_lock(&cache->device->cache);
    cache_add(&cache->device->cache, &bound->entry, &bound_class, bound_plan_bytes(bound));
    cache_unlock(&cache->device->cache);
    /* Eviction does not touch those of a stream that runs, as this one. */
    while (cache->count > 1 && cache_is_full(&cache->device->cache))
        bound_cache_remove(cache, least_recent(cache));
}

void bound_cache_recount(struct bound_cache *cache, struct bound_plan *bound)
{
    cache_lock(&cache->device->cache);
    cache_remove(&cache->device->cache, &bound->entry);
    cache_add(&cache->device->cache, &bound->entry, &bound_class, bound_plan_bytes(bound));
    cache_unlock(&cache->device->cache);
}

void bound_cache_sweep(struct bound_cache *cache, uint64_t serial)
{
    if (cache->serial == serial)
        return;
    cache->serial = serial;
    for (uint32_t i = cache->count; i-- > 0;) {
        if (plan_is_unshared(cache->entries[i].plan))
            bound_cache_remove(cache, &cache->entries[i]);
    }
}
