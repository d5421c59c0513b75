/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane computes: a window folded, element by element, and the rest of the block.
 *
 * A mean sums each innermost line of the window by itself, a long one in blocks, so that rounding
 * errors stay small.  A maximum keeps the first of equal elements, also of -0 and +0.  By lines, on
 * targets without an instruction for a maximum that propagates NaN, the maximum ignores NaN:
 * elements are tested for NaN two at a time, and the result is NaN if one was. */
#include "lower/schedule/pool.h"

#include <math.h>
#include <string.h>

#include "lower/rows/rows.h"
#include "lower/sum_blocks.h"

enum { UNROLLED = 8 }; /* elements of a line of the window, at most */

/* ---- elements ---- */

/* KIR_B: the element is in the operand; KIR_NONE: it is. */
static uint32_t inside(struct pool_schedule *p)
{
    if (!p->by_lines)
        return expr_inside(&p->e, p->node);
    if (!p->masks || (p->tap >= 0 && !pool_crosses(&p->windows[p->n_windows - 1], p->tap)))
        return KIR_NONE;
    return kir_binary(p->m, KIR_ult, expr_coord_value(&p->e, p->column), p->columns);
}

/* The element, or what it counts as outside of the operand. */
static uint32_t element(struct pool_schedule *p, uint32_t is_inside)
{
    uint32_t mark = expr_mark(&p->e), value;

    if (!p->by_lines || is_inside == KIR_NONE)
        return expr_value(&p->e, p->node);
    expr_mask(&p->e, is_inside);
    value = expr_value(&p->e, p->node);
    expr_release(&p->e, mark);
    return kir_select(p->m, is_inside, value, p->neutral);
}

/* ---- folds ---- */

void pool_states_init(struct pool_schedule *p)
{
    p->n_states = p->index == BLOCK_NONE && !p->finds_nan ? 1 : 2;
    p->untested = KIR_NONE;
    p->state[0] = p->neutral;
    p->state[1] = p->finds_nan ? p->no_nan : kir_index(p->m, -1);
}

/* Keeps the first maximum, or the first NaN if there is one, and its index.  Padding is not an
 * element. */
static void accumulate_indexed(struct pool_schedule *p, uint32_t value, uint32_t is_inside)
{
    struct kir_module *m = p->m;
    uint32_t best = p->state[0], at = p->state[1];
    uint32_t takes = kir_unary(m, KIR_not, kir_binary(m, KIR_le, value, best));

    takes = kir_binary(m, KIR_and, takes, kir_binary(m, KIR_eq, best, best));
    takes = kir_binary(m, KIR_or, takes, kir_binary(m, KIR_lt, at, kir_index(m, 0)));
    if (is_inside != KIR_NONE)
        takes = kir_binary(m, KIR_and, takes, is_inside);
    p->state[0] = kir_select(m, takes, value, best);
    p->state[1] = kir_select(m, takes, expr_coord_value(&p->e, p->number), at);
}

/* Tests the untested element, if there is one, and `other` for NaN. */
static void find_nan(struct pool_schedule *p, uint32_t other)
{
    struct kir_module *m = p->m;
    uint32_t is_nan;

    if (p->untested == KIR_NONE)
        return;
    is_nan = kir_binary(m, KIR_or, kir_binary(m, KIR_ne, p->untested, p->untested),
                        kir_binary(m, KIR_ne, other, other));
    is_nan = kir_select(m, is_nan, p->is_nan, p->no_nan);
    p->state[1] = kir_binary(m, KIR_or, p->state[1], is_nan);
    p->untested = KIR_NONE;
}

/* The larger number, the first of equal ones; either where one is NaN.  A constant `best` is the
 * neutral one, before any element. */
static uint32_t largest(const struct pool_schedule *p, uint32_t best, uint32_t value)
{
    uint64_t bits;

    if (kir_is_const(p->m, best, &bits))
        return value;
    return kir_select(p->m, kir_binary(p->m, KIR_lt, best, value), value, best);
}

static void accumulate_number(struct pool_schedule *p, uint32_t value)
{
    p->state[0] = largest(p, p->state[0], value);
    if (p->untested == KIR_NONE)
        p->untested = value;
    else
        find_nan(p, value);
    if (!p->unrolls)
        find_nan(p, value);
}

/* Adds the element to the state. */
static void accumulate(struct pool_schedule *p)
{
    uint32_t is_inside = inside(p), value = element(p, is_inside);

    if (p->index != BLOCK_NONE)
        accumulate_indexed(p, value, is_inside);
    else if (p->finds_nan)
        accumulate_number(p, value);
    else if (p->fold == POOL_MAX)
        p->state[0] = lower_max(p->m, p->dtype, value, p->state[0]);
    else
        p->state[0] = kir_binary(p->m, KIR_add, p->state[0], value);
}

void pool_combine(struct pool_schedule *p, const uint32_t *after)
{
    struct kir_module *m = p->m;

    if (p->fold == POOL_MEAN) {
        p->state[0] = kir_binary(m, KIR_add, p->state[0], after[0]);
    } else if (p->finds_nan) {
        p->state[0] = largest(p, p->state[0], after[0]);
        p->state[1] = kir_binary(m, KIR_or, p->state[1], after[1]);
    } else {
        p->state[0] = lower_max(m, p->dtype, after[0], p->state[0]);
    }
}

/* ---- loops ---- */

uint32_t pool_open_loop(struct pool_schedule *p, uint32_t from, uint32_t to, uint32_t step)
{
    uint32_t counter = kir_for(p->m, from, to, step);

    for (uint32_t i = 0; i < p->n_states; i++)
        p->state[i] = kir_phi(p->m, p->state[i]);
    return counter;
}

void pool_close_loop(struct pool_schedule *p, const uint32_t *was)
{
    kir_next(p->m, p->state, p->n_states);
    memcpy(p->state, was, p->n_states * sizeof(*was));
}

static void emit_dims(struct pool_schedule *p, uint32_t dim);

static void emit_tap(struct pool_schedule *p, uint32_t dim, uint32_t counter)
{
    uint32_t mark = expr_mark(&p->e);

    expr_set(&p->e, p->dims[dim], counter);
    if (dim + 1 < p->n_dims)
        expr_hoist(&p->e);
    emit_dims(p, dim + 1);
    expr_release(&p->e, mark);
}

static void emit_taps(struct pool_schedule *p, uint32_t dim, uint32_t from, uint32_t to)
{
    uint32_t counter, was[POOL_STATES];

    if (p->unrolls && dim + 1 == p->n_dims) {
        expr_hoist(&p->e); /* what elements have in common */
        for (p->tap = 0; p->tap < p->e.space.extent[p->dims[dim]]; p->tap++)
            emit_tap(p, dim, kir_index(p->m, p->tap));
        p->tap = -1;
        find_nan(p, p->untested);
        return;
    }
    counter = pool_open_loop(p, from, to, 1);
    memcpy(was, p->state, sizeof(was));
    emit_tap(p, dim, counter);
    pool_close_loop(p, was);
}

/* Sums a line or a block by itself and adds it to the state. */
static void emit_partial_sum(struct pool_schedule *p, uint32_t dim, uint32_t from, uint32_t to)
{
    uint32_t sum = p->state[0];

    pool_states_init(p);
    emit_taps(p, dim, from, to);
    p->state[0] = kir_binary(p->m, KIR_add, sum, p->state[0]);
}

/* Emits the loops over the window's dims from `dim` on. */
static void emit_dims(struct pool_schedule *p, uint32_t dim)
{
    uint32_t counter, was[POOL_STATES], end;

    if (dim == p->n_dims) {
        accumulate(p);
        return;
    }
    if (p->fold == POOL_MAX || dim + 1 < p->n_dims) {
        emit_taps(p, dim, p->from[dim], p->to[dim]);
        return;
    }
    if (p->e.space.extent[p->dims[dim]] <= SUM_BLOCK_POOL) {
        emit_partial_sum(p, dim, p->from[dim], p->to[dim]);
        return;
    }
    counter = pool_open_loop(p, p->from[dim], p->to[dim], SUM_BLOCK_POOL);
    memcpy(was, p->state, sizeof(was));
    end =
        kir_binary(p->m, KIR_smin,
                   kir_binary(p->m, KIR_add, counter, kir_index(p->m, SUM_BLOCK_POOL)), p->to[dim]);
    emit_partial_sum(p, dim, counter, end);
    pool_close_loop(p, was);
}

/* ---- results ---- */

/* A parameter of the mean's type. */
static uint32_t real_param(const struct pool_schedule *p, double real)
{
    const float narrow = (float)real;
    uint64_t bits = 0;

    if (kir_type_of(p->dtype) == KIR_F64)
        memcpy(&bits, &real, sizeof(real));
    else
        memcpy(&bits, &narrow, sizeof(narrow));
    return sched_add_param(p->e.s, kir_type_of(p->dtype), bits);
}

/* The number of elements of the mean, in its type. */
static uint32_t count_of(struct pool_schedule *p)
{
    struct kir_module *m = p->m;
    enum kir_type type = kir_type_of(p->dtype);
    uint32_t count = KIR_NONE;
    int64_t known = 1;

    for (uint32_t i = 0; i < p->n_windows; i++) {
        const struct pool_window *w = &p->windows[i];
        uint32_t first, end;

        if (!w->varies) {
            known *= w->kernel;
            continue;
        }
        first = expr_coord_value(&p->e, w->first_at);
        end = expr_coord_value(&p->e, w->end_at);
        if (p->exclude_pad)
            first = kir_binary(m, KIR_smax, first, p->counted[i][0]);
        end = kir_binary(m, KIR_sub, kir_binary(m, KIR_smin, end, p->counted[i][1]), first);
        count = count == KIR_NONE ? end : kir_binary(m, KIR_mul, count, end);
    }
    if (count == KIR_NONE)
        return real_param(p, (double)known);
    count = kir_unary(m, type == KIR_F64 ? KIR_f64 : KIR_f32, count);
    return known == 1 ? count : kir_binary(m, KIR_mul, count, real_param(p, (double)known));
}

static void bind_results(struct pool_schedule *p)
{
    struct kir_module *m = p->m;
    uint32_t value = p->state[0], at = p->state[1];

    if (p->fold == POOL_MEAN)
        value = lower_fit(m, p->dtype, kir_binary(m, KIR_div, value, count_of(p)));
    if (p->finds_nan)
        value = kir_select(m, kir_binary(m, KIR_ne, at, p->no_nan),
                           lower_const(m, p->dtype, (double)NAN), value);
    if (p->result != BLOCK_NONE)
        expr_bind(&p->e, p->result, value);
    if (p->index != BLOCK_NONE)
        expr_bind(&p->e, p->index, m->wide ? at : kir_unary(m, KIR_i64, at));
}

/* ---- of a lane ---- */

void pool_parameters(struct pool_schedule *p)
{
    enum kir_type type = kir_type_of(p->dtype) == KIR_F64 ? KIR_I64 : KIR_I32;

    p->tap = -1;
    p->neutral = lower_const(p->m, p->dtype, p->fold == POOL_MAX ? -(double)INFINITY : 0);
    for (uint32_t d = 0; d < p->e.space.n_dims; d++)
        if (p->e.space.tag[d] == POOL_WINDOW) {
            p->from[p->n_dims] = kir_index(p->m, 0);
            p->to[p->n_dims] = sched_add_index(p->e.s, p->e.space.extent[d]);
            p->dims[p->n_dims++] = d;
        }
    for (uint32_t i = 0; i < p->n_windows && p->fold == POOL_MEAN; i++)
        if (p->windows[i].varies) {
            p->counted[i][0] = kir_index(p->m, 0);
            p->counted[i][1] = sched_add_index(
                p->e.s, p->windows[i].extent + (p->exclude_pad ? 0 : p->windows[i].padding));
        }
    p->finds_nan = p->by_lines && p->fold == POOL_MAX && p->index == BLOCK_NONE &&
                   lower_is_float(p->dtype) && !p->e.s->target->fmax;
    if (p->finds_nan) {
        p->is_nan = kir_const_i(p->m, type, -1);
        p->no_nan = kir_const_i(p->m, type, 0);
    }
    p->unrolls = p->by_lines && p->n_dims && p->windows[p->n_windows - 1].kernel > 1 &&
                 p->e.space.extent[p->dims[p->n_dims - 1]] <= UNROLLED;
}

void pool_fold(struct pool_schedule *p, uint32_t dim)
{
    pool_states_init(p);
    emit_dims(p, dim);
}

void pool_emit_results(struct pool_schedule *p, uint32_t mask)
{
    uint32_t mark = expr_mark(&p->e);

    expr_mask(&p->e, mask);
    bind_results(p);
    for (uint32_t i = 0; i < p->e.n_stores; i++)
        expr_value(&p->e, p->e.stores[i].node);
    for (uint32_t i = 0; i < p->e.n_stores; i++)
        expr_emit_store(&p->e, i);
    expr_release(&p->e, mark);
}
