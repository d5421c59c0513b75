/* SPDX-License-Identifier: Apache-2.0 */
/* The sort schedule, with views before and elementwise ops and views behind.
 *
 * A lane belongs to an element and finds out how many come before it.  First among the SORT_RUN of
 * its own run, one by one; then, phase by phase, SORT_WAYS sorted runs become one: of each it is
 * known by halving how many of it come before the element.  What phases hand on is, for each place
 * in a line, the number of the element that stands there, and, where it fits a word, what is
 * compared of it, so that halving does not go all over the line; the last one stores the elements.
 * All this lies twice in the workspace, phases read the one and write the other.
 *
 * Equal elements keep their order: of runs before the element's own those count that are not
 * behind it, of runs after it those before it alone.  NaN is behind everything. */
#ifndef LOWER_SORT_H
#define LOWER_SORT_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"

enum {
    SORT_RUN_BITS = 5,
    SORT_WAYS_BITS = 3,
    SORT_RUN = 1 << SORT_RUN_BITS,
    SORT_WAYS = 1 << SORT_WAYS_BITS,
    SORT_MOST_BITS = SORT_RUN_BITS + (SCHED_PHASES - 2) * SORT_WAYS_BITS
};

enum { SORT_OUT, SORT_LINE }; /* tags of dims */

struct sort {
    struct expr e;
    struct kir_module *m; /* of the schedule */
    struct anchor anchor;
    struct space_map root; /* of the results */
    bool descending;
    uint32_t dtype;
    int64_t n, step;        /* elements of a line; places from one to the next */
    uint32_t node;          /* an element of the operand, at the point of the line that is set */
    uint32_t at;            /* place: number in the line */
    uint32_t result, index; /* nodes, or BLOCK_NONE */
    struct delinearizer outer, inner;
    uint32_t lanes, n_phases;
    bool has_keys; /* the workspace has what is compared too */
    /* Emitting: values of the phase. */
    uint32_t workspace; /* argument */
    uint32_t point;     /* the lane's, of all lines */
    uint32_t place;     /* and in its line */
    uint32_t mask;      /* of lanes that have one; KIR_NONE: all have */
    uint32_t n_param, step_param;
    uint32_t half[2];     /* where in the workspace numbers are read and written */
    uint32_t keys;        /* behind them: what is compared, from each number's place on */
    uint32_t own, is_nan; /* element; KIR_NONE: no float */
};

/* Emits all phases; fills the grid and the workspace. */
void sort_emit(struct sort *t);

#endif
