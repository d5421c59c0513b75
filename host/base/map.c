/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most three quarters full; where an entry is removed those
 * after it move up, so that no probe meets a gap before its key. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct map_entry *find(const struct map *map, uint64_t hash, const void *key,
                              size_t key_bytes)
{
    size_t i = hash & (map->capacity - 1);

    while (map->entries[i].key) {
        const struct map_entry *e = &map->entries[i];

        if (e->hash == hash && e->key_bytes == key_bytes && memcmp(e->key, key, key_bytes) == 0)
            break;
        i = (i + 1) & (map->capacity - 1);
    }
    return &map->entries[i];
}

void *map_get(const struct map *map, const void *key, size_t key_bytes)
{
    return map->capacity ? find(map, XXH3_64bits(key, key_bytes), key, key_bytes)->value : NULL;
}

static bool grow(struct map *map)
{
    struct map larger = {.capacity = map->capacity ? map->capacity * 2 : 16, .count = map->count};

    larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct map_entry *e = &map->entries[i];

        if (e->key)
            *find(&larger, e->hash, e->key, e->key_bytes) = *e;
    }
    free(map->entries);
    *map = larger;
    return true;
}

bool map_add(struct map *map, const void *key, size_t key_bytes, void *value)
{
    uint64_t hash = XXH3_64bits(key, key_bytes);
    void *copy;

    if (map->count >= map->capacity / 4 * 3 && !grow(map))
        return false;
    copy = malloc(key_bytes ? key_bytes : 1);
    if (!copy)
        return false;
    memcpy(copy, key, key_bytes);
    *find(map, hash, key, key_bytes) = (struct map_entry){copy, key_bytes, hash, value};
    map->count++;
    return true;
}

/* Fills the free place `gap` from the entries that follow it without a gap. */
static void close_gap(struct map *map, size_t gap)
{
    size_t mask = map->capacity - 1;

    for (size_t i = (gap + 1) & mask; map->entries[i].key; i = (i + 1) & mask) {
        size_t home = map->entries[i].hash & mask;

        if (((i - home) & mask) < ((i - gap) & mask))
            continue; /* it would come before its home */
        map->entries[gap] = map->entries[i];
        gap = i;
    }
    map->entries[gap] = (struct map_entry){0};
}

void *map_remove(struct map *map, const void *key, size_t key_bytes)
{
    struct map_entry *e =
        map->capacity ? find(map, XXH3_64bits(key, key_bytes), key, key_bytes) : NULL;
    void *value;

    if (!e || !e->key)
        return NULL;
    value = e->value;
    free(e->key);
    close_gap(map, (size_t)(e - map->entries));
    map->count--;
    return value;
}

void map_fini(struct map *map, void (*drop)(void *value))
{
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->entries[i].key)
            continue;
        if (drop)
            drop(map->entries[i].value);
        free(map->entries[i].key);
    }
    free(map->entries);
    *map = (struct map){0};
}
