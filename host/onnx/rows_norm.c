/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and normalisation. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

/* Up to opset 12 all dims from the axis on are one. */
void onnx_row_softmax(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", n->opset < 13 ? 1 : -1), e_rank(x)) : 0;
    val *y;

    if (n->opset >= 13) {
        e_out(n, 0, e_softmax(n, arg, x, axis));
        return;
    }
    y = e_softmax(n, arg, e_reshape(n, x, e_dims_2d(x, axis)), 1);
    e_out(n, 0, e_reshape(n, y, e_dims(x)));
}

/* ---- layers ---- */

static frit_axes axes_from(const val *x, uint32_t first)
{
    frit_axes axes = {0};

    for (uint32_t d = first; d < e_rank(x); d++)
        axes.axis[axes.count++] = d;
    return axes;
}

/* (x - mean) / sqrt(var + eps) over the axes; *mean and *scale, where wanted, with extents of 1. */
static val *normalize(struct import_node *n, val *x, const frit_axes *axes, double eps, val **mean,
                      val **scale)
{
    val *centre = e_reduce(n, FRIT_OP_mean, x, *axes, true);
    val *away = e_sub(n, x, centre);
    val *var = e_reduce(n, FRIT_OP_mean, e_mul(n, away, away), *axes, true);
    val *inverse = e_un(n, FRIT_OP_rsqrt, e_add(n, var, e_num(n, eps)));

    if (mean)
        *mean = centre;
    if (scale)
        *scale = inverse;
    return e_mul(n, away, inverse);
}

/* Computed in f32 unless stash_type says otherwise; scale and bias are applied in x's type. */
void onnx_row_layer_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *y, *mean, *scale;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", -1), e_rank(x)) : 0;
    double eps = attr_float(n, "epsilon", 1e-5F);
    frit_attrs_norm_axes attrs = E_ATTRS(norm_axes);
    frit_axes axes = axes_from(x, axis);
    bool wide = attr_int(n, "stash_type", 1) == 1 && e_dtype(x) != FRIT_F64;

    (void)arg;
    if (n->failed)
        return;
    if (!e_wants(n, 1) && !e_wants(n, 2) && e_has(n, 1) && eps != 0 &&
        e_rank(e_in(n, 1)) == (uint32_t)axes.count &&
        (!e_has(n, 2) || e_rank(e_in(n, 2)) == (uint32_t)axes.count)) {
        attrs.axes = axes;
        attrs.eps = eps;
        e_out(n, 0,
              E_OP(n, FRIT_OP_layer_norm, &attrs, x, e_in(n, 1),
                   e_has(n, 2) ? e_in(n, 2) : e_none(n)));
        return;
    }
    y = normalize(n, wide ? e_cast(n, x, FRIT_F32) : x, &axes, eps, &mean, &scale);
    y = e_mul(n, e_like(n, y, x), e_in(n, 1));
    e_out(n, 0, e_has(n, 2) ? e_add(n, y, e_in(n, 2)) : y);
    e_out(n, 1, mean);
    e_out(n, 2, scale);
}

void onnx_row_rms_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *y, *square;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", -1), e_rank(x)) : 0;
    bool wide = attr_int(n, "stash_type", 1) == 1 && e_dtype(x) != FRIT_F64;

    (void)arg;
    if (n->failed)
        return;
    y = wide ? e_cast(n, x, FRIT_F32) : x;
    square = e_reduce(n, FRIT_OP_mean, e_mul(n, y, y), axes_from(x, axis), true);
    square = e_add(n, square, e_num(n, attr_float(n, "epsilon", 1e-5F)));
    y = e_mul(n, y, e_un(n, FRIT_OP_rsqrt, square));
    e_out(n, 0, e_mul(n, e_like(n, y, x), e_in(n, 1)));
}

/* A vector as the channels of a tensor like x. */
static val *as_channels(struct import_node *n, val *vector, const val *x)
{
    frit_dims dims = {.rank = e_rank(x)};

    for (uint32_t d = 0; d < dims.rank; d++)
        dims.dim[d] = d == 1 ? e_elements(vector) : 1;
    return e_reshape(n, vector, dims);
}

void onnx_row_instance_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *y;
    frit_axes axes = axes_from(x, 2);

    (void)arg;
    y = normalize(n, x, &axes, attr_float(n, "epsilon", 1e-5F), NULL, NULL);
    y = e_mul(n, y, as_channels(n, e_in(n, 1), x));
    e_out(n, 0, e_add(n, y, as_channels(n, e_in(n, 2), x)));
}

/* Scale and bias are one per group up to opset 20, then one per channel. */
void onnx_row_group_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *scale = e_in(n, 1), *bias = e_in(n, 2), *y;
    int64_t groups = attr_int(n, "num_groups", 1), size;
    frit_dims grouped = {.rank = 3};
    frit_axes axes = FRIT_AXES(2);

    (void)arg;
    if (!x || x->type.rank < 2 || groups < 1 || x->type.dims[1] % groups) {
        problem_node(n, "%lld groups do not divide the channels", (long long)groups);
        return;
    }
    size = x->type.dims[1] / groups;
    grouped.dim[0] = x->type.dims[0];
    grouped.dim[1] = groups;
    grouped.dim[2] = grouped.dim[0] ? e_elements(x) / (grouped.dim[0] * groups) : 0;
    y = e_reshape(n, x, grouped);
    if (attr_int(n, "stash_type", 1) == 1 && e_dtype(x) != FRIT_F64)
        y = e_cast(n, y, FRIT_F32);
    y = normalize(n, y, &axes, attr_float(n, "epsilon", 1e-5F), NULL, NULL);
    if (e_elements(scale) == groups && size != 1) {
        scale = e_expand(n, e_reshape(n, scale, FRIT_SHAPE(groups, 1)), FRIT_SHAPE(groups, size));
        bias = e_expand(n, e_reshape(n, bias, FRIT_SHAPE(groups, 1)), FRIT_SHAPE(groups, size));
    }
    y = e_reshape(n, e_like(n, y, x), e_dims(x));
    y = e_mul(n, y, as_channels(n, scale, x));
    e_out(n, 0, e_add(n, y, as_channels(n, bias, x)));
}

void onnx_row_mean_variance_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    frit_axes axes = FRIT_AXES(0, 2, 3);
    struct ints given;
    val *mean, *away, *square;

    (void)arg;
    if (attr_ints(n, "axes", &given)) {
        axes.count = 0;
        for (uint32_t i = 0; i < given.count && i < FRIT_MAX_RANK; i++)
            axes.axis[axes.count++] = e_axis(n, given.at[i], e_rank(x));
    }
    mean = e_reduce(n, FRIT_OP_mean, x, axes, true);
    away = e_sub(n, x, mean);
    square = e_reduce(n, FRIT_OP_mean, e_mul(n, away, away), axes, true);
    e_out(n, 0, e_div(n, away, e_add(n, e_un(n, FRIT_OP_sqrt, square), e_num(n, 1e-9))));
}

void onnx_row_lp_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *size;
    uint32_t axis = x ? e_axis(n, attr_int(n, "axis", -1), e_rank(x)) : 0;
    bool first = attr_int(n, "p", 2) == 1;

    (void)arg;
    if (n->failed)
        return;
    size = e_reduce(n, FRIT_OP_sum, first ? e_un(n, FRIT_OP_abs, x) : e_mul(n, x, x),
                    FRIT_AXES(axis), true);
    size = first ? size : e_un(n, FRIT_OP_sqrt, size);
    /* A line of zeros stays one. */
    size = e_where(n, e_bin(n, FRIT_OP_eq, size, e_num(n, 0)), e_num(n, 1), size);
    e_out(n, 0, e_div(n, x, size));
}

/* Divided by a power of the sum of squares over neighbouring channels. */
void onnx_row_lrn(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *square, *sum = NULL;
    int64_t size = attr_int(n, "size", 1), low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0};
    double alpha = attr_float(n, "alpha", 1e-4F), beta = attr_float(n, "beta", 0.75),
           bias = attr_float(n, "bias", 1);

    (void)arg;
    if (!x || x->type.rank < 2 || size < 1 || size > 1024) {
        problem_node(n, "size %lld", (long long)size);
        return;
    }
    low[1] = (size - 1) / 2;
    high[1] = size - 1 - low[1];
    square = e_pad(n, e_mul(n, x, x), e_num(n, 0), low, high);
    for (int64_t i = 0; i < size; i++) {
        val *part = e_slice(n, square, 1, i, i + x->type.dims[1], 1);

        sum = sum ? e_add(n, sum, part) : part;
    }
    sum = e_add(n, e_mul(n, sum, e_num(n, alpha / (double)size)), e_num(n, bias));
    e_out(n, 0, e_div(n, x, e_bin(n, FRIT_OP_pow, sum, e_num(n, beta))));
}

/* ---- batches ---- */

/* With the statistics of the batch, of which the running ones become a mixture. */
static void batch_norm_of_batch(struct import_node *n, val *x)
{
    double keep = attr_float(n, "momentum", 0.9F);
    frit_axes axes = {0};
    val *mean, *scale, *y, *var;

    for (uint32_t d = 0; d < e_rank(x); d++) {
        if (d != 1)
            axes.axis[axes.count++] = d;
    }
    y = normalize(n, x, &axes, attr_float(n, "epsilon", 1e-5F), &mean, &scale);
    y = e_mul(n, y, as_channels(n, e_in(n, 1), x));
    e_out(n, 0, e_add(n, y, as_channels(n, e_in(n, 2), x)));
    var = e_sub(n, x, mean);
    var = e_reduce(n, FRIT_OP_mean, e_mul(n, var, var), axes, false);
    mean = e_reshape(n, mean, e_dims(e_in(n, 3)));
    e_out(n, 1, e_add(n, e_mul(n, e_in(n, 3), e_num(n, keep)), e_mul(n, mean, e_num(n, 1 - keep))));
    e_out(n, 2, e_add(n, e_mul(n, e_in(n, 4), e_num(n, keep)), e_mul(n, var, e_num(n, 1 - keep))));
}

/* Whether the statistics, in[1] to in[4], are known vectors, and of a type that is wide enough to
 * compute with them beforehand. */
static bool knows_statistics(val *const *in)
{
    const val *x = in[0];

    if (!x || e_rank(x) < 2 || (e_dtype(x) != FRIT_F32 && e_dtype(x) != FRIT_F64))
        return false;
    for (uint32_t i = 1; i < 5; i++) {
        if (!in[i] || !in[i]->data || e_rank(in[i]) != 1 || e_elements(in[i]) != x->type.dims[1])
            return false;
    }
    return true;
}

/* One factor and one summand per channel, which a convolution before takes with its stores. */
static val *batch_norm_of_known(struct import_node *n, val *const *in, double eps)
{
    val *root = e_un(n, FRIT_OP_sqrt, e_add(n, in[4], e_num(n, eps)));
    val *factor = e_div(n, in[1], root);
    val *summand = e_sub(n, in[2], e_mul(n, in[3], factor));
    val *y = e_mul(n, in[0], as_channels(n, factor, in[0]));

    return e_add(n, y, as_channels(n, summand, in[0]));
}

void onnx_row_batch_norm(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *in[5] = {0};
    frit_attrs_norm attrs = E_ATTRS(norm);
    uint32_t dtype = e_dtype(x);

    (void)arg;
    if (n->opset < 9 && !attr_int(n, "spatial", 1)) {
        problem_node(n, "statistics per element (spatial = 0), as no later opset has them");
        return;
    }
    if (attr_int(n, "training_mode", 0)) {
        batch_norm_of_batch(n, x);
        return;
    }
    attrs.eps = attr_float(n, "epsilon", 1e-5F);
    in[0] = x;
    for (uint32_t i = 1; i < 5; i++)
        in[i] = e_cast(n, e_in(n, i), dtype);
    e_out(n, 0,
          knows_statistics(in) ? batch_norm_of_known(n, in, attrs.eps)
                               : e_op(n, FRIT_OP_batch_norm, &attrs, 5, in));
}
