/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers with one writer and any number of lock-free readers.
 *
 * Open addressing, at most half full, allocated in an arena: when the table grows, the smaller one
 * stays for current readers, so all of them take less than twice the memory of the last.  Items are
 * never removed.  A slot's hash is written before its item is published with release order, so
 * readers that see the item see the hash and everything the item points to. */
#ifndef PLAN_TABLE_H
#define PLAN_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct table_slot {
    uint64_t hash;
    _Atomic(void *) item; /* NULL: the slot is empty */
};

/* The slots of a table. */
struct table_rows {
    uint32_t mask;
    uint32_t count; /* accessed by the writer only */
    struct table_slot slot[];
};

/* All zeros: empty. */
struct table {
    _Atomic(struct table_rows *) rows;
};

/* Adds a new item.  Returns false if out of memory; then nothing has changed.  Adds the memory
 * allocated to *bytes. */
bool table_add(struct table *table, struct arena *arena, uint64_t hash, void *item,
               uint64_t *bytes);

/* Returns the current slots: load them once per lookup.  NULL: empty. */
static inline const struct table_rows *table_rows(const struct table *table)
{
    return atomic_load_explicit(&table->rows, memory_order_acquire);
}

/* Returns the first (*probe is 0) or next item with this hash; NULL: no more. */
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
