/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of the group; those of lanes are in lane_tile.c.  A tile is an array of units.  A unit is
 * an element, or as many as every access to the tile has as neighbours: then they move as one
 * vector of up to 16 bytes.  Elements of 32 and 64 bits are in vectors of 16 bytes also where most
 * accesses have those; others are to components.  Elements of 16 bits are in words of two where
 * units are that large.
 *
 * Beside fragments, tiles that are never used at the same time share memory, if the device lays
 * blocks out in it.
 *
 * What a load from memory had as words of two goes into a tile of the same dtype as it is. */
#include "emit/spirv/tile.h"

#include "emit/reuse.h"
#include "emit/spirv/access.h"
#include "emit/spirv/convert.h"
#include "emit/spirv/fragment.h"
#include "emit/spirv/lane_tile.h"
#include "emit/spirv/value.h"

enum { UNIT_BYTES = 16, UNIT_MAX = 8 /* elements */ };

static bool is_half(const struct kir_tile *tile)
{
    return kir_is_16_bit_float(tile->dtype);
}

/* ---- declarations ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Elements of a unit that an instruction allows for the tile. */
static uint32_t allowed_unit(const struct emit *e, const struct kir_inst *inst, uint32_t tile)
{
    switch (inst->op) {
    case KIR_tload:
    case KIR_tstore:
    case KIR_tstore_if:
        return inst->imm != tile           ? UNIT_MAX
               : inst->op == KIR_tstore_if ? 1
                                           : shape_tile_chunk(&e->shape, tile, inst->a[0]);
    case KIR_tcopy:
        return kir_copy_of(inst->imm).tile != tile ? UNIT_MAX
                                                   : shape_tile_chunk(&e->shape, tile, inst->a[0]);
    case KIR_mload:
    case KIR_mstore:
        if (!kir_fragment_place_of(inst->imm).is_tile ||
            kir_fragment_place_of(inst->imm).place != tile)
            return UNIT_MAX;
        return least(e->shape.even[inst->a[0]], e->shape.even[inst->a[1]]);
    default:
        return UNIT_MAX;
    }
}

/* Neighbouring elements that a load or store of a tile has as one access. */
static uint32_t width_of(const struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    uint32_t first, n = inst->op == KIR_tstore_if
                            ? 1
                            : shape_tile_chunk(&e->shape, (uint32_t)inst->imm, inst->a[0]);

    return n == 1 ? shape_tile_together(&e->shape, at, &first) : n;
}

/* Whether most loads and stores of a tile have a unit, and fragments and copies too. */
static bool is_mostly_wide(const struct emit *e, uint32_t tile, uint32_t unit)
{
    uint32_t wide = 0, others = 0;

    for (uint32_t i = 0; i < e->phase->n; i++) {
        const struct kir_inst *inst = &e->phase->inst[i];

        if (allowed_unit(e, inst, tile) < unit && kir_op_info(inst->op)->imm != KIR_IMM_TILE)
            return false;
        if (kir_op_info(inst->op)->imm == KIR_IMM_TILE && inst->imm == tile)
            *(width_of(e, i) >= unit ? &wide : &others) += 1;
    }
    return wide > others;
}

static uint32_t choose_unit(const struct emit *e, uint32_t tile)
{
    const struct kir_tile *of = &e->phase->tiles[tile];
    uint32_t unit = UNIT_BYTES / kir_tile_bytes(of);

    if (!is_half(of) && of->count % unit == 0 && is_mostly_wide(e, tile, unit))
        return unit;
    for (uint32_t i = 0; i < e->phase->n && unit > 1; i++)
        unit = least(unit, allowed_unit(e, &e->phase->inst[i], tile));
    while (of->count % unit)
        unit /= 2;
    return unit;
}

static uint32_t make_unit_type(struct emit *e, const struct kir_tile *tile, uint32_t unit)
{
    uint32_t words = unit, type;

    if (is_half(tile) && unit == 1)
        return fragment_element_type(e, tile->dtype);
    if (is_half(tile))
        words = unit / 2;
    type = is_half(tile) ? emit_int_type(e, 32) : emit_type(e, tile->type);
    return words == 1 ? type : spv_type(&e->build, SPV_TYPE_VECTOR, SPV(type, words));
}

/* Memory for the tiles of the group.  Returns where each is; NULL: without places. */
static uint32_t *make_places(struct emit *e)
{
    uint32_t *places;

    for (uint32_t i = 0; i < e->phase->n_tiles; i++)
        if (e->phase->tiles[i].space == KIR_GROUP)
            e->code->shared_bytes += e->phase->tiles[i].count * kir_tile_bytes(&e->phase->tiles[i]);
    if (!e->target->shares_tiles || !e->phase->n_fragments)
        return NULL;
    places = arena_array(&e->arena, e->phase->n_tiles + 1, sizeof(*places));
    if (!places) {
        e->build.failed = true;
        return NULL;
    }
    e->has_blocks = true;
    e->code->shared_bytes = reuse_tiles(e->phase, places);
    return places;
}

static void declare(struct emit *e, uint32_t number, uint32_t place)
{
    const struct kir_tile *tile = &e->phase->tiles[number];
    struct spirv_tile *out = &e->tiles[number];
    uint32_t shared;

    out->variables = arena_array(&e->arena, e->stride, sizeof(*out->variables));
    if (!out->variables) {
        e->build.failed = true;
        return;
    }
    if (tile->space == KIR_LANE) {
        lane_tile_declare(e, number);
        return;
    }
    out->unit = choose_unit(e, number);
    out->unit_type = make_unit_type(e, tile, out->unit);
    shared = emit_shared(e, out->unit_type, out->unit * kir_tile_bytes(tile),
                         tile->count / out->unit, place);
    for (uint32_t j = 0; j < e->stride; j++)
        out->variables[j] = shared;
}

void tile_declare(struct emit *e)
{
    const uint32_t *places = make_places(e);

    for (uint32_t i = 0; i < e->phase->n_tiles && !e->build.failed; i++)
        declare(e, i, places ? places[i] : 0);
}

/* ---- accesses ---- */

uint32_t tile_units(struct emit *e, uint32_t tile, uint32_t value, uint32_t j)
{
    const uint32_t unit = e->tiles[tile].unit, type = emit_type_at(e, value);

    if (unit == 1)
        return emit_id(e, value, j);
    return EMIT(e, SPV_SHIFT_RIGHT_LOGICAL, emit_type(e, type), emit_id(e, value, j),
                emit_const(e, type, (uint32_t)__builtin_ctz(unit)));
}

/* A tile of one element has one place, said as a constant: a compiler in a driver (NVIDIA's, 580)
 * was seen to read another where it is computed, from an array of one double. */
uint32_t tile_pointer(struct emit *e, uint32_t tile, uint32_t offset, uint32_t j)
{
    const struct spirv_tile *has = &e->tiles[tile];
    bool is_single = e->phase->tiles[tile].count == 1;

    return emit_shared_pointer(e, has->unit_type, has->variables[j],
                               is_single ? emit_u32(e, 0) : tile_units(e, tile, offset, j));
}

/* A pointer to one element; 16-bit ones only where units are single. */
static uint32_t element_pointer(struct emit *e, uint32_t tile, uint32_t offset, uint32_t j)
{
    const struct kir_tile *of = &e->phase->tiles[tile];
    uint32_t type = emit_type_at(e, offset), unit = e->tiles[tile].unit, element, part;

    if (unit == 1)
        return tile_pointer(e, tile, offset, j);
    element = emit_pointer_type(e, SPV_CLASS_WORKGROUP, emit_type(e, of->type));
    part = EMIT(e, SPV_BITWISE_AND, emit_type(e, type), emit_id(e, offset, j),
                emit_const(e, type, unit - 1));
    return EMIT(e, SPV_ACCESS_CHAIN, element, tile_pointer(e, tile, offset, j), part);
}

/* Number `i` of the words of a unit. */
static uint32_t part(struct emit *e, uint32_t words, uint32_t type, uint32_t unit, uint32_t i)
{
    return words == 1 ? unit : EMIT(e, SPV_COMPOSITE_EXTRACT, type, unit, i);
}

/* ---- elements of 16 bits ---- */

/* One by itself, as the bits and as what the tile has. */
static uint32_t half_bits(struct emit *e, uint32_t dtype, uint32_t id)
{
    uint32_t half = fragment_element_type(e, dtype), pair, zero;

    if (dtype == FRIT_BF16) {
        id = EMIT(e, SPV_F_CONVERT, emit_type(e, KIR_F32), id);
        return EMIT(e, SPV_SHIFT_RIGHT_LOGICAL, emit_type(e, KIR_I32), value_bits(e, KIR_F32, id),
                    emit_u32(e, 16));
    }
    pair = spv_type(&e->build, SPV_TYPE_VECTOR, SPV(half, 2));
    zero = spv_constant(&e->build, SPV_CONSTANT, half, SPV(0));
    return EMIT(e, SPV_BITCAST, emit_type(e, KIR_I32),
                EMIT(e, SPV_COMPOSITE_CONSTRUCT, pair, id, zero));
}

static uint32_t half_of_bits(struct emit *e, uint32_t dtype, uint32_t bits)
{
    uint32_t half = fragment_element_type(e, dtype), pair;

    if (dtype == FRIT_BF16) {
        bits = EMIT(e, SPV_SHIFT_LEFT_LOGICAL, emit_type(e, KIR_I32), bits, emit_u32(e, 16));
        return EMIT(e, SPV_F_CONVERT, half, EMIT(e, SPV_BITCAST, emit_type(e, KIR_F32), bits));
    }
    pair = spv_type(&e->build, SPV_TYPE_VECTOR, SPV(half, 2));
    return EMIT(e, SPV_COMPOSITE_EXTRACT, half, EMIT(e, SPV_BITCAST, pair, bits), 0);
}

/* The lanes from j on as one word, which `value` of the dtype has in memory. */
static uint32_t pair_word(struct emit *e, uint32_t dtype, uint32_t value, uint32_t j)
{
    uint32_t word = access_word(e, value, dtype, j);

    return word ? word : convert_pair(e, dtype, emit_id(e, value, j), emit_id(e, value, j + 1));
}

/* ---- loads ---- */

/* The element of lane `i` of a unit that was loaded. */
static uint32_t element_of(struct emit *e, const struct kir_tile *tile, uint32_t unit_of,
                           uint32_t unit, uint32_t i)
{
    uint32_t word;

    if (!is_half(tile))
        return part(e, unit_of, emit_type(e, tile->type), unit, i);
    if (unit_of == 1)
        return convert_load(e, tile->dtype, half_bits(e, tile->dtype, unit));
    word = part(e, unit_of / 2, emit_type(e, KIR_I32), unit, i / 2);
    if (i % 2)
        word = EMIT(e, SPV_SHIFT_RIGHT_LOGICAL, emit_type(e, KIR_I32), word, emit_u32(e, 16));
    return convert_load(e, tile->dtype, word);
}

/* A unit, the elements of as many instructions, of which `at` is one: the first loads it. */
static void load_together(struct emit *e, uint32_t at, uint32_t first)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const struct spirv_tile *has = &e->tiles[inst->imm];
    uint32_t id;

    if (at != first)
        return;
    id = emit_load(e, has->unit_type, tile_pointer(e, (uint32_t)inst->imm, inst->a[0], 0), 0);
    for (uint32_t i = 0; i < has->unit; i++)
        emit_set_all(e, at + i, element_of(e, &e->phase->tiles[inst->imm], has->unit, id, i));
}

/* Units of neighbouring lanes. */
static void load_units(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const struct spirv_tile *has = &e->tiles[inst->imm];

    for (uint32_t j = 0; j < e->shape.per_thread; j += has->unit) {
        uint32_t id =
            emit_load(e, has->unit_type, tile_pointer(e, (uint32_t)inst->imm, inst->a[0], j), 0);

        for (uint32_t i = 0; i < has->unit; i++)
            emit_set_id(e, at, j + i, element_of(e, &e->phase->tiles[inst->imm], has->unit, id, i));
    }
}

static void load_elements(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const struct kir_tile *tile = &e->phase->tiles[inst->imm];
    uint32_t type = is_half(tile) ? e->tiles[inst->imm].unit_type : emit_type(e, tile->type), id;
    uint32_t run = emit_run_length(e, at);

    for (uint32_t j = 0; j < e->shape.per_thread; j += run) {
        id = emit_load(e, type, element_pointer(e, (uint32_t)inst->imm, inst->a[0], j), 0);
        emit_set_run(e, at, j, element_of(e, tile, 1, id, 0));
    }
}

void tile_load(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t unit = e->tiles[inst->imm].unit;
    uint32_t first;

    if (e->phase->tiles[inst->imm].space == KIR_LANE)
        lane_tile_load(e, at);
    else if (unit > 1 && shape_tile_chunk(&e->shape, (uint32_t)inst->imm, inst->a[0]) >= unit)
        load_units(e, at);
    else if (unit > 1 && shape_tile_together(&e->shape, at, &first) == unit)
        load_together(e, at, first);
    else
        load_elements(e, at);
}

/* ---- stores ---- */

/* What a unit has from lane j on. */
static uint32_t unit_of_lanes(struct emit *e, const struct kir_inst *inst, uint32_t j)
{
    const struct kir_tile *tile = &e->phase->tiles[inst->imm];
    const struct spirv_tile *has = &e->tiles[inst->imm];
    uint32_t parts[UNIT_MAX], n = is_half(tile) ? has->unit / 2 : has->unit;

    if (!n)
        return half_of_bits(e, tile->dtype,
                            convert_store(e, tile->dtype, emit_id(e, inst->a[1], j)));
    for (uint32_t i = 0; i < n; i++)
        parts[i] = is_half(tile) ? pair_word(e, tile->dtype, inst->a[1], j + 2 * i)
                                 : emit_id(e, inst->a[1], j + i);
    return n == 1 ? parts[0]
                  : spv_make(&e->build, SPV_IN_BODY, SPV_COMPOSITE_CONSTRUCT, has->unit_type, parts,
                             n);
}

static void store_element(struct emit *e, const struct kir_inst *inst, uint32_t j)
{
    struct region region;
    bool has_condition = inst->op == KIR_tstore_if;
    uint32_t value =
        e->tiles[inst->imm].unit == 1 ? unit_of_lanes(e, inst, j) : emit_id(e, inst->a[1], j);

    if (has_condition)
        region = emit_if(e, emit_id(e, inst->a[2], j));
    emit_store(e, element_pointer(e, (uint32_t)inst->imm, inst->a[0], j), value, 0);
    if (has_condition)
        emit_end_if(e, &region);
}

void tile_store(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t unit = e->tiles[inst->imm].unit;
    bool is_wide = unit > 1 && inst->op == KIR_tstore &&
                   shape_tile_chunk(&e->shape, (uint32_t)inst->imm, inst->a[0]) >= unit;

    if (e->phase->tiles[inst->imm].space == KIR_LANE) {
        lane_tile_store(e, at);
        return;
    }
    for (uint32_t j = 0; j < e->shape.per_thread; j += is_wide ? unit : 1)
        if (is_wide)
            emit_store(e, tile_pointer(e, (uint32_t)inst->imm, inst->a[0], j),
                       unit_of_lanes(e, inst, j), 0);
        else
            store_element(e, inst, j);
}

/* ---- copies ---- */

/* A unit of a tile of words. */
static uint32_t unit_of_words(struct emit *e, const struct kir_tile *tile,
                              const struct spirv_tile *has, uint32_t *words)
{
    uint32_t n = is_half(tile) ? has->unit / 2 : has->unit;

    if (!n)
        return half_of_bits(e, tile->dtype, words[0]);
    for (uint32_t i = 0; i < n; i++)
        if (tile->type == KIR_F32 && !is_half(tile))
            words[i] = EMIT(e, SPV_BITCAST, emit_type(e, KIR_F32), words[i]);
        else if (tile->type == KIR_F64)
            words[i] = EMIT(e, SPV_BITCAST, emit_type(e, KIR_F64), words[i]);
    return n == 1 ? words[0]
                  : spv_make(&e->build, SPV_IN_BODY, SPV_COMPOSITE_CONSTRUCT, has->unit_type, words,
                             n);
}

void tile_copy(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    const uint32_t tile = kir_copy_of(inst->imm).tile;
    const struct spirv_tile *has = &e->tiles[tile];
    uint32_t words[UNIT_MAX];

    for (uint32_t j = 0; j < e->shape.per_thread; j += has->unit) {
        if (e->n_copies == EMIT_COPIES)
            tile_end_copies(e);
        access_copy(e, at, j, has->unit, words);
        e->copies[e->n_copies++] =
            (struct open_copy){.value = unit_of_words(e, &e->phase->tiles[tile], has, words),
                               .pointer = tile_pointer(e, tile, inst->a[0], j)};
    }
}

void tile_end_copies(struct emit *e)
{
    for (uint32_t i = 0; i < e->n_copies; i++)
        emit_store(e, e->copies[i].pointer, e->copies[i].value, 0);
    e->n_copies = 0;
}

void tile_batch(struct emit *e, uint32_t at)
{
    (void)e;
    (void)at;
}

void tile_wait(struct emit *e, uint32_t at)
{
    (void)at;
    tile_end_copies(e);
}
