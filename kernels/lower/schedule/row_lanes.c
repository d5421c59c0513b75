/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the values of a group's lanes.  Lanes among which exchanges are cheap
 * (target.near_lanes) combine theirs in a butterfly.  In larger groups one lane of each such set
 * writes its value to a tile and, after one barrier for all folds, every lane merges these in the
 * same order.  A tile is written once per phase.
 *
 * In a slab that is done for each column: a lane merges with those at multiples of the number of
 * columns, and the lanes of a set share the reading of the tile. */
#include "lower/schedule/row_lanes.h"

#include "lower/schedule/row_emit.h"

/* A value per lane that is to be merged over all lanes. */
struct lane_merge {
    struct row_fold *fold;
    bool second; /* merge second parts, else the values */
    uint32_t value;
    uint32_t tile;
};

static uint32_t merge(const struct lane_merge *m, uint32_t a, uint32_t b)
{
    const struct fold *fold = &m->fold->fold;

    return m->second ? fold_merge_second_parts(fold, a, b) : fold->kind->merge(fold, a, b);
}

/* Rows of a group whose lanes combine. */
static uint32_t columns_of(const struct row_emitter *w)
{
    return w->row->lanes / w->row->lanes_per_row;
}

/* Merges with the lanes of the row among `lanes` neighbours. */
static void merge_near(const struct row_emitter *w, struct lane_merge *m, uint32_t lanes)
{
    for (uint32_t s = columns_of(w); s < lanes; s *= 2)
        m->value =
            merge(m, m->value, kir_emit_imm(w->m, KIR_exchange, s, m->value, KIR_NONE, KIR_NONE));
}

/* The value in a type that tiles can hold: Bs become I32. */
static uint32_t to_tile_type(const struct row_emitter *w, uint32_t value)
{
    return kir_type_at(w->m, value) == KIR_B ? kir_unary(w->m, KIR_i32, value) : value;
}

/* Where a tile has the value of set number `set`, for the lane's row. */
static uint32_t tile_place(const struct row_emitter *w, uint32_t set)
{
    uint32_t columns = columns_of(w), lane, column;

    if (columns == 1)
        return set;
    lane = kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    column = kir_binary(w->m, KIR_and, lane, kir_const_i(w->m, KIR_I32, columns - 1));
    set = kir_binary(w->m, KIR_mul, set, kir_const_i(w->m, KIR_I32, columns));
    return kir_binary(w->m, KIR_add, set, column);
}

static void store_partial(const struct row_emitter *w, struct lane_merge *m, uint32_t near)
{
    uint32_t lane = kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE), value, at, first;
    uint32_t columns = columns_of(w);

    value = to_tile_type(w, m->value);
    m->tile = kir_tile(w->m, KIR_GROUP, kir_type_at(w->m, value), w->row->lanes / near * columns);
    at = kir_binary(w->m, KIR_and, lane, kir_const_i(w->m, KIR_I32, near - 1));
    first = kir_binary(w->m, columns > 1 ? KIR_ult : KIR_eq, at,
                       kir_const_i(w->m, KIR_I32, columns > 1 ? columns : 0));
    at = tile_place(w, kir_binary(w->m, KIR_udiv, lane, kir_const_i(w->m, KIR_I32, near)));
    kir_emit_imm(w->m, KIR_tstore_if, m->tile, at, value, first);
}

static uint32_t load_partial(const struct row_emitter *w, const struct lane_merge *m, uint32_t at)
{
    enum kir_type type = kir_type_at(w->m, m->value);
    uint32_t value = kir_emit_as(w->m, KIR_tload, type == KIR_B ? KIR_I32 : type, m->tile, at,
                                 KIR_NONE, KIR_NONE);

    return type == KIR_B ? kir_binary(w->m, KIR_ne, value, kir_const_i(w->m, KIR_I32, 0)) : value;
}

static void merge_partials(const struct row_emitter *w, struct lane_merge *m, uint32_t n)
{
    uint32_t value = load_partial(w, m, kir_const_i(w->m, KIR_I32, 0));

    for (uint32_t i = 1; i < n; i++)
        value = merge(m, value, load_partial(w, m, kir_const_i(w->m, KIR_I32, i)));
    m->value = value;
}

/* The same in a slab, where the lanes of a row in a set (`near` lanes) each begin at another of the
 * `n` partial values. */
static void merge_columns(const struct row_emitter *w, struct lane_merge *m, uint32_t n,
                          uint32_t near)
{
    uint32_t columns = columns_of(w), readers = near / columns < n ? near / columns : n;
    uint32_t lane = kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE), set, at;

    set = kir_binary(w->m, KIR_udiv, lane, kir_const_i(w->m, KIR_I32, columns));
    set = kir_binary(w->m, KIR_and, set, kir_const_i(w->m, KIR_I32, readers - 1));
    at = tile_place(w, set);
    for (uint32_t i = 0; i < n; i += readers) {
        uint32_t part = load_partial(
            w, m, i ? kir_binary(w->m, KIR_add, at, kir_const_i(w->m, KIR_I32, i * columns)) : at);

        m->value = i ? merge(m, m->value, part) : part;
    }
    merge_near(w, m, readers * columns);
}

static uint32_t near_lanes(const struct row_emitter *w)
{
    uint32_t near = w->e->s->target->near_lanes;

    return near && near < w->row->lanes ? near : w->row->lanes;
}

static void merge_all(const struct row_emitter *w, struct lane_merge *list, uint32_t n)
{
    uint32_t near = near_lanes(w), lanes = w->row->lanes;

    for (uint32_t i = 0; i < n; i++)
        merge_near(w, &list[i], near);
    if (near == lanes) {
        for (uint32_t i = 0; i < n && w->row->form == ROW_GROUP; i++)
            list[i].value = kir_unary(w->m, KIR_first, list[i].value);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        store_partial(w, &list[i], near);
    if (n)
        kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    for (uint32_t i = 0; i < n; i++)
        if (w->row->form == ROW_GROUP)
            merge_partials(w, &list[i], lanes / near);
        else
            merge_columns(w, &list[i], lanes / near, near);
}

void lanes_combine(const struct row_emitter *w)
{
    struct lane_merge values[ROW_FOLDS], seconds[ROW_FOLDS];
    uint32_t n = 0, n_seconds = 0;

    for (uint32_t i = 0; i < w->row->n_folds && w->row->form != ROW_LANE; i++)
        if (pass_has_fold(w, &w->row->folds[i]))
            values[n++] = (struct lane_merge){&w->row->folds[i], false,
                                              w->row->folds[i].state.part[0], KIR_NONE};
    merge_all(w, values, n);
    for (uint32_t i = 0; i < n; i++) {
        struct row_fold *fold = values[i].fold;

        if (fold->fold.kind->n_parts > 1)
            seconds[n_seconds++] = (struct lane_merge){
                fold, true, fold_second_part(&fold->fold, &fold->state, values[i].value), KIR_NONE};
        fold->state.part[0] = values[i].value;
    }
    merge_all(w, seconds, n_seconds);
    for (uint32_t i = 0; i < n_seconds; i++)
        seconds[i].fold->state.part[1] = seconds[i].value;
}
