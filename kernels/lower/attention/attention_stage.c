/* SPDX-License-Identifier: Apache-2.0 */
/* Operands from memory to tiles of the group, 0 where they are beyond an end.  A thread takes as
 * many neighbours of a row at a time as it has lanes: then they are one access of memory and one of
 * the tile.  Where a target copies to tiles by itself, an operand that is an argument is copied. */
#include "lower/attention/attention.h"

enum { BATCH = 8 /* elements that a lane loads before it stores any */ };

bool attention_can_copy(const struct attention *a, uint32_t node, uint32_t dtype)
{
    const struct expr_node *n = &a->e.nodes[node];

    return a->e.s->target->copies && n->kind == EXPR_LOAD &&
           a->e.s->block->values[n->value].dtype == dtype;
}

/* Chunks of a line. */
static uint32_t chunks_of(const struct attention_emitter *w, const struct attention_source *s)
{
    return s->line / w->chunk;
}

/* Of a lane, of so many rows. */
static uint32_t staged_elements(const struct attention_emitter *w, const struct attention_source *s,
                                uint32_t rows)
{
    uint32_t lanes = w->threads * w->chunk;

    return (rows * s->line + lanes - 1) / lanes;
}

void attention_set_chunk(const struct attention_emitter *w, uint32_t tag, uint32_t first)
{
    const struct delinearizer *points = &w->a->points[tag];

    if (w->chunk > 1 && points->chunk == w->chunk)
        delinearize_set_chunk(points, w->e, at_high(w, first, w->chunk), w->low);
    else
        delinearize_set(points, w->e, at2(w, KIR_add, first, w->low));
}

/* KIR_NONE: surely. */
static uint32_t is_inside(const struct attention_emitter *w, const struct attention_source *s,
                          uint32_t row, uint32_t first, uint32_t step)
{
    uint32_t inside = KIR_NONE;

    if (s->rows % step)
        inside = at2(w, KIR_lt, row, sched_add_index(w->e->s, s->rows));
    if (s->columns % s->line == 0)
        return inside;
    if (s->columns % w->chunk)
        first = at2(w, KIR_add, first, w->low);
    return at_both(w, inside, at2(w, KIR_lt, first, sched_add_index(w->e->s, s->columns)));
}

static void copy(const struct attention_emitter *w, const struct attention_source *s, uint32_t to,
                 uint32_t inside)
{
    const uint32_t input = w->e->s->block->values[w->e->nodes[s->node].value].input;

    if (inside == KIR_NONE)
        inside = kir_const_b(w->m, true);
    kir_emit_imm(w->m, KIR_tcopy, kir_copy_imm(&(struct kir_copy){s->tile, input}), to,
                 expr_load_at(w->e, s->node), inside);
}

/* The thread's chunk number `number` of the part: copied, or *value for the tile's element *to. */
static void fetch_chunk(const struct attention_emitter *w, const struct attention_source *s,
                        const struct attention_part *p, uint32_t number, uint32_t mask,
                        uint32_t *to, uint32_t *value)
{
    uint32_t mark = expr_mark(w->e), own = at_high(w, number, chunks_of(w, s)), inside, column;
    uint32_t row = at2(w, KIR_add, p->row, own);

    column = at_times(w, at_low(w, number, chunks_of(w, s)), w->chunk);
    *to = at2(w, KIR_add, at_times(w, at2(w, KIR_add, p->to, own), s->pitch), column);
    *to = at2(w, KIR_add, *to, w->low);
    column = at2(w, KIR_add, column, p->column);
    delinearize_set(&w->a->points[s->row_tag], w->e, row);
    attention_set_chunk(w, s->column_tag, column);
    inside = at_both(w, mask, is_inside(w, s, row, column, p->n));
    if (s->copies) {
        copy(w, s, *to, inside);
    } else {
        expr_mask(w->e, inside);
        *value = expr_value(w->e, s->node);
        if (inside != KIR_NONE && w->e->nodes[s->node].kind != EXPR_LOAD) /* 0 where it is not */
            *value = kir_select(w->m, inside, *value, at_real(w, 0));
    }
    expr_release(w->e, mark);
}

/* `n` chunks from `first` on, those of a thread far apart. */
static void stage_batch(const struct attention_emitter *w, const struct attention_source *s,
                        const struct attention_part *p, uint32_t first, uint32_t n)
{
    uint32_t chunks = p->n * chunks_of(w, s), at[BATCH], value[BATCH], mask = KIR_NONE;

    if (chunks < w->threads)
        mask = at2(w, KIR_lt, first, at_index(w, chunks));
    for (uint32_t i = 0; i < n; i++)
        fetch_chunk(w, s, p, at_plus(w, first, (int64_t)i * w->threads), mask, &at[i], &value[i]);
    for (uint32_t i = 0; i < n && !s->copies; i++)
        kir_emit_imm(w->m, mask == KIR_NONE ? KIR_tstore : KIR_tstore_if, s->tile, at[i], value[i],
                     mask);
}

void attention_stage(const struct attention_emitter *w, const struct attention_source *s,
                     const struct attention_part *p)
{
    uint32_t n = staged_elements(w, s, p->n), first;

    if (n <= BATCH) {
        stage_batch(w, s, p, w->thread, n);
        return;
    }
    first = kir_for(w->m, at_index(w, 0), at_index(w, (int64_t)n * w->threads),
                    (int64_t)BATCH * w->threads);
    stage_batch(w, s, p, at2(w, KIR_add, first, w->thread), BATCH);
    kir_next(w->m, NULL, 0);
}

void attention_fetch(const struct attention_emitter *w, const struct attention_source *s,
                     const struct attention_part *p, struct attention_fetched *out)
{
    out->n = 0;
    if (s->copies) {
        attention_stage(w, s, p);
        return;
    }
    out->n = staged_elements(w, s, p->n);
    for (uint32_t i = 0; i < out->n; i++)
        fetch_chunk(w, s, p, at_plus(w, w->thread, (int64_t)i * w->threads), KIR_NONE, &out->at[i],
                    &out->value[i]);
}

void attention_put(const struct attention_emitter *w, const struct attention_source *s,
                   const struct attention_fetched *fetched)
{
    for (uint32_t i = 0; i < fetched->n; i++)
        kir_emit_imm(w->m, KIR_tstore, s->tile, fetched->at[i], fetched->value[i], KIR_NONE);
}

void attention_arrive(const struct attention_emitter *w)
{
    kir_emit(w->m, KIR_tbatch, KIR_NONE, KIR_NONE, KIR_NONE);
    kir_emit_imm(w->m, KIR_twait, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}
