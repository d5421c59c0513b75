/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on lanes that are threads.  A group is a grid of threads: `down` along its rows,
 * `across` along keys while it computes scores, and along results while it adds values.  A thread
 * has a few of each, whose sums stay in registers; operands go through tiles of the group:
 *
 *   queries [row][size], keys [key][size], weights [row][key], values [key][result]
 *
 * Lines of all but values are longer by PAD, so that neighbours begin in different banks: what a
 * thread multiplies is read RUN by RUN along a line, which is one access.  Its rows and keys are
 * `down` and `across` apart, its results lie RUN by RUN next to each other.
 *
 * Where tiles hold a whole block, its values arrive while its scores are computed, and the keys of
 * the next block while its values are added: two barriers a block.  Else queries and keys are
 * staged in parts of `depth`, values in parts of `values` keys. */
#include "lower/attention/attention.h"

#include <assert.h>
#include <math.h>

enum {
    RUN = 4,
    PAD = 4,
    STEP = 2 * RUN, /* of a product in a round of its loop */
    CARRIED = 2 * ATTENTION_ROWS + ATTENTION_SUMS
};

struct tiler {
    struct attention_emitter w;
    struct attention_sizes s;
    uint32_t down, across; /* the thread's place in the grid */
    struct attention_source queries, keys, values;
    uint32_t weights;                /* tile */
    uint32_t n_rows, n_keys, n_outs; /* of the group */
    uint32_t count;                  /* keys of the block that matter; KIR_NONE: n_keys */
    uint32_t largest[ATTENTION_ROWS], total[ATTENTION_ROWS], sum[ATTENTION_SUMS];
};

/* ---- sizes ---- */

static uint32_t depth_pitch(const struct attention_sizes *s)
{
    return s->depth + PAD;
}

static uint32_t keys_pitch(const struct attention_sizes *s)
{
    return s->across * s->keys + PAD;
}

static uint32_t values_pitch(const struct attention_sizes *s)
{
    return power_above((int64_t)s->across * s->outs);
}

uint64_t attention_tile_elements(const struct attention_sizes *s)
{
    uint32_t rows = s->down * s->rows, keys = s->across * s->keys;

    return (uint64_t)(rows + keys) * depth_pitch(s) + (uint64_t)rows * keys_pitch(s) +
           (uint64_t)s->values * values_pitch(s);
}

/* Whether so many elements are as many for each lane, few where they are loaded by lanes. */
static bool can_fetch(const struct attention *a, uint32_t node, uint32_t elements)
{
    const struct attention_sizes *s = &a->sizes;
    uint32_t lanes = s->down * s->across * s->chunk;

    return elements >= lanes && (elements <= ATTENTION_FETCHED * lanes ||
                                 attention_can_copy(a, node, attention_dtype(a)));
}

bool attention_load_ahead(struct attention *a, uint64_t most)
{
    struct attention_sizes *s = &a->sizes;
    uint32_t keys = s->across * s->keys;

    s->is_ahead = a->size <= s->depth && s->values == keys && can_fetch(a, a->k, keys * s->depth) &&
                  can_fetch(a, a->v, keys * values_pitch(s)) && attention_tile_elements(s) <= most;
    return s->is_ahead;
}

/* ---- the grid ---- */

/* Place number `i` of a thread's `each` along `across`: runs of RUN neighbours. */
static uint32_t out_of(const struct tiler *t, uint32_t i)
{
    uint32_t each = t->s.outs, run = each % RUN ? each : RUN;
    uint32_t at = at2(&t->w, KIR_mul, t->across, at_index(&t->w, run));

    return at_plus(&t->w, at, (int64_t)(i / run) * run * t->s.across + i % run);
}

/* Key number `i` of a thread's in a block. */
static uint32_t key_of(const struct tiler *t, uint32_t i)
{
    return at_plus(&t->w, t->across, (int64_t)i * t->s.across);
}

/* Whether a place is not beyond the operand's end; KIR_NONE: surely. */
static uint32_t check(const struct tiler *t, uint32_t place, int64_t end, uint32_t step)
{
    if (end % step == 0)
        return KIR_NONE;
    return at2(&t->w, KIR_lt, place, sched_add_index(t->w.e->s, end));
}

static void barrier(const struct tiler *t)
{
    kir_emit(t->w.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- staging ---- */

static void stage_queries(const struct tiler *t, uint32_t first)
{
    attention_stage(&t->w, &t->queries,
                    &(struct attention_part){t->w.first_row, first, t->n_rows, at_index(&t->w, 0)});
}

static struct attention_part keys_from(const struct tiler *t, uint32_t key, uint32_t first)
{
    return (struct attention_part){key, first, t->n_keys, at_index(&t->w, 0)};
}

static struct attention_part values_from(const struct tiler *t, uint32_t key)
{
    return (struct attention_part){key, t->w.first_out, t->s.values, at_index(&t->w, 0)};
}

/* ---- products ---- */

/* Begins a loop that carries `n` values; they become its phis. */
static uint32_t carry(const struct tiler *t, uint32_t begin, uint32_t end, uint32_t step,
                      uint32_t *values, uint32_t n)
{
    uint32_t counter = kir_for(t->w.m, begin, end, step);

    for (uint32_t i = 0; i < n; i++)
        values[i] = kir_phi(t->w.m, values[i]);
    return counter;
}

/* RUN neighbours of a tile from `at` on, a multiple of RUN, in one access. */
static void load_run(const struct tiler *t, uint32_t tile, uint32_t at, uint32_t *out)
{
    uint32_t place[RUN];

    for (uint32_t i = 0; i < RUN; i++)
        place[i] = at2(&t->w, KIR_add, at, at_index(&t->w, i));
    for (uint32_t i = 0; i < RUN; i++)
        out[i] = kir_emit_as(t->w.m, KIR_tload, t->w.type, tile, place[i], KIR_NONE, KIR_NONE);
}

/* Of `n` lines, `step` apart from line `first` on, RUN elements from column `column` on: those of
 * line i in out[i]. */
static void load_lines(const struct tiler *t, uint32_t tile, uint32_t pitch, uint32_t first,
                       uint32_t step, uint32_t n, uint32_t column, uint32_t (*out)[RUN])
{
    uint32_t at = at2(&t->w, KIR_mul, first, at_index(&t->w, pitch));

    at = at2(&t->w, KIR_add, at, column);
    for (uint32_t i = 0; i < n; i++)
        load_run(t, tile, at_plus(&t->w, at, (int64_t)i * step * pitch), out[i]);
}

/* The thread's results of line `line`. */
static void load_outs(const struct tiler *t, uint32_t line, uint32_t *out)
{
    const struct attention_source *v = &t->values;
    uint32_t at = at2(&t->w, KIR_mul, line, at_index(&t->w, v->pitch));

    if (t->s.outs % RUN == 0) {
        for (uint32_t i = 0; i < t->s.outs; i += RUN)
            load_run(t, v->tile, at2(&t->w, KIR_add, at, out_of(t, i)), out + i);
        return;
    }
    for (uint32_t i = 0; i < t->s.outs; i++)
        out[i] = kir_emit_as(t->w.m, KIR_tload, t->w.type, v->tile,
                             at2(&t->w, KIR_add, at, out_of(t, i)), KIR_NONE, KIR_NONE);
}

/* Adds the products of RUN elements of the thread's rows, from column `at` on, and of keys. */
static void multiply_key_run(const struct tiler *t, uint32_t at, uint32_t *scores)
{
    uint32_t rows[ATTENTION_ROWS][RUN], keys[ATTENTION_KEYS][RUN];
    uint32_t n = t->s.keys, pitch = depth_pitch(&t->s);

    load_lines(t, t->queries.tile, pitch, t->down, t->s.down, t->s.rows, at, rows);
    load_lines(t, t->keys.tile, pitch, t->across, t->s.across, n, at, keys);
    for (uint32_t k = 0; k < RUN; k++)
        for (uint32_t i = 0; i < t->s.rows * n; i++)
            scores[i] = at_mad(&t->w, rows[i / n][k], keys[i % n][k], scores[i]);
}

/* Adds the values of RUN keys from number `at` of their tile on, by the weights from column
 * `column` on. */
static void multiply_value_run(const struct tiler *t, uint32_t at, uint32_t column, uint32_t *sums)
{
    uint32_t rows[ATTENTION_ROWS][RUN], outs[ATTENTION_OUTS], n = t->s.outs;

    load_lines(t, t->weights, keys_pitch(&t->s), t->down, t->s.down, t->s.rows, column, rows);
    for (uint32_t k = 0; k < RUN; k++) {
        load_outs(t, at_plus(&t->w, at, k), outs);
        for (uint32_t i = 0; i < t->s.rows * n; i++)
            sums[i] = at_mad(&t->w, rows[i / n][k], outs[i % n], sums[i]);
    }
}

/* Adds to the thread's scores the products of the first `end` elements in tiles, and of zeros after
 * them. */
static void multiply_keys(const struct tiler *t, uint32_t end, uint32_t *scores)
{
    uint32_t next[ATTENTION_SUMS], n = t->s.rows * t->s.keys;
    uint32_t at = carry(t, at_index(&t->w, 0), end, STEP, scores, n);

    for (uint32_t i = 0; i < n; i++)
        next[i] = scores[i];
    for (uint32_t i = 0; i < STEP; i += RUN)
        multiply_key_run(t, at_plus(&t->w, at, i), next);
    kir_next(t->w.m, next, n);
}

/* Adds the values of `count` keys in their tile, a multiple of STEP, by the weights from column
 * `first` on. */
static void multiply_values(const struct tiler *t, uint32_t first, uint32_t count, uint32_t *sums)
{
    uint32_t next[ATTENTION_SUMS], n = t->s.rows * t->s.outs;
    uint32_t at = carry(t, at_index(&t->w, 0), count, STEP, sums, n);
    uint32_t column = first == KIR_NONE ? at : at2(&t->w, KIR_add, first, at);

    for (uint32_t i = 0; i < n; i++)
        next[i] = sums[i];
    for (uint32_t i = 0; i < STEP; i += RUN)
        multiply_value_run(t, at_plus(&t->w, at, i), at_plus(&t->w, column, i), next);
    kir_next(t->w.m, next, n);
}

/* ---- scores ---- */

static bool has_whole_size(const struct tiler *t)
{
    return t->w.a->size <= t->s.depth;
}

/* Sums of products of the thread's rows and keys, staged in parts where tiles have not all. */
static void sum_scores(const struct tiler *t, uint32_t key, uint32_t *scores)
{
    const struct attention_emitter *w = &t->w;
    uint32_t n = t->s.rows * t->s.keys, next[ATTENTION_SUMS], first, end;
    struct attention_part keys = keys_from(t, key, at_index(w, 0));
    int64_t size = w->a->size;

    if (has_whole_size(t)) {
        barrier(t);
        attention_stage(w, &t->keys, &keys);
        attention_arrive(w);
        multiply_keys(t, at_index(w, size), scores);
        return;
    }
    first = carry(t, at_index(w, 0), sched_add_index(w->e->s, size), t->s.depth, scores, n);
    keys = keys_from(t, key, first);
    barrier(t);
    stage_queries(t, first);
    attention_stage(w, &t->keys, &keys);
    attention_arrive(w);
    end = at_index(w, t->s.depth);
    if (size % t->s.depth)
        end = at2(w, KIR_smin, end, at2(w, KIR_sub, sched_add_index(w->e->s, size), first));
    for (uint32_t i = 0; i < n; i++)
        next[i] = scores[i];
    multiply_keys(t, end, next);
    kir_next(w->m, next, n);
}

/* ---- weights ---- */

static uint32_t exchange(const struct tiler *t, uint32_t distance, uint32_t value)
{
    return kir_emit_imm(t->w.m, KIR_exchange, distance * t->s.chunk, value, KIR_NONE, KIR_NONE);
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
        uint32_t place = at2(w, KIR_add, key, key_of(t, j));
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
        scale_row(t, i, attention_rescale(w, t->largest[i], base));
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
    uint32_t n = t->s.keys, pitch = keys_pitch(&t->s);

    for (uint32_t i = 0; i < t->s.rows * n; i++) {
        uint32_t line = at2(w, KIR_mul, t->down, at_index(w, pitch));
        uint32_t at = at2(w, KIR_add, line, key_of(t, i % n));

        at = at_plus(w, at, (int64_t)(i / n) * t->s.down * pitch);
        kir_emit_imm(w->m, KIR_tstore, t->weights, at, weights[i], KIR_NONE);
    }
}

/* ---- blocks ---- */

/* Adds the values of a block, staged in parts. */
static void add_values(struct tiler *t, uint32_t key)
{
    const struct attention_emitter *w = &t->w;
    uint32_t n = t->s.rows * t->s.outs, next[ATTENTION_SUMS], first, count;
    struct attention_part part;

    first = carry(t, at_index(w, 0), t->count, t->s.values, t->sum, n);
    count = at2(w, KIR_smin, at2(w, KIR_sub, t->count, first), at_index(w, t->s.values));
    part = values_from(t, at2(w, KIR_add, key, first));
    barrier(t);
    attention_stage(w, &t->values, &part);
    attention_arrive(w);
    for (uint32_t i = 0; i < n; i++)
        next[i] = t->sum[i];
    multiply_values(t, first, count, next);
    kir_next(w->m, next, n);
}

/* Keys of the block that some row sees, and a few more to make steps full: these have no weight. */
static uint32_t count_keys(const struct tiler *t, uint32_t key)
{
    const struct attention_emitter *w = &t->w;
    uint32_t left;

    if (!w->a->causal && w->a->keys % t->n_keys == 0)
        return at_index(w, t->n_keys);
    left = at_plus(w, at2(w, KIR_sub, w->end, key), STEP - 1);
    left = at2(w, KIR_and, left, at_index(w, -STEP));
    return at2(w, KIR_smin, left, at_index(w, t->n_keys));
}

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

/* The block after that, or that again where it is the last. */
static uint32_t block_after(const struct tiler *t, uint32_t key)
{
    const struct attention_emitter *w = &t->w;
    uint32_t last = at2(w, KIR_and, at_plus(w, w->end, -1), at_index(w, -(int64_t)t->n_keys));

    return at2(w, KIR_smin, at_plus(w, key, t->n_keys), last);
}

/* Of a block whose keys are on their way to their tile; those of the next are then. */
static void add_block_ahead(struct tiler *t, uint32_t key, uint32_t *scores)
{
    const struct attention_emitter *w = &t->w;
    const struct attention_part values = values_from(t, key),
                                keys = keys_from(t, block_after(t, key), at_index(w, 0));
    struct attention_fetched fetched;

    attention_arrive(w);
    attention_fetch(w, &t->values, &values, &fetched);
    multiply_keys(t, at_index(w, w->a->size), scores);
    finish_scores(t, key, scores);
    weigh(t, scores);
    store_weights(t, scores);
    attention_put(w, &t->values, &fetched);
    attention_arrive(w);
    attention_fetch(w, &t->keys, &keys, &fetched);
    multiply_values(t, KIR_NONE, t->count, t->sum);
    attention_put(w, &t->keys, &fetched);
}

static void add_block(struct tiler *t, uint32_t key, uint32_t *scores)
{
    sum_scores(t, key, scores);
    finish_scores(t, key, scores);
    weigh(t, scores);
    store_weights(t, scores);
    add_values(t, key);
}

static void begin_tiles(struct tiler *t)
{
    const struct attention_part keys = keys_from(t, t->w.begin, at_index(&t->w, 0));

    if (has_whole_size(t))
        stage_queries(t, at_index(&t->w, 0));
    if (t->s.is_ahead)
        attention_stage(&t->w, &t->keys, &keys);
}

static void add_keys(struct tiler *t)
{
    const struct attention_emitter *w = &t->w;
    uint32_t *carried[CARRIED], scores[ATTENTION_SUMS], last[CARRIED], next[CARRIED], key;
    uint32_t n = list_carried(t, carried), zero = at_real(w, 0);

    for (uint32_t i = 0; i < n; i++)
        *carried[i] = at_real(w, i < 2 * t->s.rows && i % 2 == 0 ? -INFINITY : 0);
    begin_tiles(t);
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

/* ---- the phase ---- */

static void finish(struct tiler *t)
{
    const struct attention_emitter *w = &t->w;
    uint32_t first = at2(w, KIR_eq, t->across, at_index(w, 0));

    for (uint32_t i = 0; i < t->s.rows; i++) {
        t->total[i] = sum_across(t, t->total[i]);
        attention_keep(w, i, first, t->largest[i], t->total[i]);
        for (uint32_t j = 0; j < t->s.outs; j++) {
            uint32_t out = at2(w, KIR_add, w->first_out, out_of(t, j));

            attention_finish(w, i, out, check(t, out, w->a->outs, t->n_outs),
                             t->sum[i * t->s.outs + j], t->total[i]);
        }
    }
}

/* An operand with a tile of `lines`. */
static struct attention_source new_source(const struct tiler *t, struct attention_source s,
                                          uint32_t lines)
{
    s.tile = kir_tile(t->w.m, KIR_GROUP, t->w.type, lines * s.pitch);
    s.copies = attention_can_copy(t->w.a, s.node, attention_dtype(t->w.a)) &&
               lines * s.line >= t->w.threads * t->w.chunk;
    return s;
}

static void add_sources(struct tiler *t)
{
    const struct attention *a = t->w.a;
    const uint32_t depth = t->s.depth, pitch = depth_pitch(&t->s), line = values_pitch(&t->s);

    t->queries = new_source(t,
                            (struct attention_source){.node = a->q,
                                                      .pitch = pitch,
                                                      .row_tag = ATTENTION_ROW,
                                                      .column_tag = ATTENTION_SIZE,
                                                      .rows = a->points[ATTENTION_ROW].count,
                                                      .columns = a->size,
                                                      .line = depth},
                            t->n_rows);
    t->keys = new_source(t,
                         (struct attention_source){.node = a->k,
                                                   .pitch = pitch,
                                                   .row_tag = ATTENTION_KEY,
                                                   .column_tag = ATTENTION_SIZE,
                                                   .rows = a->keys,
                                                   .columns = a->size,
                                                   .line = depth},
                         t->n_keys);
    t->values = new_source(t,
                           (struct attention_source){.node = a->v,
                                                     .pitch = line,
                                                     .row_tag = ATTENTION_KEY,
                                                     .column_tag = ATTENTION_OUT,
                                                     .rows = a->keys,
                                                     .columns = a->outs,
                                                     .line = line},
                           t->s.values);
    t->weights = kir_tile(t->w.m, KIR_GROUP, t->w.type, t->n_rows * keys_pitch(&t->s));
}

void attention_tiles(struct attention *a)
{
    struct tiler t = {.w = {.a = a, .e = &a->e, .m = a->e.s->module}, .s = a->sizes};
    struct attention_emitter *w = &t.w;

    assert(t.s.rows * t.s.outs <= ATTENTION_SUMS && t.s.rows * t.s.keys <= ATTENTION_SUMS);
    t.n_rows = t.s.down * t.s.rows;
    t.n_keys = t.s.across * t.s.keys;
    t.n_outs = t.s.across * t.s.outs;
    attention_begin(w, t.s.down * t.s.across, t.s.chunk, t.n_rows);
    if (w->m->failed)
        return;
    w->m->phases[w->m->n_phases - 1].per_thread = t.s.chunk;
    add_sources(&t);
    t.down = at_high(w, w->thread, t.s.across);
    t.across = at_low(w, w->thread, t.s.across);
    attention_set_rows(w, at2(w, KIR_add, w->first_row, t.down), t.s.rows, t.s.down);
    add_keys(&t);
    finish(&t);
}
