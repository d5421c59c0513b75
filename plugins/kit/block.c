/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Values are in the order of their first use or making, so that what a prefix uses is a prefix of
 * them too, and arguments are numbered by one pass. */
#include "kit/block.h"

#include <stddef.h>
#include <string.h>

#include "util/op.h"

void block_copy(struct kit_block *to, const struct kit_block *from)
{
    memcpy(to, from, offsetof(struct kit_block, values));
    memcpy(to->values, from->values, from->n_values * sizeof *to->values);
    memcpy(to->ops, from->ops, from->n_ops * sizeof *to->ops);
}

/* ---- pushing ---- */

static uint16_t value_find(const struct kit_block *block, uint32_t number)
{
    for (uint32_t i = 0; i < block->n_values; i++)
        if (block->values[i].number == number)
            return (uint16_t)i;
    return KIT_NONE;
}

/* KIT_NONE where there is no room. */
static uint16_t value_add(struct kit_block *block, const frit_operand *operand, uint16_t maker)
{
    if (block->n_values == KIT_VALUES)
        return KIT_NONE;
    block->values[block->n_values] = (struct kit_value){.number = operand->value,
                                                        .dtype = operand->dtype,
                                                        .maker = maker,
                                                        .first = (uint16_t)block->n_ops,
                                                        .dies = KIT_NONE,
                                                        .arg = KIT_NONE};
    return (uint16_t)block->n_values++;
}

/* How many words and numbers of a launch are the op's: as frit_launch orders them. */
static void count_launch(struct kit_op *own, const frit_record_info *record)
{
    own->n_scalars = own->n_extra;
    for (uint32_t i = 0; i < own->n_in; i++)
        own->n_scalars += own->in[i].kind == FRIT_OPERAND_SCALAR;
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use != FRIT_USE_LAUNCH)
            continue;
        if (field->type == FRIT_ATTR_REAL)
            own->n_scalars++;
        else
            own->n_bounds +=
                field->type == FRIT_ATTR_SLICES ? 3 * own->in[0].rank : own->in[0].rank;
    }
}

/* Copies the op; false where it has more of something than there is room for. */
static bool take_op(struct kit_op *own, const frit_op_desc *op)
{
    const frit_record_info *record = frit_record_info_at(frit_op_info_at(op->id)->record);

    if (op->n_in > KIT_IN || op->n_out > KIT_OUT || op->n_dead > KIT_DEAD)
        return false;
    memset(own, 0, sizeof *own);
    own->id = op->id;
    own->rev = op->rev;
    own->n_in = op->n_in;
    own->n_out = op->n_out;
    own->n_dead = op->n_dead;
    own->n_extra = op->n_extra;
    for (uint32_t i = 0; i < op->n_in; i++)
        own->in[i] = *frit_operand_at(op, op->in, i);
    for (uint32_t k = 0; k < op->n_out; k++)
        own->out[k] = *frit_operand_at(op, op->out, k);
    if (op->n_dead)
        memcpy(own->dead, op->dead, op->n_dead * sizeof *own->dead);
    op_copy_attrs(op, record, &own->attrs);
    own->attrs.struct_size = record->size;
    count_launch(own, record);
    return true;
}

static bool take_values(struct kit_block *block, struct kit_op *own)
{
    for (uint32_t i = 0; i < own->n_in; i++) {
        own->in_value[i] = KIT_NONE;
        if (own->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        own->in_value[i] = value_find(block, own->in[i].value);
        if (own->in_value[i] == KIT_NONE)
            own->in_value[i] = value_add(block, &own->in[i], KIT_NONE);
        if (own->in_value[i] == KIT_NONE)
            return false;
    }
    for (uint32_t k = 0; k < own->n_out; k++) {
        own->out_value[k] = KIT_NONE;
        if (own->out[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        own->out_value[k] = value_add(block, &own->out[k], (uint16_t)block->n_ops);
        if (own->out_value[k] == KIT_NONE)
            return false;
    }
    return true;
}

static bool is_output(const struct kit_value *value)
{
    return value->maker != KIT_NONE && value->dies == KIT_NONE;
}

/* Whether all ops together have something to show and no more arguments than a program may. */
static bool coverable(const struct kit_block *block)
{
    uint32_t n_in = 0, n_out = 0;

    for (uint32_t i = 0; i < block->n_values; i++) {
        n_in += block->values[i].maker == KIT_NONE;
        n_out += is_output(&block->values[i]);
    }
    return n_out > 0 && n_in + n_out <= KIT_ARGS;
}

bool block_push(struct kit_block *block, const frit_op_desc *op)
{
    struct kit_op *own = &block->ops[block->n_ops];

    if (block->n_ops == KIT_OPS || !take_op(own, op) || !take_values(block, own)) {
        block->closed = 1;
        return false;
    }
    if (block->n_ops > 0) {
        own->first_scalar = own[-1].first_scalar + own[-1].n_scalars;
        own->first_bound = own[-1].first_bound + own[-1].n_bounds;
    }
    for (uint32_t i = 0; i < own->n_dead; i++) {
        uint16_t value = value_find(block, own->dead[i]);

        if (value != KIT_NONE)
            block->values[value].dies = (uint16_t)block->n_ops;
    }
    block->n_ops++;
    if (coverable(block))
        block->accepted = block->n_ops;
    return true;
}

/* ---- arguments ---- */

static void number(struct kit_block *block, uint32_t value, uint32_t arg)
{
    block->values[value].arg = (uint16_t)arg;
    block->args[arg] = (uint16_t)value;
}

void block_bind(struct kit_block *block)
{
    uint32_t n_values = 0;

    block->n_ops = block->accepted;
    while (n_values < block->n_values && block->values[n_values].first < block->n_ops)
        n_values++;
    block->n_values = n_values;
    block->closed = 1;
    block->n_args = 0;
    for (uint32_t i = 0; i < n_values; i++) {
        struct kit_value *value = &block->values[i];

        if (value->dies != KIT_NONE && value->dies >= block->n_ops)
            value->dies = KIT_NONE;
        if (value->maker == KIT_NONE)
            number(block, i, block->n_args++);
    }
    block->n_in = block->n_args;
    for (uint32_t i = 0; i < n_values; i++)
        if (is_output(&block->values[i]))
            number(block, i, block->n_args++);
}

void block_bind_one(struct kit_block *block)
{
    const struct kit_op *op = &block->ops[0];

    block->n_in = op->n_in;
    block->n_args = op->n_in + op->n_out;
    for (uint32_t i = 0; i < block->n_args; i++) {
        uint16_t value = i < op->n_in ? op->in_value[i] : op->out_value[i - op->n_in];

        block->args[i] = KIT_NONE;
        if (value != KIT_NONE && block->values[value].arg == KIT_NONE)
            number(block, value, i);
    }
}
