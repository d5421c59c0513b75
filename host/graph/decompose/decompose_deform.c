/* SPDX-License-Identifier: Apache-2.0 */
/* deform_conv: what the taps of all windows read, as columns, times the weights; and its gradients.
 *
 * Channels of x that share offsets are channels of one item, [n * offset groups, ..]; its points
 * are the taps of all windows, [taps * windows].  The weights see the same columns as [n, groups,
 * channels * taps, windows]. */
#include "graph/decompose/decompose_sample.h"

struct deform {
    const frit_attrs_deform *attrs;
    const int64_t *x, *w, *y; /* dims; y's last two also for the gradient */
    int64_t taps, windows;
    struct sampling s;
    struct sample_line line[2];
    term values;  /* [items, channels, points, pairs] */
    term sampled; /* [items, channels, points] */
    term mask;    /* [items, 1, points]; absent: 1 */
    term columns; /* [n, groups, channels * taps, windows] */
    term w_rows;  /* [groups, outputs, channels * taps] */
};

/* Coordinate `dim` of every tap: its window's place, its own, and its offset. */
static term tap_places(struct build *b, const struct deform *d, int dim)
{
    const int64_t high = d->w[2], wide = d->w[3], rows = d->y[2], columns = d->y[3];
    const int64_t tap_dims[5] = {1, dim ? 1 : high, dim ? wide : 1, 1, 1};
    const int64_t window_dims[2] = {dim ? 1 : rows, dim ? columns : 1};
    const int64_t points[3] = {d->s.items, d->s.points, 1};
    term tap = b_mul(b, b_arange(b, d->w[2 + dim]), b_number((double)d->attrs->dilation[dim]));
    term window = b_mul(b, b_arange(b, d->y[2 + dim]), b_number((double)d->attrs->stride[dim]));
    term offset =
        b_reshape(b, b_in(b, 1), 6, (const int64_t[]){d->s.items, high, wide, 2, rows, columns});

    tap = b_reshape(b, tap, 5, tap_dims);
    window = b_sub(b, window, b_number((double)d->attrs->padding[dim]));
    tap = b_add(b, tap, b_reshape(b, window, 2, window_dims));
    offset = b_reshape(b, b_slice(b, offset, 3, dim, dim + 1), 5,
                       (const int64_t[]){d->s.items, high, wide, rows, columns});
    return b_reshape(b, b_add(b, offset, b_cast(b, tap, b->dtype)), 3, points);
}

static void read_columns(struct build *b, struct deform *d)
{
    const frit_attrs_deform *a = d->attrs;
    int64_t inputs = d->w[1], outputs = d->w[0] / a->groups;

    for (int dim = 0; dim < 2; dim++)
        d->line[dim] = sample_line(b, &d->s, tap_places(b, d, dim), dim);
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

/* ---- gradients; `reach` is the gradient by the samples, [items, channels, points] ---- */

static term sum_over(struct build *b, term x, uint32_t axis)
{
    const frit_axes axes = {.count = 1, .axis = {axis}};

    return b_reduce(b, FRIT_OP_sum, x, &axes, false);
}

static term beside_pairs(struct build *b, const struct deform *d, term reach)
{
    const int64_t dims[4] = {d->s.items, d->s.channels, d->s.points, 1};

    return b_reshape(b, reach, 4, dims);
}

/* Shares go back to the elements that were read. */
static term gradient_x(struct build *b, const struct deform *d, term reach)
{
    const int64_t planes[3] = {d->s.items, d->s.channels, d->s.extent[0] * d->s.extent[1]};
    term share = sample_pairs(b, &d->s, b_mul, d->line[0].weight, d->line[1].weight), in[3];
    struct op_type index;

    share = b_mul(b, share, beside_pairs(b, d, reach));
    in[0] = b_full(b, b->dtype, b_number(0).scalar, 3, planes);
    in[1] = sample_index(b, &d->s, d->line, true);
    index = b_type(b, in[1]);
    in[2] = b_reshape(b, share, 3, index.dims);
    return b_reshape(b, b_scatter(b, in, 2, FRIT_CHOICE_update_add), 4, d->x);
}

/* The shares of a point that moves along a dim fall at the tap before it and rise at the next. */
static term gradient_place(struct build *b, const struct deform *d, term reach, int dim)
{
    const int64_t line[3] = {d->s.items, d->s.points, 2};
    term rise = b_sub(b, b_mul(b, b_arange(b, 2), b_number(2)), b_number(1)), slope;

    rise = b_expand(b, b_cast(b, rise, b->dtype), 3, line);
    slope = sample_pairs(b, &d->s, b_mul, dim ? d->line[0].weight : rise,
                         dim ? rise : d->line[1].weight);
    slope = sum_over(b, b_mul(b, d->values, slope), 3);
    return b_reshape(b, sum_over(b, b_mul(b, slope, reach), 1), 3,
                     (const int64_t[]){d->s.items * d->taps, 1, d->windows});
}

static term gradient_offset(struct build *b, const struct deform *d, term reach)
{
    term place[2];

    for (int dim = 0; dim < 2; dim++)
        place[dim] = gradient_place(b, d, reach, dim);
    return b_reshape(b, b_cat(b, 2, place, 1), 4, b->call->in[1].type.dims);
}

term decompose_deform_conv_backward(struct build *b)
{
    const struct op_type *y = &b->call->in[5].type;
    struct deform d = deform_of(b, y->dims);
    int64_t outputs = d.w[0] / d.attrs->groups;
    const int64_t samples[3] = {d.s.items, d.s.channels, d.s.points};
    term grad = b_reshape(b, b_in(b, 5), 4,
                          (const int64_t[]){y->dims[0], d.attrs->groups, outputs, d.windows});
    term reach = b_reshape(b, b_matmul(b, b_swap_last(b, d.w_rows), grad), 3, samples), dw;

    dw = b_matmul(b, grad, b_swap_last(b, d.columns));
    b->also[2] = b_reshape(b, sum_over(b, dw, 0), 4, d.w);
    if (b->call->wanted & 1u << 3)
        b->also[3] =
            b_reshape(b, sum_over(b, b_mul(b, reach, d.sampled), 1), 4, b->call->in[3].type.dims);
    if (b->call->wanted & 1u << 4) {
        const frit_axes but_channels = {.count = 3, .axis = {0, 2, 3}};

        b->also[4] = b_reduce(b, FRIT_OP_sum, b_in(b, 5), &but_channels, false);
    }
    if (b_has(b, 3))
        reach = b_mul(b, reach, d.mask);
    b->also[1] = gradient_offset(b, &d, reach);
    return gradient_x(b, &d, reach);
}
