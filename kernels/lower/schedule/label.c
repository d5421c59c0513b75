/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/schedule/label.h"

#include <stdlib.h>
#include <string.h>

#include "lower/expr/expr.h"
#include "lower/rows/fold.h"
#include "lower/rows/rows.h"

static bool same_dims(const struct block_value *a, const struct block_value *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof(*a->extent)) == 0;
}

static void label_identity(struct label *label, const struct block_value *value)
{
    label->folded = true;
    for (uint32_t d = 0; d < value->rank; d++)
        label->of[d] = value->extent[d] == 1 ? LABEL_ONE : (uint8_t)d;
}

/* Whether each dim is that dim of the root. */
static bool is_identity(const struct label *label, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        if (label->of[d] != LABEL_ONE && label->of[d] != d)
            return false;
    return true;
}

/* ---- folds ---- */

static uint32_t axes_of(const frit_attrs_reduce *attrs)
{
    uint32_t axes = 0;

    for (int64_t i = 0; i < attrs->axes.count; i++)
        axes |= 1u << attrs->axes.axis[i];
    return axes;
}

static bool add_fold(struct labels *labels, const struct block *block, const struct block_op *op)
{
    const frit_attrs_reduce *attrs = op->attrs;
    const struct block_value *x;
    struct label *in, *out;
    uint32_t left = 0;

    if (op->n_in != 1 || op->in[0].kind != FRIT_OPERAND_TENSOR || op->out[0] == BLOCK_NONE)
        return false;
    x = &block->values[op->in[0].value];
    in = &labels->values[op->in[0].value];
    out = &labels->values[op->out[0]];
    if (!labels->n_folds) {
        labels->root = op->in[0].value;
        labels->axes = axes_of(attrs);
    }
    if (!same_dims(x, &block->values[labels->root]) || axes_of(attrs) != labels->axes ||
        (in->folded && !is_identity(in, x->rank)))
        return false;
    out->folded = true;
    for (uint32_t d = 0; d < x->rank; d++) {
        bool gone = labels->axes >> d & 1;

        if (!gone || attrs->keep)
            out->of[left++] = gone || x->extent[d] == 1 ? LABEL_ONE : (uint8_t)d;
    }
    labels->n_folds++;
    return true;
}

/* ---- elementwise ---- */

/* The label that the operands with labels give dim `d` of the result; LABEL_ONE if none does.
 * Returns false if two differ. */
static bool label_of_dim(const struct labels *labels, const struct block *block,
                         const struct block_op *op, uint32_t d, uint8_t *out)
{
    uint32_t rank = block->values[op->out[0]].rank;

    *out = LABEL_ONE;
    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct label *in = &labels->values[op->in[i].value];
        uint32_t missing;

        if (op->in[i].kind != FRIT_OPERAND_TENSOR || !in->folded)
            continue;
        missing = rank - block->values[op->in[i].value].rank;
        if (d < missing || in->of[d - missing] == LABEL_ONE)
            continue;
        if (*out != LABEL_ONE && *out != in->of[d - missing])
            return false;
        *out = in->of[d - missing];
    }
    return true;
}

static bool any_folded(const struct labels *labels, const struct block_op *op)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR && labels->values[op->in[i].value].folded)
            return true;
    return false;
}

/* Two dims with the same label would be a diagonal. */
static bool is_repeated(const struct label *label, uint32_t d)
{
    for (uint32_t before = 0; before < d; before++)
        if (label->of[d] != LABEL_ONE && label->of[before] == label->of[d])
            return true;
    return false;
}

/* Labels an elementwise result.  Dims that no operand with labels has are the root's own, if the
 * result has the root's dims. */
static bool add_map(struct labels *labels, const struct block *block, const struct block_op *op)
{
    const struct block_value *y = &block->values[op->out[0]];
    const struct block_value *root;
    struct label *out = &labels->values[op->out[0]];
    struct label given = {.folded = true};
    bool whole = true;

    if (!any_folded(labels, op))
        return true;
    root = &block->values[labels->root];
    for (uint32_t d = 0; d < y->rank; d++) {
        if (!label_of_dim(labels, block, op, d, &given.of[d]) || is_repeated(&given, d))
            return false;
        whole = whole && (given.of[d] != LABEL_ONE || y->extent[d] == 1);
    }
    if (!whole) {
        if (!same_dims(y, root) || !is_identity(&given, y->rank))
            return false;
        label_identity(&given, y);
    }
    *out = given;
    return true;
}

/* ---- views ---- */

/* A view that only adds or removes dims of extent 1. */
static bool view_ones(const struct block_value *x, const struct block_value *y,
                      const struct label *in, struct label *out)
{
    uint32_t from = 0;

    for (uint32_t d = 0; d < y->rank; d++) {
        if (y->extent[d] == 1) {
            out->of[d] = LABEL_ONE;
            continue;
        }
        while (from < x->rank && x->extent[from] == 1)
            from++;
        if (from == x->rank || x->extent[from] != y->extent[d])
            return false;
        out->of[d] = in->of[from++];
    }
    while (from < x->rank && x->extent[from] == 1)
        from++;
    return from == x->rank;
}

static bool add_view(struct labels *labels, const struct block *block, const struct block_op *op)
{
    const struct block_value *x = &block->values[op->in[0].value], *y = &block->values[op->out[0]];
    const struct label *in = &labels->values[op->in[0].value];
    struct label *out = &labels->values[op->out[0]];

    if (!in->folded)
        return true;
    out->folded = true;
    if (op->id == FRIT_OP_permute) {
        const frit_attrs_order *attrs = op->attrs;

        for (uint32_t d = 0; d < y->rank; d++)
            out->of[d] = in->of[attrs->order.axis[d]];
        return true;
    }
    if (op->id == FRIT_OP_expand)
        return add_map(labels, block, op);
    if (op->id == FRIT_OP_reshape || op->id == FRIT_OP_squeeze || op->id == FRIT_OP_unsqueeze)
        return view_ones(x, y, in, out);
    return false;
}

/* ---- labelling ops ---- */

bool labels_add(struct labels *labels, const struct block *block)
{
    const struct block_op *op = &block->ops[labels->n_ops];
    bool fits;

    if (fold_kind_of(op->id))
        fits = add_fold(labels, block, op);
    else if (view_row_of(op->id))
        fits = add_view(labels, block, op);
    else
        fits = lower_row_of(op->id) && expr_supports(block, labels->n_ops) && op->n_out == 1 &&
               add_map(labels, block, op);
    labels->n_ops += fits;
    return fits;
}

bool labels_init(struct labels *labels, const struct block *block)
{
    *labels = (struct labels){0};
    labels->values = calloc(block->n_values + 1u, sizeof(*labels->values));
    if (!labels->values)
        return false;
    while (labels->n_ops < block->n_ops && labels_add(labels, block)) {
    }
    return true;
}

void labels_fini(struct labels *labels)
{
    free(labels->values);
    *labels = (struct labels){0};
}

enum label_storage label_storage(const struct labels *labels, const struct block *block,
                                 uint32_t value)
{
    const struct block_value *v = &block->values[value], *root = &block->values[labels->root];
    const struct label *label = &labels->values[value];
    uint32_t has = 0, outer = 0, folded = 0;

    if (!label->folded)
        return same_dims(v, root) ? LABEL_FULL : LABEL_NOWHERE;
    for (uint32_t d = 0; d < v->rank; d++)
        if (label->of[d] != LABEL_ONE)
            has |= 1u << label->of[d];
    for (uint32_t d = 0; d < root->rank; d++)
        if (root->extent[d] != 1)
            *(labels->axes >> d & 1 ? &folded : &outer) |= 1u << d;
    if (has == (outer | folded))
        return has == outer ? LABEL_OUTER : LABEL_FULL;
    return has == outer ? LABEL_OUTER : LABEL_NOWHERE;
}
