/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that overlap from row to row: a lane computes the results of neighbouring rows, one after
 * another, and keeps the folds of the operand's rows that windows have in common.  The rows of a
 * window are folded in their order, as without that. */
#include "lower/schedule/pool.h"

#include <string.h>

enum { ROWS = 8 }; /* of a window, at most */

static const struct pool_window *window_of(const struct pool_schedule *p)
{
    return &p->windows[p->n_windows - 2];
}

bool pool_rolls(const struct pool_schedule *p)
{
    const struct pool_window *w;

    if (p->n_windows < 2 || p->index != BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i + 2 < p->n_windows; i++)
        if (p->windows[i].kernel > 1)
            return false;
    w = window_of(p);
    return w->kernel <= ROWS && w->dilation == 1 && w->stride && w->stride < w->kernel;
}

/* Folds row number `row` of the window.  One that may be outside of the operand is folded in a loop
 * of one round, or of none. */
static void fold_row(struct pool_schedule *p, int64_t row, uint32_t *states)
{
    const struct pool_window *w = window_of(p);
    uint32_t mark = expr_mark(&p->e), number = kir_index(p->m, row), is_inside;

    expr_set(&p->e, p->dims[0], number);
    if (!pool_crosses(w, row)) {
        pool_fold(p, 1);
        memcpy(states, p->state, sizeof(p->state));
    } else {
        number = kir_binary(p->m, KIR_add, expr_coord_value(&p->e, w->first_at), number);
        is_inside = kir_binary(p->m, KIR_ult, number, sched_add_index(p->e.s, w->extent));
        pool_states_init(p);
        pool_open_loop(p, kir_index(p->m, 0),
                       kir_select(p->m, is_inside, kir_index(p->m, 1), kir_index(p->m, 0)), 1);
        memcpy(states, p->state, sizeof(p->state));
        pool_fold(p, 1);
        pool_close_loop(p, states);
    }
    expr_release(&p->e, mark);
}

void pool_emit_rows(struct pool_schedule *p, uint32_t from, uint32_t to, uint32_t mask)
{
    const struct pool_window *w = window_of(p);
    const int64_t kept = w->kernel - w->stride;
    uint32_t rows[ROWS][POOL_STATES], next[ROWS * POOL_STATES], n = 0;
    uint32_t mark = expr_mark(&p->e), row;

    expr_set(&p->e, p->row_dim, from);
    for (int64_t i = 0; i < kept; i++)
        fold_row(p, i, rows[i]);
    expr_release(&p->e, mark);
    row = kir_for(p->m, from, to, 1);
    for (int64_t i = 0; i < kept; i++)
        for (uint32_t k = 0; k < p->n_states; k++)
            rows[i][k] = kir_phi(p->m, rows[i][k]);
    expr_set(&p->e, p->row_dim, row);
    expr_hoist(&p->e);
    for (int64_t i = kept; i < w->kernel; i++)
        fold_row(p, i, rows[i]);
    memcpy(p->state, rows[0], sizeof(p->state));
    for (int64_t i = 1; i < w->kernel; i++)
        pool_combine(p, rows[i]);
    pool_emit_results(p, mask);
    for (int64_t i = w->stride; i < w->kernel; i++)
        for (uint32_t k = 0; k < p->n_states; k++)
            next[n++] = rows[i][k];
    kir_next(p->m, next, n);
    expr_release(&p->e, mark);
}
