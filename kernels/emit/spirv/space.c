/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a workgroup in a launch over several: found at the entry, in a table of how many
 * groups are before each space, which is filled up to a power of two with numbers that no group
 * has. */
#include "emit/spirv/emit.h"

#define ENTRY(e, op, type, ...) spv_make(&(e)->build, SPV_IN_ENTRY, op, type, SPV(__VA_ARGS__))
#define ENTRY_PUT(e, op, ...)   spv_put(&(e)->build, SPV_IN_ENTRY, op, SPV(__VA_ARGS__))

/* Groups before the space of this number. */
static uint32_t groups_before(struct emit *e, uint32_t table, uint32_t number)
{
    uint32_t wide = emit_int(e, 64), word = emit_int(e, 32), at;

    at = ENTRY(e, SPV_U_CONVERT, wide, number);
    at = ENTRY(e, SPV_I_MUL, wide, at, emit_u64(e, 4));
    at = ENTRY(e, SPV_I_ADD, wide, at, table);
    at = ENTRY(e, SPV_CONVERT_U_TO_PTR, emit_pointer(e, SPV_CLASS_PHYSICAL, word), at);
    return ENTRY(e, SPV_LOAD, word, at, SPV_ALIGNED, 4);
}

/* The number of the last space that begins at the group or before: bit by bit from the highest on,
 * where the table says that the group is not before. */
static uint32_t find(struct emit *e, uint32_t table, uint32_t size, uint32_t group)
{
    uint32_t word = emit_int(e, 32), zero = emit_u32(e, 0), one = emit_u32(e, 1);
    uint32_t head = spv_id(&e->build), body = spv_id(&e->build), resume = spv_id(&e->build);
    uint32_t merged = spv_id(&e->build), more = spv_id(&e->build), less = spv_id(&e->build);
    uint32_t step = ENTRY(e, SPV_SHIFT_RIGHT_LOGICAL, word, size, one), number, at, has;

    ENTRY_PUT(e, SPV_BRANCH, head);
    ENTRY_PUT(e, SPV_LABEL, head);
    number = ENTRY(e, SPV_PHI, word, zero, e->block, more, resume);
    step = ENTRY(e, SPV_PHI, word, step, e->block, less, resume);
    has = ENTRY(e, SPV_I_NOT_EQUAL, emit_bool(e), step, zero);
    ENTRY_PUT(e, SPV_LOOP_MERGE, merged, resume, 0);
    ENTRY_PUT(e, SPV_BRANCH_CONDITIONAL, has, body, merged);
    ENTRY_PUT(e, SPV_LABEL, body);
    at = ENTRY(e, SPV_I_ADD, word, number, step);
    has = ENTRY(e, SPV_U_LESS_THAN_EQUAL, emit_bool(e), groups_before(e, table, at), group);
    ENTRY_PUT(e, SPV_SELECT, word, more, has, at, number);
    ENTRY_PUT(e, SPV_SHIFT_RIGHT_LOGICAL, word, less, step, one);
    ENTRY_PUT(e, SPV_BRANCH, resume);
    ENTRY_PUT(e, SPV_LABEL, resume);
    ENTRY_PUT(e, SPV_BRANCH, head);
    ENTRY_PUT(e, SPV_LABEL, merged);
    e->block = merged;
    return number;
}

void emit_space(struct emit *e)
{
    uint32_t wide = emit_int(e, 64), word = emit_int(e, 32), group = emit_group(e, 0);
    uint32_t records = emit_push_word(e, SPIRV_RECORDS), table = emit_push_word(e, SPIRV_TABLE);
    uint32_t size = emit_push_word(e, SPIRV_TABLE_SIZE), number, offset;
    uint64_t record = ((uint64_t)e->module->n_args + e->module->n_params) * 8;

    size = ENTRY(e, SPV_U_CONVERT, word, size);
    number = find(e, table, size, group);
    e->group[0] = ENTRY(e, SPV_I_SUB, word, group, groups_before(e, table, number));
    offset = ENTRY(e, SPV_U_CONVERT, wide, number);
    offset = ENTRY(e, SPV_I_MUL, wide, offset, emit_u64(e, record));
    e->words = ENTRY(e, SPV_I_ADD, wide, records, offset);
}
