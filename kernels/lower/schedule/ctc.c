/* SPDX-License-Identifier: Apache-2.0 */
/* Matching and planning of the ctc schedule; see ctc.h. */
#include "lower/schedule/ctc.h"

#include "base/fail.h"
#include "lower/rows/rows.h"

enum { QUALITY = 900 };

/* Operands. */
enum { LOG_PROBS, TARGETS, INPUT_LENGTHS, TARGET_LENGTHS, GRAD };

/* ---- matching ---- */

static bool takes(const struct block *block, uint32_t op)
{
    const struct block_op *o = &block->ops[op];
    uint32_t n_in = o->id == FRIT_OP_ctc_loss_backward ? GRAD + 1 : GRAD;

    if (o->id != FRIT_OP_ctc_loss && o->id != FRIT_OP_ctc_loss_backward)
        return false;
    if (o->n_in != n_in || o->out[0] == BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i < n_in; i++)
        if (o->in[i].kind != FRIT_OPERAND_TENSOR)
            return false;
    return block->values[o->in[LOG_PROBS].value].rank == 3 &&
           block->values[o->in[TARGETS].value].rank == 2;
}

static bool ctc_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, takes);
}

/* ---- planning ---- */

static uint32_t operand(const struct ctc *c, uint32_t number)
{
    return c->op->in[number].value;
}

/* Plans what a step reads. */
static void plan_step(struct ctc *c, const struct space_expr *item, const struct space_expr *step)
{
    int64_t blank = ((const frit_attrs_ctc *)c->op->attrs)->blank;
    struct space_map of = {.rank = 3}, target = {.rank = 2};

    of.at[0] = *step;
    of.at[1] = target.at[0] = *item;
    of.at[2].c = blank;
    c->blank = expr_node(&c->e, operand(c, LOG_PROBS), &of);
    if (c->n_labels == 0)
        return;
    target.at[1] = space_dim(&c->e.space, c->n_labels, CTC_LABEL);
    c->target = expr_node(&c->e, operand(c, TARGETS), &target);
    if (c->target == BLOCK_NONE)
        return;
    of.at[2] = space_loaded(&c->e.space, c->n_classes, c->target);
    c->label = expr_node(&c->e, operand(c, LOG_PROBS), &of);
}

static void plan_nodes(struct ctc *c)
{
    struct space_map item = {.rank = 1}, all = {.rank = 3};

    item.at[0] = all.at[1] = space_dim(&c->e.space, c->n_items, CTC_ITEM);
    c->steps = expr_node(&c->e, operand(c, INPUT_LENGTHS), &item);
    c->labels = expr_node(&c->e, operand(c, TARGET_LENGTHS), &item);
    if (c->n_steps) {
        all.at[0] = space_dim(&c->e.space, c->n_steps, CTC_STEP);
        plan_step(c, &item.at[0], &all.at[0]);
    }
    if (c->gradient) {
        all.at[2] = space_dim(&c->e.space, c->n_classes, CTC_CLASS);
        c->class = expr_node(&c->e, operand(c, LOG_PROBS), &all);
        c->grad = expr_node(&c->e, operand(c, GRAD), &item);
    }
    anchor_stores(&c->anchor, &c->e, c->gradient ? &all : &item);
    c->result = anchor_result(&c->anchor, &c->e, 0);
    expr_settle(&c->e);
}

static bool is_empty(const struct ctc *c)
{
    return c->n_items == 0 || (c->gradient && c->n_steps == 0);
}

/* Computes the sizes of the workspace and the rounds of a lane in the longest phase; false if they
 * overflow. */
static bool measure(struct ctc *c)
{
    const int64_t most = INT64_MAX / 64;
    int64_t rows = c->gradient ? c->n_steps + 1 : 1, rounds;

    if (c->n_labels >= most || __builtin_mul_overflow(c->n_steps, c->n_labels + 1, &rounds) ||
        __builtin_mul_overflow(rows, c->n_states, &c->n_table) ||
        __builtin_mul_overflow(c->n_table, c->n_columns, &c->n_table))
        return false;
    if (rounds >= most || c->n_table >= most)
        return false;
    c->rounds = rounds + c->n_states;
    c->n_sums = c->gradient ? c->n_steps * c->n_classes * c->n_items : 0;
    if (c->gradient && c->rounds < c->n_classes + c->n_labels)
        c->rounds = c->n_classes + c->n_labels;
    return c->n_sums < most;
}

static frit_status plan(struct ctc *c, frit_err *err)
{
    int64_t dims[FRIT_MAX_RANK], targets[FRIT_MAX_RANK], blank;
    struct sched *s = c->e.s;

    expr_dims(&c->e, operand(c, LOG_PROBS), dims);
    expr_dims(&c->e, operand(c, TARGETS), targets);
    blank = ((const frit_attrs_ctc *)c->op->attrs)->blank;
    c->n_steps = dims[0];
    c->n_items = dims[1];
    c->n_classes = dims[2];
    c->n_labels = targets[1];
    c->n_states = 2 * c->n_labels + 1;
    c->n_columns = c->gradient ? 2 * c->n_items : c->n_items;
    if (targets[0] != c->n_items || blank < 0 || blank >= c->n_classes)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s has dims that do not fit", s->module->name);
    if (is_empty(c))
        return FRIT_OK;
    plan_nodes(c);
    TRY(expr_status(&c->e, err));
    if (measure(c)) {
        s->module->wide |= c->n_table + c->n_sums > INT32_MAX / 2;
        if (!s->module->wide || s->target->i64)
            return FRIT_OK;
    }
    return fail(err, FRIT_UNSUPPORTED, "kernels: %s is too large", s->module->name);
}

/* ---- building ---- */

static frit_status check_lanes(const struct ctc *c, frit_err *err)
{
    int64_t lanes[CTC_PHASES];
    uint32_t n = ctc_lanes(c, lanes);

    for (uint32_t i = 0; i < n; i++)
        if (lanes[i] / SCHED_MIN_LANES >= INT32_MAX)
            return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", c->m->name);
    return FRIT_OK;
}

static frit_status build(struct ctc *c, frit_err *err)
{
    struct sched *s = c->e.s;
    uint32_t dtype = s->target->f64 ? FRIT_F64 : FRIT_F32;

    c->op = &s->block->ops[c->anchor.op];
    c->gradient = c->op->id == FRIT_OP_ctc_loss_backward;
    c->type = kir_type_of(dtype);
    TRY(plan(c, err));
    expr_args(s);
    if (is_empty(c)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&c->e, err);
    }
    for (uint32_t i = 0; i < CTC_POINTS; i++)
        delinearize_init(&c->points[i], &c->e, i);
    TRY(check_lanes(c, err));
    TRY(sched_check_rounds(s, c->rounds, err));
    c->table = kir_arg(s->module, dtype, KIR_READ | KIR_WRITE);
    s->numbers->workspace_bytes = frit_storage_bytes(dtype, c->n_table + c->n_sums);
    ctc_emit(c);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = 64 * (uint64_t)c->n_columns * (uint64_t)c->n_steps * (uint64_t)c->n_states;
    return expr_status(&c->e, err);
}

static frit_status ctc_build(struct sched *s, frit_err *err)
{
    struct ctc c = {0};
    frit_status status;

    expr_init(&c.e, s);
    c.m = s->module;
    c.e.separate_tags = 1u << CTC_STEP | 1u << CTC_LABEL | 1u << CTC_CLASS;
    if (anchor_init(&c.anchor, s->block, takes)) {
        status = c.anchor.found && c.anchor.n_ops == s->block->n_ops
                     ? build(&c, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the ctc schedule",
                            s->module->name);
        anchor_fini(&c.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(*c.anchor.lineage));
    }
    expr_fini(&c.e);
    return status;
}

const struct schedule sched_ctc = {
    .name = "ctc",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = ctc_match,
    .fits = anchor_fits,
    .build = ctc_build,
};
