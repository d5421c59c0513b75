/* SPDX-License-Identifier: Apache-2.0 */
/* How ops enter a block.
 *
 * A program knows extents only from the dims of its arguments.  So a prefix of the block can be
 * covered exactly where every extent of a value that dies inside is also one of an argument; an
 * extent seen later may make a longer prefix coverable again. */
#include <string.h>

#include <frit/op_table.h>

#include "blocks.h"

/* ---- what is taken ---- */

static bool operand_fits(const frit_operand *operand, const frit_slot_info *slot)
{
    bool scalar = operand->kind == FRIT_OPERAND_SCALAR;

    if (!scalar && operand->kind != FRIT_OPERAND_TENSOR)
        return false;
    if (slot->role == FRIT_ROLE_NUM && !scalar)
        return false;
    return number_kind(operand->dtype) != NUMBER_NONE && (scalar || operand->rank <= FRIT_MAX_RANK);
}

static bool op_fits(const struct row *row, enum fuser_kind kind, const frit_op_desc *op)
{
    const frit_op_info *info = frit_op_info_at(op->id);

    if (!info || op->rev != info->rev || op->flags & FRIT_MUST_UNDERSTAND || op->n_extra != 0 ||
        op->n_in != row->n_in || op->n_out != 1)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (!operand_fits(frit_operand_at(op, op->in, i), &info->in[i]))
            return false;
    if (op->out->kind != FRIT_OPERAND_TENSOR || !operand_fits(op->out, &info->out[0]))
        return false;
    if (row->cls == FRIT_CLASS_MAP &&
        !row->map[number_kind(frit_operand_at(op, op->in, row->decides)->dtype)])
        return false;
    if (is_chain(kind))
        return chain_takes(op);
    if (row->cls != FRIT_CLASS_REDUCE)
        return true;
    return kind == FUSER_ROW && op->attrs &&
           ((const frit_attrs_reduce *)op->attrs)->axes.count == 1;
}

/* ---- values ---- */

static uint16_t value_find(const struct block *block, uint32_t number)
{
    for (uint32_t i = 0; i < block->n_values; i++)
        if (block->values[i].number == number)
            return (uint16_t)i;
    return BLOCK_NONE;
}

/* The block's own number of an extent.  Returns 0 for the extent 0, and also if the table is full:
 * then it sets `*full`. */
static uint8_t extent_own(struct block *block, uint32_t number, bool *full)
{
    if (number <= 1)
        return (uint8_t)number;
    for (uint32_t i = 0; i < block->n_extents; i++)
        if (block->extents[i] == number)
            return (uint8_t)(2 + i);
    if (block->n_extents == BLOCK_EXTENTS) {
        *full = true;
        return 0;
    }
    block->extents[block->n_extents] = number;
    return (uint8_t)(2 + block->n_extents++);
}

static uint16_t value_add(struct block *block, const frit_operand *operand, uint16_t maker,
                          bool *full)
{
    struct block_value *value = &block->values[block->n_values];

    *value = (struct block_value){.number = operand->value,
                                  .dtype = operand->dtype,
                                  .rank = operand->rank,
                                  .maker = maker,
                                  .first = (uint16_t)block->n_ops,
                                  .dies = BLOCK_NONE};
    for (uint32_t d = 0; d < operand->rank; d++) {
        value->extent[d] = extent_own(block, operand->extent[d], full);
        if (value->extent[d] > 1)
            value->extents |= 1ull << (value->extent[d] - 2);
    }
    return (uint16_t)block->n_values++;
}

static void mark_deaths(struct block *block, const frit_op_desc *op)
{
    for (uint32_t i = 0; i < op->n_dead; i++) {
        uint16_t value = value_find(block, op->dead[i]);

        if (value != BLOCK_NONE)
            block->values[value].dies = (uint16_t)block->n_ops;
    }
}

/* ---- prefixes ---- */

/* Whether a program can cover all ops: it knows every extent, and has not too many arguments. */
static bool coverable(const struct block *block, enum fuser_kind kind)
{
    uint64_t known = 0, wanted = 0;
    uint32_t n_in = 0, n_out = 0;

    for (uint32_t i = 0; i < block->n_values; i++) {
        const struct block_value *value = &block->values[i];

        wanted |= value->extents;
        if (value->maker == BLOCK_NONE || value->dies == BLOCK_NONE)
            known |= value->extents;
        n_in += value->maker == BLOCK_NONE;
        n_out += value->maker != BLOCK_NONE && value->dies == BLOCK_NONE;
    }
    if (is_chain(kind) && n_in + n_out > CHAIN_ARGS)
        return false;
    return known == wanted && n_out <= BLOCK_OUTPUTS;
}

/* Whether all values have the dims of the first. */
static bool same_dims(const struct block *block)
{
    const struct block_value *first = &block->values[0];

    for (uint32_t i = 1; i < block->n_values; i++)
        if (block->values[i].rank != first->rank ||
            memcmp(block->values[i].extent, first->extent, first->rank) != 0)
            return false;
    return true;
}

void block_push(struct block *block, enum fuser_kind kind, const frit_op_desc *op)
{
    const struct row *row = row_of(op->id);
    struct block_op *own = &block->ops[block->n_ops];
    bool full = false;

    if (block->closed)
        return;
    if (block->n_ops == BLOCK_OPS || !row || !op_fits(row, kind, op)) {
        block->closed = true;
        return;
    }
    *own = (struct block_op){.row = row, .rev = op->rev, .n_in = op->n_in};
    for (uint32_t i = 0; i < op->n_in; i++) {
        const frit_operand *operand = frit_operand_at(op, op->in, i);

        own->in_dtype[i] = operand->dtype;
        own->in[i] = BLOCK_NONE;
        if (operand->kind == FRIT_OPERAND_SCALAR)
            continue;
        own->in[i] = value_find(block, operand->value);
        if (own->in[i] == BLOCK_NONE)
            own->in[i] = value_add(block, operand, BLOCK_NONE, &full);
    }
    own->out = value_add(block, op->out, (uint16_t)block->n_ops, &full);
    if (op->attrs) {
        uint32_t given;

        memcpy(&given, op->attrs, sizeof(given));
        memcpy(&own->attrs, op->attrs, given < row->attrs_size ? given : row->attrs_size);
    }
    own->attrs.struct_size = row->attrs_size;
    if (full || (is_chain(kind) && !same_dims(block))) {
        /* What was added is beyond the accepted prefix and goes with the trim. */
        block->closed = true;
        return;
    }
    mark_deaths(block, op);
    block->n_ops++;
    if (coverable(block, kind))
        block->accepted = block->n_ops;
}

void block_trim(struct block *block)
{
    uint32_t n_values = 0;

    block->n_ops = block->accepted;
    while (n_values < block->n_values && block->values[n_values].first < block->accepted)
        n_values++;
    block->n_values = n_values;
    for (uint32_t i = 0; i < n_values; i++)
        if (block->values[i].dies >= block->accepted)
            block->values[i].dies = BLOCK_NONE;
    block->closed = true;
}

void block_copy(struct block *to, const struct block *from)
{
    memcpy(to, from, offsetof(struct block, values));
    memcpy(to->values, from->values, from->n_values * sizeof(*to->values));
    memcpy(to->ops, from->ops, from->n_ops * sizeof(*to->ops));
}

uint32_t block_args(const struct block *block, uint16_t *args, uint32_t *n_in)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < block->n_values; i++)
        if (block->values[i].maker == BLOCK_NONE)
            args[n++] = (uint16_t)i;
    *n_in = n;
    for (uint32_t i = 0; i < block->n_values; i++)
        if (block->values[i].maker != BLOCK_NONE && block->values[i].dies == BLOCK_NONE)
            args[n++] = (uint16_t)i;
    return n;
}
