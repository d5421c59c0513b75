/* SPDX-License-Identifier: Apache-2.0 */
/* Each lane of a thread has an array; or an array of vectors has an element of several lanes in
 * each, where they all access the same element at a time.  A unit of such a tile is that vector. */
#include "emit/spirv/lane_tile.h"

enum { VECTOR_MAX = 4 };

/* Whether all lanes access the same element at a time, without conditions. */
static bool is_uniform(const struct emit *e, uint32_t tile)
{
    for (uint32_t i = 0; i < e->phase->n; i++) {
        const struct kir_inst *inst = &e->phase->inst[i];

        if (kir_op_info(inst->op)->imm == KIR_IMM_TILE && inst->imm == tile &&
            (inst->op == KIR_tstore_if || !emit_is_uniform(e, inst->a[0])))
            return false;
    }
    return true;
}

void lane_tile_declare(struct emit *e, uint32_t tile)
{
    const struct kir_tile *of = &e->phase->tiles[tile];
    struct spirv_tile *out = &e->tiles[tile];
    uint32_t array, type = emit_type(e, of->type), variable = 0;

    out->unit = is_uniform(e, tile) ? e->stride : 1;
    if (out->unit > VECTOR_MAX)
        out->unit = VECTOR_MAX;
    out->unit_type =
        out->unit == 1 ? type : spv_type(&e->build, SPV_TYPE_VECTOR, SPV(type, out->unit));
    array = spv_type(&e->build, SPV_TYPE_ARRAY, SPV(out->unit_type, emit_u32(e, of->count)));
    for (uint32_t j = 0; j < e->stride; j++) {
        if (j % out->unit == 0)
            variable = emit_variable(e, SPV_CLASS_FUNCTION, array);
        out->variables[j] = variable;
    }
}

/* The unit that lane j, the first one that it has, accesses. */
static uint32_t pointer(struct emit *e, const struct kir_inst *inst, uint32_t j)
{
    const struct spirv_tile *has = &e->tiles[inst->imm];
    bool is_single = e->phase->tiles[inst->imm].count == 1;

    return EMIT(e, SPV_ACCESS_CHAIN, emit_pointer_type(e, SPV_CLASS_FUNCTION, has->unit_type),
                has->variables[j], is_single ? emit_u32(e, 0) : emit_id(e, inst->a[0], j));
}

void lane_tile_load(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const struct spirv_tile *has = &e->tiles[inst->imm];
    uint32_t type = emit_type(e, inst->type);

    for (uint32_t j = 0; j < e->shape.per_thread; j += has->unit) {
        uint32_t id = EMIT(e, SPV_LOAD, has->unit_type, pointer(e, inst, j));

        for (uint32_t i = 0; i < has->unit; i++)
            emit_set_id(e, at, j + i,
                        has->unit == 1 ? id : EMIT(e, SPV_COMPOSITE_EXTRACT, type, id, i));
    }
}

/* What a unit has from lane j on. */
static uint32_t unit_of(struct emit *e, const struct kir_inst *inst, uint32_t j)
{
    const struct spirv_tile *has = &e->tiles[inst->imm];
    uint32_t parts[VECTOR_MAX];

    for (uint32_t i = 0; i < has->unit; i++)
        parts[i] = emit_id(e, inst->a[1], j + i);
    return has->unit == 1 ? parts[0]
                          : spv_make(&e->build, SPV_IN_BODY, SPV_COMPOSITE_CONSTRUCT,
                                     has->unit_type, parts, has->unit);
}

void lane_tile_store(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];

    for (uint32_t j = 0; j < e->shape.per_thread; j += e->tiles[inst->imm].unit) {
        struct region region;

        if (inst->op == KIR_tstore_if)
            region = emit_if(e, emit_id(e, inst->a[2], j));
        EMIT_PUT(e, SPV_STORE, pointer(e, inst, j), unit_of(e, inst, j));
        if (inst->op == KIR_tstore_if)
            emit_end_if(e, &region);
    }
}
