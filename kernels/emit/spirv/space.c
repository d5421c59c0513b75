/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a workgroup in a launch over several: found at the entry.  A table has the space of
 * every 2^shift-th group, from which the group's own is few steps away: none where shift is 0. */
#include "emit/spirv/space.h"

#include "emit/spirv/emit.h"

#define ENTRY(e, op, type, ...) spv_make(&(e)->build, SPV_IN_ENTRY, op, type, SPV(__VA_ARGS__))
#define ENTRY_PUT(e, op, ...)   spv_put(&(e)->build, SPV_IN_ENTRY, op, SPV(__VA_ARGS__))

/* Entry `number` of a table of uint32_t. */
static uint32_t entry_of(struct emit *e, uint32_t table, uint32_t number)
{
    uint32_t wide = emit_int_type(e, 64), word = emit_int_type(e, 32), at;

    at = ENTRY(e, SPV_U_CONVERT, wide, number);
    at = ENTRY(e, SPV_I_MUL, wide, at, emit_u64(e, 4));
    at = ENTRY(e, SPV_I_ADD, wide, at, table);
    at = ENTRY(e, SPV_CONVERT_U_TO_PTR, emit_pointer_type(e, SPV_CLASS_PHYSICAL, word), at);
    return ENTRY(e, SPV_LOAD, word, at, SPV_ALIGNED, 4);
}

/* Searches from space `number` on for the space of the group: the first one whose successor begins
 * after the group. */
static uint32_t step_to(struct emit *e, uint32_t first, uint32_t number, uint32_t group)
{
    uint32_t word = emit_int_type(e, 32), head = spv_id(&e->build), resume = spv_id(&e->build);
    uint32_t merged = spv_id(&e->build), next = spv_id(&e->build), has;

    ENTRY_PUT(e, SPV_BRANCH, head);
    ENTRY_PUT(e, SPV_LABEL, head);
    number = ENTRY(e, SPV_PHI, word, number, e->block, next, resume);
    ENTRY_PUT(e, SPV_I_ADD, word, next, number, emit_u32(e, 1));
    has = ENTRY(e, SPV_U_LESS_THAN_EQUAL, emit_bool_type(e), entry_of(e, first, next), group);
    ENTRY_PUT(e, SPV_LOOP_MERGE, merged, resume, 0);
    ENTRY_PUT(e, SPV_BRANCH_CONDITIONAL, has, resume, merged);
    ENTRY_PUT(e, SPV_LABEL, resume);
    ENTRY_PUT(e, SPV_BRANCH, head);
    ENTRY_PUT(e, SPV_LABEL, merged);
    e->block = merged;
    return number;
}

void emit_space(struct emit *e)
{
    uint32_t wide = emit_int_type(e, 64), word = emit_int_type(e, 32), group = emit_group(e, 0);
    uint32_t records = emit_push_word(e, SPIRV_RECORDS), first = emit_push_word(e, SPIRV_FIRST);
    uint32_t table = emit_push_word(e, SPIRV_TABLE), number, offset;
    uint32_t shift = ENTRY(e, SPV_U_CONVERT, word, emit_push_word(e, SPIRV_SHIFT));
    uint64_t record = ((uint64_t)e->module->n_args + e->module->n_params) * 8;

    number = ENTRY(e, SPV_SHIFT_RIGHT_LOGICAL, word, group, shift);
    number = step_to(e, first, entry_of(e, table, number), group);
    e->group[0] = ENTRY(e, SPV_I_SUB, word, group, entry_of(e, first, number));
    offset = ENTRY(e, SPV_U_CONVERT, wide, number);
    offset = ENTRY(e, SPV_I_MUL, wide, offset, emit_u64(e, record));
    e->block_address = ENTRY(e, SPV_I_ADD, wide, records, offset);
}
