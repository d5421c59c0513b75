/* SPDX-License-Identifier: Apache-2.0 */
/* One function per op that translations use often. */
#include <string.h>

#include "graph/dtype.h"
#include "onnx/emit.h"
#include "onnx/problem.h"

/* ---- elementwise ---- */

val *e_un(struct import_node *n, uint32_t op, val *x)
{
    return E_OP(n, op, NULL, x);
}

val *e_bin(struct import_node *n, uint32_t op, val *a, val *b)
{
    return E_OP(n, op, NULL, a, b);
}

val *e_add(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_add, a, b);
}

val *e_sub(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_sub, a, b);
}

val *e_mul(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_mul, a, b);
}

val *e_div(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_div, a, b);
}

val *e_max(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_maximum, a, b);
}

val *e_min(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_minimum, a, b);
}

val *e_where(struct import_node *n, val *mask, val *a, val *b)
{
    return E_OP(n, FRIT_OP_where, NULL, mask, a, b);
}

val *e_cast(struct import_node *n, val *x, uint32_t dtype)
{
    frit_attrs_cast attrs = E_ATTRS(cast);

    if (!x || x->type.dtype == dtype)
        return x;
    attrs.dtype = dtype;
    return E_OP(n, FRIT_OP_cast, &attrs, x);
}

val *e_like(struct import_node *n, val *x, const val *other)
{
    return other ? e_cast(n, x, other->type.dtype) : NULL;
}

/* ---- views ---- */

static bool same_dims(const val *x, frit_dims dims)
{
    return x->type.rank == dims.rank &&
           memcmp(x->type.dims, dims.dim, x->type.rank * sizeof(dims.dim[0])) == 0;
}

val *e_reshape(struct import_node *n, val *x, frit_dims dims)
{
    frit_attrs_dims attrs = E_ATTRS(dims);

    attrs.dims = dims;
    return x && same_dims(x, dims) ? x : E_OP(n, FRIT_OP_reshape, &attrs, x);
}

val *e_expand(struct import_node *n, val *x, frit_dims dims)
{
    frit_attrs_dims attrs = E_ATTRS(dims);

    attrs.dims = dims;
    return x && same_dims(x, dims) ? x : E_OP(n, FRIT_OP_expand, &attrs, x);
}

val *e_permute(struct import_node *n, val *x, const int64_t *order)
{
    frit_attrs_order attrs = E_ATTRS(order);
    bool moves = false;

    attrs.order.count = e_rank(x);
    for (uint32_t i = 0; i < e_rank(x); i++) {
        attrs.order.axis[i] = order[i];
        moves = moves || order[i] != i;
    }
    return x && !moves ? x : E_OP(n, FRIT_OP_permute, &attrs, x);
}

val *e_swap_last(struct import_node *n, val *x)
{
    int64_t order[FRIT_MAX_RANK] = {0};
    uint32_t rank = e_rank(x);

    for (uint32_t i = 0; i < rank; i++)
        order[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    return e_permute(n, x, order);
}

/* False after a problem: callers count axes from a rank, which is 0 for what failed. */
static bool has_axis(struct import_node *n, const val *x, uint32_t axis, uint32_t rank)
{
    if (x && axis >= rank)
        problem_node(n, "axis %u of a tensor with %u dims", axis, e_rank(x));
    return x && axis < rank;
}

val *e_slice(struct import_node *n, val *x, uint32_t axis, int64_t start, int64_t stop,
             int64_t step)
{
    frit_attrs_slice attrs = E_ATTRS(slice);

    if (!has_axis(n, x, axis, e_rank(x)))
        return NULL;
    attrs.slices.count = axis + 1;
    attrs.slices.dim[axis] = (frit_range){start, stop, step};
    return E_OP(n, FRIT_OP_slice, &attrs, x);
}

val *e_flip(struct import_node *n, val *x, uint32_t axis)
{
    frit_attrs_axes attrs = E_ATTRS(axes);

    attrs.axes = FRIT_AXES(axis);
    return E_OP(n, FRIT_OP_flip, &attrs, x);
}

val *e_unsqueeze(struct import_node *n, val *x, uint32_t axis)
{
    frit_dims dims = e_dims(x);

    if (!has_axis(n, x, axis, e_rank(x) + 1))
        return NULL;
    if (dims.rank == FRIT_MAX_RANK)
        return E_OP(n, FRIT_OP_unsqueeze, NULL, x); /* whose check says that it is one too many */
    memmove(&dims.dim[axis + 1], &dims.dim[axis], ((size_t)dims.rank - axis) * sizeof(int64_t));
    dims.dim[axis] = 1;
    dims.rank++;
    return e_reshape(n, x, dims);
}

val *e_squeeze(struct import_node *n, val *x, uint32_t axis)
{
    frit_dims dims = e_dims(x);

    if (!has_axis(n, x, axis, e_rank(x)))
        return NULL;
    memmove(&dims.dim[axis], &dims.dim[axis + 1], ((size_t)dims.rank - axis - 1) * sizeof(int64_t));
    dims.rank--;
    return e_reshape(n, x, dims);
}

val *e_take(struct import_node *n, val *x, uint32_t axis, int64_t index)
{
    return e_squeeze(n, e_slice(n, x, axis, index, index + 1, 1), axis);
}

frit_dims e_dims_2d(const val *x, uint32_t axis)
{
    int64_t before = 1, after = 1;

    for (uint32_t d = 0; d < e_rank(x); d++) {
        if (d < axis)
            before *= x->type.dims[d];
        else
            after *= x->type.dims[d];
    }
    return FRIT_SHAPE(before, after);
}

/* ---- the others ---- */

val *e_pad(struct import_node *n, val *x, val *value, const int64_t *low, const int64_t *high)
{
    frit_attrs_pad attrs = E_ATTRS(pad);
    bool pads = false;

    attrs.low.rank = attrs.high.rank = e_rank(x);
    for (uint32_t i = 0; i < e_rank(x); i++) {
        attrs.low.dim[i] = low ? low[i] : 0;
        attrs.high.dim[i] = high ? high[i] : 0;
        pads = pads || attrs.low.dim[i] || attrs.high.dim[i];
    }
    return x && !pads ? x : E_OP(n, FRIT_OP_pad, &attrs, x, value);
}

val *e_cat(struct import_node *n, uint32_t axis, val *const *xs, uint32_t count)
{
    frit_attrs_axis attrs = E_ATTRS(axis);

    attrs.axis = axis;
    return count == 1 ? xs[0] : e_op(n, FRIT_OP_cat, &attrs, count, xs);
}

val *e_reduce(struct import_node *n, uint32_t op, val *x, frit_axes axes, bool keep)
{
    frit_attrs_reduce attrs = E_ATTRS(reduce);

    attrs.axes = axes;
    attrs.keep = keep;
    return E_OP(n, op, &attrs, x);
}

val *e_select(struct import_node *n, val *x, val *index, uint32_t axis)
{
    frit_attrs_axis attrs = E_ATTRS(axis);

    attrs.axis = axis;
    return E_OP(n, FRIT_OP_select, &attrs, x, index);
}

val *e_gather(struct import_node *n, val *x, val *index, uint32_t axis)
{
    frit_attrs_axis attrs = E_ATTRS(axis);

    attrs.axis = axis;
    return E_OP(n, FRIT_OP_gather, &attrs, x, index);
}

val *e_matmul(struct import_node *n, val *a, val *b)
{
    return e_bin(n, FRIT_OP_matmul, a, b);
}

val *e_full(struct import_node *n, uint32_t dtype, val *value, frit_dims dims)
{
    frit_attrs_init attrs = E_ATTRS(init);

    attrs.dtype = dtype;
    attrs.dims = dims;
    return E_OP(n, FRIT_OP_full, &attrs, value);
}

val *e_full_of(struct import_node *n, val *value, frit_dims dims)
{
    return value ? e_expand(n, e_reshape(n, value, FRIT_RANK0), dims) : NULL;
}

val *e_arange(struct import_node *n, uint32_t dtype, val *start, val *step, int64_t count)
{
    frit_attrs_init attrs = E_ATTRS(init);

    attrs.dtype = dtype;
    attrs.dims = FRIT_SHAPE(count);
    return E_OP(n, FRIT_OP_arange, &attrs, start, step);
}

val *e_softmax(struct import_node *n, uint32_t op, val *x, uint32_t axis)
{
    frit_attrs_axis attrs = E_ATTRS(axis);

    attrs.axis = axis;
    return E_OP(n, op, &attrs, x);
}

/* Indices may count from the end; the table's do not. */
val *e_index(struct import_node *n, val *index, int64_t extent)
{
    val *negative, *from_end;

    if (!index || !e_is_whole(n, index))
        return NULL;
    if (index->type.dtype != FRIT_I32)
        index = e_cast(n, index, FRIT_I64);
    negative = e_bin(n, FRIT_OP_lt, index, e_whole(n, 0));
    from_end = e_add(n, index, e_whole(n, extent));
    return e_where(n, negative, from_end, index);
}

/* NumPy's matmul: a vector is a row on the left and a column on the right. */
val *e_matmul_any(struct import_node *n, val *a, val *b)
{
    bool row = e_rank(a) == 1, column = e_rank(b) == 1;
    val *y;

    if (!a || !b)
        return NULL;
    y = e_matmul(n, row ? e_unsqueeze(n, a, 0) : a, column ? e_unsqueeze(n, b, 1) : b);
    if (column && y)
        y = e_squeeze(n, y, y->type.rank - 1);
    return row && y ? e_squeeze(n, y, y->type.rank - (column ? 1 : 2)) : y;
}

val *e_one_hot(struct import_node *n, val *index, uint32_t axis, int64_t depth)
{
    frit_dims line = {.rank = e_rank(index) + 1};
    val *places;

    for (uint32_t d = 0; d < line.rank && d < FRIT_MAX_RANK; d++)
        line.dim[d] = d == axis ? depth : 1;
    places = e_arange(n, e_dtype(index), e_whole(n, 0), e_whole(n, 1), depth);
    return e_bin(n, FRIT_OP_eq, e_unsqueeze(n, index, axis), e_reshape(n, places, line));
}

/* ---- packed types ---- */

/* Packed types are reached by quantize and dequantize with a scale of 1. */
static val *to_packed(struct import_node *n, val *x, uint32_t dtype)
{
    frit_attrs_quantize attrs = E_ATTRS(quantize);

    attrs.dtype = dtype;
    x = e_cast(n, x, FRIT_F32);
    return E_OP(n, FRIT_OP_quantize, &attrs, x, e_known(n, FRIT_F32, 1), e_none(n));
}

static val *from_packed(struct import_node *n, val *x)
{
    frit_attrs_dequantize attrs = E_ATTRS(dequantize);

    return E_OP(n, FRIT_OP_dequantize, &attrs, x, e_known(n, FRIT_F32, 1), e_none(n));
}

static bool is_packed(uint32_t dtype)
{
    return dtype_class(dtype) == FRIT_DTYPE_PACKED;
}

val *e_convert(struct import_node *n, val *x, uint32_t dtype)
{
    if (!x || x->type.dtype == dtype)
        return x;
    if (is_packed(x->type.dtype))
        x = from_packed(n, x);
    return is_packed(dtype) ? to_packed(n, x, dtype) : e_cast(n, x, dtype);
}

val *e_bitcast(struct import_node *n, val *x, uint32_t dtype)
{
    frit_attrs_cast attrs = E_ATTRS(cast);

    attrs.dtype = dtype;
    return E_OP(n, FRIT_OP_bitcast, &attrs, x);
}

val *e_narrowed(struct import_node *n, val *x, int32_t narrow)
{
    val *y;

    if (!x || x->narrow == narrow)
        return x;
    y = import_alloc(n->import, sizeof(*y));
    if (y) {
        *y = *x;
        y->narrow = narrow;
        y->name = NULL;
    }
    return y;
}
