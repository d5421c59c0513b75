/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from byte strings to pointers; keys are copied.  Threads: one at a time. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    void *key; /* NULL: free */
    size_t key_bytes;
    uint64_t hash;
    void *value;
};

/* All zero is an empty map. */
struct map {
    struct map_entry *entries;
    size_t capacity; /* a power of two */
    size_t count;
};

/* NULL if the key is not there. */
void *map_get(const struct map *map, const void *key, size_t key_bytes);
/* The key must not be there; false if out of memory, and nothing changed. */
bool map_add(struct map *map, const void *key, size_t key_bytes, void *value);
/* Takes the key out and returns its value; NULL if it is not there. */
void *map_remove(struct map *map, const void *key, size_t key_bytes);
/* Frees keys and table; `drop` (may be NULL) gets each value. */
void map_fini(struct map *map, void (*drop)(void *value));

#endif
