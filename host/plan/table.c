/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/table.h"

enum { FIRST_CAPACITY = 4 };

/* The release store makes the hash and the item's contents visible to readers. */
static void put(struct table_rows *rows, uint64_t hash, void *item)
{
    uint32_t i = (uint32_t)hash & rows->mask;

    while (atomic_load_explicit(&rows->slot[i].item, memory_order_relaxed))
        i = (i + 1) & rows->mask;
    rows->slot[i].hash = hash;
    atomic_store_explicit(&rows->slot[i].item, item, memory_order_release);
    rows->count++;
}

static struct table_rows *grow(const struct table_rows *rows, struct arena *arena, uint64_t *bytes)
{
    uint32_t capacity = rows ? (rows->mask + 1) * 2 : FIRST_CAPACITY;
    size_t size = sizeof(*rows) + capacity * sizeof(rows->slot[0]);
    struct table_rows *larger;

    if (capacity == 0 || !(larger = arena_alloc(arena, size)))
        return NULL;
    *bytes += size;
    larger->mask = capacity - 1;
    for (uint32_t i = 0; rows && i <= rows->mask; i++) {
        void *item = atomic_load_explicit(&rows->slot[i].item, memory_order_relaxed);

        if (item)
            put(larger, rows->slot[i].hash, item);
    }
    return larger;
}

bool table_add(struct table *table, struct arena *arena, uint64_t hash, void *item, uint64_t *bytes)
{
    struct table_rows *rows = atomic_load_explicit(&table->rows, memory_order_relaxed);

    if (rows && rows->count < (rows->mask + 1) / 2) {
        put(rows, hash, item);
        return true;
    }
    rows = grow(rows, arena, bytes);
    if (!rows)
        return false;
    put(rows, hash, item);
    atomic_store_explicit(&table->rows, rows, memory_order_release);
    return true;
}
