/* SPDX-License-Identifier: Apache-2.0 */
/* Turning: where lanes lie along a side whose neighbours are far apart in the result, and a lane's
 * places next to each other, the sums are transposed before what follows is computed and stored.
 * Matrices of SIDE lanes and as many places are turned, so that runs of SIDE lanes load and store
 * neighbours: lane l of result j has place l % SIDE, and the place across of lane
 * l - l % SIDE + j. */
#include "lower/contract/contract_turn.h"

#include "lower/contract/contract_emit.h"

enum { SIDE = TURN_SIDE, LOG_SIDE = 3 };

/* Adds what depends on the places as they are, to the sums from place number `first` on; fills up
 * to SIDE. */
static void begin(const struct contract_emitter *w, uint32_t first, const uint32_t *sums,
                  uint32_t *rows)
{
    for (uint32_t i = 0; i < SIDE; i++) {
        uint32_t mark = expr_mark(w->e);

        if (first + i >= w->n) {
            rows[i] = zero(w);
            continue;
        }
        work_set_place(w, DOWN, w->place[DOWN][first + i]);
        expr_mask(w->e, w->mask);
        rows[i] = work_add_bias(w, sums[first + i]);
        expr_release(w->e, mark);
    }
}

static uint32_t low_bits(const struct contract_emitter *w, uint32_t below)
{
    return op2(w, KIR_and, w->lane, index_const(w, below - 1));
}

uint32_t turn_first_lane(const struct contract_emitter *w)
{
    uint32_t shift = index_const(w, LOG_SIDE);

    return op2(w, KIR_shl, op2(w, KIR_shr, w->lane, shift), shift);
}

static uint32_t exchange(const struct contract_emitter *w, uint32_t value, uint32_t by)
{
    return kir_emit_imm(w->m, KIR_exchange, by, value, KIR_NONE, KIR_NONE);
}

/* By blocks: those beside the diagonal change places. */
void turn_transpose(const struct contract_emitter *w, uint32_t *rows)
{
    for (uint32_t by = 1; by < SIDE; by *= 2) {
        uint32_t lower = op2(w, KIR_lt, low_bits(w, 2 * by), index_const(w, by));

        for (uint32_t i = 0; i < SIDE; i++) {
            uint32_t a = rows[i], b = rows[i | by];

            if (i & by)
                continue;
            rows[i] = kir_select(w->m, lower, a, exchange(w, b, by));
            rows[i | by] = kir_select(w->m, lower, exchange(w, a, by), b);
        }
    }
}

/* Sets the place of the lane along its line, of those from number `first` on; returns the mask of
 * lanes that have one. */
static uint32_t set_place(const struct contract_emitter *w, uint32_t first)
{
    const struct delinearizer *points = &w->c->down->points;
    uint32_t n = w->n_places[DOWN] - first, at = low_bits(w, SIDE), from = w->place_begin;

    if (first)
        from = op2(w, KIR_add, from, index_const(w, first));
    expr_set(w->e, points->dim[points->n - 1], op2(w, KIR_add, from, at));
    return n < SIDE ? op2(w, KIR_lt, at, index_const(w, n)) : KIR_NONE;
}

/* Stores the rows of places from number `first` on, turned; `end`: of the line across; KIR_NONE:
 * all of its lanes are within. */
static void store_rows(const struct contract_emitter *w, uint32_t first, uint32_t end,
                       const uint32_t *rows)
{
    uint32_t line = op2(w, KIR_add, turn_first_lane(w), w->line_begin), mask;

    mask = set_place(w, first);
    expr_hoist(w->e);
    for (uint32_t j = 0; j < SIDE; j++) {
        uint32_t mark = expr_mark(w->e), place = op2(w, KIR_add, line, index_const(w, j));

        work_set_place(w, ACROSS, place);
        expr_mask(w->e, end == KIR_NONE ? mask : mask_both(w, mask, op2(w, KIR_lt, place, end)));
        work_store(w, rows[j]);
        expr_release(w->e, mark);
    }
}

void turn_results(const struct contract_emitter *w, const uint32_t *sums)
{
    uint32_t end = KIR_NONE, rows[CONTRACT_SUMS + SIDE];
    int64_t count = w->c->across->points.count;

    for (uint32_t first = 0; first < w->n; first += SIDE)
        begin(w, first, sums, rows + first);
    expr_release(w->e, w->before_line);
    if (count % w->c->lanes)
        end = sched_add_index(w->e->s, count);
    for (uint32_t first = 0; first < w->n; first += SIDE) {
        uint32_t mark = expr_mark(w->e);

        turn_transpose(w, rows + first);
        store_rows(w, first, end, rows + first);
        expr_release(w->e, mark);
    }
}
