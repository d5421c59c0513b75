/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that is written in other ops: a product, anything elementwise, then what softmax stands
 * for, x = scores:
 *
 *   e = exp(x - max(x)), w = e * (c / sum(e)) or e / sum(e)
 *
 * and another product with w.  The second product is the anchor; what is before it is recognised
 * from there backwards, and the scores are computed by the block's own ops from the first product's
 * sums. */
#include "lower/attention/attention.h"

#include <frit/op_table.h>

#include "lower/rows/rows.h"

/* The op that makes an operand; NULL: it is none of the block's. */
static const struct block_op *maker_of(const struct block *block, const struct block_input *in)
{
    uint32_t maker = in->kind == FRIT_OPERAND_TENSOR ? block->values[in->value].maker : BLOCK_NONE;

    return maker == BLOCK_NONE ? NULL : &block->ops[maker];
}

static const struct block_op *made_by(const struct block *block, const struct block_input *in,
                                      uint32_t id)
{
    const struct block_op *op = maker_of(block, in);

    return op && op->id == id ? op : NULL;
}

static bool is_value(const struct block_input *in, uint32_t value)
{
    return in->kind == FRIT_OPERAND_TENSOR && in->value == value;
}

/* Of the last dim, which is kept. */
static bool folds_last(const struct block *block, const struct block_op *op)
{
    const frit_attrs_reduce *attrs = op->attrs;
    uint32_t rank = block->values[op->in[0].value].rank;

    return attrs->keep && attrs->axes.count == 1 && rank > 0 && attrs->axes.axis[0] == rank - 1;
}

/* w from e and its sum. */
static bool find_weights(const struct block *block, const struct block_op *op,
                         struct attention_ops *out)
{
    const struct block_op *factor, *sum;

    if (op->id == FRIT_OP_div) {
        out->factor = BLOCK_NONE;
        sum = made_by(block, &op->in[1], FRIT_OP_sum);
        out->e = op->in[0].value;
    } else {
        uint32_t of = made_by(block, &op->in[1], FRIT_OP_div) ? 1 : 0;

        factor = made_by(block, &op->in[of], FRIT_OP_div);
        if (op->id != FRIT_OP_mul || !factor || factor->in[0].kind != FRIT_OPERAND_SCALAR)
            return false;
        out->factor = factor->out[0];
        out->e = op->in[1 - of].value;
        sum = made_by(block, &factor->in[1], FRIT_OP_sum);
    }
    if (!sum || !folds_last(block, sum) || !is_value(&sum->in[0], out->e))
        return false;
    out->sum = sum->out[0];
    return true;
}

/* x from e. */
static bool find_scores(const struct block *block, struct attention_ops *out)
{
    const struct block_input e = {.kind = FRIT_OPERAND_TENSOR, .value = out->e};
    const struct block_op *exp = made_by(block, &e, FRIT_OP_exp), *sub, *max;

    sub = exp ? made_by(block, &exp->in[0], FRIT_OP_sub) : NULL;
    max = sub ? made_by(block, &sub->in[1], FRIT_OP_max) : NULL;
    if (!max || sub->in[0].kind != FRIT_OPERAND_TENSOR || !folds_last(block, max) ||
        !is_value(&max->in[0], sub->in[0].value))
        return false;
    out->scores = sub->in[0].value;
    return true;
}

/* The last op of a kind before an op; BLOCK_NONE: there is none. */
static uint32_t last_before(const struct block *block, uint32_t number, uint32_t id)
{
    while (number-- > 0)
        if (block->ops[number].id == id)
            return number;
    return BLOCK_NONE;
}

static bool has_before(const struct block *block, uint32_t number, uint32_t id)
{
    return last_before(block, number, id) != BLOCK_NONE;
}

/* Views and casts, which change no value but its type. */
static const struct block_op *skip_views(const struct block *block, const struct block_input *in)
{
    const struct block_op *op = maker_of(block, in);

    while (op && (view_row_of(op->id) || op->id == FRIT_OP_cast))
        op = maker_of(block, &op->in[0]);
    return op;
}

bool attention_find_ops(const struct block *block, uint32_t number, struct attention_ops *out)
{
    const struct block_op *product = &block->ops[number], *weights;

    *out = (struct attention_ops){.product = last_before(block, number, FRIT_OP_matmul)};
    if (product->id != FRIT_OP_matmul || product->out[0] == BLOCK_NONE ||
        out->product == BLOCK_NONE || product->in[1].kind != FRIT_OPERAND_TENSOR)
        return false;
    weights = skip_views(block, &product->in[0]);
    return weights && find_weights(block, weights, out) && find_scores(block, out) &&
           !skip_views(block, &product->in[1]) &&
           anchor_is_cheap(block, out->product, ANCHOR_VIEWS);
}

/* A batch of products of floats: a product of two matrices is more often a layer's, and its block
 * would be kept open in vain. */
static bool is_batched(const struct block *block, const struct block_op *op)
{
    return op->in[1].kind == FRIT_OPERAND_TENSOR && block->values[op->in[0].value].rank > 2 &&
           block->values[op->in[1].value].rank > 2 &&
           kir_type_of(block->values[op->out[0]].dtype) >= KIR_F32;
}

/* Each of them once, in this order. */
bool attention_is_inner(const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];

    if (op->out[0] == BLOCK_NONE || op->in[0].kind != FRIT_OPERAND_TENSOR ||
        has_before(block, number, op->id))
        return false;
    if (op->id == FRIT_OP_matmul)
        return is_batched(block, op);
    if (op->id == FRIT_OP_max)
        return has_before(block, number, FRIT_OP_matmul) && folds_last(block, op);
    return op->id == FRIT_OP_sum && has_before(block, number, FRIT_OP_max) && folds_last(block, op);
}

bool attention_has_inner(const struct block *block, uint32_t number)
{
    return has_before(block, number, FRIT_OP_matmul);
}

/* ---- planning ---- */

static uint32_t node_of(const struct expr *e, uint32_t value)
{
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].value == value &&
            (e->nodes[i].kind == EXPR_EXTERNAL || e->nodes[i].kind == EXPR_OP))
            return i;
    return BLOCK_NONE;
}

/* An operand of a product whose result has the map `root`, at other last coordinates. */
static uint32_t plan_matrix(struct attention *a, uint32_t value, const struct space_map *root,
                            const struct space_expr *row, const struct space_expr *column)
{
    struct space_map full = *root, map;
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = a->e.s->block->values[value].rank;

    full.at[full.rank - 2] = *row;
    full.at[full.rank - 1] = *column;
    expr_dims(&a->e, value, dims);
    space_broadcast(&full, rank, dims, &map);
    return expr_node(&a->e, value, &map);
}

static void plan_space(struct attention *a, const struct block_op *product, struct space_expr *key)
{
    const struct block_value *values = a->e.s->block->values;
    int64_t dims[FRIT_MAX_RANK], v[FRIT_MAX_RANK];
    uint32_t rank = values[product->out[0]].rank;

    expr_dims(&a->e, product->out[0], dims);
    expr_dims(&a->e, product->in[1].value, v);
    a->root.rank = rank;
    a->queries = dims[rank - 2];
    a->outs = dims[rank - 1];
    a->keys = v[values[product->in[1].value].rank - 2];
    for (uint32_t d = 0; d + 2 < rank; d++)
        a->root.at[d] = space_dim(&a->e.space, dims[d], ATTENTION_BOTH);
    a->root.at[rank - 2] = space_dim(&a->e.space, a->queries, ATTENTION_ROW);
    a->root.at[rank - 1] = space_dim(&a->e.space, a->outs, ATTENTION_OUT);
    *key = space_dim(&a->e.space, a->keys, ATTENTION_KEY);
}

/* The scores' last dim is that of keys, all of it. */
static bool has_keys_last(const struct attention *a, const struct space_expr *key)
{
    const struct expr_node *scores = &a->e.nodes[a->score];
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&a->e, scores->value, dims);
    return scores->map->rank > 1 && dims[scores->map->rank - 1] == a->keys &&
           space_equal(&scores->map->at[scores->map->rank - 1], key);
}

bool attention_plan_ops(struct attention *a, const struct block_op *op)
{
    const struct block *block = a->e.s->block;
    const struct block_op *product;
    struct attention_ops ops;
    struct space_map root;
    struct space_expr key, size;
    int64_t dims[FRIT_MAX_RANK];
    uint32_t q, rank;

    if (!attention_find_ops(block, a->anchor.op, &ops))
        return false;
    plan_space(a, op, &key);
    anchor_stores(&a->anchor, &a->e, &a->root);
    if (a->keys < 1 || a->e.status)
        return false;
    a->v = plan_matrix(a, op->in[1].value, &a->root, &key, &a->root.at[a->root.rank - 1]);
    (void)plan_matrix(a, op->in[0].value, &a->root, &a->root.at[a->root.rank - 2], &key);
    product = &block->ops[ops.product];
    a->score = node_of(&a->e, ops.scores);
    a->dot = node_of(&a->e, product->out[0]);
    a->sum_of_weights = node_of(&a->e, ops.sum);
    a->factor = ops.factor == BLOCK_NONE ? BLOCK_NONE : node_of(&a->e, ops.factor);
    if (a->score == BLOCK_NONE || a->dot == BLOCK_NONE || a->sum_of_weights == BLOCK_NONE ||
        (ops.factor != BLOCK_NONE && a->factor == BLOCK_NONE) || !has_keys_last(a, &key))
        return false;
    root = *a->e.nodes[a->dot].map;
    rank = root.rank;
    q = product->in[0].value;
    expr_dims(&a->e, q, dims);
    a->size = dims[block->values[q].rank - 1];
    if (a->size < 1)
        return false;
    size = space_dim(&a->e.space, a->size, ATTENTION_SIZE);
    a->q = plan_matrix(a, q, &root, &root.at[rank - 2], &size);
    a->k = plan_matrix(a, product->in[1].value, &root, &size, &root.at[rank - 1]);
    a->position = expr_coord(&a->e, &a->root.at[a->root.rank - 2]);
    return true;
}

/* Whether an offset is the same along dims of these tags. */
static bool is_offset_without(const struct space *space, const struct space_expr *at, uint32_t tags)
{
    for (uint32_t d = 0; d < space->n_dims; d++)
        if (tags >> space->tag[d] & 1 && at->k[d])
            return false;
    for (uint32_t i = 0; i < space->n_leaves; i++)
        if (at->k[SPACE_DIMS + i] && !is_offset_without(space, &space->leaf[i].of, tags))
            return false;
    return true;
}

/* Whether a node's elements are. */
static bool is_without(const struct attention *a, uint32_t node, uint32_t tags)
{
    const struct expr_node *n = &a->e.nodes[node];

    if (n->kind != EXPR_LOAD && n->kind != EXPR_OP)
        return false;
    for (uint32_t i = 0; n->kind == EXPR_OP && i < n->n_in; i++)
        if (n->in[i] != BLOCK_NONE && !is_without(a, n->in[i], tags))
            return false;
    return n->kind != EXPR_LOAD || is_offset_without(&a->e.space, &n->at, tags);
}

static bool has_type(const struct attention *a, uint32_t node, enum kir_type type)
{
    return kir_type_of(a->e.s->block->values[a->e.nodes[node].value].dtype) == type;
}

bool attention_ops_fit(const struct attention *a)
{
    enum kir_type type = kir_type_of(a->e.s->block->values[a->e.nodes[a->result].value].dtype);

    return has_type(a, a->dot, type) && has_type(a, a->score, type) &&
           has_type(a, a->sum_of_weights, type) && has_type(a, a->q, type) &&
           has_type(a, a->k, type) &&
           is_without(a, a->q, 1u << ATTENTION_KEY | 1u << ATTENTION_OUT) &&
           is_without(a, a->k, 1u << ATTENTION_ROW | 1u << ATTENTION_OUT) &&
           is_without(a, a->v, 1u << ATTENTION_ROW | 1u << ATTENTION_SIZE);
}
