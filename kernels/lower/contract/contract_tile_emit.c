/* SPDX-License-Identifier: Apache-2.0 */
/* Code for contractions through tiles of the group.
 *
 * In each step tiles.depth of k lie in a tile for each side.  There are two buffers of each tile: a
 * step first requests the elements of the next step from memory, then multiplies its own, then
 * stores what it requested into the other buffer.
 *
 * A lane's rows are neighbours in a tile, and so are the columns of neighbouring lanes: emitters
 * make wide accesses of both.
 *
 * Long sums are added up in blocks.  The sums of the blocks before are needed once a block and lie
 * in a tile too, so that the registers have room for two or more groups of a multiprocessor.  From
 * there results are made in a loop over rows: the code of what follows a product can be long. */
#include "lower/contract/contract_tile.h"

#include "lower/contract/contract_slices_emit.h"
#include "lower/contract/contract_tile_stage.h"

/* ---- sums ---- */

/* A lane's `n` operands of a side from `first` on, `step` apart. */
static void load_operands(const struct tile_emitter *t, const struct tile_side *s, uint32_t first,
                          uint32_t step, uint32_t n, uint32_t *out)
{
    uint32_t at[CONTRACT_SUMS];

    for (uint32_t i = 0; i < n; i++)
        at[i] = op2(t->w, KIR_add, first, tile_i32(t, i * step));
    for (uint32_t i = 0; i < n; i++)
        out[i] = kir_emit_as(t->w->m, KIR_tload, t->w->type, s->tile, at[i], KIR_NONE, KIR_NONE);
}

/* The products of `n` places of k from those on whose operands begin at first[]. */
static void add_places(const struct tile_emitter *t, const uint32_t *first, uint32_t n,
                       uint32_t *sums)
{
    const struct contract *c = t->w->c;
    const struct tile_side *a = &t->side[DOWN], *b = &t->side[ACROSS];
    uint32_t down[CONTRACT_SUMS], across[CONTRACT_SUMS];

    for (uint32_t k = 0; k < n; k++) {
        load_operands(t, a, tile_plus(t, first[DOWN], k * a->stride), 1, c->n_down, down);
        load_operands(t, b, tile_plus(t, first[ACROSS], k * b->stride), tile_part_count(&b->sums),
                      c->n_across, across);
        for (uint32_t i = 0; i < t->w->n; i++)
            sums[i] = add_product(t->w, sums[i], down[i / c->n_across], across[i % c->n_across]);
    }
}

/* Those of a step. */
static void add_step(const struct tile_emitter *t, uint32_t buffer, uint32_t *sums)
{
    const uint32_t depth = t->w->c->tiles.depth, unroll = t->w->c->tiles.unroll;
    uint32_t first[2], at[2], next[CONTRACT_SUMS], k;

    for (uint32_t s = DOWN; s <= ACROSS; s++)
        first[s] = tile_in_buffer(t, &t->side[s], buffer, t->side[s].from);
    if (depth <= unroll) {
        add_places(t, first, depth, sums);
        return;
    }
    k = work_loop(t->w, tile_i32(t, 0), tile_i32(t, depth), unroll, sums);
    for (uint32_t i = 0; i < t->w->n; i++)
        next[i] = sums[i];
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        at[s] = op2(t->w, KIR_add, first[s], op2(t->w, KIR_mul, k, tile_i32(t, t->side[s].stride)));
    add_places(t, at, unroll, next);
    kir_next(t->w->m, next, t->w->n);
}

/* All steps from begin to end. */
static void sum_steps(const struct tile_emitter *t, uint32_t begin, uint32_t end, uint32_t *sums)
{
    const uint32_t depth = t->w->c->tiles.depth;
    uint32_t next[CONTRACT_SUMS], k = work_loop(t->w, begin, end, depth, sums), ahead, buffer;
    struct step_values values;

    for (uint32_t i = 0; i < t->w->n; i++)
        next[i] = sums[i];
    ahead = tile_plus(t, k, depth);
    if (t->last_step != KIR_NONE)
        ahead = op2(t->w, KIR_smin, ahead, t->last_step);
    tile_load_step(t, ahead, &values);
    buffer = tile_buffer(t, k);
    add_step(t, buffer, next);
    tile_store_step(t, op2(t->w, KIR_xor, buffer, tile_i32(t, 1)), &values);
    kir_next(t->w->m, next, t->w->n);
}

/* ---- sums in a tile ---- */

/* Declares the tile of sums: of the group where that has the memory, a row for each of a lane's
 * sums; else one of each lane, addressed from a parameter that is 0, which keeps compilers from
 * holding it in registers. */
static void declare_totals(struct tile_emitter *t)
{
    const struct contract *c = t->w->c;

    if (tile_has_totals(c)) {
        t->totals = kir_tile(t->w->m, KIR_GROUP, t->w->type, t->w->n * c->lanes);
        t->totals_at = t->lane;
        t->totals_step = c->lanes;
    } else {
        t->totals = kir_tile(t->w->m, KIR_LANE, t->w->type, t->w->n);
        t->totals_at = sched_add_param(t->w->e->s, KIR_I32, 0);
        t->totals_step = 1;
    }
}

/* The tile element of sum number first + i; `first`: I32, KIR_NONE: 0. */
static uint32_t total_at(const struct tile_emitter *t, uint32_t first, uint32_t i)
{
    uint32_t at = t->totals_at;

    if (first != KIR_NONE)
        at = op2(t->w, KIR_add, at, op2(t->w, KIR_mul, first, tile_i32(t, t->totals_step)));
    return tile_plus(t, at, t->totals_step * i);
}

static void put_total(const struct tile_emitter *t, uint32_t at, uint32_t value)
{
    kir_emit_imm(t->w->m, KIR_tstore, t->totals, at, value, KIR_NONE);
}

static uint32_t get_total(const struct tile_emitter *t, uint32_t at)
{
    return kir_emit_as(t->w->m, KIR_tload, t->w->type, t->totals, at, KIR_NONE, KIR_NONE);
}

/* By blocks, whose sums are added up. */
static void sum_blocks(const struct tile_emitter *t, uint32_t *sums)
{
    uint32_t begin, end;

    begin = kir_for(t->w->m, tile_i32(t, 0), tile_i32(t, t->w->n), 1);
    put_total(t, total_at(t, begin, 0), sums[0]);
    kir_next(t->w->m, NULL, 0);
    begin = kir_for(t->w->m, t->part_begin, t->part_end, SUM_BLOCK_CONTRACT);
    end = op2(t->w, KIR_smin, tile_plus(t, begin, SUM_BLOCK_CONTRACT), t->part_end);
    sum_steps(t, begin, end, sums);
    for (uint32_t i = 0; i < t->w->n; i++) {
        uint32_t at = total_at(t, KIR_NONE, i);

        put_total(t, at, op2(t->w, KIR_add, get_total(t, at), sums[i]));
    }
    kir_next(t->w->m, NULL, 0);
}

/* ---- the phase ---- */

enum { NEAR_ROWS = 4, NEAR_COLUMNS = 8 }; /* of threads that are issued together */

/* Threads that are issued together lie in a rectangle, so that they load few operands. */
static void arrange_lanes(struct tile_emitter *t)
{
    const struct contract *c = t->w->c;
    uint32_t rows = c->tiles.m / c->n_down, columns = c->tiles.n / c->n_across;
    uint32_t wide = NEAR_COLUMNS * c->tiles.thread_lanes, high = NEAR_ROWS;

    wide = wide < columns ? wide : columns;
    high = high < rows && wide < columns ? high : rows;
    t->side[ACROSS].sums = (struct lane_part){1, wide, wide * high, columns / wide};
    t->side[DOWN].sums = (struct lane_part){wide, high, columns * high, rows / high};
}

/* The group's part of k. */
static void begin_part(struct tile_emitter *t)
{
    const struct contract *c = t->w->c;
    uint32_t size;

    t->part_begin = index_const(t->w, 0);
    t->part_end = t->k_end;
    if (t->w->split == KIR_NONE)
        return;
    size = op2(t->w, KIR_mul, sched_add_index(t->w->e->s, c->tiles.part / (2 * c->tiles.depth)),
               index_const(t->w, 2 * c->tiles.depth)); /* so a part begins in the first buffer */
    t->part_begin = op2(t->w, KIR_mul, t->w->split, size);
    t->part_end = op2(t->w, KIR_smin, op2(t->w, KIR_add, t->part_begin, size), t->k_end);
}

static void begin(struct tile_emitter *t, uint32_t down, uint32_t across)
{
    const struct contract *c = t->w->c;
    int64_t steps = c->n_k / c->tiles.depth;

    t->lane = kir_emit(t->w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    t->k_end = sched_add_index(t->w->e->s, c->n_k);
    t->last_step = KIR_NONE;
    if (c->n_k % c->tiles.depth == 0)
        t->last_step = op2(t->w, KIR_mul, sched_add_index(t->w->e->s, steps - 1),
                           index_const(t->w, c->tiles.depth));
    begin_part(t);
    tile_begin_side(t, DOWN, down, c->tiles.m);
    tile_begin_side(t, ACROSS, across, c->tiles.n);
    arrange_lanes(t);
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        t->side[s].from = tile_part_number(t, &t->side[s].sums, 1);
    t->side[DOWN].from = op2(t->w, KIR_mul, t->side[DOWN].from, tile_i32(t, c->n_down));
}

static void sum_all(struct tile_emitter *t, uint32_t *sums)
{
    struct expr *e = t->w->e;
    uint32_t mark = expr_mark(e);
    struct step_values values;

    tile_begin_steps(t);
    tile_load_step(t, t->part_begin, &values);
    tile_store_step(t, tile_i32(t, 0), &values);
    declare_totals(t);
    if (is_real(t->w) && t->w->c->tiles.part > SUM_BLOCK_CONTRACT) {
        sum_blocks(t, sums);
    } else {
        sum_steps(t, t->part_begin, t->part_end, sums);
        for (uint32_t i = 0; i < t->w->n; i++)
            put_total(t, total_at(t, KIR_NONE, i), sums[i]);
    }
    expr_release(t->w->e, mark);
}

/* The results of row number `i` of the lane, I32. */
static void emit_row(const struct tile_emitter *t, uint32_t i)
{
    const struct contract *c = t->w->c;
    const struct tile_side *a = &t->side[DOWN], *b = &t->side[ACROSS];
    struct expr *e = t->w->e;
    uint32_t row = op2(t->w, KIR_add, a->corner, tile_index(t, op2(t->w, KIR_add, a->from, i)));
    uint32_t ok = KIR_NONE, first_sum = op2(t->w, KIR_mul, i, tile_i32(t, c->n_across));

    if (a->side->points.count % a->places)
        ok = op2(t->w, KIR_lt, row, sched_add_index(e->s, a->side->points.count));
    delinearize_set(&a->side->points, e, row);
    expr_hoist(e);
    for (uint32_t j = 0; j < c->n_across; j++) {
        uint32_t mark = expr_mark(e), mask = ok;
        uint32_t first = tile_plus(t, b->corner, j * tile_part_count(&b->sums));
        uint32_t places[2] = {row, tile_chunk_number(t, first, &b->sums, 1)};

        if (b->side->points.count % b->places)
            mask = tile_and(t, mask, tile_is_below(t, first, &b->sums, b->side->points.count));
        tile_set_place(t, b->side, first, &b->sums);
        expr_mask(e, mask);
        slices_store(t->w, places, mask, get_total(t, total_at(t, first_sum, j)));
        expr_release(e, mark);
    }
}

void tile_emit(struct contract_emitter *w, uint32_t down, uint32_t across)
{
    struct tile_emitter t = {.w = w};
    uint32_t sums[CONTRACT_SUMS], row, mark;

    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = zero(w);
    if (w->split != KIR_NONE)
        slices_reserve(w);
    begin(&t, down, across);
    sum_all(&t, sums);
    mark = expr_mark(w->e);
    row = kir_for(w->m, tile_i32(&t, 0), tile_i32(&t, w->c->n_down), 1);
    emit_row(&t, row);
    kir_next(w->m, NULL, 0);
    expr_release(w->e, mark);
    if (w->split != KIR_NONE)
        slices_join(w);
}
