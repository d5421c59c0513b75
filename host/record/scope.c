/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a thread's scopes holds every tensor that one of them owns, with the depth of the
 * owner.  A kept tensor stays at its place with a smaller depth; the end of a scope closes the
 * gaps. */
#include "record/binding.h"

#include "base/array.h"

static void add_open_scopes(struct stream *stream, int32_t by)
{
    home_enter(&stream->home);
    stream->n_scopes += (uint32_t)by;
    stream->segment->in_scope = stream->n_scopes > 0;
    home_leave(&stream->home);
}

uint64_t scope_begin(struct binding *binding)
{
    if (binding->scopes.depth++ == 0) {
        binding->scopes.stream = binding->stream;
        add_open_scopes(binding->stream, 1);
    }
    return binding->scopes.depth;
}

bool scope_add_entry(struct scopes *scopes, struct slot *slot)
{
    if (!array_grow(&scopes->entries, &scopes->capacity, scopes->count, 1, sizeof(struct scoped)))
        return false;
    slot->scope = scopes;
    slot->scope_index = scopes->count;
    scopes->entries[scopes->count++] = (struct scoped){slot_handle(slot), scopes->depth};
    return true;
}

void scope_keep(struct slot *slot)
{
    struct scopes *scopes = slot->scope;
    struct scoped *entry;

    if (!scopes || scopes->owner != thread_token())
        return;
    entry = &scopes->entries[slot->scope_index];
    if (entry->depth > 0)
        entry->depth--;
    if (entry->depth == 0) {
        entry->handle = NULL;
        slot->scope = NULL;
    }
}

/* Moves an entry that stays to its new place. */
static void move_entry(struct scopes *scopes, uint32_t from, uint32_t to)
{
    struct slot *slot = slot_enter(scopes->entries[from].handle, NULL);

    scopes->entries[to] = scopes->entries[from];
    if (slot) {
        slot->scope_index = to;
        slot_leave(slot);
    }
}

bool scopes_close(struct binding *binding, uint64_t depth)
{
    struct scopes *scopes = &binding->scopes;
    uint32_t kept = 0;

    if (depth == 0 || depth > scopes->depth)
        return false;
    for (uint32_t i = 0; i < scopes->count; i++) {
        const struct scoped *entry = &scopes->entries[i];

        if (!entry->handle)
            continue;
        if (entry->depth >= depth) {
            stream_disown_scoped(entry->handle);
        } else {
            if (kept != i)
                move_entry(scopes, i, kept);
            kept++;
        }
    }
    scopes->count = kept;
    scopes->depth = (uint32_t)(depth - 1);
    if (depth == 1)
        add_open_scopes(scopes->stream, -1);
    return true;
}
