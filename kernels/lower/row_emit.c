/* SPDX-License-Identifier: Apache-2.0 */
/* Code for rows.  Elements are folded in blocks of BLOCK rounds, whose results are folded in turn,
 * so that the rounding of a sum grows slowly; which element goes where follows from the numbers of
 * the launch alone.  A row that is split leaves its parts in the workspace, and a second phase
 * folds these. */
#include <string.h>

#include "lower/row.h"

enum { BLOCK = 64 };

/* A stretch of a row, as values: full rounds from begin to full, then up to end with a mask. */
struct stretch {
    uint32_t begin, full, end;
    bool tail;   /* there may be elements behind full */
    bool blocks; /* there may be more than BLOCK rounds */
    bool rounds; /* there are full rounds */
};

/* What emitting needs at hand. */
struct work {
    struct row *row;
    struct expr *e;
    struct kir_module *m;
    uint32_t lane;   /* as an index */
    uint32_t lane_0; /* B: this is the lane that stores for its group */
    uint32_t mask;   /* ROW_LANE: of lanes that have a row; KIR_NONE: all have */
    uint32_t pass;
    uint32_t *kept; /* values of nodes, of each element that is kept; NULL: none is */
};

static uint32_t index_const(const struct work *w, int64_t value)
{
    return kir_const_i(w->m, w->m->wide ? KIR_I64 : KIR_I32, value);
}

static uint32_t op2(const struct work *w, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(w->m, op, a, b, KIR_NONE);
}

static bool in_pass(const struct work *w, const struct row_fold *fold)
{
    return fold->level == w->pass + 1;
}

/* ---- states of all folds of a pass ---- */

enum { STATES = ROW_FOLDS * FOLD_PARTS };

/* The parts one after the other; their number. */
static uint32_t states_pack(const struct work *w, uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        for (uint32_t p = 0;
             in_pass(w, &w->row->folds[i]) && p < w->row->folds[i].fold.row->n_parts; p++)
            parts[n++] = w->row->folds[i].state.part[p];
    return n;
}

static void states_unpack(const struct work *w, const uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        for (uint32_t p = 0;
             in_pass(w, &w->row->folds[i]) && p < w->row->folds[i].fold.row->n_parts; p++)
            w->row->folds[i].state.part[p] = parts[n++];
}

static void states_identity(const struct work *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];

        if (in_pass(w, fold))
            fold->state = fold->fold.row->identity(&fold->fold);
    }
}

/* Combines with what `parts` has. */
static void states_combine(const struct work *w, const uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];
        struct fold_state other;

        if (!in_pass(w, fold))
            continue;
        for (uint32_t p = 0; p < fold->fold.row->n_parts; p++)
            other.part[p] = parts[n++];
        fold->state = fold->fold.row->combine(&fold->fold, &other, &fold->state);
    }
}

/* ---- one round ---- */

static struct fold_state masked(const struct work *w, const struct row_fold *fold,
                                struct fold_state state, uint32_t mask)
{
    struct fold_state identity;

    if (mask == KIR_NONE)
        return state;
    identity = fold->fold.row->identity(&fold->fold);
    for (uint32_t p = 0; p < fold->fold.row->n_parts; p++)
        state.part[p] = kir_emit(w->m, KIR_select, state.part[p], identity.part[p], mask);
    return state;
}

static void fold_element(const struct work *w, struct row_fold *fold, uint32_t element,
                         uint32_t mask)
{
    uint32_t number = KIR_NONE, value = expr_value(w->e, fold->node);
    struct fold_state state;

    if (fold->fold.row->indexed)
        number = w->m->wide ? element : kir_emit(w->m, KIR_i64, element, KIR_NONE, KIR_NONE);
    state = masked(w, fold, fold->fold.row->take(&fold->fold, value, number), mask);
    fold->state = fold->fold.row->combine(&fold->fold, &fold->state, &state);
}

static bool stores_in_pass(const struct work *w, uint32_t store)
{
    return w->row->full[store] && w->row->level[w->e->stores[store].node] == w->pass;
}

/* All values before the first store: an output may have taken the memory of another's operand. */
static void emit_full_stores(const struct work *w)
{
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            expr_emit_store(w->e, i);
}

/* Folds and stores at one element per lane.  `mask`: of lanes whose element is in the row. */
static void emit_round(const struct work *w, uint32_t element, uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    expr_mask(w->e, mask == KIR_NONE ? w->mask : mask);
    walk_set(&w->row->inner, w->e, element);
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (in_pass(w, &w->row->folds[i]))
            fold_element(w, &w->row->folds[i], element, mask);
    emit_full_stores(w);
    expr_release(w->e, mark);
}

/* ---- a stretch ---- */

static uint32_t step_of(const struct work *w)
{
    return w->row->form == ROW_GROUP ? w->row->lanes : 1;
}

static uint32_t element_at(const struct work *w, uint32_t counter)
{
    return w->row->form == ROW_GROUP ? op2(w, KIR_add, counter, w->lane) : counter;
}

/* A loop with the states as what it carries, which are its results afterwards.  Gives the counter.
 */
static uint32_t open_loop(const struct work *w, uint32_t begin, uint32_t end, uint32_t step,
                          uint32_t *parts, uint32_t *n)
{
    uint32_t counter;

    *n = states_pack(w, parts);
    counter = kir_for(w->m, begin, end, step);
    for (uint32_t i = 0; i < *n; i++)
        parts[i] = kir_phi(w->m, parts[i]);
    states_unpack(w, parts);
    return counter;
}

static void close_loop(const struct work *w, const uint32_t *phis)
{
    uint32_t parts[STATES], n = states_pack(w, parts);

    kir_next(w->m, parts, n);
    states_unpack(w, phis);
}

static void emit_rounds(const struct work *w, uint32_t begin, uint32_t end)
{
    uint32_t phis[STATES], n;
    uint32_t counter = open_loop(w, begin, end, step_of(w), phis, &n);

    emit_round(w, element_at(w, counter), KIR_NONE);
    close_loop(w, phis);
}

static void emit_blocks(const struct work *w, const struct stretch *stretch)
{
    uint32_t step = step_of(w) * BLOCK, phis[STATES], n, begin, end;

    begin = open_loop(w, stretch->begin, stretch->full, step, phis, &n);
    end = op2(w, KIR_add, begin, index_const(w, step));
    end = op2(w, KIR_smin, end, stretch->full);
    states_identity(w);
    emit_rounds(w, begin, end);
    states_combine(w, phis);
    close_loop(w, phis);
}

/* One element of those that are kept: what is known of it is used, what is new is remembered. */
static void emit_kept(const struct work *w, uint32_t *known, uint32_t element, uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    expr_mask(w->e, mask);
    walk_set(&w->row->inner, w->e, element);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (known[i] != KIR_NONE && expr_known(w->e, i) == KIR_NONE)
            expr_bind(w->e, i, known[i]);
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (in_pass(w, &w->row->folds[i]))
            fold_element(w, &w->row->folds[i], element, mask);
    emit_full_stores(w);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        known[i] = w->row->varies[i] ? expr_known(w->e, i) : KIR_NONE;
    expr_release(w->e, mark);
}

/* A whole row with its elements kept. */
static void emit_all_kept(const struct work *w)
{
    const struct row *row = w->row;

    states_identity(w);
    for (uint32_t k = 0; k < row->kept; k++) {
        uint32_t element = w->lane, mask = KIR_NONE;

        if (k)
            element = op2(w, KIR_add, element, index_const(w, (int64_t)k * row->lanes));
        if ((int64_t)(k + 1) * row->lanes > row->n_row)
            mask = op2(w, KIR_lt, element, sched_index(w->e->s, row->n_row));
        emit_kept(w, w->kept + (size_t)k * w->e->n_nodes, element, mask);
    }
}

static void emit_stretch(const struct work *w, const struct stretch *stretch)
{
    if (w->kept) {
        emit_all_kept(w);
        return;
    }
    states_identity(w);
    if (stretch->rounds && stretch->blocks)
        emit_blocks(w, stretch);
    else if (stretch->rounds)
        emit_rounds(w, stretch->begin, stretch->full);
    if (stretch->tail) {
        uint32_t element = op2(w, KIR_add, stretch->full, w->lane);

        emit_round(w, element, op2(w, KIR_lt, element, stretch->end));
    }
}

/* ---- results ---- */

/* Over the lanes of the group; the same in all afterwards. */
static void combine_lanes(const struct work *w, struct row_fold *fold)
{
    for (uint32_t s = 1; s < w->row->lanes; s *= 2) {
        struct fold_state other;

        for (uint32_t p = 0; p < fold->fold.row->n_parts; p++)
            other.part[p] =
                kir_emit_imm(w->m, KIR_exchange, s, fold->state.part[p], KIR_NONE, KIR_NONE);
        fold->state = fold->fold.row->combine(&fold->fold, &fold->state, &other);
    }
    for (uint32_t p = 0; p < fold->fold.row->n_parts; p++)
        fold->state.part[p] = kir_emit(w->m, KIR_first, fold->state.part[p], KIR_NONE, KIR_NONE);
}

static void bind(const struct work *w, const struct row_fold *fold)
{
    uint32_t value = fold_result(&fold->fold, &fold->state);

    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (w->e->nodes[i].kind == EXPR_BOUND && w->e->nodes[i].value == fold->value)
            expr_bind(w->e, i, value);
}

static void finish_pass(const struct work *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        if (!in_pass(w, &w->row->folds[i]))
            continue;
        if (w->row->form == ROW_GROUP)
            combine_lanes(w, &w->row->folds[i]);
        bind(w, &w->row->folds[i]);
    }
}

/* Values that are the same along the row, once they are known. */
static void emit_constant(const struct work *w)
{
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (!w->row->varies[i] && w->row->level[i] == w->pass)
            expr_value(w->e, i);
}

static bool has_rounds(const struct work *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (in_pass(w, &w->row->folds[i]))
            return true;
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            return true;
    return false;
}

static void emit_outer_stores(const struct work *w)
{
    uint32_t mark = expr_mark(w->e);

    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (!w->row->full[i])
            expr_value(w->e, w->e->stores[i].node);
    expr_mask(w->e, w->row->form == ROW_GROUP ? w->lane_0 : w->mask);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (!w->row->full[i])
            expr_emit_store(w->e, i);
    expr_release(w->e, mark);
}

/* ---- phases ---- */

static uint32_t group_index(const struct work *w)
{
    return sched_wide(w->e->s, kir_emit_imm(w->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
}

/* Begins a phase: parameters, and the lane. */
static void begin_phase(struct work *w)
{
    kir_phase(w->m, w->row->lanes);
    expr_phase(w->e);
    walk_phase(&w->row->outer, w->e);
    walk_phase(&w->row->inner, w->e);
    w->lane = sched_wide(w->e->s, kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    w->lane_0 = op2(w, KIR_eq, w->lane, index_const(w, 0));
    w->mask = KIR_NONE;
}

/* Sets the row of each lane, the `blocks`-th group of them.  Gives its number. */
static uint32_t set_rows(struct work *w, uint32_t block)
{
    uint32_t rows = block;

    if (w->row->form == ROW_LANE) {
        rows = op2(w, KIR_add, op2(w, KIR_mul, block, index_const(w, w->row->lanes)), w->lane);
        if (w->row->outer.count % w->row->lanes)
            w->mask = op2(w, KIR_lt, rows, sched_index(w->e->s, w->row->outer.count));
    }
    walk_set(&w->row->outer, w->e, rows);
    expr_mask(w->e, w->mask);
    expr_hoist(w->e);
    return rows;
}

static int64_t row_blocks(const struct row *row)
{
    if (row->form == ROW_GROUP)
        return row->outer.count;
    return (row->outer.count + row->lanes - 1) / row->lanes;
}

static void set_grid(const struct work *w, uint32_t phase, int64_t groups)
{
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};

    memcpy(w->e->s->numbers->grid[phase], grid, sizeof(grid));
}

/* A whole row of `n` elements. */
static struct stretch whole(const struct work *w, int64_t n)
{
    int64_t step = step_of(w), full = n / step * step;
    struct stretch stretch = {.begin = index_const(w, 0),
                              .tail = full<n, .rounds = full> 0,
                              .blocks = full / step > BLOCK};

    stretch.full = full ? sched_index(w->e->s, full) : stretch.begin;
    stretch.end = stretch.tail ? sched_index(w->e->s, n) : stretch.full;
    return stretch;
}

/* Without memory nothing is kept. */
static void keep_begin(struct work *w)
{
    size_t n = (size_t)w->row->kept * w->e->n_nodes;

    w->kept = n ? arena_array(&w->e->arena, n, sizeof(*w->kept)) : NULL;
    for (size_t i = 0; i < n && w->kept; i++)
        w->kept[i] = KIR_NONE;
}

static void emit_one_phase(struct work *w)
{
    struct stretch stretch;

    begin_phase(w);
    keep_begin(w);
    stretch = whole(w, w->row->n_row);
    set_rows(w, group_index(w));
    for (w->pass = 0; w->pass <= w->row->n_levels; w->pass++) {
        emit_constant(w);
        if (!has_rounds(w))
            continue;
        emit_stretch(w, &stretch);
        finish_pass(w);
    }
    emit_outer_stores(w);
    set_grid(w, 0, row_blocks(w->row));
}

/* ---- split rows ---- */

static uint32_t to_bits(const struct work *w, enum kir_type type, uint32_t value)
{
    if (type == KIR_F32)
        value = kir_emit_as(w->m, KIR_bits, KIR_I32, 0, value, KIR_NONE, KIR_NONE);
    if (type == KIR_F64)
        return kir_emit_as(w->m, KIR_bits, KIR_I64, 0, value, KIR_NONE, KIR_NONE);
    return type == KIR_I64 ? value : kir_emit(w->m, KIR_i64, value, KIR_NONE, KIR_NONE);
}

static uint32_t from_bits(const struct work *w, enum kir_type type, uint32_t bits)
{
    if (type == KIR_I64)
        return bits;
    if (type == KIR_F64)
        return kir_emit_as(w->m, KIR_bits, KIR_F64, 0, bits, KIR_NONE, KIR_NONE);
    if (type == KIR_B)
        return op2(w, KIR_ne, bits, kir_const_i(w->m, KIR_I64, 0));
    bits = kir_emit(w->m, KIR_i32, bits, KIR_NONE, KIR_NONE);
    return type == KIR_I32 ? bits
                           : kir_emit_as(w->m, KIR_bits, KIR_F32, 0, bits, KIR_NONE, KIR_NONE);
}

/* Where a part of a split of a row lies in the workspace. */
static uint32_t place_of(const struct work *w, uint32_t part, uint32_t split, uint32_t rows)
{
    uint32_t at = split;

    if (part)
        at = op2(w, KIR_add, at, sched_index(w->e->s, (int64_t)part * w->row->splits));
    return op2(w, KIR_add, op2(w, KIR_mul, at, sched_index(w->e->s, w->row->outer.count)), rows);
}

static void store_parts(const struct work *w, uint32_t workspace, uint32_t split, uint32_t rows)
{
    uint32_t parts[STATES], n = states_pack(w, parts);
    uint32_t mask = w->row->form == ROW_GROUP ? w->lane_0 : w->mask;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = to_bits(w, kir_type_at(w->m, parts[i]), parts[i]);

        kir_emit_imm(w->m, mask == KIR_NONE ? KIR_store : KIR_store_if, workspace,
                     place_of(w, i, split, rows), bits, mask);
    }
}

static void emit_parts(struct work *w, uint32_t workspace)
{
    const struct row *row = w->row;
    struct sched_divisor by_splits;
    struct stretch stretch = {.rounds = true, .tail = row->n_row % step_of(w) != 0};
    uint32_t group, block, split, splits, rows;

    begin_phase(w);
    by_splits = sched_divisor(w->e->s, row->splits);
    splits = sched_index(w->e->s, row->splits);
    stretch.blocks = row->chunk / step_of(w) > BLOCK;
    stretch.full = sched_index(w->e->s, row->n_row / step_of(w) * step_of(w));
    stretch.end = sched_index(w->e->s, row->n_row);
    group = group_index(w);
    block = sched_divide(w->e->s, &by_splits, group);
    split = op2(w, KIR_sub, group, op2(w, KIR_mul, block, splits));
    rows = set_rows(w, block);
    emit_constant(w);
    stretch.begin = op2(w, KIR_mul, split, index_const(w, row->chunk));
    group = op2(w, KIR_add, stretch.begin, index_const(w, row->chunk));
    stretch.full = op2(w, KIR_smin, stretch.full, group);
    stretch.end = op2(w, KIR_smin, stretch.end, group);
    emit_stretch(w, &stretch);
    for (uint32_t i = 0; i < row->n_folds && row->form == ROW_GROUP; i++)
        combine_lanes(w, &w->row->folds[i]);
    store_parts(w, workspace, split, rows);
    set_grid(w, 0, row_blocks(row) * row->splits);
}

/* One round of the second phase: split number `split` of each lane's row. */
static void fold_parts(const struct work *w, uint32_t workspace, uint32_t split, uint32_t rows,
                       uint32_t mask)
{
    uint32_t n = 0, access = mask == KIR_NONE ? w->mask : mask;

    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];
        struct fold_state state = fold->fold.row->identity(&fold->fold);

        for (uint32_t p = 0; p < fold->fold.row->n_parts; p++, n++) {
            uint32_t at = place_of(w, n, split, rows), bits;

            bits = access == KIR_NONE
                       ? kir_emit_as(w->m, KIR_load, KIR_I64, workspace, at, KIR_NONE, KIR_NONE)
                       : kir_emit_as(w->m, KIR_load_if, KIR_I64, workspace, at, access,
                                     to_bits(w, fold_part_type(&fold->fold, p), state.part[p]));
            state.part[p] = from_bits(w, fold_part_type(&fold->fold, p), bits);
        }
        fold->state = fold->fold.row->combine(&fold->fold, &fold->state, &state);
    }
}

static void emit_sum_of_parts(struct work *w, uint32_t workspace)
{
    struct stretch stretch;
    uint32_t rows, phis[STATES], n, split;

    begin_phase(w);
    stretch = whole(w, w->row->splits);
    rows = set_rows(w, group_index(w));
    emit_constant(w);
    states_identity(w);
    if (stretch.rounds) {
        split = open_loop(w, stretch.begin, stretch.full, step_of(w), phis, &n);
        fold_parts(w, workspace, element_at(w, split), rows, KIR_NONE);
        close_loop(w, phis);
    }
    if (stretch.tail) {
        split = op2(w, KIR_add, stretch.full, w->lane);
        fold_parts(w, workspace, split, rows, op2(w, KIR_lt, split, stretch.end));
    }
    finish_pass(w);
    w->pass = w->row->n_levels;
    emit_constant(w);
    emit_outer_stores(w);
    set_grid(w, 1, row_blocks(w->row));
}

static void emit_split(struct work *w)
{
    uint32_t workspace = kir_arg(w->m, FRIT_I64, KIR_READ | KIR_WRITE), parts = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        parts += w->row->folds[i].fold.row->n_parts;
    w->e->s->numbers->workspace_bytes =
        (uint64_t)w->row->splits * (uint64_t)w->row->outer.count * parts * sizeof(uint64_t);
    emit_parts(w, workspace);
    emit_sum_of_parts(w, workspace);
}

void row_emit(struct row *row)
{
    struct work work = {.row = row, .e = &row->e, .m = row->e.s->module};

    if (row->splits > 1)
        emit_split(&work);
    else
        emit_one_phase(&work);
}
