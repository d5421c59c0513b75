/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Values and extents are hashed by their place in the block: the host's numbers of them begin
 * anywhere, in another process elsewhere. */
#include "kit/state.h"

#include <string.h>

struct state {
    uint32_t magic, version;
    uint64_t seal; /* of the ops */
};

enum { STATE_MAGIC = 0x3354494b, /* "KIT3" */ MAX_EXTENTS = KIT_VALUES * FRIT_MAX_RANK };

/* ---- the seal ---- */

struct sealer {
    uint64_t hash; /* FNV-1a of Fowler, Noll and Vo, 64 bits */
    uint32_t n_extents;
    uint32_t extents[MAX_EXTENTS]; /* the host's numbers, in order of first use */
};

static void seal_bytes(struct sealer *sealer, const void *bytes, size_t n_bytes)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < n_bytes; i++)
        sealer->hash = (sealer->hash ^ at[i]) * 0x100000001b3;
}

static void seal_number(struct sealer *sealer, uint32_t number)
{
    seal_bytes(sealer, &number, sizeof number);
}

/* 0 and 1 are themselves. */
static void seal_extent(struct sealer *sealer, uint32_t extent)
{
    uint32_t i = 0;

    while (extent > 1 && i < sealer->n_extents && sealer->extents[i] != extent)
        i++;
    if (extent > 1 && i == sealer->n_extents && i < MAX_EXTENTS)
        sealer->extents[sealer->n_extents++] = extent;
    seal_number(sealer, extent > 1 ? i + 2 : extent);
}

static void seal_operand(struct sealer *sealer, const frit_operand *operand, uint16_t value)
{
    seal_number(sealer, operand->kind);
    seal_number(sealer, operand->dtype);
    seal_number(sealer, value);
    seal_number(sealer, operand->rank);
    for (uint32_t d = 0; d < operand->rank && operand->kind == FRIT_OPERAND_TENSOR; d++)
        seal_extent(sealer, operand->extent[d]);
}

/* The record's KEY fields: others say nothing. */
static void seal_attrs(struct sealer *sealer, const struct kit_op *op)
{
    const frit_record_info *record = frit_record_info_at(frit_op_info_at(op->id)->record);

    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].use == FRIT_USE_KEY)
            seal_bytes(sealer, (const char *)&op->attrs + record->field[i].offset,
                       record->field[i].size);
}

static void seal_op(struct sealer *sealer, const struct kit_op *op)
{
    seal_number(sealer, op->id);
    seal_number(sealer, op->rev);
    seal_number(sealer, op->n_in);
    seal_number(sealer, op->n_out);
    seal_number(sealer, op->n_extra);
    for (uint32_t i = 0; i < op->n_in; i++)
        seal_operand(sealer, &op->in[i], op->in_value[i]);
    for (uint32_t k = 0; k < op->n_out; k++)
        seal_operand(sealer, &op->out[k], op->out_value[k]);
    seal_attrs(sealer, op);
}

static uint64_t seal_of(const struct kit_block *block)
{
    struct sealer sealer = {.hash = 0xcbf29ce484222325};

    for (uint32_t i = 0; i < block->n_ops; i++)
        seal_op(&sealer, &block->ops[i]);
    for (uint32_t i = 0; i < block->n_values; i++)
        seal_number(&sealer, block->values[i].dies);
    return sealer.hash;
}

/* ---- bytes ---- */

static struct state state_of(const struct kit_block *block, uint32_t version)
{
    return (struct state){STATE_MAGIC, version, seal_of(block)};
}

uint64_t state_write(const struct kit_block *block, uint32_t version, void *bytes,
                     uint64_t capacity)
{
    const struct state state = state_of(block, version);

    if (capacity >= sizeof state)
        memcpy(bytes, &state, sizeof state);
    return sizeof state;
}

bool state_fits(const struct kit_block *block, uint32_t version, const void *bytes,
                uint64_t n_bytes)
{
    const struct state state = state_of(block, version);

    return n_bytes == sizeof state && memcmp(bytes, &state, sizeof state) == 0;
}
