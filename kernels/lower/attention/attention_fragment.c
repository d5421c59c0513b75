/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by products of fragments, whose rows the target folds.  Each team of a group has SIDE
 * rows: its queries, the scores of a block of keys, their weights and the sums of results are
 * fragments, and so are a row's maximum and its sum of weights, in every element of the row.
 *
 * Keys and values of a block lie in one of two slots of tiles, lines of a key each, while those of
 * the next block are copied to the other.  Lines are longer by a chunk, so that they begin in
 * different banks.  Queries come through the slots of keys before. */
#include "lower/attention/attention.h"

#include <math.h>

#include <frit/op_table.h>

enum {
    SIDE = ATTENTION_SIDE,
    CHUNK = 8, /* lanes of a thread: what they load is one access */
    SLOTS = 2,
    MOST_PARTS = 16 /* fragments of a team along a side */
};

struct fragmenter {
    struct attention_emitter w;
    uint32_t dtype;
    uint32_t teams, n_keys;                                         /* of a group; of a block */
    uint32_t deep, keys, outs;                                      /* fragments along each */
    uint32_t first_row;                                             /* of the team */
    struct attention_source k, v;                                   /* in slots */
    uint32_t query[MOST_PARTS], score[MOST_PARTS], sum[MOST_PARTS]; /* fragments, */
    uint32_t factor, weight, largest, next_largest, part_largest, total, scale; /* likewise */
};

/* ---- sizes ---- */

static uint32_t parts_of(int64_t n)
{
    return (uint32_t)((n + SIDE - 1) / SIDE);
}

/* Of lines of `n` elements: all lanes have as many in a block. */
static uint32_t chunks_of(const struct attention *a, int64_t n)
{
    uint32_t chunks = power_above(parts_of(n) * SIDE / CHUNK);
    uint32_t least = a->sizes.down * a->e.s->target->team / a->sizes.keys;

    return chunks < least ? least : chunks;
}

static uint32_t line_of(uint32_t chunks)
{
    return (chunks + 1) * CHUNK;
}

uint64_t attention_fragment_bytes(const struct attention *a)
{
    uint64_t line = line_of(chunks_of(a, a->size)) + line_of(chunks_of(a, a->n_outs));

    return 2 * SLOTS * a->sizes.keys * line;
}

/* ---- small ones ---- */

static uint32_t times(const struct fragmenter *f, uint32_t value, int64_t n)
{
    return at2(&f->w, KIR_mul, value, at_index(&f->w, n));
}

static void emit(const struct fragmenter *f, enum kir_op op, uint64_t imm)
{
    kir_emit_imm(f->w.m, op, imm, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- staging ---- */

static uint32_t slot_of(const struct fragmenter *f, uint32_t key)
{
    return at_low(&f->w, at_high(&f->w, key, f->n_keys), SLOTS);
}

static void stage_block(const struct fragmenter *f, uint32_t key)
{
    uint32_t line = times(f, slot_of(f, key), f->n_keys);

    attention_stage(&f->w, &f->k,
                    &(struct attention_part){key, at_index(&f->w, 0), f->n_keys, line});
    attention_stage(&f->w, &f->v, &(struct attention_part){key, f->w.first_out, f->n_keys, line});
}

/* The part of a tile's line that begins with `line`, at column `column`. */
static void load_part(const struct fragmenter *f, uint32_t fragment,
                      const struct attention_source *s, uint32_t line, int64_t column,
                      bool by_columns)
{
    const struct kir_fragment_place place = {fragment, true, s->tile, by_columns, false};

    kir_emit_imm(f->w.m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(&f->w, times(f, line, s->pitch), column), at_index(&f->w, s->pitch),
                 KIR_NONE);
}

static void load_queries(const struct fragmenter *f)
{
    const struct attention_emitter *w = &f->w;
    struct attention_source q = f->k;
    uint32_t own = at2(w, KIR_sub, f->first_row, w->first_row);

    q.node = w->a->q;
    q.copies = attention_can_copy(w->a, q.node, f->dtype);
    q.row_tag = ATTENTION_ROW;
    q.rows = w->a->points[ATTENTION_ROW].count;
    attention_stage(
        w, &q,
        &(struct attention_part){w->first_row, at_index(w, 0), f->teams * SIDE, at_index(w, 0)});
    attention_arrive(w);
    for (uint32_t d = 0; d < f->deep; d++)
        load_part(f, f->query[d], &q, own, (int64_t)d * SIDE, false);
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- scores ---- */

static void multiply_keys(const struct fragmenter *f, uint32_t line)
{
    uint32_t zero = at_real(&f->w, 0);

    for (uint32_t j = 0; j < f->keys; j++) {
        kir_emit_imm(f->w.m, KIR_mfill, f->score[j], zero, KIR_NONE, KIR_NONE);
        for (uint32_t d = 0; d < f->deep; d++) {
            load_part(f, f->factor, &f->k, at_plus(&f->w, line, (int64_t)j * SIDE),
                      (int64_t)d * SIDE, true);
            emit(f, KIR_mma, kir_product(f->score[j], f->query[d], f->factor));
        }
    }
}

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
    attention_set_rows(w, at2(w, KIR_add, f->first_row, coordinate(f, KIR_row)), 1, 1);
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
static void find_largest(const struct fragmenter *f)
{
    uint32_t largest;

    (void)kir_each(f->w.m, f->part_largest);
    largest = peer(f, f->largest);
    for (uint32_t j = 0; j < f->keys; j++)
        largest = attention_larger(&f->w, largest, peer(f, f->score[j]));
    kir_done(f->w.m, largest);
    emit(f, KIR_mlargest, kir_pair(f->next_largest, f->part_largest));
}

static void weigh(const struct fragmenter *f)
{
    const struct attention_emitter *w = &f->w;
    uint32_t base, total;

    (void)kir_each(w->m, f->scale);
    base = attention_base(w, peer(f, f->next_largest));
    kir_done(w->m, attention_weight(w, peer(f, f->largest), base));
    for (uint32_t j = 0; j < f->keys; j++) {
        uint32_t score = kir_each(w->m, f->score[j]);

        base = attention_base(w, peer(f, f->next_largest));
        kir_done(w->m, attention_weight(w, score, base));
    }
    (void)kir_each(w->m, f->largest);
    kir_done(w->m, peer(f, f->next_largest));
    total = kir_each(w->m, f->total);
    total = at2(w, KIR_mul, total, peer(f, f->scale));
    for (uint32_t j = 0; j < f->keys; j++)
        total = at2(w, KIR_add, total, peer(f, f->score[j]));
    kir_done(w->m, total);
    for (uint32_t i = 0; i < f->outs; i++) {
        uint32_t sum = kir_each(w->m, f->sum[i]);

        kir_done(w->m, at2(w, KIR_mul, sum, peer(f, f->scale)));
    }
}

static void multiply_values(const struct fragmenter *f, uint32_t line)
{
    for (uint32_t j = 0; j < f->keys; j++) {
        emit(f, KIR_mnarrow, kir_pair(f->weight, f->score[j]));
        for (uint32_t i = 0; i < f->outs; i++) {
            load_part(f, f->factor, &f->v, at_plus(&f->w, line, (int64_t)j * SIDE),
                      (int64_t)i * SIDE, false);
            emit(f, KIR_mma, kir_product(f->sum[i], f->weight, f->factor));
        }
    }
}

/* ---- the phase ---- */

static void add_keys(const struct fragmenter *f)
{
    const struct attention_emitter *w = &f->w;
    uint32_t key, next, line, mark = expr_mark(w->e);

    kir_if(w->m, at2(w, KIR_lt, w->begin, w->end));
    stage_block(f, w->begin);
    kir_end(w->m);
    key = kir_for(w->m, w->begin, w->end, f->n_keys);
    next = at_plus(w, key, f->n_keys);
    line = times(f, slot_of(f, key), f->n_keys);
    attention_arrive(w);
    kir_if(w->m, at2(w, KIR_lt, next, w->end));
    stage_block(f, next);
    kir_end(w->m);
    multiply_keys(f, line);
    finish_scores(f, key);
    find_largest(f);
    weigh(f);
    multiply_values(f, line);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

static void keep_maxima(const struct fragmenter *f)
{
    struct attention_emitter w;
    uint32_t largest, first;

    if (f->w.a->n_splits == 1)
        return;
    largest = kir_each(f->w.m, f->largest);
    set_element_row(f, &w);
    first = at2(&w, KIR_eq, coordinate(f, KIR_column), at_index(&w, 0));
    attention_keep(&w, 0, first, largest, peer(f, f->total));
    kir_done(w.m, largest);
}

static void finish(const struct fragmenter *f)
{
    emit(f, KIR_mtotal, kir_pair(f->scale, f->total));
    (void)kir_each(f->w.m, f->total);
    kir_done(f->w.m, peer(f, f->scale));
    keep_maxima(f);
    for (uint32_t i = 0; i < f->outs; i++) {
        uint32_t mark = expr_mark(f->w.e), sum = kir_each(f->w.m, f->sum[i]), out, ok = KIR_NONE;
        struct attention_emitter w;

        set_element_row(f, &w);
        out = at_plus(&w, w.first_out, (int64_t)i * SIDE);
        out = at2(&w, KIR_add, out, coordinate(f, KIR_column));
        if (w.a->outs % ((int64_t)f->outs * SIDE))
            ok = at2(&w, KIR_lt, out, sched_add_index(w.e->s, w.a->outs));
        attention_finish(&w, 0, out, ok, sum, peer(f, f->total));
        kir_done(w.m, sum);
        expr_release(w.e, mark);
    }
}

static uint32_t new_sum(const struct fragmenter *f, double value)
{
    const struct kir_fragment sums = {KIR_SUM, FRIT_F32, SIDE, SIDE};
    uint32_t fragment = kir_fragment(f->w.m, &sums);

    kir_emit_imm(f->w.m, KIR_mfill, fragment, at_real(&f->w, value), KIR_NONE, KIR_NONE);
    return fragment;
}

static void begin_fragments(struct fragmenter *f)
{
    const struct kir_fragment left = {KIR_LEFT, f->dtype, SIDE, SIDE},
                              right = {KIR_RIGHT, f->dtype, SIDE, SIDE};
    uint32_t *maxima[] = {&f->largest, &f->next_largest, &f->part_largest};

    for (uint32_t d = 0; d < f->deep; d++)
        f->query[d] = kir_fragment(f->w.m, &left);
    f->weight = kir_fragment(f->w.m, &left);
    f->factor = kir_fragment(f->w.m, &right);
    for (uint32_t j = 0; j < f->keys; j++)
        f->score[j] = new_sum(f, 0);
    for (uint32_t i = 0; i < f->outs; i++)
        f->sum[i] = new_sum(f, 0);
    for (uint32_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++)
        *maxima[i] = new_sum(f, -INFINITY);
    f->total = new_sum(f, 0);
    f->scale = new_sum(f, 0);
}

static struct attention_source new_slots(const struct fragmenter *f, uint32_t node,
                                         uint32_t column_tag, int64_t columns, int64_t n)
{
    const struct attention_emitter *w = &f->w;
    const uint32_t chunks = chunks_of(w->a, n);
    struct attention_source s = {.node = node,
                                 .pitch = line_of(chunks),
                                 .copies = attention_can_copy(w->a, node, f->dtype),
                                 .row_tag = ATTENTION_KEY,
                                 .column_tag = column_tag,
                                 .rows = w->a->keys,
                                 .columns = columns,
                                 .line = chunks * CHUNK};

    s.tile = kir_tile_of(w->m, KIR_GROUP, f->dtype, SLOTS * f->n_keys * s.pitch);
    return s;
}

void attention_fragments(struct attention *a)
{
    struct fragmenter f = {.w = {.a = a, .e = &a->e, .m = a->e.s->module, .type = KIR_F32},
                           .dtype = a->e.s->block->values[a->e.nodes[a->result].value].dtype,
                           .teams = a->sizes.down,
                           .n_keys = a->sizes.keys,
                           .deep = parts_of(a->size),
                           .keys = a->sizes.keys / SIDE,
                           .outs = parts_of(a->n_outs)};
    const uint32_t team = a->e.s->target->team * CHUNK;

    attention_begin(&f.w, f.teams * a->e.s->target->team, CHUNK, f.teams * SIDE);
    if (f.w.m->failed)
        return;
    f.w.m->phases[f.w.m->n_phases - 1].team = team;
    f.first_row = at2(&f.w, KIR_add, f.w.first_row, times(&f, at_high(&f.w, f.w.lane, team), SIDE));
    f.k = new_slots(&f, a->k, ATTENTION_SIZE, a->size, a->size);
    f.v = new_slots(&f, a->v, ATTENTION_OUT, a->outs, a->n_outs);
    begin_fragments(&f);
    load_queries(&f);
    add_keys(&f);
    finish(&f);
}
