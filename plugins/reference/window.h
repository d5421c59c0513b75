/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over spatial dims: what convolution and pooling have in common.
 *
 * One and two spatial dims are seen as three, the missing ones with extent 1 in front. */
#ifndef WINDOW_H
#define WINDOW_H

#include "call.h"

enum { WINDOW_DIMS = 3 };

/* One spatial dim. */
struct window_dim {
    int64_t x_extent, y_extent, kernel;
    int64_t stride, padding, dilation;
    int64_t x_stride, y_stride; /* in bytes */
};

struct window {
    struct window_dim dim[WINDOW_DIMS];
};

/* The attributes of a row, entry i for spatial dim i; dilation NULL: 1. */
struct window_attrs {
    const int64_t *kernel, *stride, *padding, *dilation;
};

/* Of x and y, both [n, c, ..spatial]. */
void window_init(struct window *window, const struct view *x, const struct view *y,
                 const struct window_attrs *attrs);

/* The taps of the window at `place` of y that lie in x: first..end - 1 of 0..kernel - 1.  Their
 * place in x is window_at(first) and so on by dilation. */
struct window_taps {
    int64_t first, end;
};
struct window_taps window_taps(const struct window_dim *dim, int64_t place);
/* Where in x the tap lies. */
int64_t window_at(const struct window_dim *dim, int64_t place, int64_t tap);
/* Elements of an undilated window, those in the padding too; a window that reaches beyond the
 * padding ends with it. */
int64_t window_padded(const struct window_dim *dim, int64_t place);

#endif
