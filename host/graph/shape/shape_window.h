/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over the spatial dims of x [n, c, ..], for the rules of convolution and pooling. */
#ifndef GRAPH_SHAPE_WINDOW_H
#define GRAPH_SHAPE_WINDOW_H

#include "graph/shape/shape.h"

/* Fills the unset entries of a VEC attribute; entries beyond the spatial dims must be unset. */
frit_status shape_vec(const struct shape_call *s, int64_t *vec, uint32_t spatial, int64_t filler);

/* Elements from the first to the last that a window touches. */
frit_status shape_span(const struct shape_call *s, int64_t kernel, int64_t dilation, int64_t *span);

struct shape_window {
    int64_t stride;
    int64_t padding; /* on both sides */
};

/* How many windows of `span` lie in spatial dim `dim` of operand 0; at least 1, or it fails. */
frit_status shape_windows(const struct shape_call *s, uint32_t dim, int64_t span,
                          const struct shape_window *window, int64_t *count);

#endif
