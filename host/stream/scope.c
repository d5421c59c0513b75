/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a stream holds every tensor that a scope owns, with the depth of the owner; a kept
 * tensor stays where it is with a smaller depth, and the end of a scope closes the gaps. */
#include "stream/stream.h"

#include "base/array.h"
#include "base/fail.h"

uint64_t scope_begin(struct stream *stream)
{
    return ++stream->depth;
}

frit_status scope_add(struct stream *stream, struct slot *slot, frit_err *err)
{
    if (stream->depth == 0)
        return FRIT_OK;
    if (!array_grow(&stream->scoped, &stream->scoped_room, stream->n_scoped, 1,
                    sizeof(struct scoped)))
        return fail_memory(err, sizeof(struct scoped));
    atomic_store_explicit(&slot->scope, stream, memory_order_relaxed);
    slot->scope_index = stream->n_scoped;
    stream->scoped[stream->n_scoped++] = (struct scoped){slot_handle(slot), stream->depth};
    return FRIT_OK;
}

void scope_keep(struct stream *stream, struct slot *slot)
{
    struct scoped *entry;

    if (atomic_load_explicit(&slot->scope, memory_order_relaxed) != stream)
        return;
    entry = &stream->scoped[slot->scope_index];
    if (entry->depth > 0)
        entry->depth--;
    if (entry->depth == 0) {
        entry->handle = NULL;
        atomic_store_explicit(&slot->scope, NULL, memory_order_relaxed);
    }
}

/* Moves an entry that stays to its new place. */
static void move_entry(struct stream *stream, uint32_t from, uint32_t to)
{
    struct slot *slot = slot_use(stream->scoped[from].handle, NULL);

    stream->scoped[to] = stream->scoped[from];
    if (slot) {
        slot->scope_index = to;
        slot_unuse(slot);
    }
}

/* Gives the scope's owner back.  With other owners the tensor lives on, outside of any scope. */
static void release_entry(const struct scoped *entry)
{
    struct slot *slot = slot_use(entry->handle, NULL);

    if (!slot)
        return;
    atomic_store_explicit(&slot->scope, NULL, memory_order_relaxed);
    slot_disown(entry->handle);
    slot_unuse(slot);
}

bool scope_leave(struct stream *stream, uint64_t depth)
{
    uint32_t kept = 0;

    if (depth == 0 || depth > stream->depth)
        return false;
    for (uint32_t i = 0; i < stream->n_scoped; i++) {
        const struct scoped *entry = &stream->scoped[i];

        if (!entry->handle)
            continue;
        if (entry->depth >= depth) {
            release_entry(entry);
        } else {
            if (kept != i)
                move_entry(stream, i, kept);
            kept++;
        }
    }
    stream->n_scoped = kept;
    stream->depth = (uint32_t)(depth - 1);
    return true;
}

void scope_end(struct stream *stream, uint64_t depth)
{
    if (scope_leave(stream, depth))
        stream_drain(stream, DRAIN_SCOPE);
}
