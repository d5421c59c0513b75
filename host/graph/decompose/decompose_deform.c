/* SPDX-License-Identifier: Apache-2.0 */
/* deform_conv as a matrix product of the weights and the samples of all taps (im2col); and its
 * gradients.
 *
 * For sampling, the channels of x that share offsets form one item: x is [n * offset groups,
 * channels per offset group, ..], and the points of an item are the taps of all windows, taps *
 * windows.  For the product, the samples are reshaped to [n, groups, channels per group * taps,
 * windows]. */
#include "graph/decompose/decompose_sample.h"

struct deform {
    const frit_attrs_deform *attrs;
    const int64_t *x, *w, *y; /* dims; y: those of the result, or of its gradient */
    int64_t taps, windows;
    struct sampling s;
    struct sample_line line[2]; /* neighbours along rows, along columns */
    term values;                /* [items, channels, points, pairs] */
    term sampled;               /* [items, channels, points] */
    term mask;                  /* [items, 1, points]; absent: 1 */
    term columns;               /* [n, groups, channels * taps, windows] */
    term w_rows;                /* [groups, outputs, channels * taps] */
};

/* Coordinate `dim` of every point: the origin of its window plus the place of its tap in the window
 * plus its offset, [items, points, 1]. */
static term point_coordinates(struct build *b, const struct deform *d, int dim)
{
    const int64_t height = d->w[2], width = d->w[3], rows = d->y[2], columns = d->y[3];
    const int64_t tap_dims[5] = {1, dim ? 1 : height, dim ? width : 1, 1, 1};
    const int64_t window_dims[2] = {dim ? 1 : rows, dim ? columns : 1};
    const int64_t points[3] = {d->s.items, d->s.points, 1};
    term tap = b_mul(b, b_arange(b, d->w[2 + dim]), b_number((double)d->attrs->dilation[dim]));
    term window = b_mul(b, b_arange(b, d->y[2 + dim]), b_number((double)d->attrs->stride[dim]));
    term offset =
        b_reshape(b, b_in(b, 1), 6, (const int64_t[]){d->s.items, height, width, 2, rows, columns});

    tap = b_reshape(b, tap, 5, tap_dims);
    window = b_sub(b, window, b_number((double)d->attrs->padding[dim]));
    tap = b_add(b, tap, b_reshape(b, window, 2, window_dims));
    offset = b_reshape(b, b_slice(b, offset, 3, dim, dim + 1), 5,
                       (const int64_t[]){d->s.items, height, width, rows, columns});
    return b_reshape(b, b_add(b, offset, b_cast(b, tap, b->dtype)), 3, points);
}

static void read_columns(struct build *b, struct deform *d)
{
    const frit_attrs_deform *a = d->attrs;
    int64_t inputs = d->w[1], outputs = d->w[0] / a->groups;

    for (int dim = 0; dim < 2; dim++)
        d->line[dim] = sample_line(b, &d->s, point_coordinates(b, d, dim), dim);
    d->values = sample_values(b, &d->s, b_in(b, 0), d->line);
    d->sampled = d->columns = sample_sum(b, &d->s, d->values, d->line);
    if (b_has(b, 3)) {
        d->mask = b_reshape(b, b_in(b, 3), 3, (const int64_t[]){d->s.items, 1, d->s.points});
        d->columns = b_mul(b, d->sampled, d->mask);
    }
    d->columns = b_reshape(b, d->columns, 4,
                           (const int64_t[]){d->x[0], a->groups, inputs * d->taps, d->windows});
    d->w_rows =
        b_reshape(b, b_in(b, 2), 3, (const int64_t[]){a->groups, outputs, inputs * d->taps});
}

static struct deform deform_of(struct build *b, const int64_t *y)
{
    const frit_attrs_deform *a = b->call->attrs;
    struct deform d = {.attrs = a,
                       .x = b->call->in[0].type.dims,
                       .w = b->call->in[2].type.dims,
                       .y = y,
                       .windows = y[2] * y[3]};

    d.taps = d.w[2] * d.w[3];
    d.s = (struct sampling){.mode = FRIT_CHOICE_resample_bilinear,
                            .border = FRIT_CHOICE_border_zeros,
                            .items = d.x[0] * a->offset_groups,
                            .channels = d.x[1] / a->offset_groups,
                            .points = d.taps * d.windows,
                            .extent = {d.x[2], d.x[3]}};
    read_columns(b, &d);
    return d;
}

term decompose_deform_conv(struct build *b)
{
    struct deform d = deform_of(b, b->out.dims);
    term y = b_reshape(b, b_matmul(b, d.w_rows, d.columns), 4, b->out.dims);

    if (!b_has(b, 4))
        return y;
    return b_add(b, y, b_reshape(b, b_in(b, 4), 3, (const int64_t[]){d.w[0], 1, 1}));
}

/* ---- gradients; `grad_sampled` is the gradient of the samples, [items, channels, points] ---- */

static term sum_over(struct build *b, term x, uint32_t axis)
{
    const frit_axes axes = {.count = 1, .axis = {axis}};

    return b_reduce(b, FRIT_OP_sum, x, &axes, false);
}

/* `grad_sampled` with a dim for the pairs of neighbours, to be broadcast. */
static term with_pairs_dim(struct build *b, const struct deform *d, term grad_sampled)
{
    const int64_t dims[4] = {d->s.items, d->s.channels, d->s.points, 1};

    return b_reshape(b, grad_sampled, 4, dims);
}

/* Each sample's gradient, times the weights of its neighbours, is added to the elements it read. */
static term gradient_x(struct build *b, const struct deform *d, term grad_sampled)
{
    const int64_t planes[3] = {d->s.items, d->s.channels, d->s.extent[0] * d->s.extent[1]};
    term grad_values = sample_pairs(b, &d->s, b_mul, d->line[0].weight, d->line[1].weight), in[3];
    struct op_type index;

    grad_values = b_mul(b, grad_values, with_pairs_dim(b, d, grad_sampled));
    in[0] = b_full(b, b->dtype, b_number(0).scalar, 3, planes);
    in[1] = sample_index(b, &d->s, d->line, true);
    index = b_type(b, in[1]);
    in[2] = b_reshape(b, grad_values, 3, index.dims);
    return b_reshape(b, b_scatter(b, in, 2, FRIT_CHOICE_update_add), 4, d->x);
}

/* The gradient of coordinate `dim` of the points.  Bilinear weights along a dim are 1 - f and f, so
 * that their derivatives are -1 and 1. */
static term gradient_coordinate(struct build *b, const struct deform *d, term grad_sampled, int dim)
{
    const int64_t line[3] = {d->s.items, d->s.points, 2};
    term derivative = b_sub(b, b_mul(b, b_arange(b, 2), b_number(2)), b_number(1)), slope;

    derivative = b_expand(b, b_cast(b, derivative, b->dtype), 3, line);
    slope = sample_pairs(b, &d->s, b_mul, dim ? d->line[0].weight : derivative,
                         dim ? derivative : d->line[1].weight);
    slope = sum_over(b, b_mul(b, d->values, slope), 3);
    return b_reshape(b, sum_over(b, b_mul(b, slope, grad_sampled), 1), 3,
                     (const int64_t[]){d->s.items * d->taps, 1, d->windows});
}

static term gradient_offset(struct build *b, const struct deform *d, term grad_sampled)
{
    term coordinate[2];

    for (int dim = 0; dim < 2; dim++)
        coordinate[dim] = gradient_coordinate(b, d, grad_sampled, dim);
    return b_reshape(b, b_cat(b, 2, coordinate, 1), 4, b->call->in[1].type.dims);
}

term decompose_deform_conv_backward(struct build *b)
{
    const struct op_type *y = &b->call->in[5].type;
    struct deform d = deform_of(b, y->dims);
    int64_t outputs = d.w[0] / d.attrs->groups;
    const int64_t samples[3] = {d.s.items, d.s.channels, d.s.points};
    term grad = b_reshape(b, b_in(b, 5), 4,
                          (const int64_t[]){y->dims[0], d.attrs->groups, outputs, d.windows});
    term grad_sampled = b_reshape(b, b_matmul(b, b_swap_last(b, d.w_rows), grad), 3, samples), dw;

    dw = b_matmul(b, grad, b_swap_last(b, d.columns));
    b->results[2] = b_reshape(b, sum_over(b, dw, 0), 4, d.w);
    if (b->call->wanted & 1u << 3)
        b->results[3] = b_reshape(b, sum_over(b, b_mul(b, grad_sampled, d.sampled), 1), 4,
                                  b->call->in[3].type.dims);
    if (b->call->wanted & 1u << 4) {
        const frit_axes all_but_channels = {.count = 3, .axis = {0, 2, 3}};

        b->results[4] = b_reduce(b, FRIT_OP_sum, b_in(b, 5), &all_but_channels, false);
    }
    if (b_has(b, 3))
        grad_sampled = b_mul(b, grad_sampled, d.mask);
    b->results[1] = gradient_offset(b, &d, grad_sampled);
    return gradient_x(b, &d, grad_sampled);
}
