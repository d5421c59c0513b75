/* SPDX-License-Identifier: Apache-2.0 */
/* Matching and planning of the sort schedule; see sort.h. */
#include "lower/schedule/sort.h"

#include "base/fail.h"

enum { QUALITY = 900 };

/* ---- matching ---- */

static bool takes(const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];
    int64_t axis;

    if (op->id != FRIT_OP_sort || !anchor_reads_args(block, number))
        return false;
    axis = ((const frit_attrs_sort *)op->attrs)->axis;
    return axis >= 0 && axis < block->values[op->in[0].value].rank;
}

static bool sort_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, takes);
}

/* ---- planning ---- */

static uint32_t result_node(const struct sort *t, const struct block_op *op, uint32_t out)
{
    return out < op->n_out && op->out[out] != BLOCK_NONE ? anchor_result(&t->anchor, &t->e, out)
                                                         : BLOCK_NONE;
}

static void plan(struct sort *t)
{
    const struct block *block = t->e.s->block;
    const struct block_op *op = &block->ops[t->anchor.op];
    const frit_attrs_sort *attrs = op->attrs;
    uint32_t x = op->in[0].value, axis = (uint32_t)attrs->axis;
    int64_t dims[FRIT_MAX_RANK];
    struct space_map map;

    expr_dims(&t->e, x, dims);
    t->descending = attrs->descending != 0;
    t->dtype = block->values[x].dtype;
    t->n = dims[axis];
    t->stride = 1;
    t->root.rank = block->values[x].rank;
    for (uint32_t d = 0; d < t->root.rank; d++) {
        t->root.at[d] = space_dim(&t->e.space, dims[d] ? dims[d] : 1, SORT_OUT);
        t->stride *= d > axis ? dims[d] : 1;
    }
    map = t->root;
    map.at[axis] = space_dim(&t->e.space, t->n ? t->n : 1, SORT_LINE);
    t->node = expr_node(&t->e, x, &map);
    t->at = expr_coord(&t->e, &t->root.at[axis]);
    anchor_stores(&t->anchor, &t->e, &t->root);
    t->result = result_node(t, op, 0);
    t->index = result_node(t, op, 1);
    expr_settle(&t->e);
}

/* ---- building ---- */

static bool is_empty(const struct sort *t)
{
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&t->e, t->e.s->block->ops[t->anchor.op].in[0].value, dims);
    for (uint32_t d = 0; d < t->root.rank; d++)
        if (dims[d] == 0)
            return true;
    return false;
}

/* The first phase sorts runs of SORT_RUN elements, each further one but the last multiplies their
 * length by SORT_WAYS. */
static void choose_phases(struct sort *t)
{
    t->n_phases = 2;
    while (INT64_C(1) << (SORT_RUN_BITS + (t->n_phases - 2) * SORT_WAYS_BITS) < t->n)
        t->n_phases++;
    t->has_keys =
        t->n_phases > 2 && kir_type_of(t->dtype) != KIR_I64 && kir_type_of(t->dtype) != KIR_F64;
    t->lanes = sched_lanes(t->e.s->target->lanes, t->outer.count);
}

/* A lane's loop rounds in the longest phase. */
static int64_t rounds_of(const struct sort *t)
{
    int64_t bits = SORT_RUN_BITS + ((int64_t)t->n_phases - 3) * SORT_WAYS_BITS;

    return t->n_phases > 2 ? SORT_WAYS * (bits + 2) : SORT_RUN;
}

static frit_status build(struct sort *t, frit_err *err)
{
    struct sched *s = t->e.s;

    plan(t);
    TRY(expr_status(&t->e, err));
    expr_args(s);
    if (is_empty(t)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&t->e, err);
    }
    delinearize_init(&t->outer, &t->e, SORT_OUT);
    delinearize_init(&t->inner, &t->e, SORT_LINE);
    if (t->n > INT64_C(1) << SORT_MAX_BITS || t->outer.count > INT32_MAX / 4)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s sorts too many elements", s->module->name);
    choose_phases(t);
    TRY(sched_check_rounds(s, rounds_of(t), err));
    sort_emit(t);
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        s->numbers->alias[i] = expr_alias(&t->e, i);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(t->outer.count * (rounds_of(t) * t->n_phases));
    return expr_status(&t->e, err);
}

static frit_status sort_build(struct sched *s, frit_err *err)
{
    struct sort t = {0};
    frit_status status;

    expr_init(&t.e, s);
    t.m = s->module;
    t.e.separate_tags = 1u << SORT_LINE;
    if (anchor_init(&t.anchor, s->block, takes)) {
        status = t.anchor.found && t.anchor.n_ops == s->block->n_ops
                     ? build(&t, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the sort schedule",
                            s->module->name);
        anchor_fini(&t.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(*t.anchor.lineage));
    }
    expr_fini(&t.e);
    return status;
}

const struct schedule sched_sort = {
    .name = "sort",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = sort_match,
    .fits = anchor_fits,
    .build = sort_build,
};
