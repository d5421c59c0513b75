/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, scans and sorting. */
#include <math.h>
#include <string.h>

#include "graph/dtype.h"
#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* ---- reductions ---- */

/* The axes of a node that reduces; false: none, and nothing is reduced. */
static bool read_axes(struct import_node *n, const val *x, frit_axes *out)
{
    struct ints axes;

    *out = (frit_axes){0};
    if (e_ints_or_attr(n, 1, "axes", &axes) && axes.count) {
        for (uint32_t i = 0; i < axes.count && i < FRIT_MAX_RANK; i++)
            out->axis[out->count++] = e_axis(n, axes.at[i], e_rank(x));
        return true;
    }
    if (attr_int(n, "noop_with_empty_axes", 0))
        return false;
    for (uint32_t d = 0; d < e_rank(x); d++)
        out->axis[out->count++] = d;
    return out->count > 0;
}

/* The largest (or smallest) of nothing is the type's least (or greatest) value. */
static val *of_nothing(struct import_node *n, val *x, uint32_t op, frit_dims dims)
{
    const frit_dtype_info info = frit_dtype_info_of(e_dtype(x));
    bool low = op == FRIT_OP_max;
    uint64_t top = info.bits ? UINT64_MAX >> (64 - info.bits) : 0;

    if (e_is_float(x))
        return e_full(n, e_dtype(x), e_num(n, low ? -INFINITY : INFINITY), dims);
    if (info.cls == FRIT_DTYPE_INT)
        return e_full(n, e_dtype(x),
                      e_whole(n, low ? -(int64_t)(top >> 1) - 1 : (int64_t)(top >> 1)), dims);
    return e_full(n, e_dtype(x),
                  e_whole(n, low                           ? 0
                             : info.cls == FRIT_DTYPE_BOOL ? 1
                                                           : (int64_t)top),
                  dims);
}

static val *reduce(struct import_node *n, uint32_t op, val *x, const frit_axes *axes, bool keep)
{
    bool nothing = false, gone[FRIT_MAX_RANK] = {false};
    frit_dims dims = {0};

    for (int64_t i = 0; x && i < axes->count; i++) {
        gone[axes->axis[i]] = true;
        nothing = nothing || x->type.dims[axes->axis[i]] == 0;
    }
    if (!x || !nothing || (op != FRIT_OP_max && op != FRIT_OP_min))
        return axes->count ? e_reduce(n, op, x, *axes, keep) : x;
    for (uint32_t d = 0; d < x->type.rank; d++) {
        if (!gone[d] || keep)
            dims.dim[dims.rank++] = gone[d] ? 1 : x->type.dims[d];
    }
    return of_nothing(n, x, op, dims);
}

/* log(sum(e^x)), with the largest element taken out first. */
static val *log_sum_exp(struct import_node *n, val *x, const frit_axes *axes, bool keep)
{
    val *top, *sum, *flat;

    top = reduce(n, FRIT_OP_max, x, axes, true);
    top = e_where(n, e_un(n, FRIT_OP_is_inf, top), e_num(n, 0), top);
    sum = reduce(n, FRIT_OP_sum, e_un(n, FRIT_OP_exp, e_sub(n, x, top)), axes, keep);
    flat = sum ? e_reshape(n, top, e_dims(sum)) : NULL;
    return e_add(n, e_un(n, FRIT_OP_log, sum), flat);
}

void onnx_row_reduce(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    bool keep = attr_int(n, "keepdims", 1) != 0;
    uint32_t dtype = e_dtype(x);
    frit_axes axes;

    if (!x)
        return;
    read_axes(n, x, &axes);
    switch (arg) {
    case REDUCE_L1:
        x = reduce(n, FRIT_OP_sum, e_un(n, FRIT_OP_abs, x), &axes, keep);
        break;
    case REDUCE_L2:
        x = reduce(n, FRIT_OP_sum, e_mul(n, x, x), &axes, keep);
        x = e_cast(n, e_un(n, FRIT_OP_sqrt, e_is_float(x) ? x : e_cast(n, x, FRIT_F64)), dtype);
        break;
    case REDUCE_LOG_SUM:
        x = e_un(n, FRIT_OP_log, reduce(n, FRIT_OP_sum, x, &axes, keep));
        break;
    case REDUCE_LOG_SUM_EXP:
        x = log_sum_exp(n, x, &axes, keep);
        break;
    case REDUCE_SUM_SQUARE:
        x = reduce(n, FRIT_OP_sum, e_mul(n, x, x), &axes, keep);
        break;
    default:
        x = reduce(n, arg, x, &axes, keep);
    }
    e_out(n, 0, x);
}

void onnx_row_arg_reduce(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *y;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", 0), e_rank(x)) : 0;
    bool keep = attr_int(n, "keepdims", 1) != 0, last = attr_int(n, "select_last_index", 0) != 0;

    if (n->failed || !x)
        return;
    y = last ? e_flip(n, x, axis) : x;
    y = e_reduce(n, arg, y, FRIT_AXES(axis), keep);
    if (last) /* counted from the end */
        y = e_sub(n, e_known(n, FRIT_I64, (double)(x->type.dims[axis] - 1)), y);
    e_out(n, 0, y);
}

/* ---- scans ---- */

void onnx_row_scan_along(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    frit_attrs_axis attrs = E_ATTRS(axis);
    uint32_t axis = x ? e_axis(n, e_int(n, 1, 0), e_rank(x)) : 0;
    bool reverse = attr_int(n, "reverse", 0) != 0;
    int64_t low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0};

    if (n->failed)
        return;
    attrs.axis = axis;
    x = reverse ? e_flip(n, x, axis) : x;
    x = E_OP(n, arg, &attrs, x);
    if (attr_int(n, "exclusive", 0)) {
        low[axis] = 1;
        high[axis] = -1;
        x = e_pad(n, x, e_whole(n, arg == FRIT_OP_cumprod), low, high);
    }
    e_out(n, 0, reverse ? e_flip(n, x, axis) : x);
}

/* ---- sorting ---- */

void onnx_row_topk(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *out[FRIT_OP_MAX_OUT] = {0};
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", -1), e_rank(x)) : 0;
    int64_t k = n->opset < 10 ? attr_int(n, "k", 0) : e_int(n, 1, 0);
    frit_attrs_topk largest = E_ATTRS(topk);
    frit_attrs_sort smallest = E_ATTRS(sort);

    (void)arg;
    if (n->failed || !x)
        return;
    if (k < 0 || k > x->type.dims[axis]) {
        problem_node(n, "k is %lld, the axis has %lld elements", (long long)k,
                     (long long)x->type.dims[axis]);
        return;
    }
    if (attr_int(n, "largest", 1)) {
        largest.axis = axis;
        largest.k = k;
        e_ops(n, FRIT_OP_topk, &largest, 1, &x, out);
    } else {
        smallest.axis = axis;
        if (e_ops(n, FRIT_OP_sort, &smallest, 1, &x, out)) {
            out[0] = e_slice(n, out[0], axis, 0, k, 1);
            out[1] = e_slice(n, out[1], axis, 0, k, 1);
        }
    }
    e_out(n, 0, out[0]);
    e_out(n, 1, out[1]);
}

/* ---- masks by position ---- */

void onnx_row_trilu(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *rows, *columns, *mask;
    int64_t k = e_int(n, 1, 0);
    uint32_t rank = e_rank(x);

    (void)arg;
    if (n->failed || rank < 2) {
        problem_node(n, "a tensor with less than two dims");
        return;
    }
    rows = e_arange(n, FRIT_I64, e_whole(n, k), e_whole(n, 1), x->type.dims[rank - 2]);
    columns = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), x->type.dims[rank - 1]);
    mask = e_bin(n, attr_int(n, "upper", 1) ? FRIT_OP_ge : FRIT_OP_le, e_unsqueeze(n, columns, 0),
                 e_unsqueeze(n, rows, 1));
    e_out(n, 0,
          e_dtype(x) == FRIT_BOOL ? e_bin(n, FRIT_OP_and, x, mask)
                                  : e_where(n, mask, x, e_whole(n, 0)));
}

void onnx_row_one_hot(struct import_node *n, uint32_t arg)
{
    val *index = e_in(n, 0), *values = e_in(n, 2), *mask;
    int64_t depth = e_int(n, 1, 0);
    uint32_t axis = index ? e_axis(n, attr_int(n, "axis", -1), e_rank(index) + 1) : 0;
    frit_dims dims;

    (void)arg;
    if (n->failed)
        return;
    if (index && e_is_float(index)) /* of this operator alone ONNX allows it */
        index = e_cast(n, index, FRIT_I64);
    index = e_index(n, index, depth);
    mask = e_one_hot(n, index, axis, depth);
    dims = e_dims(mask);
    e_out(n, 0,
          e_where(n, mask, e_full_of(n, e_slice(n, values, 0, 1, 2, 1), dims),
                  e_full_of(n, e_slice(n, values, 0, 0, 1, 1), dims)));
}

/* Up to opset 12 all dims from the axis on are one. */
void onnx_row_hardmax(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *y;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", n->opset < 13 ? 1 : -1), e_rank(x)) : 0;

    (void)arg;
    if (n->failed)
        return;
    y = n->opset < 13 ? e_reshape(n, x, e_dims_2d(x, axis)) : x;
    axis = n->opset < 13 ? 1 : axis;
    y = e_one_hot(n, e_reduce(n, FRIT_OP_argmax, y, FRIT_AXES(axis), false), axis,
                  y ? y->type.dims[axis] : 0);
    e_out(n, 0, e_reshape(n, e_like(n, y, x), e_dims(x)));
}
