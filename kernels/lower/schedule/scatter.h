/* SPDX-License-Identifier: Apache-2.0 */
/* The scatter schedule: scatter.c plans, scatter_emit.c emits.
 *
 * An update writes, or combines, one of the values into an element of y.  An index gives the
 * coordinates along some neighbouring dims of y, the indexed dims.  In the values these dims are
 * replaced by the sequence: dims over which updates are applied in row-major order.  A line is a
 * point of the other dims: updates of different lines never touch the same element. */
#ifndef LOWER_SCATTER_H
#define LOWER_SCATTER_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"
#include "lower/rows/fold.h"

/* Tags of dims: dim d of y has tag d, or all dims have SCATTER_ALL where they can be merged. */
enum { SCATTER_SEQ = FRIT_MAX_RANK, SCATTER_ALL };

enum scatter_form {
    SCATTER_LINES, /* a lane per line: phases that fill y, update it in memory, and finish it */
    SCATTER_OWNER  /* a lane per element of y, which checks all updates of its line */
};

enum scatter_index {
    SCATTER_LIST,  /* one index per step of the sequence */
    SCATTER_FULL,  /* one index per value */
    SCATTER_POINTS /* the last dim of the index has one element per indexed dim */
};

/* The updates, planned over a space. */
struct scatter_updates {
    uint32_t index[FRIT_MAX_RANK]; /* nodes, one per indexed dim */
    uint32_t value;                /* node of the values */
    struct delinearizer
        at[FRIT_MAX_RANK]; /* per dim of y: that dim if lanes are numbered over it, else no dims */
    struct delinearizer seq;
};

struct scatter {
    struct sched *s;
    struct anchor anchor;
    const struct block_op *op;
    uint32_t index_form; /* enum scatter_index */
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];       /* of y */
    int64_t lines[FRIT_MAX_RANK];      /* extents of the dims of lines, 1 at indexed dims */
    uint32_t first_indexed, n_indexed; /* first indexed dim, number of indexed dims */
    uint32_t n_seq;                    /* number of dims of the sequence */
    int64_t seq[FRIT_MAX_RANK];
    int64_t n_y, n_lines, n_steps;
    uint32_t dtype;
    struct fold fold; /* combines an element and a value, in the accumulated type; no row: the value
                         replaces the element */
    enum scatter_form form;
    bool in_place; /* LINES: y is updated in place and no phase follows */
    uint32_t lanes;

    struct expr fill, update, finish;       /* one per phase; OWNER has only `finish` */
    struct delinearizer fill_at, finish_at; /* LINES: all points */
    uint32_t x;                             /* node of x, in `fill` or OWNER's `finish` */
    uint32_t result; /* node of the result, in `fill` if `in_place`, else in `finish` */
    struct scatter_updates updates; /* in `update` or OWNER's `finish` */
};

/* Emits all phases and sets the grid and the workspace. */
void scatter_emit(struct scatter *scatter);

#endif
