/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are expensive to compute and needed in several passes over a row are saved in a
 * tile of the group by the first of these passes.  Each lane reads only elements that it wrote.
 * Where rows do not stay in caches, elements stay in registers instead (row.h). */
#include "lower/schedule/row_save.h"

#include "lower/schedule/row_emit.h"

enum { TILE_BYTES = 8 };

static bool can_save(const struct row_emitter *w, uint32_t node)
{
    enum kir_type type = kir_type_of(w->e->s->block->values[w->e->nodes[node].value].dtype);

    return w->e->nodes[node].kind == EXPR_OP && w->row->varies[node] && type != KIR_B;
}

/* Elements of a tile: a power of 2, so that rows of many lengths share a module.  Only for rows
 * that save_begin accepts. */
static uint32_t tile_count(const struct row_schedule *row)
{
    uint32_t count = row->lanes;

    while (count < row->n_row)
        count *= 2;
    return count;
}

void save_begin(struct row_emitter *w)
{
    struct row_schedule *row = w->row;
    const struct kir_target *target = w->e->s->target;

    w->saved = NULL;
    w->tile_capacity = target->group_bytes / TILE_BYTES;
    if (!target->rereads_are_cached || row->form != ROW_GROUP || row->n_row > w->tile_capacity)
        return;
    w->saved = arena_array(&w->e->arena, w->e->n_nodes + 1u, sizeof(*w->saved));
    for (uint32_t i = 0; w->saved && i < w->e->n_nodes; i++)
        w->saved[i] = (struct row_saved){UINT32_MAX, 0, KIR_NONE};
    for (uint32_t pass = 0; w->saved && pass <= row->n_levels; pass++) {
        const bool *needed = row_needs(row, pass);

        for (uint32_t i = 0; needed && i < w->e->n_nodes; i++) {
            if (!needed[i] || !can_save(w, i))
                continue;
            w->saved[i].last = pass;
            if (w->saved[i].first > pass)
                w->saved[i].first = pass;
        }
    }
}

static void load_saved(const struct row_emitter *w, uint32_t element)
{
    for (uint32_t i = 0; i < w->e->n_nodes; i++) {
        const struct row_saved *s = &w->saved[i];
        enum kir_type type;

        if (s->tile == KIR_NONE || s->first >= w->pass || s->last < w->pass)
            continue;
        type = kir_type_of(w->e->s->block->values[w->e->nodes[i].value].dtype);
        expr_bind(w->e, i,
                  kir_emit_as(w->m, KIR_tload, type, s->tile, element, KIR_NONE, KIR_NONE));
    }
}

void save_round(struct row_emitter *w, uint32_t element)
{
    const struct kir_phase *phase;
    uint32_t count;

    if (!w->saved || w->m->failed)
        return;
    count = tile_count(w->row);
    phase = &w->m->phases[w->m->n_phases - 1];
    load_saved(w, element);
    for (uint32_t i = 0; i < w->e->n_nodes && !w->m->failed; i++) {
        struct row_saved *s = &w->saved[i];
        uint32_t before = phase->n, value;

        if (s->first != w->pass || s->last == w->pass)
            continue;
        value = expr_value(w->e, i);
        if (s->tile == KIR_NONE && phase->n - before >= sched_tuning(w->e->s).save_cost &&
            count <= w->tile_capacity) {
            s->tile = kir_tile(w->m, KIR_GROUP, kir_type_at(w->m, value), count);
            w->tile_capacity -= count;
        }
        if (s->tile != KIR_NONE)
            kir_emit_imm(w->m, KIR_tstore, s->tile, element, value, KIR_NONE);
    }
}
