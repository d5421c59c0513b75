/* SPDX-License-Identifier: Apache-2.0 */
/* Code for contractions.  A group has n_down places along one side; along the other its lanes, or,
 * where lanes lie along k, n_across places; tiles are in contract_tile.c.  The sum over k goes in
 * blocks, whose sums are added up: the rounding of a long sum grows slowly.  Its order follows from
 * the extents and the form alone.
 *
 * Places beyond the end read the last one instead, and are not stored; lanes beyond the end of a
 * line read nothing. */
#include "lower/contract/contract_emit.h"

#include "lower/contract/contract_blocks.h"
#include "lower/contract/contract_fragment.h"
#include "lower/contract/contract_pack.h"
#include "lower/contract/contract_pad.h"
#include "lower/contract/contract_pairs.h"
#include "lower/contract/contract_slices_emit.h"
#include "lower/contract/contract_tile.h"
#include "lower/contract/contract_turn.h"
#include "lower/contract/contract_winograd_emit.h"
#include "lower/rows/rows.h"

enum { LINE = 16 /* elements at least, of a line of a cache: vectors are aligned where it is */ };

/* ---- products ---- */

void work_set_place(const struct contract_emitter *w, uint32_t side, uint32_t place)
{
    const struct delinearizer *points = &w->side[side]->points;

    if (side == DOWN && w->c->down_by_line)
        expr_shift(w->e, points->dim[points->n - 1], place);
    else
        delinearize_set(points, w->e, place);
}

uint32_t work_element(const struct contract_emitter *w, uint32_t side, uint32_t place,
                      uint32_t mask)
{
    uint32_t mark = expr_mark(w->e), value;

    expr_mask(w->e, mask);
    if (place != KIR_NONE)
        work_set_place(w, side, place);
    value = w->c->pad.used && w->side[side] == &w->c->b ? pad_element(w, mask)
                                                        : expr_value(w->e, w->side[side]->node);
    expr_release(w->e, mark);
    return value;
}

/* Those of all places at one k per lane, which is set.  `mask`: of lanes whose k is in the sum,
 * where lanes lie along k. */
static void emit_products(const struct contract_emitter *w, uint32_t k, uint32_t mask,
                          uint32_t *sums)
{
    uint32_t across[CONTRACT_SUMS], n = w->n_places[ACROSS];

    if (w->c->in_pairs) {
        pairs_add(w, k, pack_element(w, k), sums);
        return;
    }
    for (uint32_t j = 0; j < n; j++) {
        if (w->c->pack.used) {
            across[j] = pack_element(w, k);
            continue;
        }
        across[j] = work_element(w, ACROSS, w->place[ACROSS][j], mask == KIR_NONE ? w->mask : mask);
        if (mask != KIR_NONE)
            across[j] = kir_emit(w->m, KIR_select, across[j], zero(w), mask);
    }
    for (uint32_t i = 0; i < w->n_places[DOWN]; i++) {
        uint32_t down = w->c->winograd.used ? winograd_weight(w, k, i)
                                            : work_element(w, DOWN, w->place[DOWN][i], mask);

        if (mask != KIR_NONE)
            down = kir_emit(w->m, KIR_select, down, zero(w), mask);
        for (uint32_t j = 0; j < n; j++)
            sums[i * n + j] = add_product(w, sums[i * n + j], down, across[j]);
    }
}

/* ---- sums ---- */

uint32_t work_loop(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t step,
                   uint32_t *sums)
{
    uint32_t counter = kir_for(w->m, begin, end, step);

    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = kir_phi(w->m, sums[i]);
    return counter;
}

/* Dim number `level` of k from begin to end, and all of those within. */
static void sum_dims(const struct contract_emitter *w, uint32_t level, uint32_t begin, uint32_t end,
                     uint32_t *sums)
{
    const struct delinearizer *k = &w->c->k;
    uint32_t mark = expr_mark(w->e), next[CONTRACT_SUMS];
    uint32_t counter = work_loop(w, begin, end, 1, sums);

    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    expr_set(w->e, k->dim[level], counter);
    if (level + 1 < k->n) {
        expr_hoist(w->e);
        sum_dims(w, level + 1, index_const(w, 0), k->extent[level + 1], next);
    } else {
        emit_products(w, counter, KIR_NONE, next);
    }
    expr_release(w->e, mark);
    kir_next(w->m, next, w->n);
}

/* Lanes along k, all with an element each, from begin to end. */
static void sum_lanes(const struct contract_emitter *w, uint32_t begin, uint32_t end,
                      uint32_t *sums)
{
    uint32_t mark = expr_mark(w->e), next[CONTRACT_SUMS];
    uint32_t counter = work_loop(w, begin, end, w->c->lanes, sums);

    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    expr_set(w->e, w->c->k.dim[0], op2(w, KIR_add, counter, w->lane));
    emit_products(w, counter, KIR_NONE, next);
    expr_release(w->e, mark);
    kir_next(w->m, next, w->n);
}

/* `rounds` of k at a time, from begin to end: lanes wait for each other in between, so that the
 * next lanes read what lies next to what these read before these read further rows. */
static void sum_rounds(const struct contract_emitter *w, uint32_t begin, uint32_t end,
                       uint32_t *sums)
{
    uint32_t first = work_loop(w, begin, end, w->c->rounds, sums), next[CONTRACT_SUMS];

    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    end = op2(w, KIR_smin, op2(w, KIR_add, first, index_const(w, w->c->rounds)), end);
    sum_dims(w, 0, first, end, next);
    kir_next(w->m, next, w->n);
}

static bool is_inside(const struct contract_emitter *w)
{
    return w->c->sums_inside && w->c->form == CONTRACT_LINES && w->c->k.n > 1;
}

static void sum_range(const struct contract_emitter *w, uint32_t begin, uint32_t end,
                      uint32_t *sums)
{
    if (w->c->blocks.used && w->c->form != CONTRACT_SLICES)
        blocks_range(w, begin, end, sums);
    else if (w->c->form == CONTRACT_DOTS)
        sum_lanes(w, begin, end, sums);
    else if (w->c->form == CONTRACT_SLICES)
        slices_sum(w, begin, end, sums);
    else if (w->c->rounds)
        sum_rounds(w, begin, end, sums);
    else
        sum_dims(w, is_inside(w) ? w->c->k.n - 1 : 0, begin, end, sums);
}

/* What sum_range counts, and how much of that makes a block. */
static int64_t range_of(const struct contract_emitter *w)
{
    if (w->c->in_pairs)
        return pairs_depth(w->c);
    return w->e->space.extent[w->c->k.dim[0]];
}

static int64_t block_of(const struct contract_emitter *w)
{
    int64_t inside = w->c->n_k / range_of(w);

    if (w->c->form == CONTRACT_DOTS)
        return (int64_t)SUM_BLOCK_CONTRACT * w->c->lanes;
    return inside >= SUM_BLOCK_CONTRACT ? 1 : SUM_BLOCK_CONTRACT / inside;
}

static void sum_blocks(const struct contract_emitter *w, int64_t rounds, uint32_t begin,
                       uint32_t full, uint32_t *sums)
{
    uint32_t parts[CONTRACT_SUMS], end;

    begin = work_loop(w, begin, full, (uint32_t)rounds, sums);
    end = op2(w, KIR_smin, op2(w, KIR_add, begin, index_const(w, rounds)), full);
    for (uint32_t i = 0; i < w->n; i++)
        parts[i] = zero(w);
    sum_range(w, begin, end, parts);
    for (uint32_t i = 0; i < w->n; i++)
        parts[i] = op2(w, KIR_add, sums[i], parts[i]);
    kir_next(w->m, parts, w->n);
}

static int64_t products_from(const struct contract_emitter *w, uint32_t level)
{
    int64_t n = 1;

    for (uint32_t i = level; i < w->c->k.n; i++)
        n *= w->e->space.extent[w->c->k.dim[i]];
    return n;
}

/* All of k from dim number `level` on as one block. */
static void sum_block(const struct contract_emitter *w, uint32_t level, uint32_t end,
                      uint32_t *sums)
{
    uint32_t parts[CONTRACT_SUMS];

    for (uint32_t i = 0; i < w->n; i++)
        parts[i] = zero(w);
    sum_dims(w, level, index_const(w, 0), end, parts);
    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = op2(w, KIR_add, sums[i], parts[i]);
}

/* All of k from dim number `level` on: blocks lie along the innermost dim, or are as many of the
 * inner dims as they hold. */
static void sum_inside(const struct contract_emitter *w, uint32_t level, uint32_t *sums)
{
    const struct delinearizer *k = &w->c->k;
    uint32_t end =
        level ? k->extent[level] : sched_add_index(w->e->s, w->e->space.extent[k->dim[0]]);
    uint32_t mark = expr_mark(w->e), next[CONTRACT_SUMS];

    if (products_from(w, level) <= SUM_BLOCK_CONTRACT) {
        sum_block(w, level, end, sums);
        return;
    }
    if (level + 1 == k->n) {
        sum_blocks(w, SUM_BLOCK_CONTRACT, index_const(w, 0), end, sums);
        return;
    }
    expr_set(w->e, k->dim[level], work_loop(w, index_const(w, 0), end, 1, sums));
    expr_hoist(w->e);
    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    sum_inside(w, level + 1, next);
    expr_release(w->e, mark);
    kir_next(w->m, next, w->n);
}

void work_range(const struct contract_emitter *w, uint32_t begin, uint32_t end, bool long_sum,
                int64_t rounds, uint32_t *sums)
{
    if (is_real(w) && long_sum)
        sum_blocks(w, rounds, begin, end, sums);
    else
        sum_range(w, begin, end, sums);
}

/* The last elements of k, fewer than there are lanes. */
static void sum_tail(const struct contract_emitter *w, uint32_t full, uint32_t *sums)
{
    uint32_t mark = expr_mark(w->e), k = op2(w, KIR_add, full, w->lane);

    expr_set(w->e, w->c->k.dim[0], k);
    emit_products(w, k, op2(w, KIR_lt, k, sched_add_index(w->e->s, w->c->n_k)), sums);
    expr_release(w->e, mark);
}

static void add_lanes(const struct contract_emitter *w, uint32_t *sums)
{
    for (uint32_t i = 0; i < w->n; i++) {
        for (uint32_t s = 1; s < w->c->lanes; s *= 2)
            sums[i] = op2(w, KIR_add, sums[i],
                          kir_emit_imm(w->m, KIR_exchange, s, sums[i], KIR_NONE, KIR_NONE));
        sums[i] = kir_emit(w->m, KIR_first, sums[i], KIR_NONE, KIR_NONE);
    }
}

/* The block of products that is the group's part. */
static void sum_split(const struct contract_emitter *w, uint32_t *sums)
{
    uint32_t begin = op2(w, KIR_mul, w->split, index_const(w, SUM_BLOCK_CONTRACT));
    uint32_t end = op2(w, KIR_add, begin, index_const(w, SUM_BLOCK_CONTRACT));

    sum_range(w, begin, op2(w, KIR_smin, end, sched_add_index(w->e->s, w->c->n_k)), sums);
}

static void emit_sums(const struct contract_emitter *w, uint32_t *sums)
{
    const struct contract *c = w->c;
    int64_t outer, full_n, rounds;
    uint32_t full;

    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = zero(w);
    if (c->n_k == 0)
        return;
    if (c->blocks.used) {
        blocks_sums(w, sums);
        if (c->form == CONTRACT_DOTS)
            add_lanes(w, sums);
        return;
    }
    if (c->k.n == 0) {
        emit_products(w, KIR_NONE, KIR_NONE, sums);
        return;
    }
    if (is_inside(w)) {
        sum_inside(w, 0, sums);
        return;
    }
    if (w->split != KIR_NONE) {
        sum_split(w, sums);
        return;
    }
    outer = range_of(w);
    full_n = c->form == CONTRACT_DOTS ? outer / c->lanes * c->lanes : outer;
    rounds = block_of(w);
    full = sched_add_index(w->e->s, full_n);
    work_range(w, index_const(w, 0), full, full_n > rounds, rounds, sums);
    if (full_n < outer)
        sum_tail(w, full, sums);
    if (c->form == CONTRACT_DOTS)
        add_lanes(w, sums);
}

/* ---- results ---- */

uint32_t work_add_bias(const struct contract_emitter *w, uint32_t sum)
{
    return w->c->bias == BLOCK_NONE ? sum : op2(w, KIR_add, sum, expr_value(w->e, w->c->bias));
}

void work_store(const struct contract_emitter *w, uint32_t sum)
{
    const struct expr_node *result = &w->e->nodes[w->c->result];
    uint32_t dtype = w->e->s->block->values[result->value].dtype;

    expr_bind(w->e, w->c->result, lower_fit(w->m, dtype, sum));
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_emit_store(w->e, i);
}

/* One sum, at its places. */
static void emit_result(const struct contract_emitter *w, uint32_t i, uint32_t j, uint32_t sum)
{
    uint32_t mark = expr_mark(w->e), ok[2] = {w->ok[DOWN][i], w->ok[ACROSS][j]}, mask = w->mask;

    work_set_place(w, DOWN, w->place[DOWN][i]);
    if (w->place[ACROSS][j] != KIR_NONE)
        work_set_place(w, ACROSS, w->place[ACROSS][j]);
    if (w->c->blocks.used)
        blocks_set_place(w, j);
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        if (ok[s] != KIR_NONE)
            kir_if(w->m, ok[s]);
    if (w->c->form == CONTRACT_DOTS)
        mask = op2(w, KIR_eq, w->lane, index_const(w, 0));
    if (w->c->winograd.used) {
        winograd_store(w, w->place[DOWN][i], sum);
    } else if (w->split == KIR_NONE) {
        expr_mask(w->e, mask);
        work_finish(w, sum);
    } else {
        slices_store(w, (const uint32_t[2]){w->place[DOWN][i], w->at[ACROSS]}, mask, sum);
    }
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        if (ok[s] != KIR_NONE)
            kir_end(w->m);
    expr_release(w->e, mark);
}

/* ---- the phase ---- */

uint32_t work_part(const struct contract_emitter *w, uint32_t *number, int64_t n)
{
    struct sched_divisor by;
    uint32_t whole = *number;

    if (n == 1)
        return index_const(w, 0);
    by = sched_add_divisor(w->e->s, n);
    *number = sched_divide(w->e->s, &by, whole);
    return op2(w, KIR_sub, whole, op2(w, KIR_mul, *number, sched_add_index(w->e->s, n)));
}

uint32_t work_begin(struct contract_emitter *w, uint32_t lanes)
{
    kir_phase(w->m, lanes);
    expr_phase(w->e);
    delinearize_phase(&w->c->both, w->e);
    delinearize_phase(&w->c->across->points, w->e);
    w->lane = sched_wide(w->e->s, kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    return sched_wide(w->e->s, kir_emit_imm(w->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
}

/* The tiles of a line that have one place less than others: the last ones. */
static int64_t short_tiles(const struct contract *c)
{
    const struct delinearizer *points = &c->down->points;
    int64_t line;

    if (!c->down_by_line)
        return 0;
    line = c->e.space.extent[points->dim[points->n - 1]];
    return tiles_of(line, c->n_down) * c->n_down - line;
}

/* Finds the tile's place on its line, of which there is the number in *tile then.  Returns whether
 * the tile is a short one; KIR_NONE: none is. */
static uint32_t begin_line(struct contract_emitter *w, uint32_t *tile)
{
    const struct delinearizer *points = &w->c->down->points;
    int64_t tiles = tiles_of(w->e->space.extent[points->dim[points->n - 1]], w->c->n_down);
    uint32_t number = work_part(w, tile, tiles), zero_index = index_const(w, 0), after;

    w->place_begin = op2(w, KIR_mul, number, index_const(w, w->c->n_down));
    if (!short_tiles(w->c))
        return KIR_NONE;
    after = op2(w, KIR_sub, number, sched_add_index(w->e->s, tiles - short_tiles(w->c)));
    w->place_begin = op2(w, KIR_sub, w->place_begin, op2(w, KIR_smax, after, zero_index));
    return op2(w, KIR_le, zero_index, after);
}

/* The group's places on line number `line`. */
static void set_places_on_line(struct contract_emitter *w, uint32_t line)
{
    struct delinearizer around = w->c->down->points;
    uint32_t dim = around.dim[--around.n];

    delinearize_set(&around, w->e, line);
    w->before_line = expr_mark(w->e);
    expr_set(w->e, dim, w->place_begin);
    for (uint32_t i = 0; i < w->n_places[DOWN]; i++) {
        w->place[DOWN][i] = i;
        w->ok[DOWN][i] = KIR_NONE;
    }
}

/* The group's places from tile * n on, n of them. */
static void set_places(struct contract_emitter *w, uint32_t side, uint32_t tile)
{
    uint32_t n = w->n_places[side], last = KIR_NONE, end = KIR_NONE, *places = w->place[side];
    uint32_t first = op2(w, KIR_mul, tile, index_const(w, n));
    int64_t count = w->side[side]->points.count;

    if (count % n) {
        last = sched_add_index(w->e->s, count - 1);
        end = sched_add_index(w->e->s, count);
    }
    for (uint32_t i = 0; i < n; i++) {
        places[i] = i ? op2(w, KIR_add, first, index_const(w, i)) : first;
        w->ok[side][i] = KIR_NONE;
        if (last == KIR_NONE || i == 0)
            continue;
        w->ok[side][i] = op2(w, KIR_lt, places[i], end);
        places[i] = op2(w, KIR_smin, places[i], last);
    }
}

/* Each lane's place in the line. */
static void set_line(struct contract_emitter *w, uint32_t tile)
{
    const struct delinearizer *points = &w->side[ACROSS]->points;
    uint32_t place;

    w->line_begin = op2(w, KIR_mul, tile, index_const(w, w->c->lanes));
    place = op2(w, KIR_add, w->line_begin, w->lane);
    if (!w->c->winograd.used) {
        if (points->count % w->c->lanes)
            w->mask = op2(w, KIR_lt, place, sched_add_index(w->e->s, points->count));
        delinearize_set(points, w->e, place);
    }
    w->at[ACROSS] = place;
    for (uint32_t j = 0; j < w->n_places[ACROSS]; j++)
        w->place[ACROSS][j] = w->ok[ACROSS][j] = KIR_NONE;
}

static void set_group(struct contract_emitter *w, uint32_t down, uint32_t across)
{
    if (w->c->down_by_line)
        set_places_on_line(w, down);
    else
        set_places(w, DOWN, down);
    if (w->c->form == CONTRACT_SLICES) {
        slices_begin(w, down, across);
        return;
    }
    if (w->c->form == CONTRACT_DOTS)
        set_places(w, ACROSS, across);
    else
        set_line(w, across);
}

int64_t contract_down_tiles(const struct contract *c)
{
    const struct delinearizer *points = &c->down->points;
    int64_t line = points->count;

    if (c->down_by_line)
        line = c->e.space.extent[points->dim[points->n - 1]];
    return points->count / line * tiles_of(line, contract_height(c));
}

uint32_t contract_height(const struct contract *c)
{
    return c->form == CONTRACT_TILES       ? c->tiles.m
           : c->form == CONTRACT_FRAGMENTS ? c->fragments.tile[DOWN]
                                           : c->n_down;
}

uint32_t contract_width(const struct contract *c)
{
    return c->form == CONTRACT_TILES       ? c->tiles.n
           : c->form == CONTRACT_FRAGMENTS ? c->fragments.tile[ACROSS]
           : c->form == CONTRACT_SLICES    ? contract_points_across(c) * c->slices.wide
           : c->form == CONTRACT_DOTS      ? c->n_across
                                           : c->lanes;
}

enum kir_type contract_type(const struct contract *c)
{
    return kir_type_of(c->e.s->block->values[c->e.nodes[c->result].value].dtype);
}

uint32_t contract_dtype(const struct contract *c)
{
    static const uint32_t dtypes[KIR_TYPES] = {
        [KIR_I32] = FRIT_I32, [KIR_I64] = FRIT_I64, [KIR_F32] = FRIT_F32, [KIR_F64] = FRIT_F64};

    return dtypes[contract_type(c)];
}

void contract_set_grid(const struct contract *c, int64_t groups)
{
    uint32_t *grid = c->e.s->numbers->grid[c->e.s->module->n_phases];

    grid[0] = (uint32_t)groups;
    grid[1] = grid[2] = 1;
}

int64_t contract_reserve(struct contract *c, int64_t count, uint32_t *arg)
{
    struct contract_workspace *workspace = &c->workspace;
    int64_t first = workspace->count;

    if (!first)
        workspace->arg = kir_arg(c->e.s->module, contract_dtype(c), KIR_READ | KIR_WRITE);
    workspace->count += tiles_of(count, LINE) * LINE;
    c->e.s->numbers->workspace_bytes = frit_storage_bytes(contract_dtype(c), workspace->count);
    *arg = workspace->arg;
    return first;
}

/* Parameters of the dims of k. */
static void begin_k(struct contract_emitter *w)
{
    struct delinearizer *k = &w->c->k;

    if (w->c->form == CONTRACT_TILES || (w->c->blocks.used && w->c->form == CONTRACT_SLICES)) {
        delinearize_phase(k, w->e);
        return;
    }
    for (uint32_t i = 1; i < k->n; i++)
        k->extent[i] = sched_add_index(w->e->s, w->e->space.extent[k->dim[i]]);
}

static void emit_tile(struct contract_emitter *w)
{
    const struct contract *c = w->c;
    uint32_t sums[CONTRACT_SUMS] = {0};

    if (c->in_pairs)
        pairs_begin(w);
    if (c->form == CONTRACT_SLICES) {
        slices_emit(w);
        return;
    }
    if (w->split != KIR_NONE)
        slices_reserve(w);
    emit_sums(w, sums);
    if (c->turns) {
        turn_results(w, sums);
        return;
    }
    for (uint32_t i = 0; i < w->n_places[DOWN]; i++)
        for (uint32_t j = 0; j < c->n_across; j++)
            emit_result(w, i, j, sums[i * c->n_across + j]);
    if (w->split != KIR_NONE)
        slices_join(w);
}

/* Tiles of a line that have one place less have code of their own: nothing idles, and no place is
 * computed twice. */
static void emit_tiles(struct contract_emitter *w, uint32_t down, uint32_t across)
{
    uint32_t is_short = w->c->down_by_line ? begin_line(w, &down) : KIR_NONE;
    uint32_t begin = expr_mark(w->e);

    set_group(w, down, across);
    expr_hoist(w->e);
    if (is_short == KIR_NONE) {
        emit_tile(w);
        return;
    }
    kir_if(w->m, kir_emit(w->m, KIR_not, is_short, KIR_NONE, KIR_NONE));
    emit_tile(w);
    kir_end(w->m);
    expr_release(w->e, begin);
    w->n_places[DOWN]--;
    w->n = w->n_places[DOWN] * w->n_places[ACROSS];
    set_group(w, down, across);
    expr_hoist(w->e);
    kir_if(w->m, is_short);
    emit_tile(w);
    kir_end(w->m);
}

void contract_emit(struct contract *c)
{
    struct contract_emitter w = {.c = c,
                                 .e = &c->e,
                                 .m = c->e.s->module,
                                 .mask = KIR_NONE,
                                 .split = KIR_NONE,
                                 .n = c->n_down * c->n_across,
                                 .side = {c->down, c->across},
                                 .n_places = {c->n_down, c->n_across}};
    uint32_t group, down, across;

    w.type = contract_type(c);
    if (c->form == CONTRACT_FRAGMENTS) {
        fragment_emit(&w);
        return;
    }
    group = work_begin(&w, c->lanes);
    delinearize_phase(&c->down->points, w.e);
    begin_k(&w);
    if (c->across_first) {
        across = work_part(&w, &group, tiles_of(c->across->points.count, contract_width(c)));
        w.panel = pack_first(&w, across);
        down = work_part(&w, &group, contract_down_tiles(c));
    } else {
        down = work_part(&w, &group, contract_down_tiles(c));
        if (c->pack.used)
            w.panel = pack_first(&w, group);
        across = work_part(&w, &group, tiles_of(c->across->points.count, contract_width(c)));
    }
    if (c->slices.n_splits > 1) {
        w.both = work_part(&w, &group, c->both.count);
        w.split = group;
        group = w.both;
    }
    w.both = group;
    if (c->winograd.used)
        w.weights = winograd_first(&w, down);
    delinearize_set(&c->both, w.e, group);
    if (c->form == CONTRACT_TILES) {
        tile_emit(&w, down, across);
        return;
    }
    emit_tiles(&w, down, across);
}
