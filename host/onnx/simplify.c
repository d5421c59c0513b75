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

/* The op with its attributes as the check leaves them, and the type of its result. */
struct checked {
    union attrs attrs;
    struct op_type out;
};

/* False: the op is emitted, and then the check says what is wrong. */
static bool check(uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
                  const struct graph_operand *operands, struct checked *out)
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
    out->out = types[0];
    return true;
}

static frit_dims dims_of(const struct op_type *type)
{
    frit_dims dims = {.rank = type->rank};

    memcpy(dims.dim, type->dims, type->rank * sizeof(dims.dim[0]));
    return dims;
}

/* ---- views ---- */

static bool keeps_direction(const frit_slices *slices, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (slices->dim[d].step < 0)
            return false;
    }
    return true;
}

/* Whether dims other than 1 keep their order. */
static bool keeps_order(const frit_axes *order, const struct op_type *type)
{
    int64_t last = -1;

    for (uint32_t d = 0; d < type->rank; d++) {
        if (type->dims[order->axis[d]] == 1)
            continue;
        if (order->axis[d] < last)
            return false;
        last = order->axis[d];
    }
    return true;
}

/* A reshape of a reshape is one of the first operand. */
static val *simplify_reshape(struct import_node *n, val *x, const struct op_type *out)
{
    if (op_type_equal(&x->type, out))
        return x;
    if (!x->reshaped)
        return NULL;
    return op_type_equal(&x->reshaped->type, out) ? x->reshaped
                                                  : e_reshape(n, x->reshaped, dims_of(out));
}

static val *simplify_view(struct import_node *n, uint32_t op, const struct checked *c, val *x)
{
    const bool same = op_type_equal(&x->type, &c->out);

    switch (op) {
    case FRIT_OP_reshape:
        return simplify_reshape(n, x, &c->out);
    case FRIT_OP_expand:
        return same ? x : NULL;
    case FRIT_OP_slice:
        return same && keeps_direction(&c->attrs.slice.slices, x->type.rank) ? x : NULL;
    case FRIT_OP_permute:
        return keeps_order(&c->attrs.order.order, &x->type) ? e_reshape(n, x, dims_of(&c->out))
                                                            : NULL;
    default:
        return NULL;
    }
}

/* ---- others ---- */

/* Numbers a, a + s, a + 2 s, .. of an axis are a slice of it.  Of a strided value select makes a
 * dense one, which products and the like read much faster. */
static val *simplify_select(struct import_node *n, const struct checked *c, val *x,
                            const val *index)
{
    const uint32_t axis = (uint32_t)c->attrs.axis.axis;
    const int64_t count = op_elements(&index->type), extent = x->type.dims[axis];
    int64_t first, last, step = 1;

    if (x->is_strided || !index->data || index->type.rank != 1 || count < 1 ||
        !fold_reads(index->type.dtype))
        return NULL;
    first = fold_get(index->type.dtype, index->data, 0).whole;
    last = fold_get(index->type.dtype, index->data, count - 1).whole;
    if (count > 1)
        step = fold_get(index->type.dtype, index->data, 1).whole - first;
    for (int64_t i = 0; i < count; i++) {
        if (fold_get(index->type.dtype, index->data, i).whole != first + i * step)
            return NULL;
    }
    if (first < 0 || step < 1 || last >= extent)
        return NULL;
    return e_slice(n, x, axis, first, last + 1, step);
}

/* Of one element each. */
static val *simplify_reduce(struct import_node *n, const struct checked *c, val *x)
{
    const frit_axes *axes = &c->attrs.reduce.axes;

    if (x->type.dtype != c->out.dtype || op_elements(&x->type) != op_elements(&c->out))
        return NULL;
    for (int64_t i = 0; i < axes->count; i++) {
        if (x->type.dims[axes->axis[i]] != 1)
            return NULL;
    }
    return e_reshape(n, x, dims_of(&c->out));
}

/* With a number on the right. */
static val *simplify_number(struct import_node *n, uint32_t op, val *x, double number)
{
    if (op == FRIT_OP_pow && number == 2)
        return e_mul(n, x, x);
    return number == 1 ? x : NULL;
}

val *simplify(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
              const struct graph_operand *operands)
{
    struct checked c;

    if (!n_in || operands[0].kind != FRIT_OPERAND_TENSOR)
        return NULL;
    switch (op) {
    case FRIT_OP_pow:
    case FRIT_OP_mul:
    case FRIT_OP_div:
        return operands[1].kind == FRIT_OPERAND_SCALAR
                   ? simplify_number(n, op, in[0], scalar_number(&operands[1].scalar))
                   : NULL;
    case FRIT_OP_reshape:
    case FRIT_OP_expand:
    case FRIT_OP_slice:
    case FRIT_OP_permute:
        return check(op, attrs, n_in, in, operands, &c) ? simplify_view(n, op, &c, in[0]) : NULL;
    case FRIT_OP_select:
        return check(op, attrs, n_in, in, operands, &c) ? simplify_select(n, &c, in[0], in[1])
                                                        : NULL;
    case FRIT_OP_sum:
    case FRIT_OP_mean:
    case FRIT_OP_max:
    case FRIT_OP_min:
        return check(op, attrs, n_in, in, operands, &c) ? simplify_reduce(n, &c, in[0]) : NULL;
    default:
        return NULL;
    }
}
