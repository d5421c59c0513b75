/* SPDX-License-Identifier: Apache-2.0 */
/* Each entry is in two lists: of its contents, and of its device memory, which finds all of them
 * when memory is short.  Buffers are given back outside of the lock. */
#include "memory/derived.h"

#include <stdlib.h>
#include <string.h>

#include "memory/buffer.h"
#include "memory/memory_parts.h"

struct derived {
    struct derived *next; /* of the contents */
    struct derived *prev_in_memory, *next_in_memory;
    struct contents *contents;
    struct buffer *memory; /* owned */
    struct derived_key key;
};

struct contents {
    uint64_t number;
    struct derived *first;
};

static atomic_uint_least64_t last_content;

/* ---- lists; inside the lock ---- */

static void link_entry(struct memory *memory, struct derived *entry)
{
    entry->next_in_memory = memory->derived;
    if (entry->next_in_memory)
        entry->next_in_memory->prev_in_memory = entry;
    memory->derived = entry;
}

static void unlink_entry(struct memory *memory, struct derived *entry)
{
    if (entry->prev_in_memory)
        entry->prev_in_memory->next_in_memory = entry->next_in_memory;
    else
        memory->derived = entry->next_in_memory;
    if (entry->next_in_memory)
        entry->next_in_memory->prev_in_memory = entry->prev_in_memory;
}

static struct derived **place_of(struct contents *contents, const struct derived *entry)
{
    struct derived **at = &contents->first;

    while (*at != entry)
        at = &(*at)->next;
    return at;
}

/* From both lists, onto `list`. */
static struct derived *take_out(struct memory *memory, struct derived *entry, struct derived *list)
{
    *place_of(entry->contents, entry) = entry->next;
    unlink_entry(memory, entry);
    entry->next = list;
    return entry;
}

/* NULL: there is none. */
static struct derived *find(const struct contents *contents, const struct derived_key *key)
{
    struct derived *entry = contents->first;

    while (entry && memcmp(&entry->key, key, sizeof(*key)) != 0)
        entry = entry->next;
    return entry;
}

/* Outside. */
static void free_list(struct derived *list)
{
    while (list) {
        struct derived *next = list->next;

        buffer_disown(list->memory);
        free(list);
        list = next;
    }
}

/* ---- contents ---- */

static bool has_content(const struct buffer *of, uint64_t content)
{
    const struct contents *contents = atomic_load(&of->contents);

    return content && contents && contents->number == content;
}

uint64_t derived_content(struct buffer *of)
{
    struct contents *none = NULL, *contents = atomic_load(&of->contents);

    if (contents)
        return contents->number;
    if (of->whole || !of->handle)
        return 0;
    contents = calloc(1, sizeof(*contents));
    if (!contents)
        return 0;
    contents->number = atomic_fetch_add(&last_content, 1) + 1;
    if (atomic_compare_exchange_strong(&of->contents, &none, contents))
        return contents->number;
    free(contents);
    return none->number;
}

void derived_forget(struct buffer *of)
{
    struct memory *memory = of->memory;
    struct derived *list = NULL;
    struct contents *contents;

    if (!atomic_load_explicit(&of->contents, memory_order_relaxed))
        return;
    short_lock_enter(&memory->derived_lock);
    contents = atomic_exchange(&of->contents, NULL);
    while (contents && contents->first)
        list = take_out(memory, contents->first, list);
    short_lock_leave(&memory->derived_lock);
    free_list(list);
    free(contents);
}

struct buffer *derived_find(struct buffer *of, uint64_t content, const struct derived_key *key)
{
    struct memory *memory = of->memory;
    struct derived *entry = NULL, *failed = NULL;
    struct buffer *found = NULL;

    short_lock_enter(&memory->derived_lock);
    if (has_content(of, content))
        entry = find(atomic_load(&of->contents), key);
    if (entry && atomic_load(&entry->memory->failure)) {
        failed = take_out(memory, entry, NULL);
    } else if (entry) {
        found = entry->memory;
        buffer_own(found);
    }
    short_lock_leave(&memory->derived_lock);
    free_list(failed);
    return found;
}

void derived_add(struct buffer *of, uint64_t content, const struct derived_key *key,
                 struct buffer *made)
{
    struct memory *memory = of->memory;
    struct derived *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return;
    entry->key = *key;
    entry->memory = made;
    short_lock_enter(&memory->derived_lock);
    if (has_content(of, content) && !find(atomic_load(&of->contents), key)) {
        entry->contents = atomic_load(&of->contents);
        entry->next = entry->contents->first;
        entry->contents->first = entry;
        link_entry(memory, entry);
        buffer_own(made);
        entry = NULL;
    }
    short_lock_leave(&memory->derived_lock);
    free(entry);
}

/* ---- short of memory ---- */

static bool is_unused(const struct buffer *buffer)
{
    return buffer_owners(buffer) == 1 && buffer_pins(buffer) == 0;
}

void derived_trim(struct memory *memory)
{
    struct derived *list = NULL;

    short_lock_enter(&memory->derived_lock);
    for (struct derived *entry = memory->derived, *next; entry; entry = next) {
        next = entry->next_in_memory;
        if (is_unused(entry->memory))
            list = take_out(memory, entry, list);
    }
    short_lock_leave(&memory->derived_lock);
    free_list(list);
}
