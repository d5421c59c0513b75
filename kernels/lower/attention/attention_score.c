/* SPDX-License-Identifier: Apache-2.0 */
/* What forms share: the group's part of the work, scores and weights, results, and the phase that
 * joins what groups found of the same rows. */
#include "lower/attention/attention.h"

#include <math.h>

#include "lower/rows/rows.h"
#include "math/exp.h"
#include "math/math.h"

enum { JOIN_LANES = 256 };

/* ---- the group's part ---- */

/* What is left of a number when its last part, below n, is taken off; gives that part. */
static uint32_t take_part(const struct attention_emitter *w, uint32_t *number, int64_t n)
{
    struct sched_divisor by;
    uint32_t whole = *number;

    if (n == 1)
        return at_index(w, 0);
    by = sched_add_divisor(w->e->s, n);
    *number = sched_divide(w->e->s, &by, whole);
    return at2(w, KIR_sub, whole, at2(w, KIR_mul, *number, sched_add_index(w->e->s, n)));
}

static void begin_phase(struct attention_emitter *w, uint32_t lanes)
{
    struct sched *s = w->e->s;

    uint32_t dtype = s->block->values[w->e->nodes[w->a->result].value].dtype;

    w->type = kir_type_of(dtype);
    w->is_rough = kir_is_16_bit_float(dtype);
    kir_phase(w->m, lanes);
    expr_phase(w->e);
    for (uint32_t tag = 0; tag < ATTENTION_TAGS; tag++)
        delinearize_phase(&w->a->points[tag], w->e);
    w->lane = sched_wide(s, kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
}

static uint32_t group_number(const struct attention_emitter *w)
{
    return sched_wide(w->e->s, kir_emit_imm(w->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
}

/* Keys beyond the last one that the group's last row sees are nobody's. */
static uint32_t last_end(const struct attention_emitter *w, uint32_t rows)
{
    const struct attention *a = w->a;
    uint32_t last = at_plus(w, w->first_row, (int64_t)rows - 1), end;

    if (!a->causal || !a->rows_are_queries)
        return w->n_keys;
    last = at2(w, KIR_smin, last, sched_add_index(w->e->s, a->queries - 1));
    end = at2(w, KIR_add, last, sched_add_index(w->e->s, a->keys - a->queries + 1));
    return at2(w, KIR_smin, at2(w, KIR_smax, end, at_index(w, 0)), w->n_keys);
}

static uint32_t scalar_of(const struct attention_emitter *w, bool has, uint32_t number)
{
    return has ? sched_add_scalar(w->e->s, number, w->type) : KIR_NONE;
}

/* Groups whose rows see most keys come first: the last ones are short. */
void attention_begin(struct attention_emitter *w, uint32_t lanes, uint32_t rows)
{
    struct attention *a = w->a;
    struct sched *s = w->e->s;
    int64_t n_tiles = tiles_of(a->points[ATTENTION_ROW].count, rows);
    uint32_t number, standard;

    begin_phase(w, lanes);
    number = group_number(w);
    w->tile = take_part(w, &number, n_tiles);
    if (a->causal && n_tiles > 1)
        w->tile = at2(w, KIR_sub, sched_add_index(s, n_tiles - 1), w->tile);
    w->first_out = at2(w, KIR_mul, take_part(w, &number, tiles_of(a->outs, a->n_outs)),
                       at_index(w, a->n_outs));
    w->part = KIR_NONE;
    w->both = number;
    if (a->n_splits > 1) {
        w->both = take_part(w, &number, a->points[ATTENTION_BOTH].count);
        w->part = number;
    }
    delinearize_set(&a->points[ATTENTION_BOTH], w->e, w->both);
    expr_hoist(w->e);
    w->first_row = at2(w, KIR_mul, w->tile, at_index(w, rows));
    w->n_keys = sched_add_index(s, a->keys);
    w->begin = at_index(w, 0);
    w->end = last_end(w, rows);
    if (a->n_splits > 1) {
        w->begin = at2(w, KIR_mul, w->part, sched_add_index(s, a->part));
        w->end = at2(w, KIR_smin, w->end, at2(w, KIR_add, w->begin, sched_add_index(s, a->part)));
    }
    standard = at_real(w, 1 / sqrt((double)a->size));
    w->scale = scalar_of(w, a->has_scale, a->scale_scalar);
    w->scale = w->scale == KIR_NONE
                   ? standard
                   : kir_select(w->m, at2(w, KIR_eq, w->scale, at_real(w, 0)), standard, w->scale);
    w->cap = scalar_of(w, a->has_cap, a->cap_scalar);
}

static void set_row(const struct attention_emitter *w, uint32_t row)
{
    delinearize_set(&w->a->points[ATTENTION_ROW], w->e, w->row[row]);
}

/* Rows beyond the end are the last one again, whose results are not stored. */
void attention_set_rows(struct attention_emitter *w, uint32_t first, uint32_t each)
{
    struct attention *a = w->a;
    int64_t count = a->points[ATTENTION_ROW].count;
    uint32_t end = sched_add_index(w->e->s, count), last = sched_add_index(w->e->s, count - 1);
    uint32_t later = sched_add_index(w->e->s, a->keys - a->queries);

    for (uint32_t i = 0; i < each; i++) {
        uint32_t mark = expr_mark(w->e), row = at_plus(w, first, i);

        w->row_ok[i] = at2(w, KIR_lt, row, end);
        w->row[i] = at2(w, KIR_smin, row, last);
        set_row(w, i);
        if (a->causal)
            w->last_key[i] = at2(w, KIR_add, expr_coord_value(w->e, a->position), later);
        expr_release(w->e, mark);
    }
}

void attention_set_chunk(const struct attention_emitter *w, uint32_t tag, uint32_t first,
                         uint32_t low)
{
    const struct delinearizer *points = &w->a->points[tag];

    if (points->chunk > 1)
        delinearize_set_chunk(points, w->e, at_high(w, first, points->chunk), low);
    else
        delinearize_set(points, w->e, at2(w, KIR_add, first, low));
}

/* ---- scores ---- */

static uint32_t capped(const struct attention_emitter *w, uint32_t score)
{
    uint32_t part = at2(w, KIR_div, score, w->cap);
    uint32_t value = at2(w, KIR_mul, w->cap, math_tanh(w->m, w->e->s->target, part));

    return kir_select(w->m, at2(w, KIR_eq, w->cap, at_real(w, 0)), score, value);
}

static uint32_t fit(const struct attention_emitter *w, uint32_t node, uint32_t value)
{
    return lower_fit(w->m, w->e->s->block->values[w->e->nodes[node].value].dtype, value);
}

/* Of the block's own ops. */
static uint32_t other_score(const struct attention_emitter *w, uint32_t row, uint32_t key,
                            uint32_t inside, uint32_t sum)
{
    const struct attention *a = w->a;
    uint32_t mark = expr_mark(w->e), score;

    set_row(w, row);
    delinearize_set(&a->points[ATTENTION_KEY], w->e, key);
    expr_mask(w->e, inside);
    expr_bind(w->e, a->dot, fit(w, a->dot, sum));
    score = expr_value(w->e, a->score);
    expr_release(w->e, mark);
    return inside == KIR_NONE ? score : kir_select(w->m, inside, score, at_real(w, -INFINITY));
}

uint32_t attention_score(const struct attention_emitter *w, uint32_t row, uint32_t key,
                         uint32_t inside, uint32_t sum)
{
    const struct attention *a = w->a;
    uint32_t mark = expr_mark(w->e), score, seen = inside;

    if (a->dot != BLOCK_NONE)
        return other_score(w, row, key, inside, sum);
    score = at2(w, KIR_mul, sum, w->scale);
    if (w->cap != KIR_NONE)
        score = capped(w, score);
    if (a->bias != BLOCK_NONE || a->mask != BLOCK_NONE) {
        set_row(w, row);
        delinearize_set(&a->points[ATTENTION_KEY], w->e, key);
        expr_mask(w->e, inside);
    }
    if (a->bias != BLOCK_NONE)
        score = at2(w, KIR_add, score, expr_value(w->e, a->bias));
    if (a->mask != BLOCK_NONE)
        seen = at_both(w, seen, kir_unary(w->m, KIR_not, expr_value(w->e, a->mask)));
    expr_release(w->e, mark);
    if (a->causal)
        seen = at_both(w, seen, at2(w, KIR_le, key, w->last_key[row]));
    if (seen == KIR_NONE)
        return score;
    return kir_select(w->m, seen, score, at_real(w, -INFINITY));
}

uint32_t attention_larger(const struct attention_emitter *w, uint32_t largest, uint32_t score)
{
    return kir_select(w->m, at2(w, KIR_lt, largest, score), score, largest);
}

uint32_t attention_base(const struct attention_emitter *w, uint32_t largest)
{
    uint32_t none = at2(w, KIR_eq, largest, at_real(w, -INFINITY));

    return kir_select(w->m, none, at_real(w, 0), largest);
}

uint32_t attention_weight(const struct attention_emitter *w, uint32_t score, uint32_t base)
{
    uint32_t less = at2(w, KIR_sub, score, base);
    struct kit kit = kit_of(w->m, w->e->s->target, less);

    return w->is_rough ? kit_exp_rough(&kit, less) : kit_exp_normal(&kit, less);
}

/* ---- results ---- */

/* Elements: sums of [part][both][row][out], maxima of [part][both][row], and totals likewise. */
static int64_t partial_rows(const struct attention *a)
{
    return a->n_splits * a->points[ATTENTION_BOTH].count * a->points[ATTENTION_ROW].count;
}

/* The number of a row of a part. */
static uint32_t partial_row(const struct attention_emitter *w, uint32_t part, uint32_t row)
{
    const struct attention *a = w->a;
    uint32_t at = at2(w, KIR_mul, part, sched_add_index(w->e->s, a->points[ATTENTION_BOTH].count));

    at = at2(w, KIR_add, at, w->both);
    at = at2(w, KIR_mul, at, sched_add_index(w->e->s, a->points[ATTENTION_ROW].count));
    return at2(w, KIR_add, at, row);
}

/* A row without any weight is 0; where it is made of other ops, what these make of it. */
static uint32_t mean_of(const struct attention_emitter *w, uint32_t sum, uint32_t total)
{
    uint32_t none;

    if (w->a->dot == BLOCK_NONE) {
        none = at2(w, KIR_eq, total, at_real(w, 0));
        return at2(w, KIR_div, sum, kir_select(w->m, none, at_real(w, 1), total));
    }
    if (w->a->factor == BLOCK_NONE)
        return at2(w, KIR_div, sum, total);
    expr_bind(w->e, w->a->sum_of_weights, total);
    return at2(w, KIR_mul, sum, expr_value(w->e, w->a->factor));
}

static void store_result(const struct attention_emitter *w, uint32_t sum, uint32_t total)
{
    expr_bind(w->e, w->a->result, fit(w, w->a->result, mean_of(w, sum, total)));
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_emit_store(w->e, i);
}

/* Where results at `out` of a row are among those that are joined. */
static void store_partial(const struct attention_emitter *w, uint32_t row, uint32_t out,
                          uint32_t ok, uint32_t sum)
{
    uint32_t at =
        at2(w, KIR_mul, partial_row(w, w->part, w->row[row]), sched_add_index(w->e->s, w->a->outs));

    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at2(w, KIR_add, at, out), sum, ok);
}

void attention_finish(const struct attention_emitter *w, uint32_t row, uint32_t out,
                      uint32_t out_ok, uint32_t sum, uint32_t total)
{
    uint32_t mark = expr_mark(w->e), ok = at_both(w, w->row_ok[row], out_ok);

    if (w->a->n_splits > 1) {
        store_partial(w, row, out, ok, sum);
        return;
    }
    set_row(w, row);
    delinearize_set(&w->a->points[ATTENTION_OUT], w->e, out);
    expr_mask(w->e, ok);
    store_result(w, sum, total);
    expr_release(w->e, mark);
}

void attention_finish_chunk(const struct attention_emitter *w, uint32_t row, uint32_t first,
                            uint32_t low, uint32_t out_ok, uint32_t sum, uint32_t total)
{
    uint32_t mark = expr_mark(w->e), ok = at_both(w, w->row_ok[row], out_ok);

    if (w->a->n_splits > 1) {
        store_partial(w, row, at2(w, KIR_add, first, low), ok, sum);
        return;
    }
    set_row(w, row);
    attention_set_chunk(w, ATTENTION_OUT, first, low);
    expr_mask(w->e, ok);
    store_result(w, sum, total);
    expr_release(w->e, mark);
}

void attention_keep(const struct attention_emitter *w, uint32_t row, uint32_t first,
                    uint32_t largest, uint32_t total)
{
    const int64_t rows = partial_rows(w->a);
    uint32_t at, ok = at_both(w, w->row_ok[row], first);

    if (w->a->n_splits == 1)
        return;
    at = at2(w, KIR_add, partial_row(w, w->part, w->row[row]),
             sched_add_index(w->e->s, rows * w->a->outs));
    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at, largest, ok);
    at = at2(w, KIR_add, at, sched_add_index(w->e->s, rows));
    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at, total, ok);
}

/* ---- joining ---- */

static uint32_t load_partial(const struct attention_emitter *w, uint32_t at, uint32_t mask)
{
    return kir_emit_as(w->m, KIR_load_if, w->type, w->a->partial, at, mask, at_real(w, 0));
}

/* What a lane joins: one result of a row. */
struct joined {
    uint32_t mask;
    uint32_t maxima, totals; /* where those begin */
    uint32_t out;
};

static uint32_t join_largest(const struct attention_emitter *w, const struct joined *j)
{
    uint32_t none = at_real(w, -INFINITY), at, next;
    uint32_t part = kir_for(w->m, at_index(w, 0), at_index(w, w->a->n_splits), 1);
    uint32_t largest = kir_phi(w->m, none);

    at = at2(w, KIR_add, partial_row(w, part, w->row[0]), j->maxima);
    next = attention_larger(w, largest, load_partial(w, at, j->mask));
    kir_next(w->m, &next, 1);
    return largest;
}

static void join_sums(const struct attention_emitter *w, const struct joined *j, uint32_t largest,
                      uint32_t sums[2])
{
    uint32_t base = attention_base(w, largest), zero = at_real(w, 0), next[2], row, weight, part;

    part = kir_for(w->m, at_index(w, 0), at_index(w, w->a->n_splits), 1);
    for (uint32_t i = 0; i < 2; i++)
        sums[i] = kir_phi(w->m, zero);
    row = partial_row(w, part, w->row[0]);
    weight = attention_weight(w, load_partial(w, at2(w, KIR_add, row, j->maxima), j->mask), base);
    next[0] = at_mad(
        w, weight,
        load_partial(
            w, at2(w, KIR_add, at2(w, KIR_mul, row, sched_add_index(w->e->s, w->a->outs)), j->out),
            j->mask),
        sums[0]);
    next[1] = at_mad(w, weight, load_partial(w, at2(w, KIR_add, row, j->totals), j->mask), sums[1]);
    kir_next(w->m, next, 2);
}

/* A lane for each result. */
void attention_join(struct attention *a)
{
    struct attention_emitter w = {.a = a, .e = &a->e, .m = a->e.s->module};
    struct sched *s = a->e.s;
    const int64_t rows = partial_rows(a), n_rows = a->points[ATTENTION_ROW].count;
    int64_t total = a->points[ATTENTION_BOTH].count * n_rows * a->outs;
    uint32_t number, sums[2];
    struct joined j;

    begin_phase(&w, JOIN_LANES);
    number = at2(&w, KIR_add, at2(&w, KIR_mul, group_number(&w), at_index(&w, JOIN_LANES)), w.lane);
    j.mask = at2(&w, KIR_lt, number, sched_add_index(s, total));
    j.maxima = sched_add_index(s, rows * a->outs);
    j.totals = sched_add_index(s, rows * (a->outs + 1));
    j.out = take_part(&w, &number, a->outs);
    w.row[0] = take_part(&w, &number, n_rows);
    w.row_ok[0] = j.mask;
    w.both = number;
    delinearize_set(&a->points[ATTENTION_BOTH], w.e, w.both);
    join_sums(&w, &j, join_largest(&w, &j), sums);
    set_row(&w, 0);
    delinearize_set(&a->points[ATTENTION_OUT], w.e, j.out);
    expr_mask(w.e, j.mask);
    store_result(&w, sums[0], sums[1]);
    s->numbers->grid[1][0] = (uint32_t)tiles_of(total, JOIN_LANES);
    s->numbers->grid[1][1] = s->numbers->grid[1][2] = 1;
}
