/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on lanes that are a processor's vectors: each has a row, and a group's rows read keys
 * and values together, so that every product multiplies neighbours by one number and nothing is
 * exchanged between lanes.  Queries, the weights of a block of keys and the sums of results are in
 * tiles of a lane, which the first cache holds; a few keys, then a few results at a time have their
 * sums in registers. */
#include "lower/attention/attention.h"

#include <math.h>

enum { MOST_STEP = 16 };

struct liner {
    struct attention_emitter w;
    uint32_t n_keys;                /* of a block */
    uint32_t key_step, out_step;    /* with sums in registers */
    uint32_t queries, weights, sum; /* tiles */
    uint32_t count;                 /* keys of the block that there are */
};

static uint32_t tile_load(const struct liner *l, uint32_t tile, uint32_t at)
{
    return kir_emit_as(l->w.m, KIR_tload, l->w.type, tile, at, KIR_NONE, KIR_NONE);
}

static void tile_store(const struct liner *l, uint32_t tile, uint32_t at, uint32_t value)
{
    kir_emit_imm(l->w.m, KIR_tstore, tile, at, value, KIR_NONE);
}

static uint32_t loop(const struct liner *l, uint32_t end, uint32_t step)
{
    return kir_for(l->w.m, at_index(&l->w, 0), end, step);
}

static void load_queries(const struct liner *l)
{
    const struct attention_emitter *w = &l->w;
    uint32_t mark = expr_mark(w->e), at = loop(l, sched_add_index(w->e->s, w->a->size), 1);

    delinearize_set(&w->a->points[ATTENTION_ROW], w->e, w->row[0]);
    delinearize_set(&w->a->points[ATTENTION_SIZE], w->e, at);
    tile_store(l, l->queries, at, expr_value(w->e, w->a->q));
    kir_next(w->m, NULL, 0);
    expr_release(w->e, mark);
}

static void clear_sums(const struct liner *l)
{
    uint32_t at = loop(l, sched_add_index(l->w.e->s, l->w.a->outs), 1);

    tile_store(l, l->sum, at, at_real(&l->w, 0));
    kir_next(l->w.m, NULL, 0);
}

/* ---- scores ---- */

/* Sums of products of the row and `key_step` keys. */
static void sum_scores(const struct liner *l, const uint32_t *keys, uint32_t *sums)
{
    const struct attention_emitter *w = &l->w;
    uint32_t mark = expr_mark(w->e), next[MOST_STEP], query, at;

    for (uint32_t i = 0; i < l->key_step; i++)
        sums[i] = at_real(w, 0);
    at = loop(l, sched_add_index(w->e->s, w->a->size), 1);
    for (uint32_t i = 0; i < l->key_step; i++)
        sums[i] = kir_phi(w->m, sums[i]);
    query = tile_load(l, l->queries, at);
    delinearize_set(&w->a->points[ATTENTION_SIZE], w->e, at);
    for (uint32_t i = 0; i < l->key_step; i++) {
        uint32_t of_key = expr_mark(w->e);

        delinearize_set(&w->a->points[ATTENTION_KEY], w->e, keys[i]);
        next[i] = at_mad(w, query, expr_value(w->e, w->a->k), sums[i]);
        expr_release(w->e, of_key);
    }
    expr_release(w->e, mark);
    kir_next(w->m, next, l->key_step);
}

/* Scores of a block of keys from `first` on; returns the largest, which is `largest` at least. Keys
 * beyond the last one are that again, without weight. */
static uint32_t score_block(const struct liner *l, uint32_t first, uint32_t largest)
{
    const struct attention_emitter *w = &l->w;
    uint32_t last = sched_add_index(w->e->s, w->a->keys - 1), keys[MOST_STEP], sums[MOST_STEP];
    uint32_t at = loop(l, l->count, l->key_step), next;

    largest = kir_phi(w->m, largest);
    next = largest;
    for (uint32_t i = 0; i < l->key_step; i++) {
        keys[i] = at_plus(w, at2(w, KIR_add, first, at), i);
        if (w->a->keys % l->key_step)
            keys[i] = at2(w, KIR_smin, keys[i], last);
    }
    sum_scores(l, keys, sums);
    for (uint32_t i = 0; i < l->key_step; i++) {
        uint32_t inside = KIR_NONE, score;

        if (w->a->keys % l->key_step)
            inside = at2(w, KIR_lt, at_plus(w, at2(w, KIR_add, first, at), i), w->n_keys);
        score = attention_score(w, 0, keys[i], inside, sums[i]);
        tile_store(l, l->weights, at_plus(w, at, i), score);
        next = attention_larger(w, next, score);
    }
    kir_next(w->m, &next, 1);
    return largest;
}

/* Makes weights of the scores; returns their sum added to `total`. */
static uint32_t weigh_block(const struct liner *l, uint32_t base, uint32_t total)
{
    const struct attention_emitter *w = &l->w;
    uint32_t at = loop(l, l->count, 1), weight;

    total = kir_phi(w->m, total);
    weight = attention_weight(w, tile_load(l, l->weights, at), base);
    tile_store(l, l->weights, at, weight);
    weight = at2(w, KIR_add, total, weight);
    kir_next(w->m, &weight, 1);
    return total;
}

/* ---- values ---- */

/* Adds the block's values to `out_step` results from `first_out` on. */
static void add_results(const struct liner *l, uint32_t first, uint32_t first_out, uint32_t factor)
{
    const struct attention_emitter *w = &l->w;
    uint32_t mark = expr_mark(w->e), sums[MOST_STEP], next[MOST_STEP], at, weight;

    for (uint32_t i = 0; i < l->out_step; i++)
        sums[i] = at2(w, KIR_mul, tile_load(l, l->sum, at_plus(w, first_out, i)), factor);
    at = loop(l, l->count, 1);
    for (uint32_t i = 0; i < l->out_step; i++)
        sums[i] = kir_phi(w->m, sums[i]);
    weight = tile_load(l, l->weights, at);
    delinearize_set(&w->a->points[ATTENTION_KEY], w->e, at2(w, KIR_add, first, at));
    for (uint32_t i = 0; i < l->out_step; i++) {
        uint32_t of_out = expr_mark(w->e);

        delinearize_set(&w->a->points[ATTENTION_OUT], w->e, at_plus(w, first_out, i));
        next[i] = at_mad(w, weight, expr_value(w->e, w->a->v), sums[i]);
        expr_release(w->e, of_out);
    }
    expr_release(w->e, mark);
    kir_next(w->m, next, l->out_step);
    for (uint32_t i = 0; i < l->out_step; i++)
        tile_store(l, l->sum, at_plus(w, first_out, i), sums[i]);
}

static void add_block(const struct liner *l, uint32_t first, uint32_t factor)
{
    uint32_t out = loop(l, sched_add_index(l->w.e->s, l->w.a->outs), l->out_step);

    add_results(l, first, out, factor);
    kir_next(l->w.m, NULL, 0);
}

/* ---- the phase ---- */

static void add_keys(struct liner *l, uint32_t *largest, uint32_t *total)
{
    const struct attention_emitter *w = &l->w;
    uint32_t none = at_real(w, -INFINITY), zero = at_real(w, 0), next[2], base, factor, first;

    first = kir_for(w->m, w->begin, w->end, l->n_keys);
    *largest = kir_phi(w->m, none);
    *total = kir_phi(w->m, zero);
    l->count = at2(w, KIR_smin, at2(w, KIR_sub, w->end, first), at_index(w, l->n_keys));
    next[0] = score_block(l, first, *largest);
    base = attention_base(w, next[0]);
    factor = attention_rescale(w, *largest, base);
    next[1] = weigh_block(l, base, at2(w, KIR_mul, *total, factor));
    add_block(l, first, factor);
    kir_next(w->m, next, 2);
}

static void finish(const struct liner *l, uint32_t largest, uint32_t total)
{
    const struct attention_emitter *w = &l->w;
    uint32_t out;

    attention_keep(w, 0, KIR_NONE, largest, total);
    out = loop(l, sched_add_index(w->e->s, w->a->outs), 1);
    attention_finish(w, 0, out, KIR_NONE, tile_load(l, l->sum, out), total);
    kir_next(w->m, NULL, 0);
}

static uint32_t step_of(int64_t n, uint32_t most)
{
    uint32_t best = most;

    for (uint32_t step = most; 2 * step >= most; step--)
        if (n % step == 0)
            return step;
    while (n % best)
        best--;
    return best;
}

void attention_lines(struct attention *a)
{
    struct liner l = {.w = {.a = a, .e = &a->e, .m = a->e.s->module}, .n_keys = a->sizes.keys};
    struct attention_emitter *w = &l.w;
    uint32_t lanes = a->sizes.down, largest, total;

    l.key_step = a->sizes.depth;
    l.out_step = step_of(a->outs, a->sizes.outs);
    attention_begin(w, lanes, 1, lanes);
    l.queries = kir_tile(w->m, KIR_LANE, w->type, (uint32_t)a->size);
    l.weights = kir_tile(w->m, KIR_LANE, w->type, l.n_keys + l.key_step);
    l.sum = kir_tile(w->m, KIR_LANE, w->type, (uint32_t)a->outs);
    attention_set_rows(w, at2(w, KIR_add, w->first_row, w->lane), 1, 1);
    load_queries(&l);
    clear_sums(&l);
    add_keys(&l, &largest, &total);
    finish(&l, largest, total);
}
