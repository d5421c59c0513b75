/* SPDX-License-Identifier: Apache-2.0 */
#include "run/replay_match.h"

#include <string.h>

#include "memory/buffer.h"
#include "memory/memory.h"
#include "record/alias.h"
#include "record/segment.h"
#include "tensor/slot.h"

static bool same_scalars(const struct required_record *same, const struct recorded_op *record)
{
    for (uint32_t i = 0; i < same->n_in; i++) {
        if (same->in[i].kind == FRIT_OPERAND_SCALAR &&
            same->in[i].scalar.bits != record->in[i].scalar.bits)
            return false;
    }
    return !same->attrs_bytes || memcmp(same->attrs, record->attrs, same->attrs_bytes) == 0;
}

static bool same_layout(const struct bound_value *bound, const struct value *value)
{
    const struct op_type *a = &bound->type, *b = &value->type;

    if (a->dtype != b->dtype || a->rank != b->rank || bound->layout.offset != value->layout.offset)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d] || bound->layout.strides[d] != value->layout.strides[d])
            return false;
    }
    return true;
}

/* An operand as it was, at a place of the same kind, in a buffer of the same size that is not a
 * part of another: its alignment follows from these. */
static bool matches_external(struct bound_value *bound, const struct seg_value *from)
{
    const struct slot *slot = from->slot;
    const struct value *value;
    const struct buffer *buffer;

    if (slot && slot->state != SLOT_READY)
        return false;
    value = slot ? &slot->value : &from->alias->value;
    buffer = value->buffer;
    bound->buffer = value->buffer;
    if (!same_layout(bound, value) || buffer->bytes != bound->bytes ||
        buffer->tail != bound->tail || buffer_starts(buffer, 0) != bound->start || buffer->whole)
        return false;
    if (bound->last != (slot && slot->owners == 0 && slot->holds == 1))
        return false;
    return !bound->overwritten ||
           (buffer_owners(buffer) == 1 && (buffer_pins(buffer) == 0 || buffer_is_pending(buffer)));
}

static bool meet(const struct buffer *a, const struct buffer *b)
{
    return a->handle == b->handle && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

/* The memory assigned to a value is of the same kind, and no operand lies in it. */
static bool matches_assigned(struct bound_plan *bound, struct bound_value *value,
                             const struct slot *slot, const struct assignment *assigned)
{
    const struct buffer *memory;

    while (assigned && assigned->slot != slot)
        assigned = assigned->next;
    if (!assigned)
        return false;
    memory = assigned->memory;
    value->buffer = assigned->memory;
    if (memory->bytes != value->bytes || memory->tail != value->tail ||
        buffer_starts(memory, 0) != value->start ||
        memory->offset & (((uint64_t)1 << value->align_log2) - 1))
        return false;
    for (uint32_t i = 0; i < bound->external.count; i++) {
        if (meet(bound->values[bound->external.list[i]].buffer, memory))
            return false;
    }
    return true;
}

static bool matches_all_assigned(struct bound_plan *bound, const struct segment *segment,
                                 const struct assignment *assigned)
{
    uint32_t n = 0;

    for (const struct assignment *a = assigned; a; a = a->next)
        n++;
    if (n != bound->assigned.count)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct bound_value *value = &bound->values[bound->assigned.list[i]];

        if (!matches_assigned(bound, value, segment->values[value->segment_value].slot, assigned))
            return false;
    }
    return true;
}

static bool same_contexts(const struct bound_plan *bound, const struct segment *segment)
{
    if (!bound->contexts)
        return !segment->context;
    for (uint32_t r = 0; r < bound->n_calls; r++) {
        if (bound->contexts[r] != segment->ops[r]->context)
            return false;
    }
    return true;
}

bool replay_matches(struct bound_plan *bound, const struct segment *segment,
                    const struct assignment *assigned)
{
    for (uint32_t i = 0; i < bound->n_required_wanted; i++) {
        const struct slot *slot = segment->values[bound->required_wanted[i].segment_value].slot;

        if (bound->required_wanted[i].wanted != (slot->owners > 0 || slot->holds > 1))
            return false;
    }
    for (uint32_t i = 0; i < bound->external.count; i++) {
        struct bound_value *value = &bound->values[bound->external.list[i]];

        if (!matches_external(value, &segment->values[value->segment_value]))
            return false;
    }
    if ((assigned || bound->assigned.count) && !matches_all_assigned(bound, segment, assigned))
        return false;
    if (!same_contexts(bound, segment))
        return false;
    for (uint32_t i = 0; i < bound->n_required; i++) {
        if (!same_scalars(&bound->required[i], segment->ops[bound->required[i].record]))
            return false;
    }
    return true;
}
