/* SPDX-License-Identifier: Apache-2.0 */
/* The quantize schedule: quantize as the last op of its block, with elementwise ops and views
 * before it.  A lane computes all elements of one byte of the result, so that no two lanes write to
 * the same byte.  Unused bits of the last byte are 0. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lower/expr/delinearize.h"
#include "lower/rows/packed.h"
#include "lower/rows/rows.h"

enum { QUALITY = 900 };

enum { QUANTIZE_BYTES, QUANTIZE_ELEMENTS }; /* tags of dims: bytes, and elements of a byte */

struct quantize {
    struct expr e;
    struct kir_module *m; /* s->module */
    const struct block_op *op;
    const frit_attrs_quantize *attrs;
    uint32_t dtype, width, n; /* of the result: dtype, bits per element, elements per byte */
    int64_t count, bytes;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    uint32_t x, scale, global; /* nodes; BLOCK_NONE: absent */
    uint32_t at;               /* coordinate: the byte's number */
    struct delinearizer byte, element;
    enum kir_type type; /* in which elements are computed */
};

/* ---- matching ---- */

/* Accepts elementwise ops and, as the last op, quantize. */
static bool quantize_match(struct matcher *m, const struct block *block)
{
    const struct block_op *op = &block->ops[m->n_ops];

    if (expr_supports(block, m->n_ops))
        return true;
    if (op->id != FRIT_OP_quantize || op->n_in < 2)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            return false;
    m->closed = true;
    return true;
}

/* The result of quantize must be the only output. */
static bool quantize_fits(const struct matcher *m, const struct block *block)
{
    return m->closed && m->n_outputs == 1 && m->outputs[0] == block->ops[m->n_ops - 1].out[0];
}

/* ---- planning ---- */

/* Plans the scale of an element's block. */
static uint32_t plan_scale(struct quantize *q, const struct space_map *map)
{
    const struct expr_fill one = {BLOCK_NONE, 1};
    struct space_map blocks = {0};

    if (q->attrs->block.rank == q->rank)
        blocks.rank = q->rank;
    for (uint32_t d = 0; d < blocks.rank; d++)
        blocks.at[d] = space_div(&q->e.space, &map->at[d],
                                 q->attrs->block.dim[d] > 1 ? q->attrs->block.dim[d] : 1);
    if (q->e.s->block->values[q->op->in[1].value].rank != blocks.rank) {
        expr_fail(&q->e, FRIT_UNSUPPORTED);
        return BLOCK_NONE;
    }
    return expr_guard(&q->e, q->op->in[1].value, &blocks, one);
}

static void plan(struct quantize *q)
{
    const struct expr_fill zero = {BLOCK_NONE, 0};
    struct space_expr byte = space_dim(&q->e.space, q->bytes, QUANTIZE_BYTES);
    struct expr_within within = {space_dim(&q->e.space, q->n, QUANTIZE_ELEMENTS), q->count};
    struct space_map map = {0};

    q->at = expr_coord(&q->e, &byte);
    space_add(&within.at, &byte, q->n);
    space_unlinear(&q->e.space, &within.at, q->rank, q->dims, &map);
    q->x = expr_guard_where(&q->e, q->op->in[0].value, &map, zero, &within, 1);
    q->scale = plan_scale(q, &map);
    q->global = BLOCK_NONE;
    if (q->op->n_in > 2 && q->op->in[2].kind == FRIT_OPERAND_TENSOR)
        q->global = expr_node(&q->e, q->op->in[2].value, &(struct space_map){0});
    expr_settle(&q->e);
}

/* ---- emitting ---- */

static uint32_t as_type(const struct quantize *q, uint32_t value)
{
    if (kir_type_at(q->m, value) == q->type)
        return value;
    return kir_binary(q->m, q->type == KIR_F64 ? KIR_f64 : KIR_f32, value, KIR_NONE);
}

/* A scale, rounded to the type in which it is stored. */
static uint32_t scale_value(struct quantize *q, uint32_t node, int64_t type)
{
    uint32_t dtype = q->e.s->block->values[q->e.nodes[node].value].dtype;

    return as_type(q, packed_scale(q->m, dtype, type, expr_value(&q->e, node)));
}

/* Element `i` of the lane's byte, shifted to its position. */
static uint32_t element_bits(struct quantize *q, uint32_t i, uint32_t global)
{
    struct kir_module *m = q->m;
    uint32_t mark = expr_mark(&q->e), scale, inside, bits;

    delinearize_set(&q->element, &q->e, kir_index(m, i));
    scale = scale_value(q, q->scale, q->attrs->scale);
    if (global != KIR_NONE)
        scale = kir_binary(q->m, KIR_mul, global, scale);
    bits = kir_binary(q->m, KIR_div, as_type(q, expr_value(&q->e, q->x)), scale);
    bits = packed_encode(m, q->dtype, q->attrs->symmetric != 0, bits);
    inside = expr_inside(&q->e, q->x);
    if (inside != KIR_NONE)
        bits = kir_select(m, inside, bits, kir_const_i(m, KIR_I32, 0));
    expr_release(&q->e, mark);
    return i ? kir_binary(q->m, KIR_shl, bits, kir_const_i(m, KIR_I32, i * q->width)) : bits;
}

static void emit(struct quantize *q, uint32_t lanes)
{
    struct expr *e = &q->e;
    struct kir_module *m = e->s->module;
    uint32_t number, mask = KIR_NONE, global = KIR_NONE, bits = KIR_NONE;

    kir_phase(m, lanes);
    expr_phase(e);
    delinearize_phase(&q->byte, e);
    delinearize_phase(&q->element, e);
    number = sched_wide(e->s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    number = kir_binary(q->m, KIR_mul, number, kir_index(m, lanes));
    number = kir_binary(q->m, KIR_add, number,
                        sched_wide(e->s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    if (q->bytes % lanes)
        mask = kir_binary(q->m, KIR_lt, number, sched_add_index(e->s, q->bytes));
    delinearize_set(&q->byte, e, number);
    expr_mask(e, mask);
    expr_hoist(e);
    if (q->global != BLOCK_NONE)
        global = scale_value(q, q->global, q->attrs->global);
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t more = element_bits(q, i, global);

        bits = i ? kir_binary(q->m, KIR_or, bits, more) : more;
    }
    kir_emit_imm(m, mask == KIR_NONE ? KIR_store : KIR_store_if, e->s->block->n_inputs,
                 expr_coord_value(e, q->at), bits, mask);
}

/* ---- building ---- */

static void init(struct quantize *q)
{
    const struct block *block = q->e.s->block;
    const struct block_value *y;

    q->op = &block->ops[block->n_ops - 1];
    q->attrs = q->op->attrs;
    y = &block->values[q->op->out[0]];
    q->dtype = y->dtype;
    q->rank = y->rank;
    q->width = packed_width(q->dtype);
    q->n = 8 / q->width;
    q->type = q->e.s->target->f64 ? KIR_F64 : KIR_F32;
    expr_dims(&q->e, q->op->out[0], q->dims);
    q->count = 1;
    for (uint32_t d = 0; d < q->rank; d++)
        q->count *= q->dims[d];
    q->bytes = (int64_t)frit_storage_bytes(q->dtype, q->count);
}

static frit_status build(struct quantize *q, frit_err *err)
{
    struct sched *s = q->e.s;
    uint32_t lanes = s->target->lanes;
    int64_t groups;

    init(q);
    expr_args(s);
    if (q->count == 0) {
        kir_phase(s->module, lanes);
        return expr_status(&q->e, err);
    }
    plan(q);
    TRY(expr_status(&q->e, err));
    delinearize_init(&q->byte, &q->e, QUANTIZE_BYTES);
    delinearize_init(&q->element, &q->e, QUANTIZE_ELEMENTS);
    lanes = sched_lanes(lanes, q->bytes);
    groups = (q->bytes + lanes - 1) / lanes;
    if (groups > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    emit(q, lanes);
    memcpy(s->numbers->grid[0], (const uint32_t[3]){(uint32_t)groups, 1, 1},
           sizeof(s->numbers->grid[0]));
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)q->count * s->block->n_ops;
    return expr_status(&q->e, err);
}

static frit_status quantize_build(struct sched *s, frit_err *err)
{
    struct quantize q = {0};
    frit_status status;

    expr_init(&q.e, s);
    q.m = s->module;
    q.e.separate_tags = 1u << QUANTIZE_ELEMENTS;
    status = build(&q, err);
    expr_fini(&q.e);
    return status;
}

const struct schedule sched_quantize = {
    .name = "quantize",
    .quality = QUALITY,
    .match = quantize_match,
    .fits = quantize_fits,
    .build = quantize_build,
};
