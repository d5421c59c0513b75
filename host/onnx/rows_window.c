/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools: operators with windows over the spatial dims.
 *
 * The table's ops have the same padding on both sides; other pads are an op of their own before. */
#include <math.h>
#include <string.h>

#include "graph/dtype.h"
#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/window.h"

/* ---- convolutions ---- */

/* The numbers of a window as those of a record. */
static void same_vec(int64_t to[3], const int64_t from[3])
{
    memcpy(to, from, 3 * sizeof(int64_t));
}

void onnx_row_conv(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, window_conv(n, e_in(n, 0), e_in(n, 1), e_has(n, 2) ? e_in(n, 2) : NULL));
}

/* Where the sides of the result are cut: by pads, or so that the result has a wanted extent. */
static bool transpose_pads(struct import_node *n, const val *x, struct window *w,
                           const struct ints *extra)
{
    struct ints shape;
    bool given = attr_ints(n, "output_shape", &shape);
    bool upper = attr_is(n, "auto_pad", "NOTSET", "SAME_UPPER");
    bool same = upper || attr_is(n, "auto_pad", "NOTSET", "SAME_LOWER");

    if (n->failed || (!given && !same))
        return !n->failed;
    if (given && shape.count != w->rank && shape.count != w->rank + 2) {
        problem_node(n, "output_shape has %u numbers for %u spatial dims", shape.count, w->rank);
        return false;
    }
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t in = x->type.dims[2 + i], total;
        int64_t want = given ? shape.at[shape.count - w->rank + i] : in * w->stride[i];

        if (want < 0 || (given && want > INT32_MAX)) {
            problem_node(n, "output_shape is %lld", (long long)want);
            return false;
        }
        total = w->stride[i] * (in - 1) + (extra->count ? extra->at[i] : 0) +
                (w->kernel[i] - 1) * w->dilation[i] + 1 - want;
        if (total < 0) { /* the rest is added behind */
            w->low[i] = 0;
            w->high[i] = total;
            continue;
        }
        w->low[i] = upper ? total / 2 : total - total / 2;
        w->high[i] = total - w->low[i];
    }
    return true;
}

/* Whether windows neither overlap nor leave gaps. */
static bool windows_tile(const val *x, const val *w, const struct window *window, int64_t groups)
{
    bool tile = groups == 1 && e_rank(x) == e_rank(w) && e_elements(x) && e_elements(w);

    for (uint32_t i = 0; i < window->rank; i++)
        tile = tile && window->kernel[i] == window->stride[i] && window->dilation[i] == 1 &&
               window->kernel[i] <= INT32_MAX && x->type.dims[2 + i] <= INT32_MAX;
    return tile;
}

/* Each place gives a block of its own: a product over the channels, whose results [n, out,
 * kernel.., place..] are put in order. */
static val *transpose_tiles(struct import_node *n, val *x, val *w, const struct window *window)
{
    const uint32_t rank = window->rank;
    frit_attrs_conv attrs = E_ATTRS(conv);
    frit_dims rows = {.rank = 2 + rank, .dim = {w->type.dims[1], x->type.dims[1]}};
    frit_dims parts = {.rank = 2 + 2 * rank, .dim = {x->type.dims[0], w->type.dims[1]}};
    frit_dims joined = {.rank = 2 + rank, .dim = {x->type.dims[0], w->type.dims[1]}};
    int64_t turn[FRIT_MAX_RANK] = {1, 0}, order[FRIT_MAX_RANK] = {0, 1};

    for (uint32_t i = 0; i < rank; i++) {
        attrs.stride[i] = attrs.dilation[i] = 1;
        rows.dim[0] *= window->kernel[i];
        rows.dim[2 + i] = 1;
        parts.dim[2 + i] = window->kernel[i];
        parts.dim[2 + rank + i] = x->type.dims[2 + i];
        joined.dim[2 + i] = x->type.dims[2 + i] * window->kernel[i];
        order[2 + 2 * i] = 2 + rank + i;
        order[3 + 2 * i] = 2 + i;
    }
    /* [in, out, kernel..] as [in, out * kernel], and that turned. */
    w = e_reshape(n, w, (frit_dims){.rank = 2, .dim = {x->type.dims[1], rows.dim[0]}});
    w = e_reshape(n, e_permute(n, w, turn), rows);
    attrs.groups = 1;
    x = e_reshape(n, E_OP(n, FRIT_OP_conv, &attrs, x, w, e_none(n)), parts);
    return e_reshape(n, e_permute(n, x, order), joined);
}

void onnx_row_conv_transpose(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *w = e_in(n, 1), *bias = e_has(n, 2) ? e_in(n, 2) : NULL;
    frit_attrs_conv_transpose attrs = E_ATTRS(conv_transpose);
    int64_t low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0};
    frit_dims channels = {.rank = e_rank(x)};
    struct window window;
    struct ints extra;

    (void)arg;
    if (!window_read(n, x, w, &window))
        return;
    if (!attr_ints(n, "output_padding", &extra))
        extra.count = 0;
    for (uint32_t i = 0; i < extra.count; i++) {
        if (extra.at[i] < 0 || extra.at[i] > INT32_MAX)
            problem_node(n, "output_padding is %lld", (long long)extra.at[i]);
    }
    if (n->failed || (extra.count && extra.count != window.rank) ||
        !transpose_pads(n, x, &window, &extra)) {
        problem_node(n, "output_padding has another number of dims");
        return;
    }
    same_vec(attrs.stride, window.stride);
    same_vec(attrs.dilation, window.dilation);
    attrs.groups = attr_int(n, "group", 1);
    x = windows_tile(x, w, &window, attrs.groups) && x->type.dims[1] == w->type.dims[0]
            ? transpose_tiles(n, x, w, &window)
            : E_OP(n, FRIT_OP_conv_transpose, &attrs, x, w, e_none(n));
    for (uint32_t i = 0; i < window.rank; i++) {
        low[2 + i] = -window.low[i];
        high[2 + i] = (extra.count ? extra.at[i] : 0) - window.high[i];
    }
    x = e_pad(n, x, e_whole(n, 0), low, high);
    for (uint32_t d = 0; d < channels.rank; d++)
        channels.dim[d] = d == 1 ? e_elements(bias) : 1;
    e_out(n, 0, bias ? e_add(n, x, e_reshape(n, bias, channels)) : x);
}

/* ---- pools ---- */

/* The sum over each window, of one channel at a time. */
static val *window_sums(struct import_node *n, val *x, const struct window *w)
{
    frit_attrs_conv attrs = E_ATTRS(conv);
    frit_dims one = {.rank = w->rank + 2, .dim = {1, 1}}, dims = e_dims(x), lines = dims, out;
    val *ones;

    lines.dim[0] = dims.dim[0] * dims.dim[1];
    lines.dim[1] = 1;
    for (uint32_t i = 0; i < w->rank; i++)
        one.dim[2 + i] = w->kernel[i];
    same_vec(attrs.stride, w->stride);
    same_vec(attrs.dilation, w->dilation);
    ones = e_full(n, e_dtype(x), e_num(n, 1), one);
    x = E_OP(n, FRIT_OP_conv, &attrs, e_reshape(n, x, lines), ones, e_none(n));
    out = e_dims(x);
    out.dim[0] = dims.dim[0];
    out.dim[1] = dims.dim[1];
    return x ? e_reshape(n, x, out) : NULL;
}

/* How many elements each window counts. */
static val *window_counts(struct import_node *n, const val *x, const struct window *w, bool pads)
{
    frit_dims one = e_dims(x);
    struct window rest = *w;
    val *ones;

    one.dim[0] = one.dim[1] = 1;
    for (uint32_t i = 0; pads && i < w->rank; i++) {
        one.dim[2 + i] += w->low[i] + w->given_high[i];
        rest.low[i] = 0;
        rest.high[i] -= w->given_high[i];
    }
    ones = e_full(n, e_dtype(x), e_num(n, 1), one);
    return window_sums(n, window_pad(n, ones, &rest, e_num(n, 0)), w);
}

void onnx_row_average_pool(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    frit_attrs_avg_pool attrs = E_ATTRS(avg_pool);
    bool pads = attr_int(n, "count_include_pad", 0) != 0;
    struct window w;
    val *sums;

    (void)arg;
    if (!window_read(n, x, NULL, &w))
        return;
    /* What ceil_mode adds is never counted. */
    if (window_is_simple(&w) && !window_is_dilated(&w) &&
        (!pads || memcmp(w.high, w.given_high, sizeof(w.high)) == 0)) {
        same_vec(attrs.kernel, w.kernel);
        same_vec(attrs.stride, w.stride);
        same_vec(attrs.padding, w.low);
        attrs.exclude_pad = !pads;
        e_out(n, 0, E_OP(n, FRIT_OP_avg_pool, &attrs, x));
        return;
    }
    sums = window_sums(n, window_pad(n, x, &w, e_num(n, 0)), &w);
    e_out(n, 0, e_div(n, sums, window_counts(n, x, &w, pads)));
}

void onnx_row_lp_pool(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0);
    double p = (double)attr_int(n, "p", 2);
    struct window w;

    (void)arg;
    if (!window_read(n, x, NULL, &w))
        return;
    x = e_bin(n, FRIT_OP_pow, e_un(n, FRIT_OP_abs, x), e_num(n, p));
    x = window_sums(n, window_pad(n, x, &w, e_num(n, 0)), &w);
    e_out(n, 0, e_bin(n, FRIT_OP_pow, x, e_num(n, 1 / p)));
}

/* Places in the operand before it was padded, counted over the whole tensor. */
static val *max_index(struct import_node *n, val *index, const val *x, const val *padded,
                      const struct window *w)
{
    bool columns = attr_int(n, "storage_order", 0) != 0;
    int64_t stride = 1, plane = 1;
    val *rest = index, *sum = NULL, *planes;
    frit_dims dims = {.rank = e_rank(x)};

    for (uint32_t i = 0; i < w->rank; i++)
        plane *= x->type.dims[2 + i];
    for (uint32_t k = 0; k < w->rank; k++) {
        uint32_t i = w->rank - 1 - k;
        int64_t extent = padded->type.dims[2 + i], step = 1;
        val *at = e_bin(n, FRIT_OP_rem, rest, e_whole(n, extent));

        rest = e_div(n, rest, e_whole(n, extent));
        if (w->moved)
            at = e_sub(n, at, e_whole(n, w->low[i]));
        for (uint32_t before = 0; columns && before < i; before++)
            step *= x->type.dims[2 + before];
        at = e_mul(n, at, e_whole(n, columns ? step : stride));
        stride *= x->type.dims[2 + i];
        sum = sum ? e_add(n, sum, at) : at;
    }
    for (uint32_t d = 0; d < dims.rank; d++)
        dims.dim[d] = d < 2 ? x->type.dims[d] : 1;
    planes = e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, plane), dims.dim[0] * dims.dim[1]);
    return e_add(n, sum, e_reshape(n, planes, dims));
}

void onnx_row_max_pool(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *padded, *out[FRIT_OP_MAX_OUT];
    frit_attrs_max_pool attrs = E_ATTRS(max_pool);
    uint32_t dtype = e_dtype(x);
    struct window w;

    (void)arg;
    if (!window_read(n, x, NULL, &w))
        return;
    if (!e_is_float(x))
        x = e_cast(n, x, FRIT_F32);
    same_vec(attrs.kernel, w.kernel);
    same_vec(attrs.stride, w.stride);
    same_vec(attrs.dilation, w.dilation);
    padded = x;
    if (window_is_simple(&w)) {
        same_vec(attrs.padding, w.low);
    } else {
        padded = window_pad(n, x, &w, e_num(n, -INFINITY));
        w.moved = true;
    }
    if (!e_wants(n, 1)) {
        e_out(n, 0, e_cast(n, E_OP(n, FRIT_OP_max_pool, &attrs, padded), dtype));
        return;
    }
    if (!e_ops(n, FRIT_OP_max_pool, &attrs, 1, &padded, out))
        return;
    e_out(n, 0, e_cast(n, out[0], dtype));
    e_out(n, 1, max_index(n, out[1], x, padded, &w));
}

/* Over all spatial dims. */
static val *over_space(struct import_node *n, uint32_t op, val *x)
{
    frit_axes axes = {0};

    for (uint32_t d = 2; d < e_rank(x); d++)
        axes.axis[axes.count++] = d;
    return axes.count ? e_reduce(n, op, x, axes, true) : x;
}

void onnx_row_global_pool(struct import_node *n, uint32_t arg)
{
    e_out(n, 0, over_space(n, arg, e_in(n, 0)));
}

void onnx_row_global_lp_pool(struct import_node *n, uint32_t arg)
{
    double p = (double)attr_int(n, "p", 2);
    val *x = e_bin(n, FRIT_OP_pow, e_un(n, FRIT_OP_abs, e_in(n, 0)), e_num(n, p));

    (void)arg;
    e_out(n, 0, e_bin(n, FRIT_OP_pow, over_space(n, FRIT_OP_sum, x), e_num(n, 1 / p)));
}
