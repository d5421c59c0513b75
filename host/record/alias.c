/* SPDX-License-Identifier: Apache-2.0 */
/* Who frees an alias: it is on its source's list until exactly one thread takes it off: the one
 * that gives the last owner back (alias_drop), or the user that replaces it by a newer one.  The
 * table may only name it while it is LISTED.  What is still held by a segment then waits, GONE, for
 * the last hold. */
#include "record/alias.h"

#include <stdlib.h>

#include "base/fail.h"
#include "memory/buffer.h"
#include "record/stream.h"
#include "tensor/failure.h"

/* ---- the table ---- */

static uint32_t place_of(const struct alias_table *table, const struct slot *source)
{
    return (uint32_t)(((uintptr_t)source >> 7) * 0x9e3779b97f4a7c15u >> 40) & (table->capacity - 1);
}

static struct alias **find(const struct alias_table *table, const struct slot *source)
{
    if (table->count == 0)
        return NULL;
    for (uint32_t at = place_of(table, source); table->entries[at];
         at = (at + 1) & (table->capacity - 1)) {
        if (table->entries[at]->source == source)
            return &table->entries[at];
    }
    return NULL;
}

struct alias *alias_find(const struct alias_table *table, const struct slot *source)
{
    struct alias **at = find(table, source);

    return at && (*at)->life == slot_life(source) ? *at : NULL;
}

static void put(struct alias_table *table, struct alias *alias)
{
    uint32_t at = place_of(table, alias->source);

    while (table->entries[at])
        at = (at + 1) & (table->capacity - 1);
    table->entries[at] = alias;
    table->count++;
}

/* Keeps the table at most half full. */
static bool reserve(struct alias_table *table)
{
    struct alias_table grown = {.capacity = table->capacity ? table->capacity * 2 : 16};

    if (table->count * 2 < table->capacity)
        return true;
    grown.entries = calloc(grown.capacity, sizeof(*grown.entries));
    if (!grown.entries)
        return false;
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->entries[i])
            put(&grown, table->entries[i]);
    }
    free(table->entries);
    *table = grown;
    return true;
}

/* Entries after the gap that it kept from their place move up. */
static void take_out(struct alias_table *table, struct alias **entry)
{
    uint32_t gap = (uint32_t)(entry - table->entries), mask = table->capacity - 1;

    for (uint32_t at = (gap + 1) & mask; table->entries[at]; at = (at + 1) & mask) {
        uint32_t home = place_of(table, table->entries[at]->source);

        if (((at - home) & mask) >= ((at - gap) & mask)) {
            table->entries[gap] = table->entries[at];
            gap = at;
        }
    }
    table->entries[gap] = NULL;
    table->count--;
}

/* ---- ends ---- */

void alias_free(struct alias *list)
{
    while (list) {
        struct alias *next = list->next;

        buffer_disown(list->value.buffer);
        free(list);
        list = next;
    }
}

void alias_hold(struct alias *alias)
{
    alias->holds++;
}

static void add_gone(struct alias *alias)
{
    alias->next = alias->user->aliases.gone;
    alias->user->aliases.gone = alias;
}

void alias_unhold(struct alias *alias)
{
    if (--alias->holds == 0 && alias->state == ALIAS_GONE)
        add_gone(alias);
}

struct alias *alias_take_gone(struct alias_table *table)
{
    struct alias *gone = table->gone;

    table->gone = NULL;
    return gone;
}

/* Inside the user's lock; it is off its source's list. */
static void let_go(struct alias *alias)
{
    if (alias->state != ALIAS_NEW && alias->holds == 0)
        add_gone(alias);
    alias->state = ALIAS_GONE;
}

static void leave_and_free(struct stream *user)
{
    struct alias *gone = alias_take_gone(&user->aliases);

    home_leave(&user->home);
    alias_free(gone);
}

void alias_drop(struct alias *list)
{
    while (list) {
        struct alias *next = list->next;
        struct stream *user = list->user;

        home_enter(&user->home);
        if (list->state == ALIAS_LISTED)
            take_out(&user->aliases, find(&user->aliases, list->source));
        let_go(list);
        leave_and_free(user);
        list = next;
    }
}

/* Whether it was on its source's list until now. */
static bool unlist(struct alias *alias)
{
    struct slot_home *home = atomic_load(&alias->source->home);
    struct alias **at = &alias->source->aliases;
    bool listed;

    if (!home)
        return false;
    home_enter(home);
    while (*at && *at != alias)
        at = &(*at)->next;
    listed = *at;
    if (listed)
        *at = alias->next;
    home_leave(home);
    return listed;
}

/* Ends a replaced alias, on which we have a hold: whoever else takes it off its source's list must
 * not free it meanwhile. */
static void alias_retire(struct alias *alias)
{
    struct stream *user = alias->user;
    bool listed = unlist(alias);

    home_enter(&user->home);
    if (listed)
        alias->state = ALIAS_GONE;
    alias_unhold(alias);
    leave_and_free(user);
}

void alias_table_fini(struct alias_table *table)
{
    free(table->entries);
    *table = (struct alias_table){0};
}

/* ---- making one ---- */

/* Inside the source's lock. */
static frit_status link_alias(struct alias *alias, struct slot *slot, struct failure **failure,
                              frit_err *err)
{
    if (slot->state == SLOT_FAILED) {
        *failure = failure_ref(slot->failure);
        return slot->failure->status;
    }
    if (slot->device != alias->user->device)
        return fail(err, FRIT_INVALID, "lives on %s, not on %s; move it with frit_to_device",
                    frit_device_name(slot->device), frit_device_name(alias->user->device));
    alias->source = slot;
    alias->life = slot_life(slot);
    alias->value = slot->value;
    buffer_own(alias->value.buffer);
    alias->next = slot->aliases;
    slot->aliases = alias;
    return FRIT_OK;
}

/* Inside the user's lock; *replaced gets a hold.  FRIT_INVALID: the source was released meanwhile.
 */
static frit_status list_alias(struct alias *alias, struct alias **replaced, frit_err *err)
{
    struct alias_table *table = &alias->user->aliases;
    struct alias **old = find(table, alias->source);

    *replaced = NULL;
    if (alias->state == ALIAS_GONE) {
        add_gone(alias);
        return fail(err, FRIT_INVALID, "is a stale tensor: it was released or taken before");
    }
    if (!old && !reserve(table)) {
        alias->state = ALIAS_REPLACED;
        alias_hold(alias);
        *replaced = alias;
        return fail_memory(err, sizeof(struct alias));
    }
    alias->state = ALIAS_LISTED;
    if (old) {
        *replaced = *old;
        (*old)->state = ALIAS_REPLACED;
        alias_hold(*old);
        *old = alias;
    } else {
        put(table, alias);
    }
    return FRIT_OK;
}

frit_status alias_make(struct stream *user, struct slot *slot, struct failure **failure,
                       frit_err *err)
{
    struct alias *alias = calloc(1, sizeof(*alias)), *replaced;
    frit_status st;

    *failure = NULL;
    if (!alias) {
        slot_leave(slot);
        return fail_memory(err, sizeof(*alias));
    }
    alias->user = user;
    st = link_alias(alias, slot, failure, err);
    slot_leave(slot);
    if (st) {
        free(alias);
        return st;
    }
    home_enter(&user->home);
    st = list_alias(alias, &replaced, err);
    leave_and_free(user);
    if (replaced)
        alias_retire(replaced);
    return st;
}
