/* SPDX-License-Identifier: Apache-2.0 */
/* Reading planes at points between their elements, as core ops.
 *
 * Along each of the two dims a point has some neighbours, its taps; what a point reads are the
 * elements at all pairs of them.  Tables are [items, points, taps] for one dim and
 * [items, 1, points, taps * taps] for both. */
#ifndef GRAPH_DECOMPOSE_SAMPLE_H
#define GRAPH_DECOMPOSE_SAMPLE_H

#include "graph/decompose/build.h"

struct sampling {
    int64_t mode, border; /* FRIT_CHOICE_resample_*, FRIT_CHOICE_border_* */
    bool align_corners;   /* where reflection mirrors */
    int64_t items, channels, points;
    int64_t extent[2]; /* rows, columns of a plane */
};

/* Neighbours along one dim. */
struct sample_line {
    term index;  /* i64, within the plane */
    term weight; /* absent: 1 */
    term there;  /* bool; absent: all of them */
};

/* Of the points at places `at` [items, points, 1] along a dim, 0: down, 1: right. */
struct sample_line sample_line(struct build *b, const struct sampling *s, term at, int dim);

/* What tables of both dims give together. */
term sample_pairs(struct build *b, const struct sampling *s,
                  term (*join)(struct build *b, term x, term y), term rows, term columns);
/* The numbers of the elements in a plane of one dim, for every channel: [items, channels, points *
 * pairs].  For writing, -1 where an element is not there; else the nearest. */
term sample_index(struct build *b, const struct sampling *s, const struct sample_line line[2],
                  bool writing);
/* The elements of `x`, whose planes are items * channels; those that are not there are 0:
 * [items, channels, points, pairs]. */
term sample_values(struct build *b, const struct sampling *s, term x,
                   const struct sample_line line[2]);
/* Their weighted sum: [items, channels, points]. */
term sample_sum(struct build *b, const struct sampling *s, term values,
                const struct sample_line line[2]);

#endif
