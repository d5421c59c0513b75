/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of convolutions. */
#ifndef SHAPE_SHAPE_CONV_H
#define SHAPE_SHAPE_CONV_H

#include <stdint.h>

#include <frit/status.h>

struct shape_call;
struct shape_window;

/* Fills the unset entries of a VEC attribute; entries beyond the spatial dims must be unset. */
frit_status shape_vec(const struct shape_call *s, int64_t *vec, uint32_t spatial,
                      int64_t default_value);
/* Elements from the first to the last that a window touches. */
frit_status shape_span(const struct shape_call *s, int64_t kernel, int64_t dilation, int64_t *span);
/* How many windows of `span` lie in spatial dim `dim` of operand 0; at least 1, or it fails. */
frit_status shape_count_windows(const struct shape_call *s, uint32_t dim, int64_t span,
                                const struct shape_window *window, int64_t *count);

#endif
