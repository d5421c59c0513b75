/* SPDX-License-Identifier: Apache-2.0 */
#include "record/segment.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "plan/key.h"
#include "record/alias.h"
#include "tensor/slot.h"

void segment_fini(struct segment *segment)
{
    arena_fini(&segment->arena);
    free(segment->ops);
    free(segment->values);
    free(segment->types);
    free(segment->key_types);
    free(segment->extents);
    *segment = (struct segment){0};
}

void segment_reset(struct segment *segment, uint64_t epoch)
{
    arena_reset(&segment->arena);
    segment->n_ops = segment->n_values = segment->n_extents = segment->n_matched = 0;
    segment->n_predicted = segment->n_mispredicted = 0;
    segment->n_confirmed = 0;
    segment->on_prediction = false;
    segment->context = 0;
    segment->serial = 0;
    segment->joined_sequence = 0;
    segment->epoch = epoch;
}

/* The arena is reset after this many mispredicted runs, because it still holds the ops that were
 * replaced. */
enum { MAX_MISPREDICTED = 64 };

void segment_rewind(struct segment *segment, uint64_t max_predicted)
{
    segment->n_mispredicted += segment->n_predicted > segment->n_matched;
    if (segment->n_mispredicted >= MAX_MISPREDICTED) {
        segment_reset(segment, 0);
        return;
    }
    /* An op without a trie node cannot be confirmed: the walker would have nowhere to go. */
    while (segment->n_matched && !segment->ops[segment->n_matched - 1]->node)
        segment->n_matched--;
    segment->n_predicted =
        segment->n_matched < max_predicted ? segment->n_matched : (uint32_t)max_predicted;
    segment->n_ops = segment->n_values = segment->n_extents = segment->n_matched = 0;
    segment->n_confirmed = 0;
    segment->on_prediction = false;
    segment->context = 0;
    segment->epoch = 0;
}

/* ---- values ---- */

/* Reserves room for one op and for as many values as it can add, so that appending it cannot fail
 * halfway. */
static bool reserve(struct segment *segment, uint32_t values)
{
    return array_grow(&segment->ops, &segment->ops_capacity, segment->n_ops, 1,
                      sizeof(*segment->ops)) &&
           array_grow(&segment->values, &segment->values_capacity, segment->n_values, values,
                      sizeof(*segment->values)) &&
           array_grow(&segment->types, &segment->types_capacity, segment->n_values, values,
                      sizeof(*segment->types)) &&
           array_grow(&segment->key_types, &segment->key_types_capacity, segment->n_values, values,
                      sizeof(*segment->key_types));
}

static uint32_t add_value(struct segment *segment, const struct op_type *type, uint32_t maker)
{
    segment->values[segment->n_values] = (struct seg_value){.maker = maker};
    segment->types[segment->n_values] = *type;
    return segment->n_values++;
}

/* Returns the number of the slot's value, which is added if the segment does not have it yet. */
static uint32_t number_slot(struct segment *segment, struct slot *slot, const struct op_type *type,
                            uint32_t maker)
{
    if (slot->epoch != segment->epoch) {
        slot->index = add_value(segment, type, maker);
        slot->epoch = segment->epoch;
        segment->values[slot->index].slot = slot;
        slot_hold(slot);
    }
    return slot->index;
}

static uint32_t number_alias(struct segment *segment, struct alias *alias)
{
    if (alias->epoch != segment->epoch) {
        alias->index = add_value(segment, &alias->value.type, SEGMENT_EXTERNAL);
        alias->epoch = segment->epoch;
        segment->values[alias->index].alias = alias;
        alias_hold(alias);
    }
    return alias->index;
}

void segment_release(struct segment *segment)
{
    for (uint32_t i = 0; i < segment->n_values; i++) {
        struct seg_value *value = &segment->values[i];

        if (value->slot)
            slot_unhold(value->slot);
        else if (value->alias)
            alias_unhold(value->alias);
    }
}

/* ---- records ---- */

static struct recorded_op *record_create(struct arena *arena, const struct segment_call *call)
{
    const frit_op_info *row = op_row(call->op);
    size_t attrs = call->attrs ? op_record(row)->size : 0;
    size_t raw = call->raw ? attrs : 0;
    struct recorded_op *record =
        arena_alloc(arena, sizeof(*record) + call->n_in * sizeof(*record->in) + attrs + raw +
                               call->n_out * sizeof(*record->out));

    if (!record)
        return NULL;
    record->in = (struct recorded_input *)(void *)(record + 1);
    record->attrs = call->attrs ? record->in + call->n_in : NULL;
    record->raw = raw ? (char *)(record->in + call->n_in) + attrs : NULL;
    record->raw_bytes = (uint32_t)raw;
    record->simple = call->simple;
    record->seeded = call->seeded;
    record->out = (uint32_t *)(void *)((char *)(record->in + call->n_in) + attrs + raw);
    record->op = call->op;
    record->n_in = call->n_in;
    record->n_out = call->n_out;
    record->attrs_id = call->attrs_id;
    record->context = call->context;
    record->seed = call->seed;
    record->counter = call->counter;
    if (attrs)
        memcpy(record->attrs, call->attrs, attrs);
    if (raw)
        memcpy((char *)record->attrs + attrs, call->raw, raw);
    return record;
}

static void add_inputs(struct segment *segment, struct recorded_op *record,
                       const struct segment_call *call)
{
    for (uint32_t i = 0; i < call->n_in; i++) {
        const struct segment_input *from = &call->in[i];
        struct recorded_input *in = &record->in[i];

        in->kind = from->kind;
        if (from->kind == FRIT_OPERAND_SCALAR) {
            in->dtype = from->dtype;
            in->scalar = from->scalar;
            in->given = from->given;
            in->varies = from->varies;
        } else if (from->kind == FRIT_OPERAND_TENSOR) {
            in->value = from->slot ? number_slot(segment, from->slot, from->type, SEGMENT_EXTERNAL)
                                   : number_alias(segment, from->alias);
        } else {
            in->dtype = FRIT_NO_DTYPE; /* must be set: it enters the key */
        }
    }
}

/* Ends the prediction: the op to be appended differs from the predicted one. */
static void mispredict(struct segment *segment)
{
    segment->on_prediction = false;
    if (segment->n_predicted > segment->n_ops) {
        segment->n_mispredicted++;
        segment->n_predicted = segment->n_ops;
    }
}

static void add_record(struct segment *segment, struct recorded_op *record)
{
    segment->context |= record->context;
    record->end = segment->n_values;
    segment->ops[segment->n_ops++] = record;
}

bool segment_append(struct segment *segment, const struct segment_call *call)
{
    struct recorded_op *record = NULL;

    mispredict(segment);
    if (reserve(segment, call->n_in + call->n_out))
        record = record_create(&segment->arena, call);
    if (!record)
        return false;
    record->first = segment->n_values;
    add_inputs(segment, record, call);
    for (uint32_t i = 0; i < call->n_out; i++) {
        record->out[i] = SEGMENT_EXTERNAL;
        if (call->types[i].dtype != FRIT_NO_DTYPE)
            record->out[i] = number_slot(segment, call->out[i], &call->types[i], segment->n_ops);
    }
    add_record(segment, record);
    return true;
}

/* If out of memory, the death is not recorded: the value is computed and dropped when the segment
 * has run. */
void segment_bury_slow(struct segment *segment, struct recorded_op *record, uint32_t value)
{
    if (record->confirmed)
        record->n_dead = record->n_confirmed_dead;
    record->confirmed = segment->on_prediction = false;
    if (record->n_dead == record->dead_capacity) {
        uint32_t capacity = record->dead_capacity ? record->dead_capacity * 2 : 4;
        uint32_t *dead = arena_alloc(&segment->arena, capacity * sizeof(*dead));

        if (!dead)
            return;
        if (record->n_dead)
            memcpy(dead, record->dead, record->n_dead * sizeof(*dead));
        record->dead = dead;
        record->dead_capacity = capacity;
    }
    record->dead[record->n_dead++] = value;
}

/* ---- keys ---- */

enum { ON_STACK = 16 /* operands, types and deaths of an op's key that need no allocation */ };

/* Returns the number of an extent, which is added if it is new. */
static uint32_t number_extent(struct segment *segment, int64_t extent)
{
    if (extent <= 1)
        return (uint32_t)extent;
    for (uint32_t i = 0; i < segment->n_extents; i++) {
        if (segment->extents[i] == extent)
            return i + 2;
    }
    segment->extents[segment->n_extents++] = extent;
    return segment->n_extents + 1;
}

void segment_skip_key(struct segment *segment, uint32_t number)
{
    struct recorded_op *record = segment->ops[number];

    record->n_extents = number ? segment->ops[number - 1]->n_extents : 0;
    for (uint32_t v = record->first; v < record->end; v++)
        segment->key_types[v] = (struct key_type){0};
}

/* Numbers the extents of the values that are new with an op, then those of its expansion. */
static bool number_extents(struct segment *segment, uint32_t number,
                           const struct segment_expansion *form)
{
    struct recorded_op *record = segment->ops[number];
    uint32_t n_inner = form ? form->n_extents : 0;

    segment->n_extents = number ? segment->ops[number - 1]->n_extents : 0;
    if (!array_grow(&segment->extents, &segment->extents_capacity, segment->n_extents,
                    (record->end - record->first) * FRIT_MAX_RANK + n_inner,
                    sizeof(*segment->extents))) {
        segment_skip_key(segment, number);
        return false;
    }
    for (uint32_t v = record->first; v < record->end; v++) {
        const struct op_type *type = &segment->types[v];
        struct key_type *key = &segment->key_types[v];

        key->dtype = type->dtype;
        key->rank = type->rank;
        for (uint32_t d = 0; d < type->rank; d++)
            key->extent[d] = number_extent(segment, type->dims[d]);
        key_type_pack(key);
    }
    for (uint32_t i = 0; i < n_inner; i++)
        number_extent(segment, form->extents[i]);
    record->n_extents = segment->n_extents;
    return true;
}

/* The packed type of the first tensor operand; 0: none. */
static uint32_t first_tensor_type(const struct segment *segment, const struct recorded_op *record)
{
    for (uint32_t i = 0; i < record->n_in; i++) {
        if (record->in[i].kind == FRIT_OPERAND_TENSOR)
            return segment->key_types[record->in[i].value].packed;
    }
    return 0;
}

bool segment_key(struct segment *segment, uint32_t number, const struct segment_expansion *form,
                 struct walker *walker, struct op_key *key)
{
    const struct recorded_op *record = segment->ops[number];
    const struct key_form expanded = {form ? form->bytes : NULL, form ? form->n_bytes : 0};
    struct key_operand stack_in[ON_STACK], *in = stack_in;
    struct key_type stack_types[ON_STACK], *types = stack_types;
    struct key_parts parts = {.op = record->op,
                              .attrs_id = record->attrs_id,
                              .attrs = record->attrs,
                              .form = form ? &expanded : NULL,
                              .n_in = record->n_in,
                              .n_types = record->end - record->first,
                              .n_dead = record->n_dead};
    uint32_t stack_dead[ON_STACK], *dead = stack_dead;
    bool ok;

    if (!number_extents(segment, number, form))
        return false;
    parts.first_tensor_type = first_tensor_type(segment, record);
    if (record->n_in > ON_STACK)
        in = malloc(record->n_in * sizeof(*in));
    if (parts.n_types > ON_STACK)
        types = malloc(parts.n_types * sizeof(*types));
    if (parts.n_dead > ON_STACK)
        dead = malloc(parts.n_dead * sizeof(*dead));
    ok = in && types && dead;
    if (ok && parts.n_dead)
        memcpy(dead, record->dead, parts.n_dead * sizeof(*dead));
    parts.dead = dead;
    for (uint32_t i = 0; i < record->n_in && ok; i++) {
        in[i].kind = record->in[i].kind;
        in[i].value =
            record->in[i].kind == FRIT_OPERAND_TENSOR ? record->in[i].value : record->in[i].dtype;
    }
    for (uint32_t i = 0; i < parts.n_types && ok; i++)
        types[i] = segment->key_types[record->first + i];
    for (uint32_t i = 0; i < record->n_out; i++)
        parts.wanted |= (uint32_t)(record->out[i] != SEGMENT_EXTERNAL) << i;
    parts.in = in;
    parts.types = types;
    ok = ok && key_make(walker, &parts, key);
    if (in != stack_in)
        free(in);
    if (types != stack_types)
        free(types);
    if (dead != stack_dead)
        free(dead);
    return ok;
}

/* ---- moving what was not run ---- */

static bool move_record(struct segment *to, const struct segment *from,
                        const struct recorded_op *record)
{
    const struct segment_call call = {.op = record->op,
                                      .n_in = record->n_in,
                                      .n_out = record->n_out,
                                      .attrs_id = record->attrs_id,
                                      .context = record->context,
                                      .seed = record->seed,
                                      .counter = record->counter,
                                      .attrs = record->attrs};
    struct recorded_op *moved = NULL;

    mispredict(to);
    if (reserve(to, record->n_in + record->n_out))
        moved = record_create(&to->arena, &call);
    if (!moved)
        return false;
    moved->first = to->n_values;
    for (uint32_t i = 0; i < record->n_in; i++) {
        moved->in[i] = record->in[i];
        if (record->in[i].kind == FRIT_OPERAND_TENSOR) {
            const struct seg_value *value = &from->values[record->in[i].value];

            moved->in[i].value =
                value->slot
                    ? number_slot(to, value->slot, &value->slot->value.type, SEGMENT_EXTERNAL)
                    : number_alias(to, value->alias);
        }
    }
    for (uint32_t i = 0; i < record->n_out; i++) {
        moved->out[i] = SEGMENT_EXTERNAL;
        if (record->out[i] != SEGMENT_EXTERNAL) {
            struct slot *slot = from->values[record->out[i]].slot;

            moved->out[i] = number_slot(to, slot, &slot->value.type, to->n_ops);
        }
    }
    add_record(to, moved);
    return true;
}

bool segment_move(struct segment *to, const struct segment *from, uint32_t first)
{
    for (uint32_t r = first; r < from->n_ops; r++) {
        const struct recorded_op *record = from->ops[r];
        uint32_t n_dead = record->confirmed ? record->n_confirmed_dead : record->n_dead;

        if (!move_record(to, from, record))
            return false;
        for (uint32_t i = 0; i < n_dead; i++) {
            const struct seg_value *value = &from->values[record->dead[i]];

            if (value->maker >= first)
                segment_bury(to, value->slot->index);
        }
    }
    return true;
}
