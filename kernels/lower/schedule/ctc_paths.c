/* SPDX-License-Identifier: Apache-2.0 */
/* The table of paths, and common parts of the ctc schedule's phases. */
#include <math.h>
#include <string.h>

#include "lower/schedule/ctc.h"
#include "math/math.h"

/* Offsets, in the lane's column, of the rows that a step reads and writes. */
struct rows {
    uint32_t from, to;
};

/* The loop-carried values of a loop over labels. */
struct carried {
    uint32_t before; /* the old entry of the label before */
    uint32_t class;  /* the class of the label before */
};

/* The lane's column. */
struct column {
    uint32_t at;        /* the column's number */
    uint32_t backwards; /* KIR_B: the sequence is read backwards; KIR_NONE: none is */
    uint32_t labels;    /* number of labels, if sequences may be read backwards */
};

uint32_t ctc_log_zero(const struct ctc *c)
{
    return kir_const_f(c->m, c->type, -(double)INFINITY);
}

uint32_t ctc_both(const struct ctc *c, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : kir_binary(c->m, KIR_and, a, b);
}

uint32_t ctc_value(struct ctc *c, uint32_t node)
{
    uint32_t value = expr_value(&c->e, node);

    if (kir_type_at(c->m, value) == c->type)
        return value;
    return kir_binary(c->m, KIR_f64, value, KIR_NONE);
}

uint32_t ctc_as_index(const struct ctc *c, uint32_t value)
{
    const struct kir_module *m = c->m;

    if (kir_type_at(m, value) == kir_index_type(m))
        return value;
    return kir_binary(c->m, m->wide ? KIR_i64 : KIR_i32, value, KIR_NONE);
}

uint32_t ctc_class(struct ctc *c)
{
    struct kir_module *m = c->m;
    uint32_t class = expr_value(&c->e, c->target);

    class = kir_binary(c->m, KIR_smax, class, kir_const_i(m, kir_type_at(m, class), 0));
    return kir_binary(c->m, KIR_smin, class, c->last_class);
}

/* A length, clamped to 0 .. max, in the index type. */
static uint32_t length_of(struct ctc *c, uint32_t node, int64_t max)
{
    struct kir_module *m = c->m;
    uint32_t value = expr_value(&c->e, node);
    enum kir_type type = kir_type_at(m, value);

    if (type == KIR_I32 && max > INT32_MAX)
        max = INT32_MAX;
    value = kir_binary(c->m, KIR_smax, value, kir_const_i(m, type, 0));
    value = kir_binary(c->m, KIR_smin, value, sched_add_param(c->e.s, type, (uint64_t)max));
    return ctc_as_index(c, value);
}

uint32_t ctc_steps(struct ctc *c)
{
    return length_of(c, c->steps, c->n_steps);
}

uint32_t ctc_labels(struct ctc *c)
{
    return length_of(c, c->labels, c->n_labels);
}

uint32_t ctc_phase(struct ctc *c, uint32_t phase, int64_t n)
{
    struct sched *s = c->e.s;
    struct kir_module *m = s->module;
    uint32_t lanes = sched_lanes(s->target->lanes, n), number;
    uint32_t groups = (uint32_t)((n + lanes - 1) / lanes);

    memcpy(s->numbers->grid[phase], (const uint32_t[3]){groups, 1, 1},
           sizeof(s->numbers->grid[phase]));
    kir_phase(m, lanes);
    expr_phase(&c->e);
    for (uint32_t i = 0; i < CTC_POINTS; i++)
        delinearize_phase(&c->points[i], &c->e);
    c->items = sched_add_index(s, c->n_items);
    c->columns = c->gradient ? sched_add_index(s, c->n_columns) : c->items;
    if (c->gradient)
        c->row = sched_add_index(s, c->n_states * c->n_columns);
    if (c->n_steps && c->n_labels)
        c->last_class =
            sched_add_param(s, expr_type(&c->e, c->target), (uint64_t)(c->n_classes - 1));
    number = sched_wide(s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    number = kir_binary(c->m, KIR_mul, number, kir_index(c->m, lanes));
    number = kir_binary(c->m, KIR_add, number,
                        sched_wide(s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    c->mask = n % lanes ? kir_binary(c->m, KIR_lt, number, sched_add_index(s, n)) : KIR_NONE;
    expr_mask(&c->e, c->mask);
    return number;
}

/* ---- the table ---- */

static uint32_t entry_at(const struct ctc *c, uint32_t row, uint32_t state)
{
    return kir_binary(c->m, KIR_add, kir_binary(c->m, KIR_mul, state, c->columns), row);
}

uint32_t ctc_read(const struct ctc *c, uint32_t row, uint32_t state, uint32_t mask)
{
    uint32_t at = entry_at(c, row, state);

    if (mask == KIR_NONE)
        return kir_emit_as(c->m, KIR_load, c->type, c->table, at, KIR_NONE, KIR_NONE);
    return kir_emit_as(c->m, KIR_load_if, c->type, c->table, at, mask, ctc_log_zero(c));
}

static void write_state(const struct ctc *c, uint32_t row, uint32_t state, uint32_t value,
                        uint32_t mask)
{
    kir_emit_imm(c->m, mask == KIR_NONE ? KIR_store : KIR_store_if, c->table,
                 entry_at(c, row, state), value, mask);
}

/* log(e^a + e^b) */
static uint32_t log_add(const struct ctc *c, uint32_t a, uint32_t b)
{
    struct kir_module *m = c->m;
    const struct kir_target *target = c->e.s->target;
    uint32_t larger = kir_binary(c->m, KIR_fmax, a, b), rest, none = ctc_log_zero(c);

    rest = kir_binary(c->m, KIR_sub, kir_binary(c->m, KIR_fmin, a, b), larger);
    rest = math_log1p(m, target, math_exp(m, target, rest));
    return kir_select(c->m, kir_binary(c->m, KIR_eq, larger, none), none,
                      kir_binary(c->m, KIR_add, larger, rest));
}

uint32_t ctc_total(const struct ctc *c, uint32_t row, uint32_t labels)
{
    uint32_t last = kir_binary(c->m, KIR_mul, labels, kir_index(c->m, 2));
    uint32_t has_labels = kir_binary(c->m, KIR_lt, kir_index(c->m, 0), last);
    uint32_t sum = ctc_read(c, row, last, c->mask);

    last = kir_binary(c->m, KIR_sub, last, kir_index(c->m, 1));
    return log_add(c, sum, ctc_read(c, row, last, ctc_both(c, c->mask, has_labels)));
}

/* Computes row 0: all paths are in state 0. */
static void emit_begin(const struct ctc *c, uint32_t row)
{
    struct kir_module *m = c->m;
    uint32_t zero = kir_index(c->m, 0), end = sched_add_index(c->e.s, c->n_states), state, paths;

    state = kir_for(m, zero, end, 1);
    paths = kir_select(c->m, kir_binary(c->m, KIR_eq, state, zero), kir_const_f(m, c->type, 0),
                       ctc_log_zero(c));
    write_state(c, row, state, paths, c->mask);
    kir_next(m, NULL, 0);
}

/* Computes the entry of a blank; returns its old value. */
static uint32_t emit_blank(struct ctc *c, const struct rows *rows, uint32_t state, uint32_t before,
                           uint32_t mask)
{
    uint32_t old = ctc_read(c, rows->from, state, mask);
    uint32_t paths = log_add(c, old, before);

    write_state(c, rows->to, state, kir_binary(c->m, KIR_add, paths, ctc_value(c, c->blank)), mask);
    return old;
}

/* Computes the entries of a label and of the blank before it. */
static void emit_label(struct ctc *c, const struct rows *rows, uint32_t label,
                       struct carried *carried, uint32_t mask)
{
    uint32_t state = kir_binary(c->m, KIR_mul, label, kir_index(c->m, 2)), blank, old, paths, class;

    blank = emit_blank(c, rows, state, carried->before, mask);
    state = kir_binary(c->m, KIR_add, state, kir_index(c->m, 1));
    old = ctc_read(c, rows->from, state, mask);
    class = ctc_class(c);
    paths = kir_select(c->m, kir_binary(c->m, KIR_ne, class, carried->class), carried->before,
                       ctc_log_zero(c));
    paths = log_add(c, log_add(c, old, blank), paths);
    write_state(c, rows->to, state, kir_binary(c->m, KIR_add, paths, ctc_value(c, c->label)), mask);
    carried->before = old;
    carried->class = class;
}

/* Number `i` of `n` in the column's direction; arbitrary from `n` on. */
static uint32_t directed(const struct ctc *c, const struct column *column, uint32_t i, uint32_t n)
{
    uint32_t zero = kir_index(c->m, 0), from_end;

    if (column->backwards == KIR_NONE)
        return i;
    from_end = kir_binary(c->m, KIR_sub, kir_binary(c->m, KIR_sub, n, kir_index(c->m, 1)), i);
    return kir_select(c->m, column->backwards, kir_binary(c->m, KIR_smax, from_end, zero), i);
}

/* Computes the row after one more step. */
static void emit_step(struct ctc *c, const struct column *column, const struct rows *rows,
                      uint32_t mask)
{
    struct kir_module *m = c->m;
    struct carried carried = {ctc_log_zero(c), KIR_NONE}, phis;
    uint32_t end = kir_index(c->m, 0), label, mark;

    if (c->n_labels) {
        end = sched_add_index(c->e.s, c->n_labels);
        carried.class = kir_const_i(m, kir_type_at(m, c->last_class), -1);
        label = kir_for(m, kir_index(c->m, 0), end, 1);
        carried.before = phis.before = kir_phi(m, carried.before);
        carried.class = phis.class = kir_phi(m, carried.class);
        mark = expr_mark(&c->e);
        delinearize_set(&c->points[CTC_LABEL], &c->e, directed(c, column, label, column->labels));
        emit_label(c, rows, label, &carried, mask);
        expr_release(&c->e, mark);
        kir_next(m, (const uint32_t[]){carried.before, carried.class}, 2);
        carried = phis;
        end = kir_binary(c->m, KIR_mul, end, kir_index(c->m, 2));
    }
    emit_blank(c, rows, end, carried.before, mask);
}

/* The rows of a step: the same one if only the last row is needed. */
static struct rows rows_of(const struct ctc *c, const struct column *column, uint32_t step)
{
    struct rows rows = {column->at, column->at};

    if (c->gradient) {
        rows.from = kir_binary(c->m, KIR_add, kir_binary(c->m, KIR_mul, step, c->row), column->at);
        rows.to = kir_binary(c->m, KIR_add, rows.from, c->row);
    }
    return rows;
}

static void emit_steps(struct ctc *c, const struct column *column)
{
    struct kir_module *m = c->m;
    uint32_t steps = ctc_steps(c), step, mark, mask;
    struct rows rows;

    step = kir_for(m, kir_index(c->m, 0), sched_add_index(c->e.s, c->n_steps), 1);
    mark = expr_mark(&c->e);
    delinearize_set(&c->points[CTC_STEP], &c->e, directed(c, column, step, steps));
    mask = ctc_both(c, c->mask, kir_binary(c->m, KIR_lt, step, steps));
    expr_mask(&c->e, mask);
    expr_hoist(&c->e);
    rows = rows_of(c, column, step);
    emit_step(c, column, &rows, mask);
    expr_release(&c->e, mark);
    kir_next(m, NULL, 0);
}

void ctc_paths(struct ctc *c, uint32_t number)
{
    struct column column = {number, KIR_NONE, KIR_NONE};
    uint32_t other;

    c->item = number;
    if (c->gradient) {
        other = kir_binary(c->m, KIR_sub, number, c->items);
        column.backwards = kir_binary(c->m, KIR_le, c->items, number);
        c->item = kir_select(c->m, column.backwards, other, number);
    }
    delinearize_set(&c->points[CTC_ITEM], &c->e, c->item);
    expr_hoist(&c->e);
    if (c->gradient)
        column.labels = ctc_labels(c);
    emit_begin(c, number);
    if (c->n_steps)
        emit_steps(c, &column);
}
