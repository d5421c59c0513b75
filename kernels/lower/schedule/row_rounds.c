/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds over the elements of rows.  Elements are folded in blocks of BLOCK rounds, whose results
 * are folded in turn, so that the rounding of a sum grows slowly; which element goes where follows
 * from the numbers of the launch alone. */
#include "lower/schedule/row_emit.h"

#include "lower/rows/rows.h"

enum { BLOCK = 64, AHEAD = 4 /* rounds that are read at once */ };

/* ---- states of all folds of a pass ---- */

uint32_t states_pack(const struct row_emitter *w, uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        for (uint32_t p = 0;
             work_folds(w, &w->row->folds[i]) && p < w->row->folds[i].fold.row->n_parts; p++)
            parts[n++] = w->row->folds[i].state.part[p];
    return n;
}

void states_unpack(const struct row_emitter *w, const uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++)
        for (uint32_t p = 0;
             work_folds(w, &w->row->folds[i]) && p < w->row->folds[i].fold.row->n_parts; p++)
            w->row->folds[i].state.part[p] = parts[n++];
}

void states_identity(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];

        if (work_folds(w, fold))
            fold->state = fold->fold.row->identity(&fold->fold);
    }
}

/* Combines with what `parts` has. */
static void states_combine(const struct row_emitter *w, const uint32_t *parts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->row->n_folds; i++) {
        struct row_fold *fold = &w->row->folds[i];
        struct fold_state other;

        if (!work_folds(w, fold))
            continue;
        for (uint32_t p = 0; p < fold->fold.row->n_parts; p++)
            other.part[p] = parts[n++];
        fold->state = fold->fold.row->combine(&fold->fold, &other, &fold->state);
    }
}

/* ---- one round ---- */

struct fold_state states_masked(const struct row_emitter *w, const struct row_fold *fold,
                                struct fold_state state, uint32_t mask)
{
    struct fold_state identity;

    if (mask == KIR_NONE)
        return state;
    identity = fold->fold.row->identity(&fold->fold);
    for (uint32_t p = 0; p < fold->fold.row->n_parts; p++)
        state.part[p] = kir_select(w->m, mask, state.part[p], identity.part[p]);
    return state;
}

/* An element's number as the fold wants it. */
static uint32_t number_of(const struct row_emitter *w, const struct row_fold *fold,
                          uint32_t element)
{
    enum kir_type has = kir_index_type(w->m), wanted = fold->fold.number;

    if (has == wanted)
        return element;
    return kir_unary(w->m, wanted == KIR_I64 ? KIR_i64 : KIR_i32, element);
}

static void fold_element(const struct row_emitter *w, struct row_fold *fold, uint32_t element,
                         uint32_t mask)
{
    struct fold_state state = {{expr_value(w->e, fold->node), KIR_NONE}};

    if (fold->fold.row->indexed)
        state.part[1] = number_of(w, fold, element);
    state = states_masked(w, fold, state, mask);
    fold->state = fold->fold.row->combine(&fold->fold, &fold->state, &state);
}

static bool stores_in_pass(const struct row_emitter *w, uint32_t store)
{
    return w->row->full[store] && w->row->level[w->e->stores[store].node] == w->pass;
}

/* All values before the first store: an output may have taken the memory of another's operand. */
static void emit_full_stores(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            expr_emit_store(w->e, i);
}

/* Folds and stores at one element per lane.  `mask`: of lanes whose element is in the row. */
static void emit_round(struct row_emitter *w, uint32_t element, uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    expr_mask(w->e, mask == KIR_NONE ? w->mask : mask);
    delinearize_set(&w->row->inner, w->e, element);
    save_round(w, element);
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (work_folds(w, &w->row->folds[i]))
            fold_element(w, &w->row->folds[i], element, mask);
    emit_full_stores(w);
    expr_release(w->e, mark);
}

/* ---- a stretch ---- */

uint32_t round_step(const struct row_emitter *w)
{
    return w->row->form == ROW_GROUP ? w->row->lanes : 1;
}

uint32_t round_element(const struct row_emitter *w, uint32_t counter)
{
    return w->row->form == ROW_GROUP ? kir_binary(w->m, KIR_add, counter, w->lane) : counter;
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

/* Lanes that would go one after the other over long rows are kept in step where they read next to
 * each other, so that memory is read as it lies. */
static void emit_step(const struct row_emitter *w)
{
    if (w->row->in_step)
        kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Whether what the pass needs is hardly more than its loads; true without memory too. */
static bool is_cheap(const struct row_emitter *w)
{
    const struct block *block = w->e->s->block;

    for (uint32_t i = 0; i < w->e->n_nodes && w->needs; i++)
        if (w->needs[i] && w->row->varies[i] && w->e->nodes[i].kind == EXPR_OP &&
            !lower_is_cheap(block->ops[block->values[w->e->nodes[i].value].maker].id))
            return false;
    return true;
}

/* Where a lane walks a row alone it would wait for each of its elements, and where its state is in
 * memory for each of its rounds.  Without memory it does. */
static void ahead_begin(struct row_emitter *w)
{
    w->needs = w->row->form == ROW_LANE ? pass_needs(w, w->pass) : NULL;
    w->ahead = NULL;
    if (w->needs && (!w->e->s->target->caches_rows || is_cheap(w)))
        w->ahead = arena_array(&w->e->arena, (size_t)AHEAD * w->e->n_nodes, sizeof(*w->ahead));
}

/* Whether the pass reads the node's element for each of a row. */
static bool is_read(const struct row_emitter *w, uint32_t node)
{
    return w->e->nodes[node].kind == EXPR_LOAD && w->row->varies[node] && w->needs[node];
}

/* Rounds whose elements are all read before the first is folded, or stored. */
static void emit_ahead(struct row_emitter *w, uint32_t counter)
{
    const struct expr *e = w->e;
    uint32_t element[AHEAD], *known = w->ahead;

    for (uint32_t k = 0; k < AHEAD; k++) {
        uint32_t mark = expr_mark(e);

        element[k] = kir_binary(w->m, KIR_add, counter, kir_index(w->m, k));
        delinearize_set(&w->row->inner, w->e, element[k]);
        for (uint32_t i = 0; i < e->n_nodes; i++)
            known[k * e->n_nodes + i] = is_read(w, i) ? expr_value(w->e, i) : KIR_NONE;
        expr_release(w->e, mark);
    }
    for (uint32_t k = 0; k < AHEAD; k++) {
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

    if (w->ahead) {
        whole = kir_binary(w->m, KIR_sub, end, begin);
        whole = kir_binary(w->m, KIR_and, whole, kir_index(w->m, -AHEAD));
        whole = kir_binary(w->m, KIR_add, begin, whole);
        counter = loop_open(w, begin, whole, AHEAD, phis);
        emit_step(w);
        emit_ahead(w, counter);
        loop_close(w, phis);
        begin = whole;
    }
    counter = loop_open(w, begin, end, round_step(w), phis);
    emit_step(w);
    emit_round(w, round_element(w, counter), KIR_NONE);
    loop_close(w, phis);
}

static void emit_blocks(struct row_emitter *w, const struct row_region *stretch)
{
    uint32_t step = round_step(w) * BLOCK, phis[ROW_STATES] = {0}, begin, end;

    begin = loop_open(w, stretch->begin, stretch->full, step, phis);
    end = kir_binary(w->m, KIR_add, begin, kir_index(w->m, step));
    end = kir_binary(w->m, KIR_smin, end, stretch->full);
    states_identity(w);
    emit_rounds(w, begin, end);
    states_combine(w, phis);
    loop_close(w, phis);
}

/* One element of those that are kept: what is known of it is used, what is new is remembered. */
static void emit_kept(const struct row_emitter *w, uint32_t *known, uint32_t element, uint32_t mask)
{
    uint32_t mark = expr_mark(w->e);

    expr_mask(w->e, mask);
    delinearize_set(&w->row->inner, w->e, element);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        if (known[i] != KIR_NONE && expr_known(w->e, i) == KIR_NONE)
            expr_bind(w->e, i, known[i]);
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (work_folds(w, &w->row->folds[i]))
            fold_element(w, &w->row->folds[i], element, mask);
    emit_full_stores(w);
    for (uint32_t i = 0; i < w->e->n_nodes; i++)
        known[i] = w->row->varies[i] ? expr_known(w->e, i) : KIR_NONE;
    expr_release(w->e, mark);
}

/* A whole row with its elements kept. */
static void emit_all_kept(const struct row_emitter *w)
{
    const struct row_schedule *row = w->row;

    states_identity(w);
    for (uint32_t k = 0; k < row->kept; k++) {
        uint32_t element = w->lane, mask = KIR_NONE;

        if (k)
            element = kir_binary(w->m, KIR_add, element, kir_index(w->m, (int64_t)k * row->lanes));
        if ((int64_t)(k + 1) * row->lanes > row->n_row)
            mask = kir_binary(w->m, KIR_lt, element, sched_index(w->e->s, row->n_row));
        emit_kept(w, w->kept + (size_t)k * w->e->n_nodes, element, mask);
    }
}

struct row_region stretch_whole(const struct row_emitter *w, int64_t n)
{
    int64_t step = round_step(w), full = n / step * step;
    struct row_region stretch = {.begin = kir_index(w->m, 0),
                                 .tail = full<n, .rounds = full> 0,
                                 .blocks = full / step > BLOCK};

    stretch.full = full ? sched_index(w->e->s, full) : stretch.begin;
    stretch.end = stretch.tail ? sched_index(w->e->s, n) : stretch.full;
    return stretch;
}

struct row_region stretch_chunk(const struct row_emitter *w, uint32_t begin)
{
    const struct row_schedule *row = w->row;
    int64_t step = round_step(w), full = row->n_row / step * step;
    uint32_t chunk = kir_binary(w->m, KIR_add, begin, kir_index(w->m, row->chunk));
    struct row_region stretch = {
        .begin = begin,
        .tail = full<row->n_row, .rounds = true, .blocks = row->chunk / step> BLOCK};

    stretch.full = kir_binary(w->m, KIR_smin, sched_index(w->e->s, full), chunk);
    stretch.end = stretch.full;
    if (stretch.tail)
        stretch.end = kir_binary(w->m, KIR_smin, sched_index(w->e->s, row->n_row), chunk);
    return stretch;
}

void stretch_emit(struct row_emitter *w, const struct row_region *stretch)
{
    if (w->kept) {
        emit_all_kept(w);
        return;
    }
    ahead_begin(w);
    states_identity(w);
    if (stretch->rounds && stretch->blocks)
        emit_blocks(w, stretch);
    else if (stretch->rounds)
        emit_rounds(w, stretch->begin, stretch->full);
    if (stretch->tail) {
        uint32_t element = kir_binary(w->m, KIR_add, stretch->full, w->lane);

        emit_round(w, element, kir_binary(w->m, KIR_lt, element, stretch->end));
    }
}

bool pass_has_rounds(const struct row_emitter *w)
{
    for (uint32_t i = 0; i < w->row->n_folds; i++)
        if (work_folds(w, &w->row->folds[i]))
            return true;
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        if (stores_in_pass(w, i))
            return true;
    return false;
}

bool *pass_needs(const struct row_emitter *w, uint32_t pass)
{
    const struct row_schedule *row = w->row;
    bool *needed = arena_array(&w->e->arena, w->e->n_nodes + 1u, sizeof(*needed));

    for (uint32_t i = 0; needed && i < row->n_folds; i++)
        needed[row->folds[i].node] |= row->folds[i].level == pass + 1;
    for (uint32_t i = 0; needed && i < w->e->n_stores; i++)
        needed[w->e->stores[i].node] |= row->full[i] && row->level[w->e->stores[i].node] == pass;
    for (uint32_t i = w->e->n_nodes; needed && i-- > 0;) {
        const struct expr_node *node = &w->e->nodes[i];

        for (uint32_t k = 0; needed[i] && node->kind == EXPR_OP && k < node->n_in; k++)
            if (node->in[k] != BLOCK_NONE)
                needed[node->in[k]] = true;
    }
    return needed;
}
