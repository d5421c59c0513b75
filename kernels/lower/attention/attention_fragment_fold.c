/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in fragments, where the target folds their rows: a row's maximum and its sum of weights
 * are fragments too, in every element of the row.  A block is in one of two slots while the next
 * one is copied to the other. */
#include <math.h>

#include "lower/attention/attention_fragment.h"

struct folder {
    const struct fragmenter *f;
    uint32_t largest, next_largest, part_largest, total, scale; /* fragments */
};

static uint32_t slot_of(const struct fragmenter *f, uint32_t key)
{
    return at_low(&f->w, at_high(&f->w, key, f->n_keys), f->n_slots);
}

static void stage_block(const struct fragmenter *f, uint32_t key)
{
    uint32_t line = at_times(&f->w, slot_of(f, key), f->n_keys);

    fragment_stage(f, &f->k, key, at_index(&f->w, 0), f->n_keys, line);
    fragment_stage(f, &f->v, key, f->w.first_out, f->n_keys, line);
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
static void set_element_row(const struct fragmenter *f, struct attention_emitter *w)
{
    *w = f->w;
    attention_set_rows(w, at2(w, KIR_add, f->first_row, coordinate(f, KIR_row)), 1);
}

static void finish_scores(const struct fragmenter *f, uint32_t key)
{
    const int64_t keys = f->w.a->keys;

    for (uint32_t j = 0; j < f->keys; j++) {
        uint32_t mark = expr_mark(f->w.e), sum = kir_each(f->w.m, f->score[j]);
        uint32_t place = at_plus(&f->w, key, (int64_t)j * SIDE), inside = KIR_NONE;
        struct attention_emitter w;

        set_element_row(f, &w);
        place = at2(&w, KIR_add, place, coordinate(f, KIR_column));
        if (keys % f->n_keys)
            inside = at2(&w, KIR_lt, place, w.n_keys);
        kir_done(w.m, attention_score(&w, 0, place, inside, sum));
        expr_release(w.e, mark);
    }
}

/* Maxima of rows, with those before. */
static void find_largest(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    uint32_t largest;

    (void)kir_each(f->w.m, o->part_largest);
    largest = peer(f, o->largest);
    for (uint32_t j = 0; j < f->keys; j++)
        largest = attention_larger(&f->w, largest, peer(f, f->score[j]));
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
    kir_done(w->m, attention_weight(w, peer(f, o->largest), base));
    for (uint32_t j = 0; j < f->keys; j++) {
        uint32_t score = kir_each(w->m, f->score[j]);

        base = attention_base(w, peer(f, o->next_largest));
        kir_done(w->m, attention_weight(w, score, base));
    }
    (void)kir_each(w->m, o->largest);
    kir_done(w->m, peer(f, o->next_largest));
    total = kir_each(w->m, o->total);
    total = at2(w, KIR_mul, total, peer(f, o->scale));
    for (uint32_t j = 0; j < f->keys; j++)
        total = at2(w, KIR_add, total, peer(f, f->score[j]));
    kir_done(w->m, total);
    for (uint32_t i = 0; i < f->outs; i++)
        fragment_emit(f, KIR_mscale, kir_pair(f->sum[i], o->scale));
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
    fragment_emit(f, KIR_tbatch, 0);
    key = kir_for(w->m, w->begin, w->end, f->n_keys);
    next = at_plus(w, key, f->n_keys);
    line = at_times(w, slot_of(f, key), f->n_keys);
    fragment_emit(f, KIR_twait, 0);
    fragment_emit(f, KIR_barrier, 0);
    kir_if(w->m, at2(w, KIR_lt, next, w->end));
    stage_block(f, next);
    kir_end(w->m);
    fragment_emit(f, KIR_tbatch, 0);
    for (uint32_t j = 0; j < f->keys; j++)
        fragment_multiply_key(f, line, j);
    finish_scores(f, key);
    find_largest(o);
    weigh(o);
    for (uint32_t j = 0; j < f->keys; j++) {
        fragment_emit(f, KIR_mnarrow, kir_pair(f->weight, f->score[j]));
        fragment_multiply_value(f, line, j);
    }
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

static void keep_maxima(const struct folder *o)
{
    const struct fragmenter *f = o->f;
    struct attention_emitter w;
    uint32_t largest, first;

    if (f->w.a->n_splits == 1)
        return;
    largest = kir_each(f->w.m, o->largest);
    set_element_row(f, &w);
    first = at2(&w, KIR_eq, coordinate(f, KIR_column), at_index(&w, 0));
    attention_keep(&w, 0, first, largest, peer(f, o->total));
    kir_done(w.m, largest);
}

static void finish(const struct folder *o)
{
    const struct fragmenter *f = o->f;

    fragment_emit(f, KIR_mtotal, kir_pair(o->scale, o->total));
    (void)kir_each(f->w.m, o->total);
    kir_done(f->w.m, peer(f, o->scale));
    keep_maxima(o);
    for (uint32_t i = 0; i < f->outs; i++) {
        uint32_t mark = expr_mark(f->w.e), sum = kir_each(f->w.m, f->sum[i]), out, ok = KIR_NONE;
        struct attention_emitter w;

        set_element_row(f, &w);
        out = at_plus(&w, w.first_out, (int64_t)i * SIDE);
        out = at2(&w, KIR_add, out, coordinate(f, KIR_column));
        if (w.a->outs % ((int64_t)f->outs * SIDE))
            ok = at2(&w, KIR_lt, out, sched_add_index(w.e->s, w.a->outs));
        attention_finish(&w, 0, out, ok, sum, peer(f, o->total));
        kir_done(w.m, sum);
        expr_release(w.e, mark);
    }
}

void fragment_fold(struct fragmenter *f)
{
    const struct folder o = {.f = f,
                             .largest = fragment_sum(f, -INFINITY),
                             .next_largest = fragment_sum(f, -INFINITY),
                             .part_largest = fragment_sum(f, -INFINITY),
                             .total = fragment_sum(f, 0),
                             .scale = fragment_sum(f, 0)};

    add_keys(&o);
    finish(&o);
}
