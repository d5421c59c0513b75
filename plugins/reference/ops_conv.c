/* SPDX-License-Identifier: Apache-2.0 */
/* conv: a row of the result after another; each weight is taken once per row and meets the row's
 * places in x.  Padding is multiplied too, which matters where a weight is infinite or NaN. */
#include <math.h>

#include "rows.h"
#include "window.h"

struct conv {
    struct view x, w, bias, y;
    struct window window;
    int64_t w_stride[WINDOW_DIMS]; /* of w along the spatial dims */
    int64_t channels;              /* of w: those of one group */
    int64_t group_outputs;
    bool all_finite; /* weights: padding adds nothing to sums */
};

/* A region of a row of y, beginning at place `first`. */
struct region {
    int64_t first, n;
    double sums[VALUE_LANES];
};

/* Places p of first..first + n - 1 at which the tap lies in x. */
static void places_of_tap(const struct window_dim *dim, int64_t tap, const struct region *region,
                          int64_t *begin, int64_t *end)
{
    int64_t shift = window_at(dim, 0, tap), last = dim->x_extent - 1 - shift;

    *begin = shift < 0 ? (-shift + dim->stride - 1) / dim->stride : 0;
    *end = last < 0 ? 0 : last / dim->stride + 1;
    if (*begin < region->first)
        *begin = region->first;
    if (*end > region->first + region->n)
        *end = region->first + region->n;
}

/* One row of weights over one row of x. */
static void add_row(const struct conv *conv, struct region *region, const char *x, const char *w)
{
    const struct window_dim *dim = &conv->window.dim[WINDOW_DIMS - 1];
    union value lanes[VALUE_LANES];

    for (int64_t tap = 0; tap < dim->kernel; tap++) {
        double weight = value_get(conv->w.dtype, w + tap * conv->w_stride[WINDOW_DIMS - 1]).real;
        int64_t begin, end;

        places_of_tap(dim, tap, region, &begin, &end);
        if (begin >= end)
            continue;
        value_load(conv->x.dtype, x + window_at(dim, begin, tap) * dim->x_stride,
                   dim->stride * dim->x_stride, end - begin, lanes);
        for (int64_t i = begin; i < end; i++)
            region->sums[i - region->first] += weight * lanes[i - begin].real;
    }
}

/* The products of a row of weights with padding: all of the region, or where the row lies in x what
 * lies beside it. */
static void add_padding(const struct conv *conv, struct region *region, const char *w, bool in_x)
{
    const struct window_dim *dim = &conv->window.dim[WINDOW_DIMS - 1];

    for (int64_t tap = 0; tap < dim->kernel; tap++) {
        double weight = value_get(conv->w.dtype, w + tap * conv->w_stride[WINDOW_DIMS - 1]).real;
        int64_t begin = 0, end = 0;

        if (in_x)
            places_of_tap(dim, tap, region, &begin, &end);
        for (int64_t i = region->first; i < region->first + region->n; i++)
            if (i < begin || i >= end)
                region->sums[i - region->first] += weight * 0;
    }
}

/* The products of one output channel's weights with padding; w points at the first channel. */
static void add_paddings(const struct conv *conv, struct region *region, const int64_t place[2],
                         const char *w)
{
    const struct window_dim *deep = &conv->window.dim[0], *high = &conv->window.dim[1];
    struct window_taps d = window_taps(deep, place[0]), h = window_taps(high, place[1]);

    for (int64_t c = 0; c < conv->channels; c++, w += conv->w.strides[1])
        for (int64_t i = 0; i < deep->kernel; i++)
            for (int64_t j = 0; j < high->kernel; j++)
                add_padding(conv, region, w + i * conv->w_stride[0] + j * conv->w_stride[1],
                            i >= d.first && i < d.end && j >= h.first && j < h.end);
}

/* All weights of one output channel over the region; x and w point at the first channel. */
static void add_channels(const struct conv *conv, struct region *region, const int64_t place[2],
                         const char *x, const char *w)
{
    const struct window_dim *deep = &conv->window.dim[0], *high = &conv->window.dim[1];
    struct window_taps d = window_taps(deep, place[0]), h = window_taps(high, place[1]);

    for (int64_t c = 0; c < conv->channels; c++, x += conv->x.strides[1], w += conv->w.strides[1])
        for (int64_t i = d.first; i < d.end; i++)
            for (int64_t j = h.first; j < h.end; j++)
                add_row(conv, region,
                        x + window_at(deep, place[0], i) * deep->x_stride +
                            window_at(high, place[1], j) * high->x_stride,
                        w + i * conv->w_stride[0] + j * conv->w_stride[1]);
}

static void conv_row(const struct conv *conv, int64_t item, int64_t output, const int64_t place[2])
{
    const struct window_dim *dim = conv->window.dim;
    const char *x = conv->x.data + item * conv->x.strides[0] +
                    output / conv->group_outputs * conv->channels * conv->x.strides[1];
    const char *w = conv->w.data + output * conv->w.strides[0];
    char *y = conv->y.data + item * conv->y.strides[0] + output * conv->y.strides[1] +
              place[0] * dim[0].y_stride + place[1] * dim[1].y_stride;
    double bias = 0;
    struct region region;

    if (conv->bias.data)
        bias = value_get(conv->bias.dtype, conv->bias.data + output * conv->bias.strides[0]).real;
    for (region.first = 0; region.first < dim[2].y_extent; region.first += region.n) {
        int64_t left = dim[2].y_extent - region.first;

        region.n = left < VALUE_LANES ? left : VALUE_LANES;
        for (int64_t i = 0; i < region.n; i++)
            region.sums[i] = bias;
        add_channels(conv, &region, place, x, w);
        if (!conv->all_finite)
            add_paddings(conv, &region, place, w);
        for (int64_t i = 0; i < region.n; i++)
            value_put(conv->y.dtype, y + (region.first + i) * dim[2].y_stride,
                      (union value){.real = region.sums[i]});
    }
}

static bool is_all_finite(const struct conv *conv)
{
    const int64_t *kernel = (const int64_t[]){
        conv->window.dim[0].kernel, conv->window.dim[1].kernel, conv->window.dim[2].kernel};
    int64_t taps = kernel[0] * kernel[1] * kernel[2];

    for (int64_t o = 0; o < conv->w.dims[0]; o++)
        for (int64_t c = 0; c < conv->channels; c++)
            for (int64_t t = 0; t < taps; t++) {
                const char *w = conv->w.data + o * conv->w.strides[0] + c * conv->w.strides[1] +
                                t / kernel[2] / kernel[1] * conv->w_stride[0] +
                                t / kernel[2] % kernel[1] * conv->w_stride[1] +
                                t % kernel[2] * conv->w_stride[2];

                if (!isfinite(value_get(conv->w.dtype, w).real))
                    return false;
            }
    return true;
}

static void conv_init(struct conv *conv, const struct call *call)
{
    const frit_attrs_conv *attrs = call_attrs(call);
    int64_t groups = attrs->groups ? attrs->groups : 1;
    uint32_t missing;

    conv->x = call_in(call, 0);
    conv->w = call_in(call, 1);
    conv->bias = call_in(call, 2);
    conv->y = call_out(call, 0);
    window_init(&conv->window, &conv->x, &conv->y,
                &(const struct window_attrs){conv->w.dims + 2, attrs->stride, attrs->padding,
                                             attrs->dilation});
    missing = WINDOW_DIMS + 2 - conv->w.rank;
    for (uint32_t d = 0; d < WINDOW_DIMS; d++)
        conv->w_stride[d] = d < missing ? 0 : conv->w.strides[d - missing + 2];
    conv->channels = conv->w.dims[1];
    conv->group_outputs = conv->w.dims[0] / groups;
    conv->all_finite = is_all_finite(conv);
}

void ref_conv(const struct call *call)
{
    struct conv conv;
    int64_t place[2];

    conv_init(&conv, call);
    for (int64_t item = 0; item < conv.y.dims[0]; item++)
        for (int64_t output = 0; output < conv.y.dims[1]; output++)
            for (place[0] = 0; place[0] < conv.window.dim[0].y_extent; place[0]++)
                for (place[1] = 0; place[1] < conv.window.dim[1].y_extent; place[1]++)
                    conv_row(&conv, item, output, place);
}
