/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling planes at points between their elements, as core ops.
 *
 * Along each of the two dims a point has some neighbours, its taps; a sample reads the elements at
 * all pairs of a row tap and a column tap.  Tables are [items, points, taps] for one dim and
 * [items, 1, points, taps * taps] for both. */
#ifndef GRAPH_DECOMPOSE_SAMPLE_H
#define GRAPH_DECOMPOSE_SAMPLE_H

#include "graph/decompose/build.h"

struct sampling {
    int64_t mode, border; /* FRIT_CHOICE_resample_*, FRIT_CHOICE_border_* */
    bool align_corners;   /* reflection is about the outer samples; else half a sample beyond */
    int64_t items, channels, points;
    int64_t extent[2]; /* rows, columns of a plane */
};

/* The neighbours (taps) of points along one dim. */
struct sample_line {
    term index;  /* i64, within the plane */
    term weight; /* absent: 1 */
    term there;  /* bool: within the plane; absent: all are */
};

/* The neighbours of points with the coordinates `at` [items, points, 1] along a dim; 0: the row, 1:
 * the column. */
struct sample_line sample_line(struct build *b, const struct sampling *s, term at, int dim);

/* Combines a table of row taps and one of column taps to a table of their pairs, by `join`. */
term sample_pairs(struct build *b, const struct sampling *s,
                  term (*join)(struct build *b, term x, term y), term rows, term columns);
/* The linear index in the plane of every pair, for every channel: [items, channels, points *
 * pairs]. For a pair outside the plane: -1 if `writing`, else the nearest element. */
term sample_index(struct build *b, const struct sampling *s, const struct sample_line line[2],
                  bool writing);
/* The elements of `x` at all pairs, 0 for those outside the plane: [items, channels, points,
 * pairs]. `x` has items * channels planes. */
term sample_values(struct build *b, const struct sampling *s, term x,
                   const struct sample_line line[2]);
/* The samples, which are weighted sums of `values`: [items, channels, points]. */
term sample_sum(struct build *b, const struct sampling *s, term values,
                const struct sample_line line[2]);

#endif
