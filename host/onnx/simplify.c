/* SPDX-License-Identifier: Apache-2.0 */
/* Models keep the traces of their exporters: slices of whole tensors, reshapes of reshapes, an
 * index list of one number, powers of 2, sums over one element.  Each is an op to record in every
 * run, and some are a launch of their own. */
#include "onnx/simplify.h"

#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/dtype.h"
#include "graph/scalar.h"
#include "onnx/emit.h"
#include "onnx/fold.h"

/* An op that would be emitted. */
struct emitted_op {
    uint32_t op;
    val *x;                    /* its first operand, a tensor */
    const val *y;              /* its second one, or NULL; */
    const frit_scalar *number; /* not NULL: it is this number */
    union attrs attrs;         /* as the check leaves them */
    struct op_type out;
};

/* False: the op is emitted, and then the check says what is wrong. */
static bool check(uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
                  const struct graph_operand *operands, struct emitted_op *out)
{
    struct op_input inputs[2];
    struct op_type types[FRIT_OP_MAX_OUT];
    struct op_call call = {.op = op, .n_in = n_in, .in = inputs, .attrs = &out->attrs};
    frit_err err = ERR_INIT;

    if (n_in > sizeof(inputs) / sizeof(inputs[0]))
        return false;
    for (uint32_t i = 0; i < n_in; i++) {
        inputs[i] = (struct op_input){
            .kind = operands[i].kind, .type = in[i]->type, .scalar = operands[i].scalar};
    }
    if (attrs_copy(op_row(op), attrs, &out->attrs, &err) || op_check(&call, types, &err))
        return false;
    out->op = op;
    out->x = in[0];
    out->y = n_in > 1 ? in[1] : NULL;
    out->number = n_in > 1 && operands[1].kind == FRIT_OPERAND_SCALAR ? &operands[1].scalar : NULL;
    out->out = types[0];
    return true;
}

static val *reshaped(struct import_node *n, val *x, const struct op_type *out)
{
    frit_dims dims = {.rank = out->rank};

    memcpy(dims.dim, out->dims, out->rank * sizeof(dims.dim[0]));
    return e_reshape(n, x, dims);
}

/* ---- views ---- */

/* A reshape of a reshape is one of the first operand. */
static val *of_reshape(struct import_node *n, const struct emitted_op *e)
{
    val *first = e->x->reshaped;

    if (op_type_equal(&e->x->type, &e->out))
        return e->x;
    if (!first || op_type_equal(&first->type, &e->out))
        return first;
    return reshaped(n, first, &e->out);
}

static val *of_expand(struct import_node *n, const struct emitted_op *e)
{
    (void)n;
    return op_type_equal(&e->x->type, &e->out) ? e->x : NULL;
}

static val *of_slice(struct import_node *n, const struct emitted_op *e)
{
    (void)n;
    for (uint32_t d = 0; d < e->out.rank; d++) {
        if (e->attrs.slice.slices.dim[d].step < 0)
            return NULL;
    }
    return op_type_equal(&e->x->type, &e->out) ? e->x : NULL;
}

/* A reshape if dims other than 1 keep their order. */
static val *of_permute(struct import_node *n, const struct emitted_op *e)
{
    int64_t last = -1;

    for (uint32_t d = 0; d < e->out.rank; d++) {
        int64_t axis = e->attrs.order.order.axis[d];

        if (e->x->type.dims[axis] == 1)
            continue;
        if (axis < last)
            return NULL;
        last = axis;
    }
    return reshaped(n, e->x, &e->out);
}

/* ---- others ---- */

/* Numbers a, a + s, a + 2 s, .. of an axis are a slice of it.  Of a strided value select makes a
 * dense one, which products and the like read much faster. */
static val *of_select(struct import_node *n, const struct emitted_op *e)
{
    const val *index = e->y;
    const uint32_t axis = (uint32_t)e->attrs.axis.axis;
    const int64_t count = op_elements(&index->type), extent = e->x->type.dims[axis];
    int64_t first, last, step = 1;

    if (e->x->is_strided || !index->data || index->type.rank != 1 || count < 1 ||
        !fold_reads(index->type.dtype))
        return NULL;
    first = fold_get(index->type.dtype, index->data, 0).whole;
    last = fold_get(index->type.dtype, index->data, count - 1).whole;
    if (count > 1)
        step = fold_get(index->type.dtype, index->data, 1).whole - first;
    if (first < 0 || first >= extent || step < 1 || step > extent || last >= extent)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        if (fold_get(index->type.dtype, index->data, i).whole != first + i * step)
            return NULL;
    }
    return e_slice(n, e->x, axis, first, last + 1, step);
}

/* Of one element each. */
static val *of_reduce(struct import_node *n, const struct emitted_op *e)
{
    const frit_axes *axes = &e->attrs.reduce.axes;

    for (int64_t i = 0; i < axes->count; i++) {
        if (e->x->type.dims[axes->axis[i]] != 1)
            return NULL;
    }
    return e->x->type.dtype == e->out.dtype ? reshaped(n, e->x, &e->out) : NULL;
}

static val *of_factor(struct import_node *n, const struct emitted_op *e)
{
    (void)n;
    return e->number && scalar_number(e->number) == 1 ? e->x : NULL;
}

static val *of_pow(struct import_node *n, const struct emitted_op *e)
{
    if (e->number && scalar_number(e->number) == 2)
        return e_mul(n, e->x, e->x);
    return of_factor(n, e);
}

static const struct rule {
    uint32_t op;
    val *(*of)(struct import_node *n, const struct emitted_op *e);
} rules[] = {
    {FRIT_OP_reshape, of_reshape}, {FRIT_OP_expand, of_expand}, {FRIT_OP_slice, of_slice},
    {FRIT_OP_permute, of_permute}, {FRIT_OP_select, of_select}, {FRIT_OP_sum, of_reduce},
    {FRIT_OP_mean, of_reduce},     {FRIT_OP_max, of_reduce},    {FRIT_OP_min, of_reduce},
    {FRIT_OP_mul, of_factor},      {FRIT_OP_div, of_factor},    {FRIT_OP_pow, of_pow},
};

val *simplify(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
              const struct graph_operand *operands)
{
    struct emitted_op e;

    if (!n_in || operands[0].kind != FRIT_OPERAND_TENSOR)
        return NULL;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (rules[i].op == op)
            return check(op, attrs, n_in, in, operands, &e) ? rules[i].of(n, &e) : NULL;
    }
    return NULL;
}
