/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds over the elements of rows.  Blocks of SUM_BLOCK_ROW rounds are folded by themselves and
 * their results combined, so that the rounding error of a sum grows slowly.  The order depends only
 * on the sizes of the launch. */
#include "lower/schedule/row_rounds.h"

#include "lower/schedule/row_emit.h"
#include "lower/schedule/row_save.h"

#include "lower/rows/rows.h"
#include "lower/sum_blocks.h"

enum { PREFETCH = 4 /* rounds whose loads are issued together */ };

/* ---- states of all folds of a pass ---- */

uint32_t states_pack(const struct row_emitter *w, uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        for (uint32_t p = 0;
             pass_has_fold(w, &w->row->folds[i]) && p < w->row->folds[i].fold.kind->n_parts; p++)
            parts[n++] = w->row->folds[i].state.part[p];
    return n;
}

void states_unpack(const struct row_emitter *w, const uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        for (uint32_t p = 0;
             pass_has_fold(w, &w->row->folds[i]) && p < w->row->folds[i].fold.kind->n_parts; p++)
            w->row->folds[i].state.part[p] = parts[n++];
}

void states_identity(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];

        if (pass_has_fold(w, fold))
            fold->state = fold->fold.kind->identity(&fold->fold);
    }
}

/* Combines the states with those in `parts`. */
static void states_combine(const struct row_emitter *w, const uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];
        struct fold_state other;

        if (!pass_has_fold(w, fold))
            continue;
        for (uint32_t p = 0; p < fold->fold.kind->n_parts; p++)
            other.part[p] = parts[n++];
        fold->state = fold->fold.kind->combine(&fold->fold, &other, &fold->state);
    }
}

/* ---- one round ---- */

struct fold_state state_masked(const struct row_emitter *w, const struct row_fold *fold,
                               struct fold_state state, uint32_t mask)
{
    struct fold_state identity;

    if (mask == KIR_NONE)
        return state;
    identity = fold->fold.kind->identity(&fold->fold);
    for (uint32_t p = 0; p < fold->fold.kind->n_parts; p++)
        state.part[p] = kir_select(w->m, mask, state.part[p], identity.part[p]);
    return state;
}

/* The number of an element, converted from the index type to the fold's type of numbers. */
static uint32_t element_number(const struct row_emitter *w, const struct row_fold *fold,
                               uint32_t element)
{
    enum kir_type has = kir_index_type(w->m), wanted = fold->fold.number_type;

    if (has == wanted)
        return element;
    return kir_unary(w->m, wanted == KIR_I64 ? KIR_i64 : KIR_i32, element);
}

static void combine_element(const struct row_emitter *w, struct row_fold *fold, uint32_t element,
                            uint32_t mask)
{
    uint32_t number = fold->fold.kind->indexed ? element_number(w, fold, element) : KIR_NONE;
    struct fold_state state = fold_element(&fold->fold, expr_value(w->e, fold->node), number);

    state = state_masked(w, fold, state, mask);
    fold->state = fold->fold.kind->combine(&fold->fold, &fold->state, &state);
}

static bool stores_in_pass(const struct row_emitter *w, uint32_t store)
{
    return w->row->whole_rows[store] && w->row->level[w->e->stores[store].node] == w->pass;
}

/* Computes all values before the first store, since an output may overwrite another output's
 * operand. */
static void emit_row_stores(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            expr_emit_store(w->e, i);
}

/* Folds and stores one element per lane.  `mask`: the lane's element is in the row. */
static void emit_round(struct row_emitter *w, uint32_t element, uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    expr_mask(w->e, mask_both(w, w->mask, mask));
    delinearize_set(&w->row->inner, w->e, element);
    save_round(w, element);
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (pass_has_fold(w, &w->row->folds[i]))
            combine_element(w, &w->row->folds[i], element, mask);
    emit_row_stores(w);
    expr_release(w->e, mark);
}

/* ---- a region ---- */

uint32_t round_step(const struct row_emitter *w)
{
    return w->row->lanes_per_row;
}

uint32_t round_element(const struct row_emitter *w, uint32_t counter)
{
    return w->row->form == ROW_LANE ? counter : kir_binary(w->m, KIR_add, counter, w->lane);
}

uint32_t loop_open(const struct row_emitter *w, uint32_t begin, uint32_t end, uint32_t step,
                   uint32_t *phis)
{
    uint32_t n = states_pack(w, phis), counter;

    counter = kir_for(w->m, begin, end, step);
    for (uint32_t i = 0; i < n; i++)
        phis[i] = kir_phi(w->m, phis[i]);
    states_unpack(w, phis);
    return counter;
}

void loop_close(const struct row_emitter *w, const uint32_t *phis)
{
    uint32_t parts[ROW_STATES], n = states_pack(w, parts);

    kir_next(w->m, parts, n);
    states_unpack(w, phis);
}

/* A barrier keeps lanes with adjacent rows at the same element where the target would otherwise
 * finish one lane's row before the next lane's, so that memory is read in order. */
static void emit_lockstep(const struct row_emitter *w)
{
    if (w->row->in_lockstep)
        kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Whether the pass computes little more than its loads; true if the allocation of `needs` failed.
 */
static bool is_cheap(const struct row_emitter *w)
{
    const struct block *block = w->e->s->block;

    for (uint32_t i = 0; i < w->e->n_nodes && w->needs; i++)
        if (w->needs[i] && w->row->varies[i] && w->e->nodes[i].kind == EXPR_OP &&
            !lower_is_cheap(block->ops[block->values[w->e->nodes[i].value].maker].id))
            return false;
    return true;
}

/* Decides whether to prefetch.  Without it a lane with a row of its own waits for each load; a lane
 * whose state the target keeps in memory waits in each round.  If the allocation fails nothing is
 * prefetched. */
static void prefetch_begin(struct row_emitter *w)
{
    w->needs = w->row->form == ROW_LANE ? row_needs(w->row, w->pass) : NULL;
    w->prefetched = NULL;
    if (w->needs && (!w->e->s->target->rereads_are_cached || is_cheap(w)))
        w->prefetched =
            arena_array(&w->e->arena, (size_t)PREFETCH * w->e->n_nodes, sizeof(*w->prefetched));
}

/* Whether the pass loads this node for each element of a row. */
static bool is_read(const struct row_emitter *w, uint32_t node)
{
    return w->e->nodes[node].kind == EXPR_LOAD && w->row->varies[node] && w->needs[node];
}

/* PREFETCH rounds, whose loads are all issued before the first element is folded or stored. */
static void emit_prefetched(struct row_emitter *w, uint32_t counter)
{
    const struct expr *e = w->e;
    uint32_t element[PREFETCH], *known = w->prefetched;

    for (uint32_t k = 0; k < PREFETCH; k++) {
        uint32_t mark = expr_mark(e);

        element[k] = kir_binary(w->m, KIR_add, counter, kir_index(w->m, k));
        delinearize_set(&w->row->inner, w->e, element[k]);
        for (uint32_t i = 0; i < e->n_nodes; i++)
            known[k * e->n_nodes + i] = is_read(w, i) ? expr_value(w->e, i) : KIR_NONE;
        expr_release(w->e, mark);
    }
    for (uint32_t k = 0; k < PREFETCH; k++) {
        uint32_t mark = expr_mark(e);

        for (uint32_t i = 0; i < e->n_nodes; i++)
            if (known[k * e->n_nodes + i] != KIR_NONE)
                expr_bind(w->e, i, known[k * e->n_nodes + i]);
        emit_round(w, element[k], KIR_NONE);
        expr_release(w->e, mark);
    }
}

static void emit_rounds(struct row_emitter *w, uint32_t begin, uint32_t end)
{
    uint32_t phis[ROW_STATES], counter, whole;

    if (w->prefetched) {
        whole = kir_binary(w->m, KIR_sub, end, begin);
        whole = kir_binary(w->m, KIR_and, whole, kir_index(w->m, -PREFETCH));
        whole = kir_binary(w->m, KIR_add, begin, whole);
        counter = loop_open(w, begin, whole, PREFETCH, phis);
        emit_lockstep(w);
        emit_prefetched(w, counter);
        loop_close(w, phis);
        begin = whole;
    }
    counter = loop_open(w, begin, end, round_step(w), phis);
    emit_lockstep(w);
    emit_round(w, round_element(w, counter), KIR_NONE);
    loop_close(w, phis);
}

static void emit_blocks(struct row_emitter *w, const struct row_region *region)
{
    uint32_t step = round_step(w) * SUM_BLOCK_ROW, phis[ROW_STATES] = {0}, begin, end;

    begin = loop_open(w, region->begin, region->full_end, step, phis);
    end = kir_binary(w->m, KIR_add, begin, kir_index(w->m, step));
    end = kir_binary(w->m, KIR_smin, end, region->full_end);
    states_identity(w);
    emit_rounds(w, begin, end);
    states_combine(w, phis);
    loop_close(w, phis);
}

/* Makes `element` the current one and binds its known values. */
static void bind_resident(const struct row_emitter *w, const uint32_t *known, uint32_t element,
                          uint32_t mask)
{
    expr_mask(w->e, mask_both(w, w->mask, mask));
    delinearize_set(&w->row->inner, w->e, element);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (known[i] != KIR_NONE && expr_emitted(w->e, i) == KIR_NONE)
            expr_bind(w->e, i, known[i]);
}

/* Loads what the pass reads of one resident element. */
static void load_resident(const struct row_emitter *w, uint32_t *known, uint32_t element,
                          uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    bind_resident(w, known, element, mask);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (is_read(w, i))
            known[i] = expr_value(w->e, i);
    expr_release(w->e, mark);
}

/* One resident element: uses the values that are known of it and records new ones. */
static void emit_resident(const struct row_emitter *w, uint32_t *known, uint32_t element,
                          uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    bind_resident(w, known, element, mask);
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (pass_has_fold(w, &w->row->folds[i]))
            combine_element(w, &w->row->folds[i], element, mask);
    emit_row_stores(w);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        known[i] = w->row->varies[i] ? expr_emitted(w->e, i) : KIR_NONE;
    expr_release(w->e, mark);
}

/* Folds a whole row whose elements are resident.  All loads are issued before the first element is
 * folded or stored. */
static void emit_all_resident(struct row_emitter *w)
{
    const struct row_schedule *row = w->row;
    uint32_t element[ROW_RESIDENT], mask[ROW_RESIDENT];

    states_identity(w);
    w->needs = row_needs(w->row, w->pass);
    for (uint32_t k = 0; k < row->resident; k++) {
        element[k] = w->lane;
        mask[k] = KIR_NONE;
        if (k)
            element[k] = kir_binary(w->m, KIR_add, w->lane,
                                    kir_index(w->m, (int64_t)k * row->lanes_per_row));
        if (k >= row->unmasked)
            mask[k] = kir_binary(w->m, KIR_lt, element[k], sched_add_index(w->e->s, row->n_row));
        if (w->needs)
            load_resident(w, w->resident + (size_t)k * w->e->n_nodes, element[k], mask[k]);
    }
    for (uint32_t k = 0; k < row->resident; k++)
        emit_resident(w, w->resident + (size_t)k * w->e->n_nodes, element[k], mask[k]);
}

struct row_region region_whole(const struct row_emitter *w, int64_t n)
{
    int64_t step = round_step(w), full = n / step * step;
    struct row_region region = {.begin = kir_index(w->m, 0),
                                .tail = full != n,
                                .rounds = full != 0,
                                .blocks = full / step > SUM_BLOCK_ROW};

    region.full_end = full ? sched_add_index(w->e->s, full) : region.begin;
    region.end = region.tail ? sched_add_index(w->e->s, n) : region.full_end;
    return region;
}

struct row_region region_chunk(const struct row_emitter *w, uint32_t begin)
{
    const struct row_schedule *row = w->row;
    int64_t step = round_step(w), full = row->n_row / step * step;
    uint32_t chunk_end = kir_binary(w->m, KIR_add, begin, kir_index(w->m, row->chunk_size));
    struct row_region region = {.begin = begin,
                                .tail = full != row->n_row,
                                .rounds = true,
                                .blocks = row->chunk_size / step > SUM_BLOCK_ROW};

    region.full_end = kir_binary(w->m, KIR_smin, sched_add_index(w->e->s, full), chunk_end);
    region.end = region.full_end;
    if (region.tail)
        region.end = kir_binary(w->m, KIR_smin, sched_add_index(w->e->s, row->n_row), chunk_end);
    return region;
}

void region_emit(struct row_emitter *w, const struct row_region *region)
{
    if (w->resident) {
        emit_all_resident(w);
        return;
    }
    prefetch_begin(w);
    states_identity(w);
    if (region->rounds && region->blocks)
        emit_blocks(w, region);
    else if (region->rounds)
        emit_rounds(w, region->begin, region->full_end);
    if (region->tail) {
        uint32_t element = kir_binary(w->m, KIR_add, region->full_end, w->lane);

        emit_round(w, element, kir_binary(w->m, KIR_lt, element, region->end));
    }
}

bool pass_has_rounds(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (pass_has_fold(w, &w->row->folds[i]))
            return true;
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            return true;
    return false;
}
