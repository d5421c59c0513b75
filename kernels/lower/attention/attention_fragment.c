/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of a block lie in tiles, lines of a key each, in slots.  Lines are longer by a
 * chunk, so that they begin in different banks.  Queries come through the slots of keys before. */
#include "lower/attention/attention_fragment.h"

#include <assert.h>

#include <frit/op_table.h>

/* Blocks in tiles at a time: those of fragments that are folded are copied ahead. */
static uint32_t slots_of(const struct attention *a)
{
    return a->e.s->target->folds_fragments ? 2 : 1;
}

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

/* Lines of the tile of keys, which queries come through. */
static uint32_t key_lines(const struct attention *a)
{
    uint32_t lines = slots_of(a) * a->sizes.keys, rows = a->sizes.down * SIDE;

    return lines < rows ? rows : lines;
}

uint64_t attention_fragment_bytes(const struct attention *a)
{
    uint64_t k = (uint64_t)key_lines(a) * fragment_line(chunks_of(a, a->size));
    uint64_t v = (uint64_t)slots_of(a) * a->sizes.keys * fragment_line(chunks_of(a, a->n_outs));

    return 2 * (k + v) + (a->e.s->target->folds_fragments ? 0 : fragment_tile_bytes(&a->sizes));
}

/* ---- staging ---- */

/* Whether an element is one of the operand's; KIR_NONE: surely. */
static uint32_t stage_inside(const struct fragmenter *f, const struct fragment_slots *s,
                             uint32_t row, uint32_t first, uint32_t step)
{
    const struct attention_emitter *w = &f->w;
    uint32_t inside = KIR_NONE, column = first;

    if (s->rows % step)
        inside = at2(w, KIR_lt, row, sched_add_index(w->e->s, s->rows));
    if (s->columns % CHUNK)
        column = at2(w, KIR_add, first, f->low);
    if (s->columns != (int64_t)s->chunks * CHUNK)
        inside = at_both(w, inside, at2(w, KIR_lt, column, at_index(w, s->columns)));
    return inside;
}

/* What is staged: `n` rows from `first` on, columns from `column` on, from line `line` on. */
struct stage {
    const struct fragment_slots *slots;
    uint32_t first, column, n, line;
};

static uint32_t rounds_of(const struct fragmenter *f, const struct stage *s)
{
    return s->n * s->slots->chunks / (f->teams * f->w.e->s->target->team);
}

/* Sets the coordinates of the lane's element in round `i`.  *to: where in the tile it is; returns
 * whether it is one of the operand's. */
static uint32_t set_element(const struct fragmenter *f, const struct stage *s, uint32_t i,
                            uint32_t *to)
{
    const struct attention_emitter *w = &f->w;
    const uint32_t lanes = f->teams * w->e->s->target->team, chunks = s->slots->chunks;
    uint32_t number = at_plus(w, f->chunk, (int64_t)i * lanes), own = at_high(w, number, chunks);
    uint32_t row = at2(w, KIR_add, s->first, own),
             in_line = at_times(w, at_low(w, number, chunks), CHUNK);

    if (s->line != KIR_NONE)
        own = at2(w, KIR_add, s->line, own);
    *to = at2(w, KIR_add, at_times(w, own, fragment_line(chunks)), in_line);
    *to = at2(w, KIR_add, *to, f->low);
    in_line = at2(w, KIR_add, in_line, s->column);
    delinearize_set(&w->a->points[s->slots->row_tag], w->e, row);
    attention_set_chunk(w, s->slots->column_tag, in_line, f->low);
    return stage_inside(f, s->slots, row, in_line, s->n);
}

static uint32_t load_element(const struct fragmenter *f, const struct fragment_slots *s,
                             uint32_t inside)
{
    const struct attention_emitter *w = &f->w;
    uint32_t element;

    expr_mask(w->e, inside);
    element = expr_value(w->e, s->node);
    if (inside == KIR_NONE ||
        w->e->nodes[s->node].kind == EXPR_LOAD) /* which has zeros elsewhere */
        return element;
    return kir_select(w->m, inside, element, at_real(w, 0));
}

static void copy_element(const struct fragmenter *f, const struct fragment_slots *s, uint32_t to,
                         uint32_t inside)
{
    const struct attention_emitter *w = &f->w;
    const struct kir_copy copy = {s->tile,
                                  w->e->s->block->values[w->e->nodes[s->node].value].input};

    kir_emit_imm(w->m, KIR_tcopy, kir_copy_imm(&copy), to, expr_load_at(w->e, s->node),
                 inside == KIR_NONE ? f->yes : inside);
}

void fragment_stage(const struct fragmenter *f, const struct fragment_slots *slots, uint32_t first,
                    uint32_t column, uint32_t n, uint32_t line)
{
    const struct stage s = {slots, first, column, n, line};

    for (uint32_t i = 0; i < rounds_of(f, &s); i++) {
        uint32_t mark = expr_mark(f->w.e), to, inside = set_element(f, &s, i, &to);

        if (slots->copies)
            copy_element(f, slots, to, inside);
        else
            kir_emit_imm(f->w.m, KIR_tstore, slots->tile, to, load_element(f, slots, inside),
                         KIR_NONE);
        expr_release(f->w.e, mark);
    }
}

void fragment_load_ahead(const struct fragmenter *f, const struct fragment_slots *slots,
                         uint32_t first, uint32_t column, uint32_t n, struct fragment_ahead *out)
{
    const struct stage s = {slots, first, column, n, KIR_NONE};

    out->n = rounds_of(f, &s);
    assert(out->n <= MOST_ROUNDS);
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t mark = expr_mark(f->w.e), inside = set_element(f, &s, i, &out->at[i]);

        out->value[i] = load_element(f, slots, inside);
        expr_release(f->w.e, mark);
    }
}

void fragment_store_ahead(const struct fragmenter *f, const struct fragment_slots *s,
                          const struct fragment_ahead *ahead)
{
    for (uint32_t i = 0; i < ahead->n; i++)
        kir_emit_imm(f->w.m, KIR_tstore, s->tile, ahead->at[i], ahead->value[i], KIR_NONE);
}

/* ---- products ---- */

/* Loads the part of a tile's line that begins with `line`, at column `column`. */
static void load_part(const struct fragmenter *f, uint32_t fragment, const struct fragment_slots *s,
                      uint32_t line, int64_t column, bool by_columns)
{
    const struct kir_fragment_place place = {fragment, true, s->tile, by_columns, false};
    uint32_t pitch = fragment_line(s->chunks);

    kir_emit_imm(f->w.m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(&f->w, at_times(&f->w, line, pitch), column), at_index(&f->w, pitch),
                 KIR_NONE);
}

void fragment_load_queries(const struct fragmenter *f)
{
    const struct attention_emitter *w = &f->w;
    struct fragment_slots q = f->k;
    uint32_t own = at2(w, KIR_sub, f->first_row, w->first_row);

    q.node = w->a->q;
    q.copies = w->e->s->target->copies && w->e->nodes[q.node].kind == EXPR_LOAD;
    q.row_tag = ATTENTION_ROW;
    q.rows = w->a->points[ATTENTION_ROW].count;
    fragment_stage(f, &q, w->first_row, at_index(w, 0), f->teams * SIDE, KIR_NONE);
    fragment_emit(f, KIR_tbatch, 0);
    fragment_emit(f, KIR_twait, 0);
    fragment_emit(f, KIR_barrier, 0);
    for (uint32_t d = 0; d < f->deep; d++)
        load_part(f, f->query[d], &q, own, (int64_t)d * SIDE, false);
    fragment_emit(f, KIR_barrier, 0);
}

void fragment_multiply_key(const struct fragmenter *f, uint32_t line, uint32_t j)
{
    kir_emit_imm(f->w.m, KIR_mfill, f->score[j], at_real(&f->w, 0), KIR_NONE, KIR_NONE);
    for (uint32_t d = 0; d < f->deep; d++) {
        load_part(f, f->factor, &f->k, at_plus(&f->w, line, (int64_t)j * SIDE), (int64_t)d * SIDE,
                  true);
        fragment_emit(f, KIR_mma, kir_product(f->score[j], f->query[d], f->factor));
    }
}

void fragment_multiply_value(const struct fragmenter *f, uint32_t line, uint32_t j)
{
    for (uint32_t i = 0; i < f->outs; i++) {
        load_part(f, f->factor, &f->v, at_plus(&f->w, line, (int64_t)j * SIDE), (int64_t)i * SIDE,
                  false);
        fragment_emit(f, KIR_mma, kir_product(f->sum[i], f->weight, f->factor));
    }
}

/* ---- the phase ---- */

uint32_t fragment_sum(const struct fragmenter *f, double value)
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

    for (uint32_t d = 0; d < f->deep; d++)
        f->query[d] = kir_fragment(f->w.m, &left);
    f->weight = kir_fragment(f->w.m, &left);
    f->factor = kir_fragment(f->w.m, &right);
    for (uint32_t j = 0; j < f->keys; j++)
        f->score[j] = fragment_sum(f, 0);
    for (uint32_t i = 0; i < f->outs; i++)
        f->sum[i] = fragment_sum(f, 0);
}

static struct fragment_slots new_slots(const struct fragmenter *f, uint32_t node,
                                       uint32_t column_tag, int64_t columns, int64_t n,
                                       uint32_t lines)
{
    const struct attention_emitter *w = &f->w;
    struct fragment_slots s = {.node = node,
                               .copies =
                                   w->e->s->target->copies && w->e->nodes[node].kind == EXPR_LOAD,
                               .row_tag = ATTENTION_KEY,
                               .column_tag = column_tag,
                               .rows = w->a->keys,
                               .columns = columns,
                               .chunks = chunks_of(w->a, n)};

    s.tile = kir_tile_of(w->m, KIR_GROUP, f->dtype, lines * fragment_line(s.chunks));
    return s;
}

void attention_fragments(struct attention *a)
{
    struct fragmenter f = {.w = {.a = a, .e = &a->e, .m = a->e.s->module, .type = KIR_F32},
                           .dtype = a->e.s->block->values[a->e.nodes[a->result].value].dtype,
                           .teams = a->sizes.down,
                           .n_keys = a->sizes.keys,
                           .n_slots = slots_of(a),
                           .deep = parts_of(a->size),
                           .keys = a->sizes.keys / SIDE,
                           .outs = parts_of(a->n_outs)};
    const uint32_t team = a->e.s->target->team * CHUNK;
    struct attention_emitter *w = &f.w;

    delinearize_chunk(&a->points[ATTENTION_OUT], &a->e, CHUNK);
    delinearize_chunk(&a->points[ATTENTION_SIZE], &a->e, CHUNK);
    attention_begin(w, f.teams * team, f.teams * SIDE);
    if (w->m->failed)
        return;
    w->m->phases[w->m->n_phases - 1].team = team;
    f.chunk = at_high(w, w->lane, CHUNK);
    f.low = at_low(w, w->lane, CHUNK);
    f.team = at_high(w, w->lane, team);
    f.first_row = at2(w, KIR_add, w->first_row, at_times(w, f.team, SIDE));
    f.yes = kir_const_b(w->m, true);
    f.k = new_slots(&f, a->k, ATTENTION_SIZE, a->size, a->size, key_lines(a));
    f.v = new_slots(&f, a->v, ATTENTION_OUT, a->outs, a->n_outs, f.n_slots * f.n_keys);
    begin_fragments(&f);
    fragment_load_queries(&f);
    (a->e.s->target->folds_fragments ? fragment_fold : fragment_tile)(&f);
}
