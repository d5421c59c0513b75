/* SPDX-License-Identifier: Apache-2.0 */
/* Tap t of the window at place p lies at p * stride - padding + t * dilation. */
#include "window.h"

void window_init(struct window *window, const struct view *x, const struct view *y,
                 const struct window_attrs *attrs)
{
    uint32_t missing = WINDOW_DIMS + 2 - x->rank;

    for (uint32_t d = 0; d < missing; d++)
        window->dim[d] = (struct window_dim){
            .x_extent = 1, .y_extent = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (uint32_t i = 0; i + missing < WINDOW_DIMS; i++)
        window->dim[i + missing] = (struct window_dim){
            .x_extent = x->dims[i + 2],
            .y_extent = y->dims[i + 2],
            .kernel = attrs->kernel[i],
            .stride = attrs->stride[i],
            .padding = attrs->padding[i],
            .dilation = attrs->dilation ? attrs->dilation[i] : 1,
            .x_stride = x->strides[i + 2],
            .y_stride = y->strides[i + 2],
        };
}

int64_t window_at(const struct window_dim *dim, int64_t place, int64_t tap)
{
    return place * dim->stride - dim->padding + tap * dim->dilation;
}

struct window_taps window_taps(const struct window_dim *dim, int64_t place)
{
    int64_t start = window_at(dim, place, 0), left = dim->x_extent - start;
    struct window_taps taps = {0, left > 0 ? (left + dim->dilation - 1) / dim->dilation : 0};

    if (start < 0)
        taps.first = (-start + dim->dilation - 1) / dim->dilation;
    if (taps.end > dim->kernel)
        taps.end = dim->kernel;
    return taps;
}

int64_t window_padded(const struct window_dim *dim, int64_t place)
{
    int64_t start = window_at(dim, place, 0), end = dim->x_extent + dim->padding;

    return start + dim->kernel < end ? dim->kernel : end - start;
}
