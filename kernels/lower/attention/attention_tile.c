/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on lanes that are threads.  A group is a grid of lanes: `down` along its rows, `across`
 * along keys while it computes scores, and along results while it adds values.  A lane has a few of
 * each, whose sums stay in registers; operands go through tiles of the group:
 *
 *   queries [size][row], keys [size][key], weights [key][row], values [key][result]
 *
 * Keys and weights share a tile.  Where scores are longer than `depth`, queries and keys are staged
 * in parts; values are in parts of `values` keys.
 *
 * A lane's rows, and its keys and results four by four, lie next to each other in tiles, where they
 * are one access. */
#include "lower/attention/attention.h"

#include <assert.h>
#include <math.h>

enum {
    RUN = 4,
    PAD = 4,
    CARRIED = 2 * ATTENTION_ROWS + ATTENTION_SUMS,
    AHEAD = 32, /* elements that a lane loads ahead, at most */
    BATCH = 8,  /* elements that a lane loads before it stores any */
    ROUNDS = 4  /* of a product in a round of its loop */
};

/* A tile that is staged: element [column][row], or [row][column]. */
struct source {
    uint32_t node, tile, pitch;
    bool by_rows;
    uint32_t rows, columns; /* of the tile */
    uint32_t row_tag, column_tag;
    uint32_t first_row, first_column;
    int64_t end_row, end_column; /* of the operand */
    uint32_t step;               /* of first_row and the tiles within, together */
};

struct tiler {
    struct attention_emitter w;
    struct attention_sizes s;
    uint32_t down, across;            /* the lane's place in the grid */
    uint32_t queries, shared, values; /* tiles */
    uint32_t n_rows, n_keys, n_outs;  /* of the group */
    uint32_t count;                   /* keys of the block that matter; KIR_NONE: n_keys */
    uint32_t largest[ATTENTION_ROWS], total[ATTENTION_ROWS], sum[ATTENTION_SUMS];
};

/* ---- sizes ---- */

static uint32_t rows_pitch(const struct attention_sizes *s)
{
    return s->down * s->rows + PAD;
}

static uint32_t keys_pitch(const struct attention_sizes *s)
{
    return s->across * s->keys + PAD;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Elements of the tile that keys and weights share. */
static uint32_t shared_count(const struct attention_sizes *s)
{
    return larger(s->depth * keys_pitch(s), s->across * s->keys * rows_pitch(s));
}

uint64_t attention_tile_elements(const struct attention_sizes *s)
{
    return (uint64_t)s->depth * rows_pitch(s) + shared_count(s) +
           (uint64_t)s->values * s->across * s->outs;
}

/* Whether lanes can load all of a block ahead. */
static bool can_load_ahead(const struct attention *a)
{
    const struct attention_sizes *s = &a->sizes;
    uint32_t lanes = s->down * s->across, keys = s->across * s->keys;

    return a->size <= s->depth && s->values == keys && !(s->outs & (s->outs - 1)) &&
           keys * s->depth >= lanes && keys * s->depth <= AHEAD * lanes &&
           keys * s->across * s->outs >= lanes && keys * s->across * s->outs <= AHEAD * lanes;
}

bool attention_load_ahead(struct attention *a, uint64_t most)
{
    struct attention_sizes *s = &a->sizes;

    s->is_ahead = can_load_ahead(a) && attention_tile_elements(s) <= most;
    return s->is_ahead;
}

/* ---- the grid ---- */

static uint32_t shift_of(uint32_t n)
{
    uint32_t shift = 0;

    while (1u << shift < n)
        shift++;
    return shift;
}

static uint32_t low_part(const struct attention_emitter *w, uint32_t number, uint32_t n)
{
    return at2(w, KIR_and, number, at_index(w, n - 1));
}

static uint32_t high_part(const struct attention_emitter *w, uint32_t number, uint32_t n)
{
    return n == 1 ? number : at2(w, KIR_shr, number, at_index(w, shift_of(n)));
}

/* Place number `i` of a lane's `each` along `across`: runs of RUN neighbours. */
static uint32_t place_of(const struct tiler *t, uint32_t each, uint32_t i)
{
    uint32_t run = each % RUN ? each : RUN;
    uint32_t at = at2(&t->w, KIR_mul, t->across, at_index(&t->w, run));

    return at_plus(&t->w, at, (int64_t)(i / run) * run * t->s.across + i % run);
}

static uint32_t tile_load(const struct tiler *t, uint32_t tile, uint32_t at)
{
    return kir_emit_as(t->w.m, KIR_tload, t->w.type, tile, at, KIR_NONE, KIR_NONE);
}

static void barrier(const struct tiler *t)
{
    kir_emit(t->w.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- staging ---- */

/* Whether a place is not beyond the operand's end; KIR_NONE: surely.  `step` 0: it may be far. */
static uint32_t check(const struct tiler *t, uint32_t place, int64_t end, uint32_t step)
{
    if (step && end % step == 0)
        return KIR_NONE;
    return at2(&t->w, KIR_lt, place, sched_add_index(t->w.e->s, end));
}

/* The operand's element for a row and a column of the tile, whose number there is *at.  `mask`: of
 * lanes that have one. */
static uint32_t element_of(const struct tiler *t, const struct source *o, uint32_t row,
                           uint32_t column, uint32_t mask, uint32_t *at)
{
    const struct attention_emitter *w = &t->w;
    uint32_t mark = expr_mark(w->e), value, inside;
    uint32_t from_row = at2(w, KIR_add, o->first_row, row);
    uint32_t from_column = at2(w, KIR_add, o->first_column, column);

    inside = at_both(w, check(t, from_row, o->end_row, o->step),
                     check(t, from_column, o->end_column, power_above(o->columns)));
    inside = at_both(w, inside, mask);
    delinearize_set(&w->a->points[o->row_tag], w->e, from_row);
    delinearize_set(&w->a->points[o->column_tag], w->e, from_column);
    expr_mask(w->e, inside);
    value = expr_value(w->e, o->node);
    expr_release(w->e, mark);
    *at = at2(w, KIR_mul, o->by_rows ? row : column, at_index(w, o->pitch));
    *at = at2(w, KIR_add, *at, o->by_rows ? column : row);
    return inside == KIR_NONE ? value : kir_select(w->m, inside, value, at_real(w, 0));
}

static void stage_element(const struct tiler *t, const struct source *o, uint32_t row,
                          uint32_t column, uint32_t mask)
{
    const struct attention_emitter *w = &t->w;
    uint32_t at, value = element_of(t, o, row, column, mask, &at);

    if (o->columns != power_above(o->columns))
        mask = at_both(w, mask, at2(w, KIR_lt, column, at_index(w, o->columns)));
    kir_emit_imm(w->m, mask == KIR_NONE ? KIR_tstore : KIR_tstore_if, o->tile, at, value, mask);
}

/* `n` elements of each lane; neighbouring lanes take neighbouring columns. */
static void stage_elements(const struct tiler *t, const struct source *o, uint32_t first,
                           uint32_t n)
{
    const struct attention_emitter *w = &t->w;
    uint32_t lanes = t->s.down * t->s.across, columns = power_above(o->columns);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t number = at_plus(w, first, (int64_t)i * lanes), mask = KIR_NONE;

        if (o->rows * columns < lanes)
            mask = at2(w, KIR_lt, number, at_index(w, (int64_t)o->rows * columns));
        stage_element(t, o, high_part(w, number, columns), low_part(w, number, columns), mask);
    }
}

/* The first `count` rows, at least; KIR_NONE: all. */
static void stage(const struct tiler *t, const struct source *o, uint32_t count)
{
    const struct attention_emitter *w = &t->w;
    uint32_t lanes = t->s.down * t->s.across, columns = power_above(o->columns);
    uint32_t n = (o->rows * columns + lanes - 1) / lanes, batch = n < BATCH ? n : BATCH, first, end;

    if (n == batch && count == KIR_NONE) {
        stage_elements(t, o, w->lane, n);
        return;
    }
    end = count == KIR_NONE ? at_index(w, (int64_t)o->rows * columns)
                            : at2(w, KIR_mul, count, at_index(w, columns));
    first = kir_for(w->m, at_index(w, 0), end, batch * lanes);
    stage_elements(t, o, at2(w, KIR_add, first, w->lane), batch);
    kir_next(w->m, NULL, 0);
}

/* What a lane loads before others are done with the tile. */
struct ahead {
    uint32_t n, tile, value[AHEAD], at[AHEAD];
};

static void load_ahead(const struct tiler *t, const struct source *o, struct ahead *ahead)
{
    uint32_t lanes = t->s.down * t->s.across;

    ahead->tile = o->tile;
    ahead->n = o->rows * o->columns / lanes;
    for (uint32_t i = 0; i < ahead->n; i++) {
        uint32_t number = at_plus(&t->w, t->w.lane, (int64_t)i * lanes);

        ahead->value[i] = element_of(t, o, high_part(&t->w, number, o->columns),
                                     low_part(&t->w, number, o->columns), KIR_NONE, &ahead->at[i]);
    }
}

static void store_ahead(const struct tiler *t, const struct ahead *ahead)
{
    for (uint32_t i = 0; i < ahead->n; i++)
        kir_emit_imm(t->w.m, KIR_tstore, ahead->tile, ahead->at[i], ahead->value[i], KIR_NONE);
}

static void stage_queries(const struct tiler *t, uint32_t first)
{
    const struct attention *a = t->w.a;

    stage(t,
          &(struct source){.node = a->q,
                           .tile = t->queries,
                           .pitch = rows_pitch(&t->s),
                           .rows = t->n_rows,
                           .columns = t->s.depth,
                           .row_tag = ATTENTION_ROW,
                           .column_tag = ATTENTION_SIZE,
                           .first_row = t->w.first_row,
                           .first_column = first,
                           .end_row = a->points[ATTENTION_ROW].count,
                           .end_column = a->size,
                           .step = t->n_rows},
          KIR_NONE);
}

static struct source keys_from(const struct tiler *t, uint32_t key, uint32_t first)
{
    const struct attention *a = t->w.a;

    return (struct source){.node = a->k,
                           .tile = t->shared,
                           .pitch = keys_pitch(&t->s),
                           .rows = t->n_keys,
                           .columns = t->s.depth,
                           .row_tag = ATTENTION_KEY,
                           .column_tag = ATTENTION_SIZE,
                           .first_row = key,
                           .first_column = first,
                           .end_row = a->keys,
                           .end_column = a->size,
                           .step = t->n_keys};
}

static struct source values_from(const struct tiler *t, uint32_t key)
{
    const struct attention *a = t->w.a;

    return (struct source){.node = a->v,
                           .tile = t->values,
                           .pitch = t->n_outs,
                           .by_rows = true,
                           .rows = t->s.values,
                           .columns = t->n_outs,
                           .row_tag = ATTENTION_KEY,
                           .column_tag = ATTENTION_OUT,
                           .first_row = key,
                           .first_column = t->w.first_out,
                           .end_row = a->keys,
                           .end_column = a->outs,
                           .step = t->n_keys};
}

static void stage_keys(const struct tiler *t, uint32_t key, uint32_t first)
{
    const struct source keys = keys_from(t, key, first);

    stage(t, &keys, t->count);
}

static void stage_values(const struct tiler *t, uint32_t key, uint32_t count)
{
    const struct source values = values_from(t, key);

    stage(t, &values, count);
}

/* ---- scores ---- */

/* The product of tiles with a lane's rows, from column `first` on, and with `each` of a lane. */
struct product {
    uint32_t left, first; /* KIR_NONE: 0 */
    uint32_t right, pitch, each;
    uint32_t end, step; /* rounds: a multiple */
};

/* Begins a loop that carries `n` values; they become its phis. */
static uint32_t carry(const struct tiler *t, uint32_t begin, uint32_t end, uint32_t step,
                      uint32_t *values, uint32_t n)
{
    uint32_t counter = kir_for(t->w.m, begin, end, step);

    for (uint32_t i = 0; i < n; i++)
        values[i] = kir_phi(t->w.m, values[i]);
    return counter;
}

/* The lane's rows of column `column` of a tile with them. */
static void load_rows(const struct tiler *t, uint32_t tile, uint32_t column, uint32_t *out)
{
    uint32_t at = at2(&t->w, KIR_mul, column, at_index(&t->w, rows_pitch(&t->s)));

    at = at2(&t->w, KIR_add, at, at2(&t->w, KIR_mul, t->down, at_index(&t->w, t->s.rows)));
    for (uint32_t i = 0; i < t->s.rows; i++)
        out[i] = tile_load(t, tile, at_plus(&t->w, at, i));
}

static void load_across(const struct tiler *t, uint32_t tile, uint32_t row, uint32_t pitch,
                        uint32_t each, uint32_t *out)
{
    uint32_t at = at2(&t->w, KIR_mul, row, at_index(&t->w, pitch));

    for (uint32_t i = 0; i < each; i++)
        out[i] = tile_load(t, tile, at2(&t->w, KIR_add, at, place_of(t, each, i)));
}

/* One round of a product: adds what a column of the left tile and a row of the right one give. */
static void multiply_round(const struct tiler *t, const struct product *p, uint32_t round,
                           uint32_t *sums)
{
    uint32_t rows[ATTENTION_ROWS], columns[ATTENTION_OUTS];

    load_rows(t, p->left, p->first == KIR_NONE ? round : at2(&t->w, KIR_add, round, p->first),
              rows);
    load_across(t, p->right, round, p->pitch, p->each, columns);
    for (uint32_t i = 0; i < t->s.rows * p->each; i++)
        sums[i] = at_mad(&t->w, rows[i / p->each], columns[i % p->each], sums[i]);
}

static void multiply(const struct tiler *t, const struct product *p, uint32_t *sums)
{
    uint32_t next[ATTENTION_SUMS], n = t->s.rows * p->each, round;

    round = carry(t, at_index(&t->w, 0), p->end, p->step, sums, n);
    for (uint32_t i = 0; i < n; i++)
        next[i] = sums[i];
    for (uint32_t i = 0; i < p->step; i++)
        multiply_round(t, p, at_plus(&t->w, round, i), next);
    kir_next(t->w.m, next, n);
}

static void multiply_keys(const struct tiler *t, uint32_t end, uint32_t step, uint32_t *scores)
{
    multiply(t,
             &(struct product){.left = t->queries,
                               .first = KIR_NONE,
                               .right = t->shared,
                               .pitch = keys_pitch(&t->s),
                               .each = t->s.keys,
                               .end = end,
                               .step = step},
             scores);
}

/* Sums of products of the lane's rows and keys.  Values are staged with the keys where they fit. */
static void sum_scores(const struct tiler *t, uint32_t key, uint32_t *scores)
{
    const struct attention_emitter *w = &t->w;
    uint32_t n = t->s.rows * t->s.keys, next[ATTENTION_SUMS], first, end;
    int64_t size = w->a->size;

    if (size <= t->s.depth) {
        barrier(t);
        stage_keys(t, key, at_index(w, 0));
        if (t->s.values == t->n_keys)
            stage_values(t, key, t->count);
        barrier(t);
        multiply_keys(t, at_index(w, size), size % ROUNDS ? 1 : ROUNDS, scores);
        return;
    }
    first = carry(t, at_index(w, 0), sched_add_index(w->e->s, size), t->s.depth, scores, n);
    barrier(t);
    stage_queries(t, first);
    stage_keys(t, key, first);
    barrier(t);
    end = at_index(w, t->s.depth);
    if (size % t->s.depth)
        end = at2(w, KIR_smin, end, at2(w, KIR_sub, sched_add_index(w->e->s, size), first));
    for (uint32_t i = 0; i < n; i++)
        next[i] = scores[i];
    multiply_keys(t, end, size % ROUNDS ? 1 : ROUNDS, next);
    kir_next(w->m, next, n);
}

/* ---- weights ---- */

static uint32_t exchange(const struct tiler *t, uint32_t distance, uint32_t value)
{
    return kir_emit_imm(t->w.m, KIR_exchange, distance, value, KIR_NONE, KIR_NONE);
}

/* Of all lanes that share the row. */
static uint32_t largest_across(const struct tiler *t, uint32_t largest)
{
    for (uint32_t d = 1; d < t->s.across; d *= 2)
        largest = attention_larger(&t->w, largest, exchange(t, d, largest));
    return largest;
}

static uint32_t sum_across(const struct tiler *t, uint32_t sum)
{
    for (uint32_t d = 1; d < t->s.across; d *= 2)
        sum = at2(&t->w, KIR_add, sum, exchange(t, d, sum));
    return sum;
}

static void finish_scores(const struct tiler *t, uint32_t key, uint32_t *scores)
{
    const struct attention_emitter *w = &t->w;
    uint32_t n = t->s.keys;

    for (uint32_t j = 0; j < n; j++) {
        uint32_t place = at2(w, KIR_add, key, place_of(t, n, j));
        uint32_t inside = check(t, place, w->a->keys, t->n_keys);

        for (uint32_t i = 0; i < t->s.rows; i++)
            scores[i * n + j] = attention_score(w, i, place, inside, scores[i * n + j]);
    }
}

static void scale_row(struct tiler *t, uint32_t row, uint32_t factor)
{
    t->total[row] = at2(&t->w, KIR_mul, t->total[row], factor);
    for (uint32_t i = 0; i < t->s.outs; i++) {
        uint32_t *sum = &t->sum[row * t->s.outs + i];

        *sum = at2(&t->w, KIR_mul, *sum, factor);
    }
}

/* Makes weights of the scores; what was summed before becomes relative to the new maximum.  A
 * lane's total is that of its own keys. */
static void weigh(struct tiler *t, uint32_t *scores)
{
    const struct attention_emitter *w = &t->w;
    uint32_t n = t->s.keys;

    for (uint32_t i = 0; i < t->s.rows; i++) {
        uint32_t largest = t->largest[i], base;

        for (uint32_t j = 0; j < n; j++)
            largest = attention_larger(w, largest, scores[i * n + j]);
        largest = largest_across(t, largest);
        base = attention_base(w, largest);
        scale_row(t, i, attention_weight(w, t->largest[i], base));
        t->largest[i] = largest;
        for (uint32_t j = 0; j < n; j++) {
            scores[i * n + j] = attention_weight(w, scores[i * n + j], base);
            t->total[i] = at2(w, KIR_add, t->total[i], scores[i * n + j]);
        }
    }
}

static void store_weights(const struct tiler *t, const uint32_t *weights)
{
    const struct attention_emitter *w = &t->w;

    for (uint32_t j = 0; j < t->s.keys; j++) {
        uint32_t at = at2(w, KIR_mul, place_of(t, t->s.keys, j), at_index(w, rows_pitch(&t->s)));

        at = at2(w, KIR_add, at, at2(w, KIR_mul, t->down, at_index(w, t->s.rows)));
        for (uint32_t i = 0; i < t->s.rows; i++)
            kir_emit_imm(w->m, KIR_tstore, t->shared, at_plus(w, at, i), weights[i * t->s.keys + j],
                         KIR_NONE);
    }
}

/* ---- values ---- */

static void multiply_values(struct tiler *t, uint32_t first, uint32_t count, uint32_t *sums)
{
    multiply(t,
             &(struct product){.left = t->shared,
                               .first = first,
                               .right = t->values,
                               .pitch = t->n_outs,
                               .each = t->s.outs,
                               .end = count == KIR_NONE ? at_index(&t->w, t->s.values) : count,
                               .step = ROUNDS},
             sums);
}

/* Of a part of the block from `first` on. */
static uint32_t part_count(const struct tiler *t, uint32_t first)
{
    const struct attention_emitter *w = &t->w;

    if (t->count == KIR_NONE)
        return KIR_NONE;
    return at2(w, KIR_smin, at2(w, KIR_sub, t->count, first), at_index(w, t->s.values));
}

static void add_values(struct tiler *t, uint32_t key)
{
    const struct attention_emitter *w = &t->w;
    uint32_t n = t->s.rows * t->s.outs, next[ATTENTION_SUMS], first, end, count;

    if (t->s.values == t->n_keys) {
        if (w->a->size > t->s.depth)
            stage_values(t, key, t->count);
        barrier(t);
        multiply_values(t, KIR_NONE, t->count, t->sum);
        return;
    }
    end = t->count == KIR_NONE ? at_index(w, t->n_keys) : t->count;
    first = carry(t, at_index(w, 0), end, t->s.values, t->sum, n);
    count = part_count(t, first);
    barrier(t);
    stage_values(t, at2(w, KIR_add, key, first), count);
    barrier(t);
    for (uint32_t i = 0; i < n; i++)
        next[i] = t->sum[i];
    multiply_values(t, first, count, next);
    kir_next(w->m, next, n);
}

/* Keys of the block that some row sees, and a few more to make rounds full: these have no weight.
 */
static uint32_t count_keys(const struct tiler *t, uint32_t key)
{
    const struct attention_emitter *w = &t->w;
    uint32_t left;

    if (!w->a->causal && w->a->keys % t->n_keys == 0)
        return KIR_NONE;
    left = at_plus(w, at2(w, KIR_sub, w->end, key), ROUNDS - 1);
    left = at2(w, KIR_and, left, at_index(w, -ROUNDS));
    return at2(w, KIR_smin, left, at_index(w, t->n_keys));
}

/* ---- the phase ---- */

/* What rounds over keys carry: maxima, totals, sums. */
static uint32_t list_carried(struct tiler *t, uint32_t **out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->s.rows; i++) {
        out[n++] = &t->largest[i];
        out[n++] = &t->total[i];
    }
    for (uint32_t i = 0; i < t->s.rows * t->s.outs; i++)
        out[n++] = &t->sum[i];
    return n;
}

/* Of a block whose keys are in their tile; those of the next are then.  Everything that is loaded
 * arrives while products are computed. */
static void add_block_ahead(struct tiler *t, uint32_t key, uint32_t *scores)
{
    const struct attention_emitter *w = &t->w;
    const struct source values = values_from(t, key);
    struct source keys = keys_from(t, at_plus(w, key, t->n_keys), at_index(w, 0));
    struct ahead ahead;

    keys.step = 0;
    load_ahead(t, &values, &ahead);
    barrier(t);
    multiply_keys(t, at_index(w, w->a->size), w->a->size % ROUNDS ? 1 : ROUNDS, scores);
    finish_scores(t, key, scores);
    weigh(t, scores);
    barrier(t);
    store_weights(t, scores);
    store_ahead(t, &ahead);
    load_ahead(t, &keys, &ahead);
    barrier(t);
    multiply_values(t, KIR_NONE, t->count, t->sum);
    barrier(t);
    store_ahead(t, &ahead);
}

static void add_block(struct tiler *t, uint32_t key, uint32_t *scores)
{
    sum_scores(t, key, scores);
    finish_scores(t, key, scores);
    weigh(t, scores);
    barrier(t);
    store_weights(t, scores);
    add_values(t, key);
}

static void add_keys(struct tiler *t)
{
    const struct attention_emitter *w = &t->w;
    uint32_t *carried[CARRIED], scores[ATTENTION_SUMS], last[CARRIED], next[CARRIED], key;
    uint32_t n = list_carried(t, carried), zero = at_real(w, 0);
    const struct source first = keys_from(t, w->begin, at_index(w, 0));

    for (uint32_t i = 0; i < n; i++)
        *carried[i] = at_real(w, i < 2 * t->s.rows && i % 2 == 0 ? -INFINITY : 0);
    if (t->s.is_ahead)
        stage(t, &first, KIR_NONE);
    key = kir_for(w->m, w->begin, w->end, t->n_keys);
    for (uint32_t i = 0; i < n; i++)
        *carried[i] = last[i] = kir_phi(w->m, *carried[i]);
    t->count = count_keys(t, key);
    for (uint32_t i = 0; i < t->s.rows * t->s.keys; i++)
        scores[i] = zero;
    (t->s.is_ahead ? add_block_ahead : add_block)(t, key, scores);
    for (uint32_t i = 0; i < n; i++)
        next[i] = *carried[i];
    kir_next(w->m, next, n);
    for (uint32_t i = 0; i < n; i++)
        *carried[i] = last[i];
}

static void finish(struct tiler *t)
{
    const struct attention_emitter *w = &t->w;
    uint32_t first = at2(w, KIR_eq, t->across, at_index(w, 0));

    for (uint32_t i = 0; i < t->s.rows; i++) {
        t->total[i] = sum_across(t, t->total[i]);
        attention_keep(w, i, first, t->largest[i], t->total[i]);
        for (uint32_t j = 0; j < t->s.outs; j++) {
            uint32_t out = at2(w, KIR_add, w->first_out, place_of(t, t->s.outs, j));

            attention_finish(w, i, out, check(t, out, w->a->outs, t->n_outs),
                             t->sum[i * t->s.outs + j], t->total[i]);
        }
    }
}

static void add_tiles(struct tiler *t)
{
    t->queries = kir_tile(t->w.m, KIR_GROUP, t->w.type, t->s.depth * rows_pitch(&t->s));
    t->shared = kir_tile(t->w.m, KIR_GROUP, t->w.type, shared_count(&t->s));
    t->values = kir_tile(t->w.m, KIR_GROUP, t->w.type, t->s.values * t->n_outs);
}

void attention_tiles(struct attention *a)
{
    struct tiler t = {.w = {.a = a, .e = &a->e, .m = a->e.s->module}, .s = a->sizes};
    struct attention_emitter *w = &t.w;
    uint32_t lanes = a->sizes.down * a->sizes.across;

    assert(t.s.rows * t.s.outs <= ATTENTION_SUMS && t.s.rows * t.s.keys <= ATTENTION_SUMS);
    t.n_rows = t.s.down * t.s.rows;
    t.n_keys = t.s.across * t.s.keys;
    t.n_outs = t.s.across * t.s.outs;
    attention_begin(w, lanes, t.n_rows);
    w->m->phases[w->m->n_phases - 1].per_thread = 1;
    add_tiles(&t);
    t.down = high_part(w, w->lane, t.s.across);
    t.across = low_part(w, w->lane, t.s.across);
    attention_set_rows(
        w, at2(w, KIR_add, w->first_row, at2(w, KIR_mul, t.down, at_index(w, t.s.rows))), t.s.rows);
    if (a->size <= t.s.depth)
        stage_queries(&t, at_index(w, 0));
    add_keys(&t);
    finish(&t);
}
