/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of a block lie in tiles, lines of a key each, in slots.  Lines are longer by a
 * chunk, so that they begin in different banks.  Queries come through the slots of keys before. */
#include "lower/attention/attention_fragment.h"

#include <frit/op_table.h>

/* Blocks in tiles at a time: those of fragments that are folded are copied ahead. */
static uint32_t slots_of(const struct attention *a)
{
    return a->e.s->target->folds_fragments ? 2 : 1;
}

/* ---- sizes ---- */

uint32_t fragment_parts(int64_t n)
{
    return (uint32_t)((n + SIDE - 1) / SIDE);
}

uint32_t fragment_chunks(uint32_t threads, uint32_t lines, int64_t n)
{
    uint32_t chunks = power_above(fragment_parts(n) * SIDE / CHUNK);
    uint32_t least = threads / lines;

    return chunks < least ? least : chunks;
}

/* Lines of the tile of keys, which queries come through. */
static uint32_t key_lines(const struct attention *a)
{
    uint32_t lines = slots_of(a) * a->sizes.keys, rows = a->sizes.down * a->sizes.rows;

    return lines < rows ? rows : lines;
}

uint64_t attention_fragment_bytes(const struct attention *a)
{
    const struct kir_target *target = a->e.s->target;
    const uint32_t threads = a->sizes.down * target->team;
    uint64_t k =
        (uint64_t)key_lines(a) * fragment_line(fragment_chunks(threads, a->sizes.keys, a->size));
    uint64_t v = (uint64_t)slots_of(a) * a->sizes.keys *
                 fragment_line(fragment_chunks(threads, a->sizes.keys, a->n_outs));
    uint64_t results = fragment_fold_bytes(&a->sizes, fragment_parts(a->n_outs));

    if (!target->folds_fragments)
        return 2 * (k + v) + fragment_tile_bytes(&a->sizes);
    if (!target->reuses_tiles)
        return 2 * (k + v) + results;
    return 2 * (k + v) > results ? 2 * (k + v) : results;
}

/* ---- staging ---- */

struct attention_part fragment_keys(const struct fragmenter *f, uint32_t key, uint32_t line)
{
    return (struct attention_part){key, at_index(&f->w, 0), f->n_keys, line};
}

struct attention_part fragment_values(const struct fragmenter *f, uint32_t key, uint32_t line)
{
    return (struct attention_part){key, f->w.first_out, f->n_keys, line};
}

/* ---- products ---- */

/* Loads the part of a tile's line that begins with `line`, at column `column`. */
static void load_part(const struct fragmenter *f, uint32_t fragment,
                      const struct attention_source *s, uint32_t line, int64_t column,
                      bool by_columns)
{
    const struct kir_fragment_place place = {fragment, true, s->tile, by_columns, false};

    kir_emit_imm(f->w.m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(&f->w, at_times(&f->w, line, s->pitch), column), at_index(&f->w, s->pitch),
                 KIR_NONE);
}

void fragment_load_queries(const struct fragmenter *f)
{
    const struct attention_emitter *w = &f->w;
    const struct attention_part rows = {w->first_row, at_index(w, 0), f->teams * f->rows * SIDE,
                                        at_index(w, 0)};
    struct attention_source q = f->k;
    uint32_t own = at2(w, KIR_sub, f->first_row, w->first_row);

    q.node = w->a->q;
    q.copies = attention_can_copy(w->a, q.node, f->dtype);
    q.row_tag = ATTENTION_ROW;
    q.rows = w->a->points[ATTENTION_ROW].count;
    attention_stage(w, &q, &rows);
    attention_arrive(w);
    for (uint32_t r = 0; r < f->rows; r++)
        for (uint32_t d = 0; d < f->deep; d++)
            load_part(f, f->query[r][d], &q, at_plus(w, own, (int64_t)r * SIDE), (int64_t)d * SIDE,
                      false);
    fragment_emit(f, KIR_barrier, 0);
}

void fragment_multiply_key(const struct fragmenter *f, uint32_t line, uint32_t j)
{
    for (uint32_t r = 0; r < f->rows; r++)
        kir_emit_imm(f->w.m, KIR_mfill, f->score[r][j], at_real(&f->w, 0), KIR_NONE, KIR_NONE);
    for (uint32_t d = 0; d < f->deep; d++) {
        load_part(f, f->factor, &f->k, at_plus(&f->w, line, (int64_t)j * SIDE), (int64_t)d * SIDE,
                  true);
        for (uint32_t r = 0; r < f->rows; r++)
            fragment_emit(f, KIR_mma, kir_product(f->score[r][j], f->query[r][d], f->factor));
    }
}

void fragment_multiply_value(const struct fragmenter *f, uint32_t line, uint32_t j)
{
    for (uint32_t i = 0; i < f->outs; i++) {
        load_part(f, f->factor, &f->v, at_plus(&f->w, line, (int64_t)j * SIDE), (int64_t)i * SIDE,
                  false);
        for (uint32_t r = 0; r < f->rows; r++)
            fragment_emit(f, KIR_mma, kir_product(f->sum[r][i], f->weight[r], f->factor));
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

    f->factor = kir_fragment(f->w.m, &right);
    for (uint32_t r = 0; r < f->rows; r++) {
        for (uint32_t d = 0; d < f->deep; d++)
            f->query[r][d] = kir_fragment(f->w.m, &left);
        f->weight[r] = kir_fragment(f->w.m, &left);
        for (uint32_t j = 0; j < f->keys; j++)
            f->score[r][j] = fragment_sum(f, 0);
        for (uint32_t i = 0; i < f->outs; i++)
            f->sum[r][i] = fragment_sum(f, 0);
    }
}

static struct attention_source new_slots(const struct fragmenter *f, uint32_t node,
                                         uint32_t column_tag, int64_t columns, int64_t n,
                                         uint32_t lines)
{
    const struct attention_emitter *w = &f->w;
    const uint32_t chunks = fragment_chunks(w->threads, f->n_keys, n);
    struct attention_source s = {.node = node,
                                 .pitch = fragment_line(chunks),
                                 .copies = attention_can_copy(w->a, node, f->dtype),
                                 .row_tag = ATTENTION_KEY,
                                 .column_tag = column_tag,
                                 .rows = w->a->keys,
                                 .columns = columns,
                                 .line = chunks * CHUNK};

    s.tile = kir_tile_of(w->m, KIR_GROUP, f->dtype, lines * s.pitch);
    return s;
}

void attention_fragments(struct attention *a)
{
    struct fragmenter f = {.w = {.a = a, .e = &a->e, .m = a->e.s->module, .type = KIR_F32},
                           .dtype = a->e.s->block->values[a->e.nodes[a->result].value].dtype,
                           .teams = a->sizes.down,
                           .n_keys = a->sizes.keys,
                           .n_slots = slots_of(a),
                           .rows = a->sizes.rows / SIDE,
                           .deep = fragment_parts(a->size),
                           .keys = a->sizes.keys / SIDE,
                           .outs = fragment_parts(a->n_outs)};
    const uint32_t team = a->e.s->target->team * CHUNK;
    struct attention_emitter *w = &f.w;

    attention_begin(w, f.teams * a->e.s->target->team, CHUNK, f.teams * a->sizes.rows);
    if (w->m->failed)
        return;
    w->m->phases[w->m->n_phases - 1].team = team;
    f.team = at_high(w, w->lane, team);
    f.first_row = at2(w, KIR_add, w->first_row, at_times(w, f.team, a->sizes.rows));
    f.k = new_slots(&f, a->k, ATTENTION_SIZE, a->size, a->size, key_lines(a));
    f.v = new_slots(&f, a->v, ATTENTION_OUT, a->outs, a->n_outs, f.n_slots * f.n_keys);
    begin_fragments(&f);
    fragment_load_queries(&f);
    (a->e.s->target->folds_fragments ? fragment_fold : fragment_tile)(&f);
}
