/* SPDX-License-Identifier: Apache-2.0 */
/* deform_conv and its gradients.  Each tap of each window reads x at a point of its own: the tap's
 * place plus an offset, between four elements of x.  Outside of x there are zeros.
 *
 * The offsets of a tap are two channels, first down, then right; channels of x share them by offset
 * group. */
#include <math.h>

#include "rows.h"

enum { CORNERS = 4 };

struct deform {
    struct view x, offset, w, mask, y; /* data of mask NULL: none; y: the gradient going back */
    const frit_attrs_deform *attrs;
    int64_t groups, offset_groups;
    /* Sums: the result, or the gradients. */
    struct view out, dx, doffset, dw, dmask;
};

/* One tap of one window in one channel of x. */
struct tap {
    int64_t item, channel;
    int64_t row, column; /* of the window in y */
    int64_t i, j;        /* of the tap in w */
};

/* An element of x around a point, its share, and how the share grows as the point moves. */
struct corner {
    int64_t row, column;
    double share, by_row, by_column;
};

static int64_t at4(const struct view *view, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a * view->strides[0] + b * view->strides[1] + c * view->strides[2] +
           d * view->strides[3];
}

static double get4(const struct view *view, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return value_get(view->dtype, view->data + at4(view, a, b, c, d)).real;
}

/* Adds to an element of a sum of doubles; nothing where the sum is not wanted. */
static void add4(const struct view *sum, const int64_t at[4], double value)
{
    char *to;
    union value old;

    if (!sum->data)
        return;
    to = sum->data + at4(sum, at[0], at[1], at[2], at[3]);
    old = value_get(sum->dtype, to);
    old.real += value;
    value_put(sum->dtype, to, old);
}

/* The channel of the mask that belongs to a tap; those of its offsets are twice it and the next. */
static int64_t mask_channel(const struct deform *d, const struct tap *tap)
{
    int64_t group = tap->channel / (d->x.dims[1] / d->offset_groups);

    return (group * d->w.dims[2] + tap->i) * d->w.dims[3] + tap->j;
}

static double mask_of(const struct deform *d, const struct tap *tap)
{
    return d->mask.data ? get4(&d->mask, tap->item, mask_channel(d, tap), tap->row, tap->column)
                        : 1;
}

/* Coordinate `axis` of the point, 0: down, 1: right. */
static double coordinate(const struct deform *d, const struct tap *tap, int axis)
{
    int64_t place = axis == 0 ? tap->row : tap->column, step = axis == 0 ? tap->i : tap->j;
    int64_t at =
        place * d->attrs->stride[axis] - d->attrs->padding[axis] + step * d->attrs->dilation[axis];

    return (double)at +
           get4(&d->offset, tap->item, 2 * mask_channel(d, tap) + axis, tap->row, tap->column);
}

/* The elements of x around the tap's point; returns how many there are. */
static int corners_of(const struct deform *d, const struct tap *tap, struct corner *corner)
{
    double row = coordinate(d, tap, 0), column = coordinate(d, tap, 1);
    double down = row - floor(row), right = column - floor(column);
    int64_t height = d->x.dims[2], width = d->x.dims[3];
    int n = 0;

    if (!(row >= -1 && row < (double)height && column >= -1 && column < (double)width))
        return 0;
    for (int k = 0; k < CORNERS; k++) {
        int lower = k / 2, later = k % 2;
        double by_row = lower ? down : 1 - down, by_column = later ? right : 1 - right;
        int64_t r = (int64_t)floor(row) + lower, c = (int64_t)floor(column) + later;

        if (r < 0 || r >= height || c < 0 || c >= width)
            continue;
        corner[n++] = (struct corner){r, c, by_row * by_column, lower ? by_column : -by_column,
                                      later ? by_row : -by_row};
    }
    return n;
}

static double sample(const struct deform *d, const struct tap *tap, const struct corner *corner,
                     int n)
{
    double sum = 0;

    for (int k = 0; k < n; k++)
        sum +=
            corner[k].share * get4(&d->x, tap->item, tap->channel, corner[k].row, corner[k].column);
    return sum;
}

/* The output channels that see the tap's channel: first..first + count - 1. */
static int64_t outputs_of(const struct deform *d, const struct tap *tap, int64_t *count)
{
    *count = d->w.dims[0] / d->groups;
    return tap->channel / (d->x.dims[1] / d->groups) * *count;
}

static void forward(const struct deform *d, const struct tap *tap)
{
    struct corner corner[CORNERS];
    int n = corners_of(d, tap, corner);
    double value = mask_of(d, tap) * sample(d, tap, corner, n);
    int64_t count, first = outputs_of(d, tap, &count), channel = tap->channel % d->w.dims[1];

    for (int64_t o = first; o < first + count; o++)
        add4(&d->out, (const int64_t[]){tap->item, o, tap->row, tap->column},
             value * get4(&d->w, o, channel, tap->i, tap->j));
}

/* What reaches the masked sample from all outputs goes on to the sample, its mask and its point. */
static void backward(const struct deform *d, const struct tap *tap)
{
    struct corner corner[CORNERS];
    int n = corners_of(d, tap, corner);
    double mask = mask_of(d, tap), value = sample(d, tap, corner, n), reach = 0;
    int64_t count, first = outputs_of(d, tap, &count), channel = tap->channel % d->w.dims[1];
    int64_t at = mask_channel(d, tap);

    for (int64_t o = first; o < first + count; o++) {
        double grad = get4(&d->y, tap->item, o, tap->row, tap->column);

        reach += grad * get4(&d->w, o, channel, tap->i, tap->j);
        add4(&d->dw, (const int64_t[]){o, channel, tap->i, tap->j}, grad * mask * value);
    }
    add4(&d->dmask, (const int64_t[]){tap->item, at, tap->row, tap->column}, reach * value);
    reach *= mask;
    for (int k = 0; k < n; k++) {
        double x = get4(&d->x, tap->item, tap->channel, corner[k].row, corner[k].column);

        add4(&d->dx, (const int64_t[]){tap->item, tap->channel, corner[k].row, corner[k].column},
             reach * corner[k].share);
        add4(&d->doffset, (const int64_t[]){tap->item, 2 * at, tap->row, tap->column},
             reach * x * corner[k].by_row);
        add4(&d->doffset, (const int64_t[]){tap->item, 2 * at + 1, tap->row, tap->column},
             reach * x * corner[k].by_column);
    }
}

static void each_tap(const struct deform *d,
                     void (*use)(const struct deform *d, const struct tap *tap), struct tap *tap)
{
    for (tap->i = 0; tap->i < d->w.dims[2]; tap->i++)
        for (tap->j = 0; tap->j < d->w.dims[3]; tap->j++)
            use(d, tap);
}

static void deform_run(const struct deform *d,
                       void (*use)(const struct deform *d, const struct tap *tap))
{
    struct tap tap;

    for (tap.item = 0; tap.item < d->x.dims[0]; tap.item++)
        for (tap.channel = 0; tap.channel < d->x.dims[1]; tap.channel++)
            for (tap.row = 0; tap.row < d->offset.dims[2]; tap.row++)
                for (tap.column = 0; tap.column < d->offset.dims[3]; tap.column++)
                    each_tap(d, use, &tap);
}

static struct deform deform_of(const struct call *call)
{
    const frit_attrs_deform *attrs = call_attrs(call);

    return (struct deform){.x = call_in(call, 0),
                           .offset = call_in(call, 1),
                           .w = call_in(call, 2),
                           .mask = call_in(call, 3),
                           .attrs = attrs,
                           .groups = attrs->groups ? attrs->groups : 1,
                           .offset_groups = attrs->offset_groups ? attrs->offset_groups : 1};
}

void ref_deform_conv(const struct call *call)
{
    struct deform d = deform_of(call);
    struct view bias = call_in(call, 4);

    d.out = call_sums(call, 0);
    if (bias.data) {
        struct view channels = {.data = bias.data,
                                .dtype = bias.dtype,
                                .rank = 3,
                                .dims = {bias.dims[0], 1, 1},
                                .strides = {bias.strides[0]}};

        view_convert(&d.out, &channels);
    }
    deform_run(&d, forward);
    call_round(call, 0, &d.out);
}

/* The bias reaches every element of its channel. */
static void sum_channels(const struct view *sums, const struct view *grad)
{
    for (int64_t c = 0; c < grad->dims[1]; c++) {
        union value sum = {.real = 0};

        for (int64_t item = 0; item < grad->dims[0]; item++)
            for (int64_t row = 0; row < grad->dims[2]; row++)
                for (int64_t column = 0; column < grad->dims[3]; column++)
                    sum.real += get4(grad, item, c, row, column);
        value_put(sums->dtype, sums->data + c * sums->strides[0], sum);
    }
}

void ref_deform_conv_backward(const struct call *call)
{
    struct deform d = deform_of(call);
    struct view dbias = call_sums(call, 4);

    d.y = call_in(call, 5);
    d.dx = call_sums(call, 0);
    d.doffset = call_sums(call, 1);
    d.dw = call_sums(call, 2);
    d.dmask = call_sums(call, 3);
    deform_run(&d, backward);
    if (dbias.data)
        sum_channels(&dbias, &d.y);
    call_round(call, 0, &d.dx);
    call_round(call, 1, &d.doffset);
    call_round(call, 2, &d.dw);
    call_round(call, 3, &d.dmask);
    call_round(call, 4, &dbias);
}
