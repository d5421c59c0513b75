/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of conv, and conv_transpose with its own.  A convolution y = x * w is a set of triples
 * (element of x, element of w, element of y), the same for all of these rows: each adds the product
 * of two of the three to the third. */
#include "rows.h"
#include "window.h"

enum { SIDE_X, SIDE_W, SIDE_Y, SIDES };

struct triples {
    struct view side[SIDES]; /* of the convolution; the one that is summed up holds doubles */
    int sum;                 /* which one that is */
    struct window window;
    int64_t w_stride[WINDOW_DIMS]; /* of w along the spatial dims */
    int64_t groups;
};

/* Where the three elements of a triple lie, in bytes. */
struct triple {
    int64_t at[SIDES];
};

static void add_product(const struct triples *t, const struct triple *triple)
{
    double product = 1;
    union value sum;
    char *to = NULL;

    for (int k = 0; k < SIDES; k++) {
        char *element = t->side[k].data + triple->at[k];

        if (k == t->sum)
            to = element;
        else
            product *= value_get(t->side[k].dtype, element).real;
    }
    sum = value_get(t->side[t->sum].dtype, to);
    sum.real += product;
    value_put(t->side[t->sum].dtype, to, sum);
}

/* All taps of one window; `triple` is at the first element of each plane. */
static void add_window(const struct triples *t, struct triple triple, const int64_t *place)
{
    const struct window_dim *dim = t->window.dim;
    struct window_taps taps[WINDOW_DIMS];
    struct triple at = triple;

    for (int d = 0; d < WINDOW_DIMS; d++) {
        taps[d] = window_taps(&dim[d], place[d]);
        triple.at[SIDE_Y] += place[d] * dim[d].y_stride;
    }
    at.at[SIDE_Y] = triple.at[SIDE_Y];
    for (int64_t i = taps[0].first; i < taps[0].end; i++)
        for (int64_t j = taps[1].first; j < taps[1].end; j++)
            for (int64_t k = taps[2].first; k < taps[2].end; k++) {
                at.at[SIDE_X] = triple.at[SIDE_X] +
                                window_at(&dim[0], place[0], i) * dim[0].x_stride +
                                window_at(&dim[1], place[1], j) * dim[1].x_stride +
                                window_at(&dim[2], place[2], k) * dim[2].x_stride;
                at.at[SIDE_W] = triple.at[SIDE_W] + i * t->w_stride[0] + j * t->w_stride[1] +
                                k * t->w_stride[2];
                add_product(t, &at);
            }
}

static void add_plane(const struct triples *t, const struct triple *triple)
{
    const struct window_dim *dim = t->window.dim;
    int64_t place[WINDOW_DIMS];

    for (place[0] = 0; place[0] < dim[0].y_extent; place[0]++)
        for (place[1] = 0; place[1] < dim[1].y_extent; place[1]++)
            for (place[2] = 0; place[2] < dim[2].y_extent; place[2]++)
                add_window(t, *triple, place);
}

static void add_all(const struct triples *t)
{
    const struct view *x = &t->side[SIDE_X], *w = &t->side[SIDE_W], *y = &t->side[SIDE_Y];
    int64_t channels = w->dims[1], group_outputs = w->dims[0] / t->groups;

    for (int64_t item = 0; item < y->dims[0]; item++)
        for (int64_t output = 0; output < y->dims[1]; output++)
            for (int64_t c = 0; c < channels; c++) {
                int64_t input = output / group_outputs * channels + c;
                const struct triple triple = {{item * x->strides[0] + input * x->strides[1],
                                               output * w->strides[0] + c * w->strides[1],
                                               item * y->strides[0] + output * y->strides[1]}};

                add_plane(t, &triple);
            }
}

/* The sides are given; `attrs` lacks the kernel. */
static void triples_run(struct triples *t, struct window_attrs attrs, int64_t groups)
{
    const struct view *w = &t->side[SIDE_W];
    uint32_t missing = WINDOW_DIMS + 2 - w->rank;

    attrs.kernel = w->dims + 2;
    t->groups = groups ? groups : 1;
    window_init(&t->window, &t->side[SIDE_X], &t->side[SIDE_Y], &attrs);
    for (uint32_t d = 0; d < WINDOW_DIMS; d++)
        t->w_stride[d] = d < missing ? 0 : w->strides[d - missing + 2];
    add_all(t);
}

/* ---- conv: x, w and the gradient by y are operands ---- */

static void conv_backward(const struct call *call, int sum)
{
    const frit_attrs_conv *attrs = call_attrs(call);
    struct triples t = {.side = {call_in(call, 0), call_in(call, 1), call_in(call, 2)}, .sum = sum};

    t.side[sum] = call_sums(call, 0);
    triples_run(&t, (struct window_attrs){NULL, attrs->stride, attrs->padding, attrs->dilation},
                attrs->groups);
    call_round(call, 0, &t.side[sum]);
}

void ref_conv_backward_x(const struct call *call)
{
    conv_backward(call, SIDE_X);
}

void ref_conv_backward_w(const struct call *call)
{
    conv_backward(call, SIDE_W);
}

/* ---- conv_transpose: its x is the convolution's y ---- */

static void transpose_run(const struct call *call, struct triples *t)
{
    const frit_attrs_conv_transpose *attrs = call_attrs(call);

    triples_run(t, (struct window_attrs){NULL, attrs->stride, attrs->padding, attrs->dilation},
                attrs->groups);
    call_round(call, 0, &t->side[t->sum]);
}

void ref_conv_transpose(const struct call *call)
{
    struct triples t = {.side = {call_sums(call, 0), call_in(call, 1), call_in(call, 0)},
                        .sum = SIDE_X};
    struct view bias = call_in(call, 2);

    if (bias.data) { /* per channel, the dim after the items */
        for (uint32_t d = 2; d < t.side[SIDE_X].rank; d++) {
            bias.dims[bias.rank] = 1;
            bias.strides[bias.rank++] = 0;
        }
        view_convert(&t.side[SIDE_X], &bias);
    }
    transpose_run(call, &t);
}

void ref_conv_transpose_backward_w(const struct call *call)
{
    struct triples t = {.side = {call_in(call, 2), call_sums(call, 0), call_in(call, 0)},
                        .sum = SIDE_W};

    transpose_run(call, &t);
}
