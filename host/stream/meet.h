/* SPDX-License-Identifier: Apache-2.0 */
/* Meeting an op again: whether the next record of a segment that begins anew over its old ones is
 * what is recorded now.  Inline, for the one path where every instruction counts.  Threads: under
 * the stream's lock. */
#ifndef STREAM_MEET_H
#define STREAM_MEET_H

#include "stream/segment.h"

static inline bool meet_type(const struct op_type *a, const struct op_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d])
            return false;
    }
    return true;
}

/* Whether an operand that is new in this segment may be the value that stands there. */
static inline bool meet_new(const struct segment *segment, uint32_t number,
                            const struct op_type *type, uint32_t *n_new)
{
    const struct seg_value *value = &segment->values[number];

    if (number != segment->n_values + *n_new || value->maker != SEGMENT_EXTERNAL ||
        !meet_type(&value->concrete, type))
        return false;
    ++*n_new;
    return true;
}

/* Whether operand `i` is the one that the record has there; new ones count up `*n_new`.  `in`: the
 * operands before it, which are those of the record: one that is new and stands twice is one value.
 */
static inline bool meet_slot(const struct segment *segment, const struct op_record *record,
                             const struct segment_input *in, uint32_t i, const struct slot *slot,
                             uint32_t *n_new)
{
    const struct record_input *known = &record->in[i];

    if (known->kind != FRIT_OPERAND_TENSOR)
        return false;
    if (slot->epoch == segment->epoch)
        return slot->index == known->value;
    for (uint32_t k = 0; k < i && *n_new; k++) {
        if (record->in[k].kind == FRIT_OPERAND_TENSOR && in[k].slot == slot)
            return record->in[k].value == known->value;
    }
    return meet_new(segment, known->value, &slot->value.type, n_new);
}

static inline bool meet_alias(const struct segment *segment, const struct op_record *record,
                              const struct segment_input *in, uint32_t i, const struct alias *alias,
                              uint32_t *n_new)
{
    const struct record_input *known = &record->in[i];

    if (known->kind != FRIT_OPERAND_TENSOR)
        return false;
    if (alias->epoch == segment->epoch)
        return alias->index == known->value;
    for (uint32_t k = 0; k < i && *n_new; k++) {
        if (record->in[k].kind == FRIT_OPERAND_TENSOR && in[k].alias == alias)
            return record->in[k].value == known->value;
    }
    return meet_new(segment, known->value, &alias->value.type, n_new);
}

static inline void meet_place(struct segment *segment, struct slot *slot, uint32_t number)
{
    segment->values[number].slot = slot;
    segment->values[number].alias = NULL;
    slot->epoch = segment->epoch;
    slot->index = number;
    slot_hold(slot);
}

static inline void meet_place_alias(struct segment *segment, struct alias *alias, uint32_t number)
{
    segment->values[number].slot = NULL;
    segment->values[number].alias = alias;
    alias->epoch = segment->epoch;
    alias->index = number;
    alias->holds++;
}

/* It is: the next record comes again, with these operands (in order) and this output. */
static inline void meet_record(struct segment *segment, const struct segment_input *in,
                               uint32_t n_new, struct slot *out)
{
    struct op_record *record = segment->records[segment->n_records];

    for (uint32_t i = 0; i < record->n_in; i++) {
        if (record->in[i].kind == FRIT_OPERAND_SCALAR)
            record->in[i].scalar.bits = in[i].scalar.bits;
    }
    for (uint32_t i = 0; i < record->n_in && n_new; i++) {
        if (record->in[i].kind == FRIT_OPERAND_SCALAR)
            continue;
        if (in[i].slot && in[i].slot->epoch != segment->epoch)
            meet_place(segment, in[i].slot, record->in[i].value);
        else if (!in[i].slot && in[i].alias->epoch != segment->epoch)
            meet_place_alias(segment, in[i].alias, record->in[i].value);
    }
    meet_place(segment, out, record->out[0]);
    record->again = true;
    record->n_again = 0;
    segment->n_values = record->end;
    segment->n_extents = record->n_extents;
    segment->n_records++;
}

#endif
