/* SPDX-License-Identifier: Apache-2.0 */
/* Products of fragments, for random modules: of small whole numbers, so that no order of sums and
 * no rounding shows. */
#include "emit/random_gen.h"

enum { TEAM = 32, WIDE_TEAM = 128, SIDE = 16, WIDE = 64, ELEMENTS = SIDE * SIDE };

static uint32_t op2(struct gen *g, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(g->module, op, a, b, KIR_NONE);
}

static uint32_t number(struct gen *g, int64_t value)
{
    return kir_const_i(g->module, KIR_I32, value);
}

static void barrier(struct gen *g)
{
    kir_emit(g->module, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* -3 .. 4 */
static uint32_t small_number(struct gen *g)
{
    uint32_t low = op2(g, KIR_and, gen_pick(g, KIR_I32), number(g, 7));

    return kir_unary(g->module, KIR_f32, op2(g, KIR_sub, low, number(g, 3)));
}

/* A tile of small numbers. */
static uint32_t filled_tile(struct gen *g, uint32_t dtype, uint32_t count)
{
    uint32_t tile = kir_tile_of(g->module, KIR_GROUP, dtype, count);

    for (uint32_t i = 0; i < count; i += g->lanes)
        kir_emit_imm(g->module, KIR_tstore, tile, op2(g, KIR_add, g->lane, number(g, i)),
                     small_number(g), KIR_NONE);
    return tile;
}

static void read_tile(struct gen *g, uint32_t tile, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += g->lanes)
        gen_push(g, kir_emit_as(g->module, KIR_tload, KIR_F32, tile,
                                op2(g, KIR_add, g->lane, number(g, i)), KIR_NONE, KIR_NONE));
}

static uint64_t place(struct gen *g, uint32_t fragment, uint32_t tile)
{
    return kir_fragment_imm(&(struct kir_fragment_place){
        .fragment = fragment, .is_tile = true, .place = tile, .by_columns = gen_chance(g, 50)});
}

/* max(element - row, -column) */
static void emit_each(struct gen *g, uint32_t sums)
{
    struct kir_module *m = g->module;
    uint32_t element = kir_each(m, sums), row, column;

    row = kir_unary(m, KIR_f32, kir_emit(m, KIR_row, KIR_NONE, KIR_NONE, KIR_NONE));
    column = kir_unary(m, KIR_f32, kir_emit(m, KIR_column, KIR_NONE, KIR_NONE, KIR_NONE));
    kir_done(m, op2(g, KIR_fmax, op2(g, KIR_sub, element, row), kir_unary(m, KIR_neg, column)));
}

/* What a row folds to, and the sums less that, as a factor of another product. */
static void emit_rows(struct gen *g, const uint32_t f[3], uint32_t rows)
{
    struct kir_module *m = g->module;
    uint32_t element, peer;

    kir_emit_imm(m, gen_chance(g, 50) ? KIR_mlargest : KIR_mtotal, kir_pair(rows, f[0]), KIR_NONE,
                 KIR_NONE, KIR_NONE);
    element = kir_each(m, f[0]);
    peer = kir_emit_as(m, KIR_peer, KIR_F32, rows, KIR_NONE, KIR_NONE, KIR_NONE);
    kir_done(m, op2(g, KIR_sub, element, peer));
    kir_emit_imm(m, KIR_mnarrow, kir_pair(f[1], f[0]), KIR_NONE, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_mma, kir_product(rows, f[1], f[2]), KIR_NONE, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_mlargest, kir_pair(f[0], rows), KIR_NONE, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_mscale, kir_pair(f[0], rows), KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Copies of an argument's elements to a tile, which other lanes read then. */
static void emit_copies(struct gen *g)
{
    struct kir_module *m = g->module;
    const uint32_t dtype = m->args[0].dtype;
    struct kir_copy copy;
    uint32_t inside = op2(g, KIR_lt, g->base, g->limit), at;

    if (frit_storage_bytes(dtype, 1) < 4 && !kir_is_16_bit_float(dtype))
        return;
    copy = (struct kir_copy){kir_tile_of(m, KIR_GROUP, dtype, g->lanes), 0};
    at = gen_chance(g, 50) ? g->lane : op2(g, KIR_xor, g->lane, number(g, gen_below(g, g->lanes)));
    kir_emit_imm(m, KIR_tcopy, kir_copy_imm(&copy), at, g->base, inside);
    kir_emit(m, KIR_tbatch, KIR_NONE, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_twait, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    barrier(g);
    at = op2(g, KIR_sub, number(g, g->lanes - 1), g->lane);
    gen_push(g, kir_emit_as(m, KIR_tload, kir_type_of(dtype), copy.tile, at, KIR_NONE, KIR_NONE));
}

/* Of 64 by 16 elements, from blocks; four teams of the others hold them together. */
static void gen_wide(struct gen *g)
{
    struct kir_module *m = g->module;
    const uint32_t dtype = gen_chance(g, 50) ? FRIT_F16 : FRIT_BF16, groups = g->lanes / WIDE_TEAM;
    const struct kir_fragment parts[] = {{KIR_SUM, FRIT_F32, WIDE, SIDE},
                                         {KIR_LEFT, dtype, WIDE, SIDE},
                                         {KIR_RIGHT, dtype, SIDE, SIDE}};
    uint32_t f[3], tile[3], team, first;

    m->phases[m->n_phases - 1].team = WIDE_TEAM;
    for (uint32_t i = 0; i < 3; i++)
        f[i] = kir_fragment(m, &parts[i]);
    tile[0] = kir_tile(m, KIR_GROUP, KIR_F32, groups * WIDE * SIDE);
    for (uint32_t i = 1; i < 3; i++)
        tile[i] = filled_tile(g, dtype, groups * WIDE * WIDE);
    barrier(g);
    team = op2(g, KIR_shr, g->lane, number(g, 7));
    if (g->index == KIR_I64)
        team = kir_unary(m, KIR_i64, team);
    first = op2(g, KIR_mul, team, gen_index(g, WIDE * WIDE));
    kir_emit_imm(m, KIR_mfill, f[0], kir_const_f(m, KIR_F32, gen_below(g, 5)), KIR_NONE, KIR_NONE);
    for (uint32_t i = 1; i < 3; i++) {
        const struct kir_fragment_place from = {f[i], true, tile[i], gen_chance(g, 50),
                                                .in_blocks = true};

        kir_emit_imm(m, KIR_mload, kir_fragment_imm(&from), first, gen_index(g, WIDE * SIDE),
                     KIR_NONE);
    }
    kir_for(m, number(g, 0), number(g, 1 + gen_below(g, 3)), 1);
    kir_emit_imm(m, KIR_mma, kir_product(f[0], f[1], f[2]), KIR_NONE, KIR_NONE, KIR_NONE);
    kir_next(m, NULL, 0);
    if (gen_chance(g, 50))
        emit_each(g, f[0]);
    first = op2(g, KIR_mul, team, gen_index(g, WIDE * SIDE));
    kir_emit_imm(m, KIR_mstore,
                 kir_fragment_imm(&(struct kir_fragment_place){
                     .fragment = f[0], .is_tile = true, .place = tile[0]}),
                 first, gen_index(g, SIDE), KIR_NONE);
    barrier(g);
    read_tile(g, tile[0], groups * WIDE * SIDE);
}

void gen_product(struct gen *g)
{
    struct kir_module *m = g->module;
    const uint32_t dtype = gen_chance(g, 50) ? FRIT_F16 : FRIT_BF16;
    const struct kir_fragment sums = {KIR_SUM, FRIT_F32, SIDE, SIDE},
                              left = {KIR_LEFT, dtype, SIDE, SIDE},
                              right = {KIR_RIGHT, dtype, SIDE, SIDE};
    uint32_t first, side, f[3], tile[3];

    emit_copies(g);
    if (g->lanes < TEAM)
        return;
    if (g->lanes >= WIDE_TEAM && gen_chance(g, 50)) {
        gen_wide(g);
        return;
    }
    m->phases[m->n_phases - 1].team = TEAM;
    f[0] = kir_fragment(m, &sums);
    f[1] = kir_fragment(m, &left);
    f[2] = kir_fragment(m, &right);
    tile[0] = kir_tile(m, KIR_GROUP, KIR_F32, g->lanes / TEAM * ELEMENTS);
    tile[1] = filled_tile(g, dtype, g->lanes / TEAM * ELEMENTS);
    tile[2] = filled_tile(g, dtype, g->lanes / TEAM * ELEMENTS);
    barrier(g);
    first = op2(g, KIR_mul, op2(g, KIR_shr, g->lane, number(g, 5)), number(g, ELEMENTS));
    if (g->index == KIR_I64)
        first = kir_unary(m, KIR_i64, first);
    side = gen_index(g, SIDE);
    kir_emit_imm(m, KIR_mfill, f[0], kir_const_f(m, KIR_F32, gen_below(g, 5)), KIR_NONE, KIR_NONE);
    for (uint32_t i = 1; i < 3; i++)
        kir_emit_imm(m, KIR_mload, place(g, f[i], tile[i]), first, side, KIR_NONE);
    kir_for(m, number(g, 0), number(g, 1 + gen_below(g, 3)), 1);
    kir_emit_imm(m, KIR_mma, kir_product(f[0], f[1], f[2]), KIR_NONE, KIR_NONE, KIR_NONE);
    kir_next(m, NULL, 0);
    if (gen_chance(g, 50))
        emit_each(g, f[0]);
    if (gen_chance(g, 50))
        emit_rows(g, f, kir_fragment(m, &sums));
    kir_emit_imm(m, KIR_mstore, place(g, f[0], tile[0]), first, side, KIR_NONE);
    barrier(g);
    read_tile(g, tile[0], g->lanes / TEAM * ELEMENTS);
}
