/* SPDX-License-Identifier: Apache-2.0 */
/* Elements read at places between them: per spatial dim one or two neighbours with their weights.
 */
#ifndef ONNX_TAPS_H
#define ONNX_TAPS_H

#include "onnx/emit.h"

enum { TAPS_DIMS = 3 };

/* The neighbours of places along one dim; the values broadcast with those of the other dims to
 * [batch, places ..]. */
struct tap_line {
    uint32_t count;
    val *index[2];  /* i64, within the dim */
    val *weight[2]; /* NULL: 1 */
    val *inside[2]; /* false: the element counts as 0; NULL: it is there */
};

/* The nearest neighbour of `at`, halves to even, or the two around it; an index beyond the dim
 * becomes that of its border, and `inside` says so if `zeros`. */
void taps_nearest(struct import_node *n, struct tap_line *line, val *at, int64_t extent,
                  bool zeros);
void taps_linear(struct import_node *n, struct tap_line *line, val *at, int64_t extent, bool zeros);

/* x [batch, channels, spatial dims ..] at the places, as [batch, channels, places]: the sum of the
 * weighted neighbours, or the largest of them. */
val *taps_read(struct import_node *n, val *x, const struct tap_line *lines, bool largest);

#endif
