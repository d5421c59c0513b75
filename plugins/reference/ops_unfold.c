/* SPDX-License-Identifier: Apache-2.0 */
/* unfold4d: windows as columns.  A column's elements are ordered by channel, then by tap; columns
 * by place, row after row. */
#include "rows.h"
#include "window.h"

/* One tap of one channel at all places. */
static void unfold_tap(const struct window *window, const struct view *x, const struct view *y,
                       const int64_t tap[2])
{
    const struct window_dim *high = &window->dim[1], *wide = &window->dim[2];
    int64_t size = value_size(x->dtype);

    for (int64_t row = 0; row < high->y_extent; row++)
        for (int64_t column = 0; column < wide->y_extent; column++) {
            int64_t i = window_at(high, row, tap[0]), j = window_at(wide, column, tap[1]);
            char *to = y->data + (row * wide->y_extent + column) * y->strides[0];

            if (i >= 0 && i < high->x_extent && j >= 0 && j < wide->x_extent)
                value_move(size, to, 0, x->data + i * x->strides[0] + j * x->strides[1], 0, 1);
            else
                value_put(y->dtype, to, (union value){.real = 0});
        }
}

/* How often a window of this span fits. */
static int64_t places(int64_t extent, int64_t kernel, const frit_attrs_window *attrs, int d)
{
    int64_t span = (kernel - 1) * attrs->dilation[d] + 1;

    return (extent + 2 * attrs->padding[d] - span) / attrs->stride[d] + 1;
}

void ref_unfold4d(const struct call *call)
{
    const frit_attrs_window *attrs = call_attrs(call);
    const struct view x = call_in(call, 0), y = call_out(call, 0);
    struct view plane = view_tail(&x, 2), line = view_tail(&y, 2), image = x;
    struct window window;
    int64_t tap[2];

    for (int d = 0; d < 2; d++)
        image.dims[2 + d] = places(x.dims[2 + d], attrs->kernel[d], attrs, d);
    window_init(&window, &x, &image,
                &(const struct window_attrs){attrs->kernel, attrs->stride, attrs->padding,
                                             attrs->dilation});
    for (int64_t n = 0; n < x.dims[0]; n++)
        for (int64_t c = 0; c < x.dims[1]; c++) {
            int64_t element = c * attrs->kernel[0] * attrs->kernel[1];

            plane.data = x.data + n * x.strides[0] + c * x.strides[1];
            for (tap[0] = 0; tap[0] < attrs->kernel[0]; tap[0]++)
                for (tap[1] = 0; tap[1] < attrs->kernel[1]; tap[1]++, element++) {
                    line.data = y.data + n * y.strides[0] + element * y.strides[1];
                    unfold_tap(&window, &plane, &line, tap);
                }
        }
}
