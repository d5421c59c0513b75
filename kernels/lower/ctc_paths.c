/* SPDX-License-Identifier: Apache-2.0 */
/* The ctc schedule's table of paths, and what its phases are made of. */
#include <math.h>
#include <string.h>

#include "lower/ctc.h"
#include "math/math.h"

/* The rows that a step goes between; where they begin, with the column. */
struct rows {
    uint32_t from, to;
};

/* What a loop over labels carries. */
struct carried {
    uint32_t before; /* the old value of the state before */
    uint32_t class;  /* of the label before */
};

/* The lane's column. */
struct column {
    uint32_t at;     /* its number */
    uint32_t back;   /* whether the sequence is read from its end; KIR_NONE: no lane does */
    uint32_t labels; /* of the sequence; where one may */
};

uint32_t ctc_op(const struct ctc *c, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(c->e.s->module, op, a, b, KIR_NONE);
}

uint32_t ctc_pick(const struct ctc *c, uint32_t a, uint32_t b, uint32_t condition)
{
    return kir_emit(c->e.s->module, KIR_select, a, b, condition);
}

uint32_t ctc_index(const struct ctc *c, int64_t value)
{
    return kir_const_i(c->e.s->module, c->e.s->module->wide ? KIR_I64 : KIR_I32, value);
}

uint32_t ctc_never(const struct ctc *c)
{
    return kir_const_f(c->e.s->module, c->type, -(double)INFINITY);
}

uint32_t ctc_both(const struct ctc *c, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : ctc_op(c, KIR_and, a, b);
}

uint32_t ctc_value(struct ctc *c, uint32_t node)
{
    uint32_t value = expr_value(&c->e, node);

    if (kir_type_at(c->e.s->module, value) == c->type)
        return value;
    return ctc_op(c, KIR_f64, value, KIR_NONE);
}

uint32_t ctc_as_index(const struct ctc *c, uint32_t value)
{
    const struct kir_module *m = c->e.s->module;

    if (kir_type_at(m, value) == (m->wide ? KIR_I64 : KIR_I32))
        return value;
    return ctc_op(c, m->wide ? KIR_i64 : KIR_i32, value, KIR_NONE);
}

uint32_t ctc_class(struct ctc *c)
{
    struct kir_module *m = c->e.s->module;
    uint32_t class = expr_value(&c->e, c->target);

    class = ctc_op(c, KIR_smax, class, kir_const_i(m, kir_type_at(m, class), 0));
    return ctc_op(c, KIR_smin, class, c->last_class);
}

/* A length, brought between 0 and the most, as an index. */
static uint32_t length_of(struct ctc *c, uint32_t node, int64_t most)
{
    struct kir_module *m = c->e.s->module;
    uint32_t value = expr_value(&c->e, node);
    enum kir_type type = kir_type_at(m, value);

    if (type == KIR_I32 && most > INT32_MAX)
        most = INT32_MAX;
    value = ctc_op(c, KIR_smax, value, kir_const_i(m, type, 0));
    value = ctc_op(c, KIR_smin, value, sched_word(c->e.s, type, (uint64_t)most));
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
    for (uint32_t i = 0; i < CTC_WALKS; i++)
        walk_phase(&c->walk[i], &c->e);
    c->items = sched_index(s, c->n_items);
    c->columns = c->gradient ? sched_index(s, c->n_columns) : c->items;
    if (c->gradient)
        c->row = sched_index(s, c->n_states * c->n_columns);
    if (c->n_steps && c->n_labels)
        c->last_class = sched_word(s, expr_type(&c->e, c->target), (uint64_t)(c->n_classes - 1));
    number = sched_wide(s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    number = ctc_op(c, KIR_mul, number, ctc_index(c, lanes));
    number = ctc_op(c, KIR_add, number,
                    sched_wide(s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    c->mask = n % lanes ? ctc_op(c, KIR_lt, number, sched_index(s, n)) : KIR_NONE;
    expr_mask(&c->e, c->mask);
    return number;
}

/* ---- the table ---- */

static uint32_t place_of(const struct ctc *c, uint32_t row, uint32_t state)
{
    return ctc_op(c, KIR_add, ctc_op(c, KIR_mul, state, c->columns), row);
}

uint32_t ctc_read(const struct ctc *c, uint32_t row, uint32_t state, uint32_t mask)
{
    uint32_t at = place_of(c, row, state);

    if (mask == KIR_NONE)
        return kir_emit_as(c->e.s->module, KIR_load, c->type, c->table, at, KIR_NONE, KIR_NONE);
    return kir_emit_as(c->e.s->module, KIR_load_if, c->type, c->table, at, mask, ctc_never(c));
}

static void write_state(const struct ctc *c, uint32_t row, uint32_t state, uint32_t value,
                        uint32_t mask)
{
    kir_emit_imm(c->e.s->module, mask == KIR_NONE ? KIR_store : KIR_store_if, c->table,
                 place_of(c, row, state), value, mask);
}

/* log(e^a + e^b) */
static uint32_t log_add(const struct ctc *c, uint32_t a, uint32_t b)
{
    struct kir_module *m = c->e.s->module;
    const struct kir_target *target = c->e.s->target;
    uint32_t larger = ctc_op(c, KIR_fmax, a, b), rest, none = ctc_never(c);

    rest = ctc_op(c, KIR_sub, ctc_op(c, KIR_fmin, a, b), larger);
    rest = math_log1p(m, target, math_exp(m, target, rest));
    return ctc_pick(c, none, ctc_op(c, KIR_add, larger, rest), ctc_op(c, KIR_eq, larger, none));
}

uint32_t ctc_total(const struct ctc *c, uint32_t row, uint32_t labels)
{
    uint32_t last = ctc_op(c, KIR_mul, labels, ctc_index(c, 2));
    uint32_t some = ctc_op(c, KIR_lt, ctc_index(c, 0), last);
    uint32_t sum = ctc_read(c, row, last, c->mask);

    last = ctc_op(c, KIR_sub, last, ctc_index(c, 1));
    return log_add(c, sum, ctc_read(c, row, last, ctc_both(c, c->mask, some)));
}

/* All paths are in state 0. */
static void emit_begin(const struct ctc *c, uint32_t row)
{
    struct kir_module *m = c->e.s->module;
    uint32_t zero = ctc_index(c, 0), end = sched_index(c->e.s, c->n_states), state, paths;

    state = kir_for(m, zero, end, 1);
    paths = ctc_pick(c, kir_const_f(m, c->type, 0), ctc_never(c), ctc_op(c, KIR_eq, state, zero));
    write_state(c, row, state, paths, c->mask);
    kir_next(m, NULL, 0);
}

/* The blank before label `label`, or behind the last one; its old value. */
static uint32_t emit_blank(struct ctc *c, const struct rows *rows, uint32_t state, uint32_t before,
                           uint32_t mask)
{
    uint32_t old = ctc_read(c, rows->from, state, mask);
    uint32_t paths = log_add(c, old, before);

    write_state(c, rows->to, state, ctc_op(c, KIR_add, paths, ctc_value(c, c->blank)), mask);
    return old;
}

/* A label and the blank before it. */
static void emit_label(struct ctc *c, const struct rows *rows, uint32_t label,
                       struct carried *carried, uint32_t mask)
{
    uint32_t state = ctc_op(c, KIR_mul, label, ctc_index(c, 2)), blank, old, paths, class;

    blank = emit_blank(c, rows, state, carried->before, mask);
    state = ctc_op(c, KIR_add, state, ctc_index(c, 1));
    old = ctc_read(c, rows->from, state, mask);
    class = ctc_class(c);
    paths = ctc_pick(c, carried->before, ctc_never(c), ctc_op(c, KIR_ne, class, carried->class));
    paths = log_add(c, log_add(c, old, blank), paths);
    write_state(c, rows->to, state, ctc_op(c, KIR_add, paths, ctc_value(c, c->label)), mask);
    carried->before = old;
    carried->class = class;
}

/* Number `i` of so many, counted from where the column begins.  Behind the last it is any. */
static uint32_t turned(const struct ctc *c, const struct column *column, uint32_t i, uint32_t n)
{
    uint32_t zero = ctc_index(c, 0), from_end;

    if (column->back == KIR_NONE)
        return i;
    from_end = ctc_op(c, KIR_sub, ctc_op(c, KIR_sub, n, ctc_index(c, 1)), i);
    return ctc_pick(c, ctc_op(c, KIR_smax, from_end, zero), i, column->back);
}

/* The row after one more step. */
static void emit_step(struct ctc *c, const struct column *column, const struct rows *rows,
                      uint32_t mask)
{
    struct kir_module *m = c->e.s->module;
    struct carried carried = {ctc_never(c), KIR_NONE}, phis;
    uint32_t end = ctc_index(c, 0), label, mark;

    if (c->n_labels) {
        end = sched_index(c->e.s, c->n_labels);
        carried.class = kir_const_i(m, kir_type_at(m, c->last_class), -1);
        label = kir_for(m, ctc_index(c, 0), end, 1);
        carried.before = phis.before = kir_phi(m, carried.before);
        carried.class = phis.class = kir_phi(m, carried.class);
        mark = expr_mark(&c->e);
        walk_set(&c->walk[CTC_LABEL], &c->e, turned(c, column, label, column->labels));
        emit_label(c, rows, label, &carried, mask);
        expr_release(&c->e, mark);
        kir_next(m, (const uint32_t[]){carried.before, carried.class}, 2);
        carried = phis;
        end = ctc_op(c, KIR_mul, end, ctc_index(c, 2));
    }
    emit_blank(c, rows, end, carried.before, mask);
}

/* Where only the last row is needed it is the first one too. */
static struct rows rows_of(const struct ctc *c, const struct column *column, uint32_t step)
{
    struct rows rows = {column->at, column->at};

    if (c->gradient) {
        rows.from = ctc_op(c, KIR_add, ctc_op(c, KIR_mul, step, c->row), column->at);
        rows.to = ctc_op(c, KIR_add, rows.from, c->row);
    }
    return rows;
}

static void emit_steps(struct ctc *c, const struct column *column)
{
    struct kir_module *m = c->e.s->module;
    uint32_t steps = ctc_steps(c), step, mark, mask;
    struct rows rows;

    step = kir_for(m, ctc_index(c, 0), sched_index(c->e.s, c->n_steps), 1);
    mark = expr_mark(&c->e);
    walk_set(&c->walk[CTC_STEP], &c->e, turned(c, column, step, steps));
    mask = ctc_both(c, c->mask, ctc_op(c, KIR_lt, step, steps));
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
        other = ctc_op(c, KIR_sub, number, c->items);
        column.back = ctc_op(c, KIR_le, c->items, number);
        c->item = ctc_pick(c, other, number, column.back);
    }
    walk_set(&c->walk[CTC_ITEM], &c->e, c->item);
    expr_hoist(&c->e);
    if (c->gradient)
        column.labels = ctc_labels(c);
    emit_begin(c, number);
    if (c->n_steps)
        emit_steps(c, &column);
}
