/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions whose k is shared.  A group is a grid of lanes, `wide` times `deep`, of which the
 * neighbours lie along k or along `across`.  In a step each lane takes one k for all its places;
 * the elements of a few steps are loaded before any is multiplied, and where registers allow while
 * those of the steps before are.
 *
 * Then lanes that lie along k add up their sums in pairs.  Where a lane still has several, it keeps
 * half of them and gives the others to its partner: with n sums and n lanes n - 1 exchanges leave
 * each lane one sum, at places of its own.
 *
 * Where groups share sums, they store theirs, and a phase of its own adds these up and goes on with
 * what follows the contraction. */
#include "lower/contract/contract_slices_emit.h"

#include <assert.h>
#include <string.h>

#include "lower/contract/contract_blocks.h"
#include "lower/contract/contract_emit.h"

enum { MAX_STEPS = 32 /* times pieces of a byte */, MAX_CARRIED = 64, JOIN_LANES = 256 };

/* ---- the grid of lanes ---- */

static uint32_t shift_of(uint32_t n)
{
    uint32_t shift = 0;

    while (1u << shift < n)
        shift++;
    return shift;
}

/* A number modulo a power of two, and divided by it. */
static uint32_t low_part(const struct contract_emitter *w, uint32_t number, uint32_t n)
{
    return op2(w, KIR_and, number, index_const(w, n - 1));
}

static uint32_t high_part(const struct contract_emitter *w, uint32_t number, uint32_t n)
{
    return op2(w, KIR_shr, number, index_const(w, shift_of(n)));
}

static uint32_t both_of(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : op2(w, KIR_and, a, b);
}

static uint32_t plus(const struct contract_emitter *w, uint32_t a, int64_t b)
{
    return b ? op2(w, KIR_add, a, index_const(w, b)) : a;
}

void slices_begin(struct contract_emitter *w, uint32_t down, uint32_t across)
{
    const struct contract_slices *slices = &w->c->slices;
    const struct delinearizer *points = &w->side[ACROSS]->points;
    uint32_t width = slices->wide * contract_points_across(w->c), *places = w->place[ACROSS];
    uint32_t fast = slices->along_k ? slices->deep : slices->wide;
    uint32_t low = low_part(w, w->lane, fast), high = high_part(w, w->lane, fast);

    w->corner[DOWN] = op2(w, KIR_mul, down, index_const(w, w->c->n_down));
    w->slice = slices->along_k ? low : high;
    w->at[ACROSS] = op2(w, KIR_add, op2(w, KIR_mul, across, index_const(w, width)),
                        slices->along_k ? high : low);
    if (!slices->along_k) { /* lanes beyond the end read nothing */
        if (points->count % slices->wide)
            w->mask = op2(w, KIR_lt, w->at[ACROSS], sched_add_index(w->e->s, points->count));
        delinearize_set(points, w->e, w->at[ACROSS]);
        for (uint32_t j = 0; j < w->c->n_across; j++)
            places[j] = KIR_NONE;
        return;
    }
    for (uint32_t j = 0; j < w->c->n_across; j++) { /* places beyond it are read at the last one */
        places[j] = plus(w, w->at[ACROSS], (int64_t)j * slices->wide);
        if (points->count % width)
            places[j] = op2(w, KIR_smin, places[j], sched_add_index(w->e->s, points->count - 1));
    }
}

/* ---- sums of lanes ---- */

/* At one k of a lane, of all its places. */
struct elements {
    uint32_t of[2][CONTRACT_SUMS];
};

/* `inside`: of lanes whose k is in the sum; others get 0. */
static void load_step(const struct contract_emitter *w, uint32_t inside, struct elements *out)
{
    for (uint32_t side = ACROSS + 1; side-- > DOWN;) {
        uint32_t mask = side == ACROSS ? both_of(w, inside, w->mask) : inside;

        for (uint32_t i = 0; i < w->n_places[side]; i++) {
            uint32_t mark = expr_mark(w->e), element;

            if (side == ACROSS && w->c->blocks.used)
                blocks_set_place(w, i);
            element = work_element(w, side, w->place[side][i], mask);
            expr_release(w->e, mark);
            if (inside != KIR_NONE)
                element = kir_emit(w->m, KIR_select, element, zero(w), inside);
            out->of[side][i] = element;
        }
    }
}

static void multiply(const struct contract_emitter *w, const struct elements *elements,
                     uint32_t *sums)
{
    uint32_t n = w->n_places[ACROSS];

    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = add_product(w, sums[i], elements->of[DOWN][i / n], elements->of[ACROSS][i % n]);
}

/* Products of a step: of the pieces of a byte along k. */
static uint32_t products_of(const struct contract_emitter *w)
{
    return w->c->blocks.used && w->c->blocks.along_k ? w->c->blocks.pieces : 1;
}

/* The elements of `steps` steps from the lane's k `first` on; `ends`: the last may be beyond that
 * of k. */
static void load_steps(const struct contract_emitter *w, uint32_t first, uint32_t steps, bool ends,
                       struct elements *out)
{
    for (uint32_t s = 0; s < steps; s++) {
        uint32_t mark = expr_mark(w->e), k = plus(w, first, (int64_t)s * w->c->slices.deep);
        uint32_t inside = ends ? op2(w, KIR_lt, k, w->k_end) : KIR_NONE, n = products_of(w);

        if (w->c->blocks.used)
            delinearize_set(&w->c->k, w->e, k);
        else
            expr_set(w->e, w->c->k.dim[0], k);
        for (uint32_t p = 0; p < n; p++) {
            if (n > 1)
                expr_set(w->e, w->c->blocks.piece_dim, index_const(w, p));
            load_step(w, inside, &out[s * n + p]);
        }
        expr_release(w->e, mark);
    }
}

/* k from begin to end, `steps` at a time. */
static void sum_steps(const struct contract_emitter *w, uint32_t begin, uint32_t end,
                      uint32_t steps, bool ends, uint32_t *sums)
{
    uint32_t k = work_loop(w, begin, end, w->c->slices.deep * steps, sums), next[CONTRACT_SUMS];
    struct elements elements[MAX_STEPS];

    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    load_steps(w, op2(w, KIR_add, k, w->slice), steps, ends, elements);
    for (uint32_t s = 0; s < steps * products_of(w); s++)
        multiply(w, &elements[s], next);
    kir_next(w->m, next, w->n);
}

/* Where the elements of all steps are; returns how many. */
static uint32_t list_steps(const struct contract_emitter *w, struct elements *elements,
                           uint32_t **out)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < w->c->slices.steps; s++)
        for (uint32_t side = DOWN; side <= ACROSS; side++)
            for (uint32_t i = 0; i < w->n_places[side]; i++)
                out[n++] = &elements[s].of[side][i];
    assert(n <= MAX_CARRIED);
    return n;
}

/* A round multiplies what the one before it loaded, and loads what the next one multiplies, so that
 * memory works all the time: compilers in drivers were seen to move loads down to where their
 * values are used, out of a loop they cannot.  The last round loads its own elements again. */
static void sum_ahead(const struct contract_emitter *w, uint32_t begin, uint32_t end,
                      uint32_t *sums)
{
    uint32_t steps = w->c->slices.steps, step = steps * w->c->slices.deep, n, last, k;
    uint32_t *now[MAX_CARRIED], *later[MAX_CARRIED], next[CONTRACT_SUMS + MAX_CARRIED];
    struct elements elements[MAX_STEPS], ahead[MAX_STEPS];

    n = list_steps(w, elements, now);
    (void)list_steps(w, ahead, later);
    last = op2(w, KIR_sub, w->k_full, index_const(w, step));
    k = op2(w, KIR_smin, begin, last);
    load_steps(w, op2(w, KIR_add, k, w->slice), steps, false, elements);
    k = work_loop(w, begin, end, step, sums);
    for (uint32_t i = 0; i < n; i++)
        *now[i] = kir_phi(w->m, *now[i]);
    k = op2(w, KIR_smin, plus(w, k, step), last);
    load_steps(w, op2(w, KIR_add, k, w->slice), steps, false, ahead);
    for (uint32_t i = 0; i < w->n; i++)
        next[i] = sums[i];
    for (uint32_t s = 0; s < steps; s++)
        multiply(w, &elements[s], next);
    for (uint32_t i = 0; i < n; i++)
        next[w->n + i] = *later[i];
    kir_next(w->m, next, w->n + n);
}

void slices_sum(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t *sums)
{
    if (w->c->slices.loads_ahead)
        sum_ahead(w, begin, end, sums);
    else
        sum_steps(w, begin, end, w->c->slices.steps, false, sums);
}

/* Of the group's part of k.  What is left after full steps is the last part's. */
static void sum_lanes(struct contract_emitter *w, uint32_t *sums)
{
    const struct contract_slices *slices = &w->c->slices;
    int64_t step = (int64_t)slices->steps * slices->deep,
            full_n = contract_steps(w->c) / step * step;
    int64_t part = tiles_of(full_n / step, slices->n_splits) * step;
    int64_t block = SUM_BLOCK_CONTRACT / slices->steps * step;
    uint32_t begin = index_const(w, 0), full, end, rest;

    full = op2(w, KIR_mul, sched_add_index(w->e->s, full_n / step), index_const(w, step));
    w->k_full = end = full;

    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = zero(w);
    if (w->split != KIR_NONE) {
        begin = op2(w, KIR_mul, w->split, sched_add_index(w->e->s, part / step));
        begin = op2(w, KIR_mul, begin, index_const(w, step));
        end = op2(w, KIR_smin, op2(w, KIR_add, begin, sched_add_index(w->e->s, part)), full);
    }
    work_range(w, begin, end, part > block, block, sums);
    if (full_n == contract_steps(w->c))
        return;
    rest = w->k_end;
    if (w->split != KIR_NONE)
        rest = kir_emit(w->m, KIR_select, rest, full,
                        op2(w, KIR_eq, w->split, index_const(w, slices->n_splits - 1)));
    sum_steps(w, full, rest, 1, contract_steps(w->c) % slices->deep != 0, sums);
}

/* ---- sums of the group ---- */

/* What a lane has when lanes have added up: sums first, first + 1, ... */
struct held {
    uint32_t n, first;
    uint32_t mask; /* of lanes that have them, not another one; KIR_NONE: all */
};

/* Each lane of a pair keeps the sums of its half, of `n`; what no lane has is what the other one
 * has. */
static void halve(const struct contract_emitter *w, uint32_t *sums, uint32_t n, uint32_t present,
                  uint32_t distance)
{
    uint32_t upper =
        op2(w, KIR_ne, low_part(w, high_part(w, w->lane, distance), 2), index_const(w, 0));

    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t keep = sums[i], give = sums[i];

        if (i + n / 2 < present) {
            keep = kir_emit(w->m, KIR_select, sums[i + n / 2], sums[i], upper);
            give = kir_emit(w->m, KIR_select, sums[i], sums[i + n / 2], upper);
        }
        give = kir_emit_imm(w->m, KIR_exchange, distance, give, KIR_NONE, KIR_NONE);
        sums[i] = op2(w, KIR_add, keep, give);
    }
}

static void add_lanes(const struct contract_emitter *w, uint32_t *sums, struct held *held)
{
    uint32_t begin = w->c->slices.along_k ? 1 : w->c->slices.wide, present = w->n, idle = 0;

    held->first = index_const(w, 0);
    held->mask = KIR_NONE;
    held->n = 1u << shift_of(w->n);
    for (uint32_t d = begin; d < begin * w->c->slices.deep; d *= 2) {
        if (held->n == 1) {
            sums[0] = op2(w, KIR_add, sums[0],
                          kir_emit_imm(w->m, KIR_exchange, d, sums[0], KIR_NONE, KIR_NONE));
            idle += d;
            continue;
        }
        halve(w, sums, held->n, present, d);
        held->n /= 2;
        present = held->n;
        held->first =
            op2(w, KIR_add, held->first,
                op2(w, KIR_mul, low_part(w, high_part(w, w->lane, d), 2), index_const(w, held->n)));
    }
    if (idle)
        held->mask =
            op2(w, KIR_eq, op2(w, KIR_and, w->lane, index_const(w, idle)), index_const(w, 0));
    if (held->n > present)
        held->n = present;
}

/* ---- results ---- */

void slices_store(const struct contract_emitter *w, const uint32_t *places, uint32_t mask,
                  uint32_t sum)
{
    uint32_t at = w->both;

    if (w->split == KIR_NONE) {
        expr_mask(w->e, mask);
        work_finish(w, sum);
        return;
    }
    at = op2(w, KIR_add, op2(w, KIR_mul, w->split, sched_add_index(w->e->s, w->c->both.count)), at);
    for (uint32_t side = DOWN; side <= ACROSS; side++) {
        at = op2(w, KIR_mul, at, sched_add_index(w->e->s, w->side[side]->points.count));
        at = op2(w, KIR_add, at, places[side]);
    }
    kir_emit_imm(w->m, mask == KIR_NONE ? KIR_store : KIR_store_if, w->c->slices.partial, at, sum,
                 mask);
}

/* Sum number `number` of the group's lane. */
static void store_at(const struct contract_emitter *w, uint32_t number, uint32_t mask, uint32_t sum)
{
    uint32_t mark = expr_mark(w->e), n = w->c->n_across, places[2], sizes[2];

    sizes[DOWN] = w->c->n_down;
    sizes[ACROSS] = contract_points_across(w->c) * w->c->slices.wide;
    places[DOWN] = op2(w, KIR_add, w->corner[DOWN], high_part(w, number, n));
    places[ACROSS] = w->at[ACROSS];
    if (contract_points_across(w->c) == n)
        places[ACROSS] =
            op2(w, KIR_add, places[ACROSS],
                op2(w, KIR_mul, low_part(w, number, n), index_const(w, w->c->slices.wide)));
    else
        expr_set(w->e, w->c->blocks.piece_dim, low_part(w, number, n));
    if (w->n & (w->n - 1))
        mask = both_of(w, mask, op2(w, KIR_lt, number, index_const(w, w->n)));
    for (uint32_t side = DOWN; side <= ACROSS; side++) {
        const struct delinearizer *points = &w->side[side]->points;

        if (points->count % sizes[side])
            mask = both_of(w, mask,
                           op2(w, KIR_lt, places[side], sched_add_index(w->e->s, points->count)));
        delinearize_set(points, w->e, places[side]);
    }
    slices_store(w, places, mask, sum);
    expr_release(w->e, mark);
}

void slices_reserve(struct contract_emitter *w)
{
    struct contract *c = w->c;
    int64_t total = c->both.count * c->down->points.count * c->across->points.count;
    uint32_t dtype = contract_dtype(w->c);

    c->slices.partial = kir_arg(w->m, dtype, KIR_READ | KIR_WRITE);
    w->e->s->numbers->workspace_bytes = frit_storage_bytes(dtype, total * c->slices.n_splits);
}

void slices_join(struct contract_emitter *w)
{
    const struct contract *c = w->c;
    struct sched_numbers *numbers = w->e->s->numbers;
    int64_t total = c->both.count * c->down->points.count * c->across->points.count;
    uint32_t number, sum, at, each, loaded;

    at = work_begin(w, JOIN_LANES);
    delinearize_phase(&w->c->down->points, w->e);
    number = op2(w, KIR_add, op2(w, KIR_mul, at, index_const(w, JOIN_LANES)), w->lane);
    w->mask = op2(w, KIR_lt, number, sched_add_index(w->e->s, total));
    at = number;
    delinearize_set(&c->across->points, w->e, work_part(w, &number, c->across->points.count));
    delinearize_set(&c->down->points, w->e, work_part(w, &number, c->down->points.count));
    delinearize_set(&c->both, w->e, number);
    each = sched_add_index(w->e->s, total);
    sum = zero(w);
    number = kir_for(w->m, index_const(w, 0), index_const(w, c->slices.n_splits), 1);
    sum = kir_phi(w->m, sum);
    loaded = kir_emit_as(w->m, KIR_load_if, w->type, c->slices.partial,
                         op2(w, KIR_add, at, op2(w, KIR_mul, number, each)), w->mask, zero(w));
    loaded = op2(w, KIR_add, sum, loaded);
    kir_next(w->m, &loaded, 1);
    expr_mask(w->e, w->mask);
    work_finish(w, sum);
    numbers->brief_phases = 1u << 1;
    memcpy(numbers->grid[1], (const uint32_t[3]){(uint32_t)tiles_of(total, JOIN_LANES), 1, 1},
           sizeof(numbers->grid[1]));
}

void slices_emit(struct contract_emitter *w)
{
    uint32_t sums[CONTRACT_SUMS];
    struct held held;

    w->k_end = sched_add_index(w->e->s, contract_steps(w->c));
    if (w->split != KIR_NONE)
        slices_reserve(w);
    sum_lanes(w, sums);
    add_lanes(w, sums, &held);
    for (uint32_t i = 0; i < held.n; i++)
        store_at(w, plus(w, held.first, i), held.mask, sums[i]);
    if (w->split != KIR_NONE)
        slices_join(w);
}
