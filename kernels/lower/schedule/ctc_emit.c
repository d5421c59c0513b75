/* SPDX-License-Identifier: Apache-2.0 */
/* Emits the phases of the ctc schedule: the table and the loss; or the table, the sums per class,
 * and the gradient.
 *
 * Sums are not kept as logarithms: they add probabilities divided by the target's probability.
 * Where the target's probability is 0 all sums are NaN; a path with probability 0 adds 0, whatever
 * the probability of its class. */
#include "lower/schedule/ctc.h"

#include <math.h>

#include "lower/rows/lower_cast.h"
#include "lower/rows/rows.h"
#include "math/math.h"

/* A sequence at a step. */
struct moment {
    uint32_t before, after; /* offsets of the rows with paths that end here, and that begin here */
    uint32_t total, labels; /* of the sequence */
    uint32_t sums;          /* offset of the first class's sum */
    uint32_t mask;
};

uint32_t ctc_lanes(const struct ctc *c, int64_t lanes[CTC_PHASES])
{
    lanes[0] = c->n_columns;
    lanes[1] = c->n_steps * c->n_items;
    lanes[2] = lanes[1] * c->n_classes;
    return c->gradient ? CTC_PHASES : 1;
}

static uint32_t zero_of(const struct ctc *c)
{
    return kir_const_f(c->m, c->type, 0);
}

static uint32_t exp_of(const struct ctc *c, uint32_t value)
{
    return math_exp(c->m, c->e.s->target, value);
}

/* Binds the op's result and stores the outputs at the current point. */
static void emit_stores(struct ctc *c, uint32_t value)
{
    struct expr *e = &c->e;
    uint32_t dtype = e->s->block->values[c->op->out[0]].dtype;

    value = lower_convert(e->s->module, c->type == KIR_F64 ? FRIT_F64 : FRIT_F32, dtype, value);
    expr_bind(e, c->result, value);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_value(e, e->stores[i].node);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_emit_store(e, i);
}

static void emit_loss(struct ctc *c)
{
    uint32_t total = ctc_total(c, c->item, ctc_labels(c));

    emit_stores(c, kir_binary(c->m, KIR_neg, total, KIR_NONE));
}

/* ---- the gradient ---- */

/* number = quotient * by + rest; `by` is a number of the launch. */
static uint32_t divide(struct ctc *c, uint32_t number, int64_t by, uint32_t *rest)
{
    struct sched_divisor divisor;
    uint32_t quotient;

    *rest = kir_index(c->m, 0);
    if (by == 1)
        return number;
    divisor = sched_add_divisor(c->e.s, by);
    quotient = sched_divide(c->e.s, &divisor, number);
    *rest = kir_binary(c->m, KIR_sub, number,
                       kir_binary(c->m, KIR_mul, quotient, sched_add_index(c->e.s, by)));
    return quotient;
}

static uint32_t row_at(const struct ctc *c, uint32_t row, uint32_t column)
{
    return kir_binary(c->m, KIR_add, kir_binary(c->m, KIR_mul, row, c->row), column);
}

static uint32_t sums_at(const struct ctc *c, uint32_t step)
{
    uint32_t row = kir_binary(c->m, KIR_mul, c->items, sched_add_index(c->e.s, c->n_classes));

    row = kir_binary(c->m, KIR_add, kir_binary(c->m, KIR_mul, step, row), c->item);
    return kir_binary(c->m, KIR_add, row, sched_add_index(c->e.s, c->n_table));
}

static uint32_t sum_at(const struct ctc *c, uint32_t sums, uint32_t class)
{
    return kir_binary(c->m, KIR_add, sums, kir_binary(c->m, KIR_mul, class, c->items));
}

static uint32_t read_sum(const struct ctc *c, uint32_t at, uint32_t mask)
{
    return kir_emit_as(c->m, KIR_load_if, c->type, c->table, at, mask, zero_of(c));
}

static void write_sum(const struct ctc *c, uint32_t at, uint32_t value, uint32_t mask)
{
    kir_emit_imm(c->m, KIR_store_if, c->table, at, value, mask);
}

/* Begins the second phase, with a lane per sequence and step; steps beyond the sequence's end are
 * masked. */
static struct moment begin_moment(struct ctc *c)
{
    uint32_t number = ctc_phase(c, 1, c->n_steps * c->n_items), step, steps;
    struct moment moment;

    step = divide(c, number, c->n_items, &c->item);
    delinearize_set(&c->points[CTC_ITEM], &c->e, c->item);
    delinearize_set(&c->points[CTC_STEP], &c->e, step);
    expr_hoist(&c->e);
    steps = ctc_steps(c);
    moment.labels = ctc_labels(c);
    moment.mask = ctc_both(c, c->mask, kir_binary(c->m, KIR_lt, step, steps));
    moment.before = row_at(c, kir_binary(c->m, KIR_add, step, kir_index(c->m, 1)), c->item);
    moment.after = kir_binary(c->m, KIR_add, c->item, c->items);
    moment.after = row_at(c, kir_binary(c->m, KIR_sub, steps, step), moment.after);
    moment.total = ctc_total(c, row_at(c, steps, c->item), moment.labels);
    moment.sums = sums_at(c, step);
    expr_mask(&c->e, moment.mask);
    return moment;
}

static void clear_sums(const struct ctc *c, const struct moment *moment)
{
    struct kir_module *m = c->m;
    uint32_t none, class;

    none = kir_binary(c->m, KIR_eq, moment->total, ctc_log_zero(c));
    none = kir_select(c->m, none, kir_const_f(m, c->type, (double)NAN), zero_of(c));
    class = kir_for(m, kir_index(c->m, 0), sched_add_index(c->e.s, c->n_classes), 1);
    write_sum(c, sum_at(c, moment->sums, class), none, moment->mask);
    kir_next(m, NULL, 0);
}

/* The probability that the target's path is in a state.  `own` is the log-probability of the
 * state's class, which the rows of both directions include. */
static uint32_t state_probability(struct ctc *c, const struct moment *moment, uint32_t state,
                                  uint32_t own, uint32_t mask)
{
    uint32_t end = kir_binary(c->m, KIR_mul, moment->labels, kir_index(c->m, 2)), paths,
             probability;

    paths = kir_binary(c->m, KIR_add, ctc_read(c, moment->before, state, mask),
                       ctc_read(c, moment->after, kir_binary(c->m, KIR_sub, end, state), mask));
    probability = kir_binary(c->m, KIR_sub, kir_binary(c->m, KIR_sub, paths, own), moment->total);
    return kir_select(c->m, kir_binary(c->m, KIR_eq, paths, ctc_log_zero(c)), zero_of(c),
                      exp_of(c, probability));
}

static void add_probability(const struct ctc *c, uint32_t at, uint32_t probability, uint32_t mask)
{
    write_sum(c, at, kir_binary(c->m, KIR_add, read_sum(c, at, mask), probability), mask);
}

/* Adds the current label and the blank before it; returns the new sum of the blanks. */
static uint32_t emit_label(struct ctc *c, const struct moment *moment, uint32_t label,
                           uint32_t blanks)
{
    uint32_t mask =
        kir_binary(c->m, KIR_and, moment->mask, kir_binary(c->m, KIR_lt, label, moment->labels));
    uint32_t state = kir_binary(c->m, KIR_mul, label, kir_index(c->m, 2)), blank, probability;

    blank = state_probability(c, moment, state, ctc_value(c, c->blank), mask);
    state = kir_binary(c->m, KIR_add, state, kir_index(c->m, 1));
    probability = state_probability(c, moment, state, ctc_value(c, c->label), mask);
    add_probability(c, sum_at(c, moment->sums, ctc_as_index(c, ctc_class(c))), probability, mask);
    return kir_binary(c->m, KIR_add, blanks, blank);
}

static void emit_sums(struct ctc *c)
{
    struct kir_module *m = c->m;
    struct moment moment = begin_moment(c);
    uint32_t own = ctc_value(c, c->blank), blanks = zero_of(c), label, next, mark;
    int64_t blank = ((const frit_attrs_ctc *)c->op->attrs)->blank;

    clear_sums(c, &moment);
    if (c->n_labels) {
        label = kir_for(m, kir_index(c->m, 0), sched_add_index(c->e.s, c->n_labels), 1);
        blanks = kir_phi(m, blanks);
        mark = expr_mark(&c->e);
        delinearize_set(&c->points[CTC_LABEL], &c->e, label);
        next = emit_label(c, &moment, label, blanks);
        expr_release(&c->e, mark);
        kir_next(m, &next, 1);
    }
    next = kir_binary(c->m, KIR_mul, moment.labels, kir_index(c->m, 2));
    next = kir_binary(c->m, KIR_add, blanks, state_probability(c, &moment, next, own, moment.mask));
    add_probability(c, sum_at(c, moment.sums, sched_add_index(c->e.s, blank)), next, moment.mask);
}

/* Computes an element of the gradient. */
static void emit_gradient(struct ctc *c)
{
    uint32_t number = ctc_phase(c, 2, c->n_sums), step, class, value, in, sum;

    number = divide(c, number, c->n_classes, &class);
    step = divide(c, number, c->n_items, &c->item);
    delinearize_set(&c->points[CTC_ITEM], &c->e, c->item);
    delinearize_set(&c->points[CTC_STEP], &c->e, step);
    delinearize_set(&c->points[CTC_CLASS], &c->e, class);
    expr_hoist(&c->e);
    in = kir_binary(c->m, KIR_lt, step, ctc_steps(c));
    sum = read_sum(c, sum_at(c, sums_at(c, step), class), ctc_both(c, c->mask, in));
    value = kir_binary(c->m, KIR_sub, exp_of(c, ctc_value(c, c->class)), sum);
    value = kir_binary(c->m, KIR_mul, ctc_value(c, c->grad), value);
    emit_stores(c, kir_select(c->m, in, value, zero_of(c)));
}

void ctc_emit(struct ctc *c)
{
    ctc_paths(c, ctc_phase(c, 0, c->n_columns));
    if (!c->gradient) {
        emit_loss(c);
        return;
    }
    emit_sums(c);
    emit_gradient(c);
}
