/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions through tiles of the group.  CONTRACT_EDGE lanes lie along each side, and a lane's
 * places are CONTRACT_EDGE apart, so that neighbouring lanes have neighbouring places.  For each
 * CONTRACT_DEPTH of k all lanes together put the elements of both sides into tiles, [k][place],
 * with what was done to them before, and 0 where they are beyond an end; then each adds its
 * products. */
#include "lower/contract/contract_tile.h"

#include "lower/contract/contract_emit.h"

static uint32_t shift_of(uint32_t n)
{
    uint32_t shift = 0;

    while (1u << shift < n)
        shift++;
    return shift;
}

/* A number's rest and quotient by a power of two. */
static uint32_t low_part(const struct contract_emitter *w, uint32_t number, uint32_t n)
{
    return op2(w, KIR_and, number, index_const(w, n - 1));
}

static uint32_t high_part(const struct contract_emitter *w, uint32_t number, uint32_t n)
{
    return op2(w, KIR_shr, number, index_const(w, shift_of(n)));
}

void tile_begin(struct contract_emitter *w, uint32_t down, uint32_t across)
{
    const uint32_t tiles[2] = {down, across}, edge = CONTRACT_EDGE;

    w->at[DOWN] = high_part(w, w->lane, edge);
    w->at[ACROSS] = low_part(w, w->lane, edge);
    w->k_end = sched_add_index(w->e->s, w->c->n_k);
    for (uint32_t s = DOWN; s <= ACROSS; s++) {
        uint32_t places = w->n_places[s] * edge;

        w->tile[s] = kir_tile(w->m, KIR_GROUP, w->type, places * CONTRACT_DEPTH);
        w->end[s] = sched_add_index(w->e->s, w->side[s]->points.count);
        w->corner[s] = op2(w, KIR_mul, tiles[s], index_const(w, places));
        for (uint32_t i = 0; i < w->n_places[s]; i++) {
            uint32_t at = i ? op2(w, KIR_add, w->at[s], index_const(w, i * edge)) : w->at[s];

            w->place[s][i] = op2(w, KIR_add, w->corner[s], at);
            w->ok[s][i] = w->side[s]->points.count % places
                              ? op2(w, KIR_lt, w->place[s][i], w->end[s])
                              : KIR_NONE;
        }
    }
}

/* The element of a side at a place and a k. */
static uint32_t element(const struct contract_emitter *w, uint32_t s, uint32_t place, uint32_t k)
{
    uint32_t mark = expr_mark(w->e), inside = op2(w, KIR_lt, k, w->k_end), value;

    if (w->ok[s][0] != KIR_NONE)
        inside = op2(w, KIR_and, inside, op2(w, KIR_lt, place, w->end[s]));
    delinearize_set(&w->side[s]->points, w->e, place);
    delinearize_set(&w->c->k, w->e, k);
    expr_mask(w->e, inside);
    value = expr_value(w->e, w->side[s]->node);
    expr_release(w->e, mark);
    return kir_emit(w->m, KIR_select, value, zero(w), inside);
}

/* Neighbouring lanes take neighbours along what lies next to each other in memory. */
static bool runs_along_k(const struct contract_emitter *w, const struct contract_side *side)
{
    const struct delinearizer *k = &w->c->k, *own = &side->points;

    return k->n && contract_line_cost(w->c, side, k->dim[k->n - 1]) == 1 &&
           (!own->n || contract_line_cost(w->c, side, own->dim[own->n - 1]) > 1);
}

/* Fills a side's tile, from k on. */
static void stage(const struct contract_emitter *w, uint32_t s, uint32_t k)
{
    uint32_t places = w->n_places[s] * CONTRACT_EDGE;
    bool along_k = runs_along_k(w, w->side[s]);

    for (uint32_t i = 0; i < places * CONTRACT_DEPTH; i += w->c->lanes) {
        uint32_t number = i ? op2(w, KIR_add, w->lane, index_const(w, i)) : w->lane, place, deep,
                 at;

        deep = along_k ? low_part(w, number, CONTRACT_DEPTH) : high_part(w, number, places);
        place = along_k ? high_part(w, number, CONTRACT_DEPTH) : low_part(w, number, places);
        at = op2(w, KIR_add, op2(w, KIR_mul, deep, index_const(w, places)), place);
        place = op2(w, KIR_add, w->corner[s], place);
        kir_emit_imm(w->m, KIR_tstore, w->tile[s], at,
                     element(w, s, place, op2(w, KIR_add, k, deep)), KIR_NONE);
    }
}

/* A lane's elements of a side, at one depth. */
static void fetch(const struct contract_emitter *w, uint32_t s, uint32_t deep, uint32_t *out)
{
    uint32_t places = w->n_places[s] * CONTRACT_EDGE;
    uint32_t at = op2(w, KIR_add, op2(w, KIR_mul, deep, index_const(w, places)), w->at[s]);

    for (uint32_t i = 0; i < w->n_places[s]; i++) {
        uint32_t from = i ? op2(w, KIR_add, at, index_const(w, i * CONTRACT_EDGE)) : at;

        out[i] = kir_emit_as(w->m, KIR_tload, w->type, w->tile[s], from, KIR_NONE, KIR_NONE);
    }
}

static void add_tile(const struct contract_emitter *w, uint32_t *sums)
{
    uint32_t down[CONTRACT_SUMS], across[CONTRACT_SUMS], next[CONTRACT_SUMS];
    uint32_t n = w->n_places[ACROSS], deep;

    deep = work_loop(w, index_const(w, 0), index_const(w, CONTRACT_DEPTH), 1, sums);
    fetch(w, DOWN, deep, down);
    fetch(w, ACROSS, deep, across);
    for (uint32_t i = 0; i < w->n; i++)
        next[i] = add_product(w, sums[i], down[i / n], across[i % n]);
    kir_next(w->m, next, w->n);
}

void tile_sums(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t *sums)
{
    uint32_t next[CONTRACT_SUMS], k = work_loop(w, begin, end, CONTRACT_DEPTH, sums);

    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    stage(w, DOWN, k);
    stage(w, ACROSS, k);
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    add_tile(w, next);
    kir_next(w->m, next, w->n);
}
