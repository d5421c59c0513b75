/* SPDX-License-Identifier: Apache-2.0 */
/* Emits rows that take one phase, and the parts that are common to all forms. */
#include "lower/schedule/row_emit.h"
#include "lower/schedule/row_lanes.h"
#include "lower/schedule/row_rounds.h"
#include "lower/schedule/row_save.h"
#include "lower/schedule/row_split.h"

#include <string.h>

/* ---- phases ---- */

uint32_t phase_group(const struct row_emitter *w)
{
    return sched_wide(w->e->s, kir_emit_imm(w->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
}

/* In a slab, neighbouring lanes have neighbouring rows. */
static void phase_lane(struct row_emitter *w)
{
    uint32_t lane = kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE), column = lane;

    if (w->row->form == ROW_SLAB) {
        int64_t rows = w->row->partition.lanes;

        column = kir_binary(w->m, KIR_and, lane, kir_const_i(w->m, KIR_I32, rows - 1));
        lane = kir_binary(w->m, KIR_shr, lane,
                          kir_const_i(w->m, KIR_I32, __builtin_ctzll((uint64_t)rows)));
    }
    w->column = sched_wide(w->e->s, column);
    w->lane = lane == column ? w->column : sched_wide(w->e->s, lane);
}

void phase_begin(struct row_emitter *w)
{
    kir_phase(w->m, w->row->lanes);
    expr_phase(w->e);
    if (w->row->form == ROW_GROUP)
        delinearize_phase(&w->row->outer, w->e);
    else
        partition_phase(&w->row->partition, w->e);
    delinearize_phase(&w->row->inner, w->e);
    phase_lane(w);
    w->lane_0 = kir_binary(w->m, KIR_eq, w->lane, kir_index(w->m, 0));
    w->mask = KIR_NONE;
}

void phase_end(const struct row_emitter *w, int64_t groups)
{
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};

    if (!w->m->failed)
        memcpy(w->e->s->numbers->grid[w->m->n_phases - 1], grid, sizeof(grid));
}

/* ---- rows ---- */

void rows_select(struct row_emitter *w, uint32_t block)
{
    const struct partition *partition = &w->row->partition;

    w->row_number = block;
    if (w->row->form != ROW_GROUP) {
        struct span span = partition_span(partition, w->e, block, w->column);

        w->mask = partition_mask(partition, w->e, &span);
        if (w->row->n_chunks > 1)
            w->row_number = partition_number(partition, w->e, &span);
        partition_set_uniform(partition, w->e, &span);
        partition_set_varying(partition, w->e, &span);
    } else {
        delinearize_set(&w->row->outer, w->e, block);
    }
    expr_mask(w->e, w->mask);
    expr_hoist(w->e);
}

int64_t rows_blocks(const struct row_schedule *row)
{
    return row->form == ROW_GROUP ? row->outer.count : row->partition.groups;
}

uint32_t rows_result(const struct row_emitter *w, const struct row_fold *fold)
{
    const struct row_fold *of =
        fold->computed_by == BLOCK_NONE ? fold : &w->row->folds[fold->computed_by];

    return of == fold ? fold_result(&of->fold, &of->state) : fold_result_sum(&of->fold, &of->state);
}

void rows_bind(const struct row_emitter *w, const struct row_fold *fold, uint32_t value)
{
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (w->e->nodes[i].kind == EXPR_EXTERNAL && w->e->nodes[i].value == fold->value)
            expr_bind(w->e, i, value);
}

void rows_emit_constant(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (!w->row->varies[i] && w->row->level[i] <= w->pass)
            expr_value(w->e, i);
}

void rows_store(const struct row_emitter *w)
{
    uint32_t mark = expr_mark(w->e);

    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (!w->row->whole_rows[i])
            expr_value(w->e, w->e->stores[i].node);
    expr_mask(w->e, w->row->form == ROW_LANE ? w->mask : mask_both(w, w->mask, w->lane_0));
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (!w->row->whole_rows[i])
            expr_emit_store(w->e, i);
    expr_release(w->e, mark);
}

/* ---- one phase ---- */

/* If the allocation fails no elements are resident. */
static void resident_begin(struct row_emitter *w)
{
    size_t n = (size_t)w->row->resident * w->e->n_nodes;

    w->resident = n ? arena_array(&w->e->arena, n, sizeof(*w->resident)) : NULL;
    for (size_t i = 0; i < n && w->resident; i++)
        w->resident[i] = KIR_NONE;
}

static void emit_one_phase(struct row_emitter *w)
{
    struct row_region region;

    phase_begin(w);
    resident_begin(w);
    save_begin(w);
    region = region_whole(w, w->row->n_row);
    rows_select(w, phase_group(w));
    for (w->pass = 0; w->pass <= w->row->n_levels; w->pass++) {
        rows_emit_constant(w);
        if (!pass_has_rounds(w))
            continue;
        region_emit(w, &region);
        lanes_combine(w);
        for (uint32_t i = 0; i < w->row->n_folds; i++)
            if (pass_has_result(w, &w->row->folds[i]))
                rows_bind(w, &w->row->folds[i], rows_result(w, &w->row->folds[i]));
    }
    rows_store(w);
    phase_end(w, rows_blocks(w->row));
}

void row_emit(struct row_schedule *row)
{
    struct row_emitter emitter = {.row = row, .e = &row->e, .m = row->e.s->module};

    if (row->n_chunks > 1)
        row_emit_split(&emitter);
    else
        emit_one_phase(&emitter);
}
