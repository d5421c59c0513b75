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

uint32_t attention_take_part(const struct attention_emitter *w, uint32_t *number, int64_t n)
{
    struct sched_divisor by;
    uint32_t whole = *number;

    if (n == 1)
        return at_index(w, 0);
    by = sched_add_divisor(w->e->s, n);
    *number = sched_divide(w->e->s, &by, whole);
    return at2(w, KIR_sub, whole, at2(w, KIR_mul, *number, sched_add_index(w->e->s, n)));
}

static double standard_scale(const struct attention *a)
{
    return 1 / sqrt((double)a->size);
}

/* Whether nothing but a positive factor is done to scores. */
static bool has_factor(const struct attention *a)
{
    return a->dot == BLOCK_NONE && a->bias == BLOCK_NONE && !a->has_scale && !a->has_cap;
}

static void begin_phase(struct attention_emitter *w, uint32_t lanes)
{
    struct sched *s = w->e->s;

    uint32_t dtype = s->block->values[w->e->nodes[w->a->result].value].dtype;

    w->type = kir_type_of(dtype);
    w->is_rough = kir_is_16_bit_float(dtype);
    w->by_powers = w->type == KIR_F32 && s->target->exp2;
    kir_phase(w->m, lanes);
    expr_phase(w->e);
    for (uint32_t tag = 0; tag < ATTENTION_TAGS; tag++)
        delinearize_phase(&w->a->points[tag], w->e);
    w->factor =
        has_factor(w->a) && w->by_powers ? at_real(w, standard_scale(w->a) * M_LOG2E) : KIR_NONE;
    w->lane = sched_wide(s, kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
}

uint32_t attention_group(const struct attention_emitter *w)
{
    return sched_wide(w->e->s, kir_emit_imm(w->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
}

uint32_t attention_last_end(const struct attention_emitter *w, uint32_t rows)
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

/* The group's number among BOTH, results, the parts of keys, and tiles of rows: of neighbours,
 * first the tiles, which read the same keys; where groups whose rows see most keys come first, so
 * that the last ones are short, tiles are outermost. */
static void take_parts(struct attention_emitter *w, int64_t n_tiles)
{
    const struct attention *a = w->a;
    const int64_t both = a->points[ATTENTION_BOTH].count, n_outs = tiles_of(a->outs, a->n_outs);
    uint32_t number = attention_group(w), out;

    if (a->causal && n_tiles > 1) {
        w->both = attention_take_part(w, &number, both);
        out = attention_take_part(w, &number, n_outs);
        w->part = attention_take_part(w, &number, a->n_splits);
        w->tile = at2(w, KIR_sub, sched_add_index(w->e->s, n_tiles - 1), number);
    } else {
        w->tile = attention_take_part(w, &number, n_tiles);
        out = attention_take_part(w, &number, n_outs);
        w->both = attention_take_part(w, &number, both);
        w->part = number;
    }
    w->first_out = at_times(w, out, a->n_outs);
}

void attention_threads(struct attention_emitter *w, uint32_t threads, uint32_t chunk)
{
    delinearize_chunk(&w->a->points[ATTENTION_OUT], w->e, chunk);
    delinearize_chunk(&w->a->points[ATTENTION_SIZE], w->e, chunk);
    begin_phase(w, threads * chunk);
    w->threads = threads;
    w->chunk = chunk;
    w->thread = at_high(w, w->lane, chunk);
    w->low = at_low(w, w->lane, chunk);
}

void attention_set_scale(struct attention_emitter *w)
{
    const struct attention *a = w->a;
    uint32_t standard = at_real(w, standard_scale(a));

    w->scale = scalar_of(w, a->has_scale, a->scale_scalar);
    w->scale = w->scale == KIR_NONE
                   ? standard
                   : kir_select(w->m, at2(w, KIR_eq, w->scale, at_real(w, 0)), standard, w->scale);
    w->cap = scalar_of(w, a->has_cap, a->cap_scalar);
}

void attention_begin(struct attention_emitter *w, uint32_t threads, uint32_t chunk, uint32_t rows)
{
    struct attention *a = w->a;
    struct sched *s = w->e->s;
    int64_t n_tiles = tiles_of(a->points[ATTENTION_ROW].count, rows);

    attention_threads(w, threads, chunk);
    take_parts(w, n_tiles);
    delinearize_set(&a->points[ATTENTION_BOTH], w->e, w->both);
    expr_hoist(w->e);
    w->first_row = at2(w, KIR_mul, w->tile, at_index(w, rows));
    w->n_keys = sched_add_index(s, a->keys);
    w->begin = at_index(w, 0);
    w->end = attention_last_end(w, rows);
    if (a->n_splits > 1) {
        w->begin = at2(w, KIR_mul, w->part, sched_add_index(s, a->part));
        w->end = at2(w, KIR_smin, w->end, at2(w, KIR_add, w->begin, sched_add_index(s, a->part)));
    }
    attention_set_scale(w);
}

static void set_row(const struct attention_emitter *w, uint32_t row)
{
    delinearize_set(&w->a->points[ATTENTION_ROW], w->e, w->row[row]);
}

/* Rows beyond the end are the last one again, whose results are not stored. */
void attention_set_rows(struct attention_emitter *w, uint32_t first, uint32_t each, uint32_t step)
{
    struct attention *a = w->a;
    int64_t count = a->points[ATTENTION_ROW].count;
    uint32_t end = sched_add_index(w->e->s, count), last = sched_add_index(w->e->s, count - 1);
    uint32_t later = sched_add_index(w->e->s, a->keys - a->queries);

    for (uint32_t i = 0; i < each; i++) {
        uint32_t mark = expr_mark(w->e), row = at_plus(w, first, (int64_t)i * step);

        w->row_ok[i] = at2(w, KIR_lt, row, end);
        w->row[i] = at2(w, KIR_smin, row, last);
        set_row(w, i);
        if (a->causal)
            w->last_key[i] = at2(w, KIR_add, expr_coord_value(w->e, a->position), later);
        expr_release(w->e, mark);
    }
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

static uint32_t with_log(const struct attention_emitter *w, uint32_t score)
{
    if (!w->by_powers || w->factor != KIR_NONE)
        return score;
    return at2(w, KIR_mul, score, at_real(w, M_LOG2E));
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
    score = with_log(w, score);
    return inside == KIR_NONE ? score : kir_select(w->m, inside, score, at_real(w, -INFINITY));
}

uint32_t attention_score(const struct attention_emitter *w, uint32_t row, uint32_t key,
                         uint32_t inside, uint32_t sum)
{
    const struct attention *a = w->a;
    uint32_t mark = expr_mark(w->e), score, seen = inside;

    if (a->dot != BLOCK_NONE)
        return other_score(w, row, key, inside, sum);
    score = w->factor == KIR_NONE ? at2(w, KIR_mul, sum, w->scale) : sum;
    if (w->cap != KIR_NONE)
        score = capped(w, score);
    if (a->bias != BLOCK_NONE || a->mask != BLOCK_NONE) {
        set_row(w, row);
        delinearize_set(&a->points[ATTENTION_KEY], w->e, key);
        expr_mask(w->e, inside);
    }
    if (a->bias != BLOCK_NONE)
        score = at2(w, KIR_add, score, expr_value(w->e, a->bias));
    score = with_log(w, score);
    if (a->mask != BLOCK_NONE)
        seen = at_both(w, seen, kir_unary(w->m, KIR_not, expr_value(w->e, a->mask)));
    expr_release(w->e, mark);
    if (a->causal)
        seen = at_both(w, seen, at2(w, KIR_le, key, w->last_key[row]));
    if (seen == KIR_NONE)
        return score;
    return kir_select(w->m, seen, score, at_real(w, -INFINITY));
}

bool attention_is_plain(const struct attention_emitter *w)
{
    return w->factor != KIR_NONE && w->a->mask == BLOCK_NONE &&
           (!w->a->causal || w->a->rows_are_queries);
}

uint32_t attention_hides(const struct attention_emitter *w, uint32_t key, uint32_t n_keys)
{
    const struct attention *a = w->a;
    uint32_t end = at_plus(w, key, n_keys), hides = KIR_NONE, seen;

    if (a->keys % n_keys)
        hides = at2(w, KIR_lt, w->n_keys, end);
    if (!a->causal)
        return hides;
    seen = at2(w, KIR_add, w->first_row, sched_add_index(w->e->s, a->keys - a->queries + 1));
    seen = at2(w, KIR_lt, seen, end);
    return hides == KIR_NONE ? seen : at2(w, KIR_or, hides, seen);
}

uint32_t attention_larger(const struct attention_emitter *w, uint32_t largest, uint32_t score)
{
    if (w->type == KIR_F32 && w->e->s->target->fmax)
        return at2(w, KIR_fmax, largest, score);
    return kir_select(w->m, at2(w, KIR_lt, largest, score), score, largest);
}

uint32_t attention_base(const struct attention_emitter *w, uint32_t largest)
{
    uint32_t none = at2(w, KIR_eq, largest, at_real(w, -INFINITY));

    if (w->factor != KIR_NONE)
        largest = at2(w, KIR_mul, largest, w->factor);
    return kir_select(w->m, none, at_real(w, 0), largest);
}

static uint32_t power(const struct attention_emitter *w, uint32_t exponent)
{
    struct kit kit = kit_of(w->m, w->e->s->target, exponent);

    if (w->by_powers)
        return kir_unary(w->m, KIR_exp2, exponent);
    return w->is_rough ? kit_exp_rough(&kit, exponent) : kit_exp_normal(&kit, exponent);
}

uint32_t attention_weight(const struct attention_emitter *w, uint32_t score, uint32_t base)
{
    if (w->factor == KIR_NONE)
        return power(w, at2(w, KIR_sub, score, base));
    return power(w, at_mad(w, score, w->factor, kir_unary(w->m, KIR_neg, base)));
}

/* The same rounding as in the base that it was. */
uint32_t attention_rescale(const struct attention_emitter *w, uint32_t largest, uint32_t base)
{
    if (w->factor != KIR_NONE)
        largest = at2(w, KIR_mul, largest, w->factor);
    return power(w, at2(w, KIR_sub, largest, base));
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
        total = kir_select(w->m, none, at_real(w, 1), total);
    }
    if (w->a->factor == BLOCK_NONE)
        return at2(w, KIR_mul, sum, at2(w, KIR_div, at_real(w, 1), total));
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
                            uint32_t out_ok, uint32_t sum, uint32_t total)
{
    uint32_t mark = expr_mark(w->e), ok = at_both(w, w->row_ok[row], out_ok);

    if (w->a->n_splits > 1) {
        store_partial(w, row, at2(w, KIR_add, first, w->low), ok, sum);
        return;
    }
    set_row(w, row);
    attention_set_chunk(w, ATTENTION_OUT, first);
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
    weight = attention_rescale(w, load_partial(w, at2(w, KIR_add, row, j->maxima), j->mask), base);
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
    number =
        at2(&w, KIR_add, at2(&w, KIR_mul, attention_group(&w), at_index(&w, JOIN_LANES)), w.lane);
    j.mask = at2(&w, KIR_lt, number, sched_add_index(s, total));
    j.maxima = sched_add_index(s, rows * a->outs);
    j.totals = sched_add_index(s, rows * (a->outs + 1));
    j.out = attention_take_part(&w, &number, a->outs);
    w.row[0] = attention_take_part(&w, &number, n_rows);
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
