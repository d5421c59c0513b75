/* SPDX-License-Identifier: Apache-2.0 */
/* The sort schedule, with views before and elementwise ops and views after.
 *
 * A merge sort by ranking: each lane has one element and counts the elements that precede it.  The
 * first phase ranks each element in its run of SORT_RUN elements.  Each further phase merges
 * SORT_WAYS sorted runs: a lane finds its element's rank in each run by binary search.  The last
 * phase stores the results.  Between phases the workspace has, per position of a line, the index of
 * its element and, if keys fit a 32-bit word, the key, so that searches read neighbouring memory.
 * There are two such buffers: a phase reads one and writes the other.
 *
 * The sort is stable: in runs before the element's own, equal elements count; in runs after it they
 * do not.  NaNs are last. */
#ifndef LOWER_SORT_H
#define LOWER_SORT_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"

enum {
    SORT_RUN_BITS = 5,
    SORT_WAYS_BITS = 3,
    SORT_RUN = 1 << SORT_RUN_BITS,
    SORT_WAYS = 1 << SORT_WAYS_BITS,
    SORT_MAX_BITS = SORT_RUN_BITS + (SCHED_PHASES - 2) * SORT_WAYS_BITS
};

enum { SORT_OUT, SORT_LINE }; /* tags of dims */

struct sort {
    struct expr e;
    struct kir_module *m; /* s->module */
    struct anchor anchor;
    struct space_map root; /* map of the results */
    bool descending;
    uint32_t dtype;
    int64_t n, stride;      /* elements of a line; distance between them in row-major numbers */
    uint32_t node;          /* an element of the operand */
    uint32_t at;            /* coordinate: position in the line */
    uint32_t result, index; /* nodes; BLOCK_NONE: not used */
    struct delinearizer outer, inner;
    uint32_t lanes, n_phases;
    bool has_keys; /* the workspace has keys too */
    /* During emission, values of the phase: */
    uint32_t workspace; /* argument number */
    uint32_t point;     /* row-major number of the lane's point */
    uint32_t position;  /* its position in its line */
    uint32_t mask;      /* KIR_B: the lane has a point; KIR_NONE: every lane has one */
    uint32_t n_param, stride_param;
    uint32_t buffer[2];   /* offsets of the buffers that are read and written */
    uint32_t keys;        /* distance from an element's index to its key */
    uint32_t own, is_nan; /* the lane's key; B: it is NaN, or KIR_NONE for integers */
};

/* Emits all phases and sets the grid and the workspace. */
void sort_emit(struct sort *t);

#endif
