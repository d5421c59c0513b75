/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution, the gradients of both kinds, and windows as columns.
 *
 * Of a convolution y = x * w each side follows from the other two by a convolution again: x from y
 * with its elements drawn apart by the stride, over the flipped w; w from x, over which y slides
 * with stride and dilation in each other's place. */
#include <string.h>

#include "graph/decompose/build.h"

enum { SPATIAL = 3 };

/* The convolution, whichever of its sides is looked for. */
struct geometry {
    uint32_t rank; /* of all sides */
    const int64_t *stride, *padding, *dilation;
    int64_t groups;
    const int64_t *x, *w, *y; /* dims */
};

static const int64_t *dims_of(const struct build *b, uint32_t index)
{
    return b->call->in[index].type.dims;
}

/* Elements of x that a window spans. */
static int64_t span(const struct geometry *g, uint32_t i)
{
    return (g->w[2 + i] - 1) * g->dilation[i] + 1;
}

/* `head` and then the spatial dims of `dims`. */
static term reshape_head(struct build *b, term x, uint32_t n, const int64_t *head,
                         const int64_t *spatial, uint32_t n_spatial)
{
    int64_t dims[2 * SPATIAL];

    memcpy(dims, head, n * sizeof(dims[0]));
    memcpy(dims + n, spatial, n_spatial * sizeof(dims[0]));
    return b_reshape(b, x, n + n_spatial, dims);
}

/* The first n dims in another order. */
static term permute_head(struct build *b, term x, uint32_t n, const int64_t *head)
{
    int64_t order[FRIT_MAX_RANK];

    for (uint32_t i = 0; i < FRIT_MAX_RANK; i++)
        order[i] = i < n ? head[i] : i;
    return b_permute(b, x, order);
}

static term flip_spatial(struct build *b, term x, uint32_t spatial)
{
    frit_attrs_axes attrs = {.struct_size = sizeof(attrs), .axes = {.count = spatial}};

    for (uint32_t i = 0; i < spatial; i++)
        attrs.axes.axis[i] = 2 + i;
    return b_op(b, FRIT_OP_flip, 1, &x, &attrs);
}

/* w [o, c / groups, ..] as [c, o / groups, ..]: inputs and outputs swapped inside of each group. */
static term swap_channels(struct build *b, const struct geometry *g, term w)
{
    uint32_t spatial = g->rank - 2;
    int64_t outputs = g->w[0] / g->groups, inputs = g->w[1];

    w = reshape_head(b, w, 3, (const int64_t[]){g->groups, outputs, inputs}, g->w + 2, spatial);
    w = permute_head(b, w, 3, (const int64_t[]){0, 2, 1});
    return reshape_head(b, w, 2, (const int64_t[]){g->groups * inputs, outputs}, g->w + 2, spatial);
}

/* `bias`, absent or not, is added to every channel of x. */
static term conv_x(struct build *b, const struct geometry *g, term w, term y, term bias)
{
    frit_attrs_conv attrs = {.struct_size = sizeof(attrs), .groups = g->groups};
    int64_t low[2 + SPATIAL] = {0}, high[2 + SPATIAL] = {0}, inner[2 + SPATIAL] = {0};
    uint32_t spatial = g->rank - 2;

    for (uint32_t i = 0; i < spatial; i++) {
        int64_t apart = (g->y[2 + i] - 1) * g->stride[i] + 1;

        inner[2 + i] = g->stride[i] - 1;
        low[2 + i] = span(g, i) - 1 - g->padding[i];
        high[2 + i] = g->x[2 + i] + span(g, i) - 1 - low[2 + i] - apart;
        attrs.dilation[i] = g->dilation[i];
    }
    y = b_pad(b, y, low, high, inner);
    w = flip_spatial(b, swap_channels(b, g, w), spatial);
    return b_op(b, FRIT_OP_conv, 3, (const term[]){y, w, bias}, &attrs);
}

/* The items are summed over, so they stand where a convolution has its channels.  What is left of
 * the last stride makes the result longer than the window. */
static term conv_w(struct build *b, const struct geometry *g, term x, term y)
{
    frit_attrs_conv attrs = {.struct_size = sizeof(attrs), .groups = g->groups};
    uint32_t spatial = g->rank - 2;
    int64_t items = g->x[0], inputs = g->w[1];
    term w;

    x = reshape_head(b, x, 3, (const int64_t[]){items, g->groups, inputs}, g->x + 2, spatial);
    x = permute_head(b, x, 3, (const int64_t[]){2, 1, 0});
    x = reshape_head(b, x, 2, (const int64_t[]){inputs, g->groups * items}, g->x + 2, spatial);
    y = permute_head(b, y, 2, (const int64_t[]){1, 0});
    for (uint32_t i = 0; i < spatial; i++) {
        attrs.stride[i] = g->dilation[i];
        attrs.padding[i] = g->padding[i];
        attrs.dilation[i] = g->stride[i];
    }
    w = b_op(b, FRIT_OP_conv, 3, (const term[]){x, y, {0}}, &attrs);
    for (uint32_t i = 0; i < spatial; i++)
        w = b_slice(b, w, 2 + i, 0, g->w[2 + i]);
    return permute_head(b, w, 2, (const int64_t[]){1, 0});
}

/* ---- conv ---- */

static struct geometry of_conv(const struct build *b)
{
    const frit_attrs_conv *a = b->call->attrs;

    return (struct geometry){.rank = b->out.rank,
                             .stride = a->stride,
                             .padding = a->padding,
                             .dilation = a->dilation,
                             .groups = a->groups,
                             .x = dims_of(b, 0),
                             .w = dims_of(b, 1),
                             .y = dims_of(b, 2)};
}

term decompose_conv_backward_x(struct build *b)
{
    const struct geometry g = of_conv(b);

    return conv_x(b, &g, b_in(b, 1), b_in(b, 2), (term){0});
}

term decompose_conv_backward_w(struct build *b)
{
    const struct geometry g = of_conv(b);

    return conv_w(b, &g, b_in(b, 0), b_in(b, 2));
}

/* The windows as columns, which the weights are multiplied with: of two spatial dims, in one group.
 */
term decompose_conv_as_product(struct build *b)
{
    const frit_attrs_conv *a = b->call->attrs;
    const int64_t *w = dims_of(b, 1);
    const int64_t inputs = w[1] * w[2] * w[3];
    const frit_attrs_window window = {.struct_size = sizeof(window),
                                      .kernel = {w[2], w[3]},
                                      .stride = {a->stride[0], a->stride[1]},
                                      .padding = {a->padding[0], a->padding[1]},
                                      .dilation = {a->dilation[0], a->dilation[1]}};
    const term x = b_in(b, 0);
    term y = b_op(b, FRIT_OP_unfold4d, 1, &x, &window);

    y = b_matmul(b, b_reshape(b, b_in(b, 1), 2, (const int64_t[]){w[0], inputs}), y);
    if (b_has(b, 2))
        y = b_add(b, y, b_reshape(b, b_in(b, 2), 2, (const int64_t[]){w[0], 1}));
    return b_reshape(b, y, b->out.rank, b->out.dims);
}

/* ---- conv_transpose: its x is the convolution's y, its result the convolution's x ---- */

static struct geometry of_transpose(const struct build *b, const int64_t *x)
{
    const frit_attrs_conv_transpose *a = b->call->attrs;

    return (struct geometry){.rank = b->out.rank,
                             .stride = a->stride,
                             .padding = a->padding,
                             .dilation = a->dilation,
                             .groups = a->groups,
                             .x = x,
                             .w = dims_of(b, 1),
                             .y = dims_of(b, 0)};
}

term decompose_conv_transpose(struct build *b)
{
    const struct geometry g = of_transpose(b, b->out.dims);

    return conv_x(b, &g, b_in(b, 1), b_in(b, 0), b_in(b, 2));
}

term decompose_conv_transpose_backward_w(struct build *b)
{
    const struct geometry g = of_transpose(b, dims_of(b, 2));

    return conv_w(b, &g, b_in(b, 2), b_in(b, 0));
}

/* ---- windows as columns ---- */

/* Windows along an axis become the last dim: every dilation-th of the elements they span. */
static term windows(struct build *b, term x, uint32_t axis, int64_t step, const int64_t reach[2])
{
    const frit_attrs_unfold attrs = {
        .struct_size = sizeof(attrs), .axis = axis, .size = reach[0], .step = step};
    frit_attrs_slice every = {.struct_size = sizeof(every)};

    x = b_op(b, FRIT_OP_unfold, 1, &x, &attrs);
    every.slices.count = b_type(b, x).rank;
    if (every.slices.count)
        every.slices.dim[every.slices.count - 1] = (frit_range){0, reach[0], reach[1]};
    return b_op(b, FRIT_OP_slice, 1, &x, &every);
}

term decompose_unfold4d(struct build *b)
{
    const frit_attrs_window *a = b->call->attrs;
    const int64_t padding[4] = {0, 0, a->padding[0], a->padding[1]};
    term x = b_pad(b, b_in(b, 0), padding, padding, NULL);

    for (uint32_t i = 0; i < 2; i++)
        x = windows(b, x, 2 + i, a->stride[i],
                    (const int64_t[]){(a->kernel[i] - 1) * a->dilation[i] + 1, a->dilation[i]});
    x = b_permute(b, x, (const int64_t[]){0, 1, 4, 5, 2, 3});
    return b_reshape(b, x, 3, b->out.dims);
}
