/* SPDX-License-Identifier: Apache-2.0 */
/* Prediction: whether the next op of a segment is the one that it recorded there the last time, and
 * recording it then.  An operand that the segment has already is compared by its handle alone, so
 * that nothing is looked up.  Inline, for the one path where every instruction counts.  Threads:
 * under the stream's lock. */
#ifndef RECORD_PREDICT_H
#define RECORD_PREDICT_H

#include <assert.h>

#include "record/alias.h"
#include "record/segment.h"

struct alias;
struct slot;

enum { PREDICT_IN = 64 }; /* operands that a predicted op has at most */

/* Whether the handle names this value of the segment. */
static inline bool predict_recorded(const struct seg_value *value, frit_tensor *tensor)
{
    const struct slot *slot = value->slot;

    if (!slot)
        slot = value->alias->source;
    return slot_is(slot, tensor) && (value->slot || value->alias->life == slot_life(slot));
}

/* Whether operand `i`, which the segment does not have, may be the one that the record has there;
 * counts up `*n_new`.  `in`: the operands before it, which are those of the record: a new one that
 * stands twice is one value. */
static inline bool predict_new(const struct segment *segment, const struct recorded_op *record,
                               const struct segment_input *in, uint32_t i, uint32_t *n_new)
{
    uint32_t number = record->in[i].value;

    for (uint32_t k = 0; k < i; k++) {
        if (record->in[k].kind == FRIT_OPERAND_TENSOR && record->in[k].value >= segment->n_values &&
            in[k].slot == in[i].slot && in[k].alias == in[i].alias)
            return record->in[k].value == number;
    }
    if (number != segment->n_values + *n_new || segment->values[number].maker != SEGMENT_EXTERNAL ||
        !op_type_equal(&segment->types[number], in[i].type))
        return false;
    ++*n_new;
    return true;
}

static inline void predict_set(struct segment *segment, struct slot *slot, uint32_t number)
{
    assert(slot);
    segment->values[number].slot = slot;
    segment->values[number].alias = NULL;
    slot->epoch = segment->epoch;
    slot->index = number;
    slot_hold(slot);
}

static inline void predict_set_alias(struct segment *segment, struct alias *alias, uint32_t number)
{
    segment->values[number].slot = NULL;
    segment->values[number].alias = alias;
    alias->epoch = segment->epoch;
    alias->index = number;
    alias->holds++;
}

/* Gives the op its new operands. */
static inline void predict_set_operands(struct segment *segment, const struct recorded_op *record,
                                        const struct segment_input *in)
{
    for (uint32_t i = 0; i < record->n_in; i++) {
        if (record->in[i].kind != FRIT_OPERAND_TENSOR || record->in[i].value < segment->n_values)
            continue;
        if (in[i].slot && in[i].slot->epoch != segment->epoch)
            predict_set(segment, in[i].slot, record->in[i].value);
        else if (!in[i].slot && in[i].alias->epoch != segment->epoch)
            predict_set_alias(segment, in[i].alias, record->in[i].value);
    }
}

/* Records the predicted op with this first output; further ones are set.  `sure`: all before it
 * were predicted, too. */
static inline void predict_confirm(struct segment *segment, struct recorded_op *record,
                                   struct slot *out, bool sure)
{
    predict_set(segment, out, record->out[0]);
    record->confirmed = true;
    record->n_confirmed_dead = 0;
    segment->on_prediction = sure && (record->search_continues | segment->in_scope);
    if (sure)
        segment->n_confirmed = segment->n_ops;
    segment->n_values = record->end;
    segment->n_ops++;
}

#endif
