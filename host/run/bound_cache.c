/* SPDX-License-Identifier: Apache-2.0 */
#include "run/bound_cache.h"

static void entry_fini(struct bound_entry *entry, frit_device *device)
{
    bound_plan_destroy(entry->bound);
    if (device && plan_is_unshared(entry->plan))
        device_wait(device, atomic_load(&device->last_value), NULL);
    plan_unref(entry->plan);
}

void bound_cache_fini(struct bound_cache *cache)
{
    for (uint32_t i = 0; i < cache->count; i++)
        entry_fini(&cache->entries[i], NULL);
    *cache = (struct bound_cache){0};
}

static struct bound_entry *find(struct bound_cache *cache, const void *bound)
{
    for (uint32_t i = 0; i < cache->count; i++) {
        if (cache->entries[i].bound == bound)
            return &cache->entries[i];
    }
    return NULL;
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

void bound_cache_remove(struct bound_cache *cache, struct bound_entry *entry, frit_device *device)
{
    cache->bytes -= entry->bytes;
    entry_fini(entry, device);
    *entry = cache->entries[--cache->count];
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

void bound_cache_add(struct bound_cache *cache, struct plan *plan, struct bound_plan *bound,
                     uint64_t most_bytes, frit_device *device)
{
    uint64_t bytes = bound_plan_bytes(bound);

    while (cache->count && (cache->count == BOUND_PLANS_MAX || cache->bytes + bytes > most_bytes))
        bound_cache_remove(cache, least_recent(cache), device);
    cache->entries[cache->count++] =
        (struct bound_entry){plan_ref(plan), bound, ++cache->uses, bytes};
    cache->bytes += bytes;
}

void bound_cache_sweep(struct bound_cache *cache, uint64_t serial, frit_device *device)
{
    if (cache->serial == serial)
        return;
    cache->serial = serial;
    for (uint32_t i = cache->count; i-- > 0;) {
        if (plan_is_unshared(cache->entries[i].plan))
            bound_cache_remove(cache, &cache->entries[i], device);
    }
}
