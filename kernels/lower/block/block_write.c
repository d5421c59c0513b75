/* SPDX-License-Identifier: Apache-2.0 */
/* Serialises blocks: the ops in order as 32-bit words, attribute records in between. */
#include <string.h>

#include <frit/op_table.h>

#include "lower/block/block.h"

static void put(struct str *out, const void *bytes, size_t n)
{
    str_add(out, bytes, n);
}

static void put_word(struct str *out, uint32_t word)
{
    put(out, &word, sizeof(word));
}

static void put_value(struct str *out, const struct block *block, uint32_t value)
{
    put_word(out, value);
    put_word(out, block->values[value].rank);
    for (uint32_t d = 0; d < block->values[value].rank; d++)
        put_word(out, block->values[value].extent[d]);
}

static void put_op(struct str *out, const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];
    const frit_op_info *info = frit_op_info_at(op->id);

    put_word(out, op->id);
    put_word(out, info->rev);
    put_word(out, op->n_extra);
    put_word(out, op->n_in);
    put_word(out, op->n_out);
    for (uint32_t i = 0; i < op->n_in; i++) {
        put_word(out, op->in[i].kind);
        put_word(out, op->in[i].dtype);
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            put_value(out, block, op->in[i].value);
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        bool there = op->out[i] != BLOCK_NONE;

        put_word(out, there ? FRIT_OPERAND_TENSOR : FRIT_OPERAND_ABSENT);
        put_word(out, there ? block->values[op->out[i]].dtype : 0);
        if (there)
            put_value(out, block, op->out[i]);
    }
    put(out, op->attrs, frit_record_info_at(info->record)->size);
    put_word(out, op->n_dead);
    for (uint32_t i = 0; i < op->n_dead; i++)
        put_word(out, op->dead[i]);
}

void block_write(const struct block *block, struct str *out)
{
    put_word(out, block->n_ops);
    for (uint32_t i = 0; i < block->n_ops; i++)
        put_op(out, block, i);
}
