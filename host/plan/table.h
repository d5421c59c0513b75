/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers, read by any thread while one at a time adds to it.
 *
 * Open addressing, at most half full, in an arena: a table that grew leaves the smaller one behind
 * for readers that still look at it, so all of them take less than twice the room of the last.
 * Nothing is ever removed.  A slot's hash is written before its item, and the item is published:
 * who sees the item sees the hash and all that the item points to. */
#ifndef PLAN_TABLE_H
#define PLAN_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct table_slot {
    uint64_t hash;
    _Atomic(void *) item; /* NULL: free */
};

/* The rows of a table. */
struct table_rows {
    uint32_t mask;
    uint32_t count; /* of the one who adds */
    struct table_slot slot[];
};

/* All zero is an empty table. */
struct table {
    _Atomic(struct table_rows *) rows;
};

/* Adds an item that is not there.  False without memory, and nothing changed.  What is taken from
 * the arena is added to *bytes. */
bool table_add(struct table *table, struct arena *arena, uint64_t hash, void *item,
               uint64_t *bytes);

/* What a reader looks at: load once, then ask as often as needed.  NULL: nothing is there. */
static inline const struct table_rows *table_rows(const struct table *table)
{
    return atomic_load_explicit(&table->rows, memory_order_acquire);
}

/* The first (*probe 0) or next item of this hash; NULL: no more. */
static inline void *table_next(const struct table_rows *rows, uint64_t hash, uint32_t *probe)
{
    for (uint32_t n = *probe; rows; n++) {
        const struct table_slot *slot = &rows->slot[((uint32_t)hash + n) & rows->mask];
        void *item = atomic_load_explicit(&slot->item, memory_order_acquire);

        if (!item || slot->hash == hash) {
            *probe = n + 1;
            return item;
        }
    }
    return NULL;
}

#endif
