/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in fragments, where the target folds their rows: a row's maximum and its sum of weights
 * are fragments too, in every element of the row.  A block is in one of two slots while the next
 * one is copied to the other. */
#include <math.h>

#include "lower/attention/attention_fragment.h"

enum { ROW_PAD = 4 /* by which lines of results are longer */ };

/* What rows have in fragments, of one along a team's rows. */
struct folder {
    const struct fragmenter *f;
    uint32_t row; /* its number */
    uint32_t largest, next_largest, part_largest, total, scale;
};

static uint32_t result_pitch(uint32_t outs)
{
    return (outs + 1) * SIDE + ROW_PAD;
}

uint64_t fragment_fold_bytes(const struct attention_sizes *sizes, uint32_t outs)
{
    return (uint64_t)sizes->down * sizes->rows * result_pitch(outs) * 4;
}

static uint32_t slot_of(const struct fragmenter *f, uint32_t key)
{
    return at_low(&f->w, at_high(&f->w, key, f->n_keys), f->n_slots);
}

static void stage_block(const struct fragmenter *f, uint32_t key)
{
    uint32_t line = at_times(&f->w, slot_of(f, key), f->n_keys);
    const struct attention_part keys = fragment_keys(f, key, line),
                                values = fragment_values(f, key, line);

    attention_stage(&f->w, &f->k, &keys);
    attention_stage(&f->w, &f->v, &values);
}

/* ---- scores ---- */

static uint32_t coordinate(const struct fragmenter *f, enum kir_op op)
{
    return sched_wide(f->w.e->s, kir_emit(f->w.m, op, KIR_NONE, KIR_NONE, KIR_NONE));
}

static uint32_t peer(const struct fragmenter *f, uint32_t fragment)
{
    return kir_emit_as(f->w.m, KIR_peer, f->w.type, fragment, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Sets the row of the element of the each around. */
static void set_element_row(const struct folder *o, struct attention_emitter *w)
{
    *w = o->f->w;
    attention_set_rows(w,
                       at_plus(w, at2(w, KIR_add, o->f->first_row, coordinate(o->f, KIR_row)),
                               (int64_t)o->row * SIDE),
                       1, 1);
}

static void finish_scores(const struct folder *o, uint32_t key)
{
    const struct fragmenter *f = o->f;
    const int64_t keys = f->w.a->keys;

    for (uint32_t j = 0; j < f->keys; j++) {
        uint32_t mark = expr_mark(f->w.e), sum = kir_each(f->w.m, f->score[o->row][j]);
        uint32_t place = at_plus(&f->w, key, (int64_t)j * SIDE), inside = KIR_NONE;
        struct attention_emitter w;

        set_element_row(o, &w);
        place = at2(&w, KIR_add, place, coordinate(f, KIR_column));
        if (keys % f->n_keys)
            inside = at2(&w, KIR_lt, place, w.n_keys);
        kir_done(w.m, attention_score(&w, 0, place, inside, sum));
        expr_release(w.e, mark);
    }
}

/* Where only hiding keys is to be done, in blocks alone that have such. */
static void finish_block(const struct folder *o, uint32_t key)
{
    const struct fragmenter *f = o->f;
    const bool is_plain = attention_is_plain(&f->w);
    uint32_t hides = is_plain ? attention_hides(&f->w, key, f->n_keys) : KIR_NONE;

    if (is_plain && hides == KIR_NONE)
        return;
    if (is_plain)
        kir_if(f->w.m, hides);
    for (uint32_t r = 0; r < f->rows; r++)
        finish_scores(&o[r], key);
    if (is_plain)
        kir_end(f->w.m);
}

/* Maxima of rows, with those before. */
static void find_largest(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    uint32_t largest;

    (void)kir_each(f->w.m, o->part_largest);
    largest = peer(f, o->largest);
    for (uint32_t j = 0; j < f->keys; j++)
        largest = attention_larger(&f->w, largest, peer(f, f->score[o->row][j]));
    kir_done(f->w.m, largest);
    fragment_emit(f, KIR_mlargest, kir_pair(o->next_largest, o->part_largest));
}

static void weigh(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    const struct attention_emitter *w = &f->w;
    uint32_t base, total;

    (void)kir_each(w->m, o->scale);
    base = attention_base(w, peer(f, o->next_largest));
    kir_done(w->m, attention_rescale(w, peer(f, o->largest), base));
    for (uint32_t j = 0; j < f->keys; j++) {
        uint32_t score = kir_each(w->m, f->score[o->row][j]);

        base = attention_base(w, peer(f, o->next_largest));
        kir_done(w->m, attention_weight(w, score, base));
    }
    (void)kir_each(w->m, o->largest);
    kir_done(w->m, peer(f, o->next_largest));
    total = kir_each(w->m, o->total);
    total = at2(w, KIR_mul, total, peer(f, o->scale));
    for (uint32_t j = 0; j < f->keys; j++)
        total = at2(w, KIR_add, total, peer(f, f->score[o->row][j]));
    kir_done(w->m, total);
    for (uint32_t i = 0; i < f->outs; i++)
        fragment_emit(f, KIR_mscale, kir_pair(f->sum[o->row][i], o->scale));
}

/* ---- the phase ---- */

static void add_keys(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    const struct attention_emitter *w = &f->w;
    uint32_t key, next, line, mark = expr_mark(w->e);

    kir_if(w->m, at2(w, KIR_lt, w->begin, w->end));
    stage_block(f, w->begin);
    kir_end(w->m);
    key = kir_for(w->m, w->begin, w->end, f->n_keys);
    next = at_plus(w, key, f->n_keys);
    line = at_times(w, slot_of(f, key), f->n_keys);
    attention_arrive(w);
    kir_if(w->m, at2(w, KIR_lt, next, w->end));
    stage_block(f, next);
    kir_end(w->m);
    for (uint32_t j = 0; j < f->keys; j++)
        fragment_multiply_key(f, line, j);
    finish_block(o, key);
    for (uint32_t r = 0; r < f->rows; r++) {
        find_largest(&o[r]);
        weigh(&o[r]);
    }
    for (uint32_t j = 0; j < f->keys; j++) {
        for (uint32_t r = 0; r < f->rows; r++)
            fragment_emit(f, KIR_mnarrow, kir_pair(f->weight[r], f->score[r][j]));
        fragment_multiply_value(f, line, j);
    }
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

/* Makes totals those of rows, and keeps what the phase that joins needs. */
static void finish_totals(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    struct attention_emitter w;
    uint32_t largest, first;

    fragment_emit(f, KIR_mtotal, kir_pair(o->scale, o->total));
    if (f->w.a->n_splits == 1)
        return;
    largest = kir_each(f->w.m, o->largest);
    set_element_row(o, &w);
    first = at2(&w, KIR_eq, coordinate(f, KIR_column), at_index(&w, 0));
    attention_keep(&w, 0, first, largest, peer(f, o->scale));
    kir_done(w.m, largest);
}

/* ---- results ---- */

/* A tile with the sums of all rows, a line each, and the row's total behind them. */
struct result_tile {
    uint32_t tile, pitch, total; /* total: its column */
};

static void store_sums(const struct folder *o, const struct result_tile *to)
{
    const struct fragmenter *f = o->f;
    const struct kir_fragment_place total = {o->scale, true, to->tile, false, false};
    uint32_t line = at2(&f->w, KIR_sub, f->first_row, f->w.first_row), at;

    at = at_times(&f->w, at_plus(&f->w, line, (int64_t)o->row * SIDE), to->pitch);
    for (uint32_t i = 0; i < f->outs; i++) {
        const struct kir_fragment_place sum = {f->sum[o->row][i], true, to->tile, false, false};

        kir_emit_imm(f->w.m, KIR_mstore, kir_fragment_imm(&sum),
                     at_plus(&f->w, at, (int64_t)i * SIDE), at_index(&f->w, to->pitch), KIR_NONE);
    }
    kir_emit_imm(f->w.m, KIR_mstore, kir_fragment_imm(&total), at_plus(&f->w, at, to->total),
                 at_index(&f->w, to->pitch), KIR_NONE);
}

static uint32_t load_result(const struct fragmenter *f, const struct result_tile *from,
                            uint32_t line, uint32_t column)
{
    uint32_t at = at2(&f->w, KIR_add, at_times(&f->w, line, from->pitch), column);

    return kir_emit_as(f->w.m, KIR_tload, f->w.type, from->tile, at, KIR_NONE, KIR_NONE);
}

/* The thread's results of chunk number `number` of all of the group. */
static void finish_chunk(const struct fragmenter *f, const struct result_tile *from,
                         uint32_t number)
{
    struct attention_emitter w = f->w;
    const uint32_t columns = f->outs * SIDE, chunks = power_above(columns / CHUNK);
    uint32_t line = at_high(&w, number, chunks), ok = KIR_NONE, out, sum;
    uint32_t column = at_times(&w, at_low(&w, number, chunks), CHUNK);

    attention_set_rows(&w, at2(&w, KIR_add, w.first_row, line), 1, 1);
    out = at2(&w, KIR_add, w.first_out, column);
    if (w.a->outs % CHUNK)
        ok = at2(&w, KIR_lt, at2(&w, KIR_add, out, w.low), sched_add_index(w.e->s, w.a->outs));
    else if (w.a->outs % columns)
        ok = at2(&w, KIR_lt, out, sched_add_index(w.e->s, w.a->outs));
    if (columns != chunks * CHUNK) {
        ok = at_both(&w, ok, at2(&w, KIR_lt, column, at_index(&w, columns)));
        column = at2(&w, KIR_smin, column, at_index(&w, columns - CHUNK));
    }
    sum = load_result(f, from, line, at2(&w, KIR_add, column, w.low));
    attention_finish_chunk(&w, 0, out, ok, sum,
                           load_result(f, from, line, at_index(&w, from->total)));
}

/* Results go through a tile, from which a thread takes some that are one access. */
static void finish(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    const struct attention_emitter *w = &f->w;
    const uint32_t rows = f->teams * f->rows * SIDE, columns = f->outs * SIDE;
    struct result_tile results = {.pitch = result_pitch(f->outs), .total = columns};
    uint32_t mark = expr_mark(w->e), chunk;

    results.tile = kir_tile_of(w->m, KIR_GROUP, FRIT_F32, rows * results.pitch);
    for (uint32_t r = 0; r < f->rows; r++)
        finish_totals(&o[r]);
    fragment_emit(f, KIR_barrier, 0);
    for (uint32_t r = 0; r < f->rows; r++)
        store_sums(&o[r], &results);
    fragment_emit(f, KIR_barrier, 0);
    chunk = kir_for(w->m, at_index(w, 0), at_index(w, (int64_t)rows * power_above(columns / CHUNK)),
                    w->threads);
    finish_chunk(f, &results, at2(w, KIR_add, chunk, w->thread));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

void fragment_fold(struct fragmenter *f)
{
    struct folder o[MOST_ROWS];

    for (uint32_t r = 0; r < f->rows; r++)
        o[r] = (struct folder){.f = f,
                               .row = r,
                               .largest = fragment_sum(f, -INFINITY),
                               .next_largest = fragment_sum(f, -INFINITY),
                               .part_largest = fragment_sum(f, -INFINITY),
                               .total = fragment_sum(f, 0),
                               .scale = fragment_sum(f, 0)};
    add_keys(o);
    finish(o);
}
