/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/intern.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Numbers are dense, so they are good hashes themselves. */
static uint64_t hash_id(uint32_t id)
{
    return id;
}

void intern_fini(struct intern *intern)
{
    arena_fini(&intern->arena);
    *intern = (struct intern){0};
}

const struct intern_entry *intern_find(const struct intern *intern, const void *bytes,
                                       size_t n_bytes)
{
    const struct table_rows *rows = table_rows(&intern->by_bytes);
    uint64_t hash = XXH3_64bits(bytes, n_bytes);
    const struct intern_entry *entry;
    uint32_t probe = 0;

    while ((entry = table_next(rows, hash, &probe)) &&
           (entry->n_bytes != n_bytes || memcmp(entry->bytes, bytes, n_bytes) != 0))
        continue;
    return entry;
}

const struct intern_entry *intern_find_id(const struct intern *intern, uint32_t id)
{
    const struct table_rows *rows = table_rows(&intern->by_id);
    const struct intern_entry *entry;
    uint32_t probe = 0;

    while ((entry = table_next(rows, hash_id(id), &probe)) && entry->id != id)
        continue;
    return entry;
}

bool intern_add(struct intern *intern, const void *bytes, size_t n_bytes, uint32_t id)
{
    struct intern_entry *entry;

    if (n_bytes > UINT32_MAX)
        return false;
    entry = arena_alloc(&intern->arena, sizeof(*entry) + n_bytes);
    if (!entry)
        return false;
    intern->bytes += sizeof(*entry) + n_bytes;
    entry->id = id;
    entry->n_bytes = (uint32_t)n_bytes;
    if (n_bytes)
        memcpy(entry->bytes, bytes, n_bytes);
    return table_add(&intern->by_id, &intern->arena, hash_id(id), entry, &intern->bytes) &&
           table_add(&intern->by_bytes, &intern->arena, XXH3_64bits(bytes, n_bytes), entry,
                     &intern->bytes);
}
