/* SPDX-License-Identifier: Apache-2.0 */
/* Weights through tiles, where it is not known which lane has which element of a fragment.  A team
 * stores its scores to a tile, from which threads take chunks of a row each: they know rows and
 * keys.  Threads that share a row exchange its maximum.  Weights go into a tile of elements as the
 * values have, of which the left fragments of the second product are loaded; what sums are scaled
 * by goes into a tile that has a row's factor in each element of the row.
 *
 * Two barriers part what is done for a block: keys are multiplied; keys of the next block and
 * values of this one, which were loaded meanwhile, are stored, and weights made; values are
 * multiplied. */
#include <math.h>

#include "lower/attention/attention_fragment.h"

enum {
    SCORE_CHUNK = 4, /* by which lines of scores are longer, */
    MOST_CHUNKS = 8, /* and so many a thread has of a line */
    FACTORS = SIDE * SIDE
};

struct passer {
    struct fragmenter *f;
    uint32_t scores, weights, factors; /* tiles */
    uint32_t factor;                   /* a fragment of sums */
    uint32_t parts;                    /* threads that share a row */
    uint32_t rounds;                   /* chunks of a row that each has */
    uint32_t part;                     /* the thread's number among them, */
    uint32_t line;                     /* its row's line in tiles, */
    uint32_t largest, total;           /* the row's maximum, and the lane's part of its sum */
};

static uint32_t score_line(uint32_t n_keys)
{
    return n_keys + SCORE_CHUNK;
}

static uint32_t weight_line(uint32_t n_keys)
{
    return n_keys + CHUNK;
}

uint64_t fragment_tile_bytes(const struct attention_sizes *sizes)
{
    return (uint64_t)sizes->down *
           (SIDE * (4 * score_line(sizes->keys) + 2 * weight_line(sizes->keys)) + 4 * FACTORS);
}

/* ---- the thread's part of tiles ---- */

/* The first column of its chunk number `i`. */
static uint32_t column_of(const struct passer *p, uint32_t i)
{
    const struct attention_emitter *w = &p->f->w;

    return at_plus(w, at_times(w, p->part, CHUNK), (int64_t)i * p->parts * CHUNK);
}

/* Where the lane's element of chunk `i` is in a tile with such lines. */
static uint32_t place_of(const struct passer *p, uint32_t line, uint32_t i)
{
    const struct attention_emitter *w = &p->f->w;
    uint32_t at = at2(w, KIR_add, at_times(w, p->line, line), column_of(p, i));

    return at2(w, KIR_add, at, p->f->w.low);
}

/* The place of a team's rows in a tile with such lines. */
static uint32_t team_place(const struct passer *p, uint32_t line)
{
    return at_times(&p->f->w, p->f->team, (int64_t)SIDE * line);
}

static void move(const struct passer *p, enum kir_op op, uint32_t fragment, uint32_t tile,
                 uint32_t at, uint32_t line)
{
    const struct kir_fragment_place place = {.fragment = fragment, .is_tile = true, .place = tile};

    kir_emit_imm(p->f->w.m, op, kir_fragment_imm(&place), at, at_index(&p->f->w, line), KIR_NONE);
}

/* Stores fragments of sums next to each other to the tile of scores. */
static void store_sums(const struct passer *p, const uint32_t *fragments, uint32_t n)
{
    const uint32_t line = score_line(p->f->n_keys);

    for (uint32_t i = 0; i < n; i++)
        move(p, KIR_mstore, fragments[i], p->scores,
             at_plus(&p->f->w, team_place(p, line), (int64_t)i * SIDE), line);
}

static uint32_t load_sum(const struct passer *p, uint32_t i)
{
    const struct attention_emitter *w = &p->f->w;

    return kir_emit_as(w->m, KIR_tload, w->type, p->scores,
                       place_of(p, score_line(p->f->n_keys), i), KIR_NONE, KIR_NONE);
}

static void store_element(const struct passer *p, uint32_t tile, uint32_t at, uint32_t value)
{
    kir_emit_imm(p->f->w.m, KIR_tstore, tile, at, value, KIR_NONE);
}

/* ---- rows ---- */

static uint32_t exchange(const struct passer *p, uint32_t distance, uint32_t value)
{
    return kir_emit_imm(p->f->w.m, KIR_exchange, distance, value, KIR_NONE, KIR_NONE);
}

/* What the lanes of a thread, and threads that share a row, have together. */
static uint32_t fold(const struct passer *p, enum kir_op op, uint32_t value)
{
    for (uint32_t d = 1; d < CHUNK; d *= 2)
        value = at2(&p->f->w, op, value, exchange(p, d, value));
    for (uint32_t d = 1; d < p->parts; d *= 2)
        value = at2(&p->f->w, op, value, exchange(p, d * SIDE * CHUNK, value));
    return value;
}

static void load_scores(const struct passer *p, uint32_t key, uint32_t *scores)
{
    const struct attention_emitter *w = &p->f->w;

    for (uint32_t i = 0; i < p->rounds; i++) {
        uint32_t place = at2(w, KIR_add, at2(w, KIR_add, key, column_of(p, i)), p->f->w.low),
                 inside = KIR_NONE;

        if (w->a->keys % p->f->n_keys)
            inside = at2(w, KIR_lt, place, w->n_keys);
        scores[i] = attention_score(w, 0, place, inside, load_sum(p, i));
    }
}

/* A row's elements of a team's factors, each of which a thread has: a chunk at a time. */
static void store_factor(const struct passer *p, uint32_t factor)
{
    const struct attention_emitter *w = &p->f->w;
    uint32_t at = at2(w, KIR_add, at_times(w, p->line, SIDE), p->f->w.low);

    if (p->parts == 1) {
        store_element(p, p->factors, at, factor);
        store_element(p, p->factors, at_plus(w, at, CHUNK), factor);
        return;
    }
    at = at2(w, KIR_add, at, at_times(w, at_low(w, p->part, SIDE / CHUNK), CHUNK));
    store_element(p, p->factors, at, factor);
}

/* Makes weights of the scores, and a new maximum. */
static void weigh(struct passer *p, uint32_t key)
{
    const struct attention_emitter *w = &p->f->w;
    uint32_t scores[MOST_CHUNKS], largest, base, factor, before = p->largest;

    load_scores(p, key, scores);
    largest = scores[0];
    for (uint32_t i = 1; i < p->rounds; i++)
        largest = attention_larger(w, largest, scores[i]);
    p->largest = at2(w, KIR_fmax, before, fold(p, KIR_fmax, largest));
    base = attention_base(w, p->largest);
    factor = attention_rescale(w, before, base);
    store_factor(p, factor);
    p->total = at2(w, KIR_mul, p->total, factor);
    for (uint32_t i = 0; i < p->rounds; i++) {
        uint32_t weight = attention_weight(w, scores[i], base);

        p->total = at2(w, KIR_add, p->total, weight);
        store_element(p, p->weights, place_of(p, weight_line(p->f->n_keys), i), weight);
    }
}

/* ---- blocks ---- */

static void multiply_keys(const struct passer *p)
{
    for (uint32_t j = 0; j < p->f->keys; j++)
        fragment_multiply_key(p->f, at_index(&p->f->w, 0), j);
    store_sums(p, p->f->score[0], p->f->keys);
}

static void multiply_values(const struct passer *p)
{
    const struct fragmenter *f = p->f;
    const uint32_t line = weight_line(f->n_keys);

    move(p, KIR_mload, p->factor, p->factors, team_place(p, SIDE), SIDE);
    for (uint32_t i = 0; i < f->outs; i++)
        fragment_emit(f, KIR_mscale, kir_pair(f->sum[0][i], p->factor));
    for (uint32_t j = 0; j < f->keys; j++) {
        move(p, KIR_mload, f->weight[0], p->weights,
             at_plus(&f->w, team_place(p, line), (int64_t)j * SIDE), line);
        fragment_multiply_value(f, at_index(&f->w, 0), j);
    }
}

/* The block after one.  Where all are whole it is the last one again after that, so that there are
 * no conditions. */
static uint32_t next_block(const struct fragmenter *f, uint32_t key)
{
    const struct attention_emitter *w = &f->w;
    uint32_t next = at_plus(w, key, f->n_keys);

    if (w->a->keys % f->n_keys)
        return next;
    return at2(w, KIR_smin, next, sched_add_index(w->e->s, w->a->keys - f->n_keys));
}

static void add_keys(struct passer *p)
{
    const struct fragmenter *f = p->f;
    const struct attention_emitter *w = &f->w;
    uint32_t key, last[2], mark = expr_mark(w->e), zero = at_index(w, 0);
    const struct attention_part first = fragment_keys(f, w->begin, zero);
    struct attention_part keys, values;
    struct attention_fetched fetched[2];

    kir_if(w->m, at2(w, KIR_lt, w->begin, w->end));
    attention_stage(w, &f->k, &first);
    expr_release(w->e, mark);
    kir_end(w->m);
    fragment_emit(f, KIR_barrier, 0);
    p->largest = at_real(w, -INFINITY);
    p->total = at_real(w, 0);
    key = kir_for(w->m, w->begin, w->end, f->n_keys);
    p->largest = last[0] = kir_phi(w->m, p->largest);
    p->total = last[1] = kir_phi(w->m, p->total);
    keys = fragment_keys(f, next_block(f, key), zero);
    values = fragment_values(f, key, zero);
    attention_fetch(w, &f->v, &values, &fetched[0]);
    attention_fetch(w, &f->k, &keys, &fetched[1]);
    multiply_keys(p);
    fragment_emit(f, KIR_barrier, 0);
    weigh(p, key);
    attention_put(w, &f->v, &fetched[0]);
    attention_put(w, &f->k, &fetched[1]);
    fragment_emit(f, KIR_barrier, 0);
    multiply_values(p);
    expr_release(w->e, mark);
    kir_next(w->m, (const uint32_t[]){p->largest, p->total}, 2);
    p->largest = last[0];
    p->total = last[1];
}

/* ---- results ---- */

/* Sums of fragments from `first` on, which are in the tile of scores. */
static void finish_sums(const struct passer *p, uint32_t first, uint32_t n)
{
    const struct attention_emitter *w = &p->f->w;
    const struct attention *a = w->a;
    const int64_t outs = (int64_t)p->f->outs * SIDE;

    for (uint32_t i = 0; i * p->parts < n * SIDE / CHUNK; i++) {
        uint32_t mark = expr_mark(w->e), column = column_of(p, i), ok = KIR_NONE, out;

        out = at_plus(w, at2(w, KIR_add, w->first_out, column), (int64_t)first * SIDE);
        if (a->outs % outs)
            ok = at2(w, KIR_lt, a->outs % CHUNK ? at2(w, KIR_add, out, p->f->w.low) : out,
                     sched_add_index(w->e->s, a->outs));
        if (n * SIDE / CHUNK % p->parts)
            ok = at_both(w, ok, at2(w, KIR_lt, column, at_index(w, (int64_t)n * SIDE)));
        attention_finish_chunk(w, 0, out, ok, load_sum(p, i), p->total);
        expr_release(w->e, mark);
    }
}

static void finish(struct passer *p)
{
    const struct fragmenter *f = p->f;
    const struct attention_emitter *w = &f->w;
    uint32_t first;

    p->total = fold(p, KIR_add, p->total);
    if (w->a->n_splits > 1) {
        first = at2(w, KIR_eq, at2(w, KIR_add, p->part, w->low), at_index(w, 0));
        attention_keep(w, 0, first, p->largest, p->total);
    }
    for (uint32_t i = 0; i < f->outs; i += f->keys) {
        uint32_t n = f->outs - i < f->keys ? f->outs - i : f->keys;

        fragment_emit(f, KIR_barrier, 0);
        store_sums(p, &f->sum[0][i], n);
        fragment_emit(f, KIR_barrier, 0);
        finish_sums(p, i, n);
    }
}

void fragment_tile(struct fragmenter *f)
{
    struct attention_emitter *w = &f->w;
    const uint32_t team = w->e->s->target->team, rows = f->teams * SIDE;
    struct passer p = {.f = f, .parts = team / SIDE};
    uint32_t row;

    f->k.copies = f->v.copies = false; /* tiles are in use while the next block is loaded */
    p.rounds = f->n_keys / CHUNK / p.parts;
    p.scores = kir_tile_of(w->m, KIR_GROUP, FRIT_F32, rows * score_line(f->n_keys));
    p.weights = kir_tile_of(w->m, KIR_GROUP, f->dtype, rows * weight_line(f->n_keys));
    p.factors = kir_tile_of(w->m, KIR_GROUP, FRIT_F32, f->teams * FACTORS);
    p.factor = fragment_sum(f, 0);
    row = at_low(w, w->thread, SIDE);
    p.part = at_low(w, at_high(w, w->thread, SIDE), p.parts);
    p.line = at2(w, KIR_add, at_times(w, f->team, SIDE), row);
    attention_set_rows(w, at2(w, KIR_add, f->first_row, row), 1, 1);
    add_keys(&p);
    finish(&p);
}
