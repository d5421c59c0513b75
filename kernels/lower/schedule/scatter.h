/* SPDX-License-Identifier: Apache-2.0 */
/* The scatter schedule, between scatter.c (what is to be done) and scatter_emit.c (the code).
 *
 * An update takes an element of the values to an element of y.  Of y's dims an index says the
 * coordinates along some, the hit ones, which stand side by side; the values have the sequence in
 * their place: dims over which updates go in row-major order.  A line is what the other dims tell
 * apart: updates of different lines never meet. */
#ifndef LOWER_SCATTER_H
#define LOWER_SCATTER_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"
#include "lower/rows/fold.h"

/* Tags: dims of y have their own number, all of them ALL where they need not be told apart. */
enum { SCATTER_SEQ = FRIT_MAX_RANK, SCATTER_ALL };

enum scatter_form {
    SCATTER_LINES, /* a lane has a line: y is filled, updated in memory, and finished, in phases */
    SCATTER_OWNER  /* a lane has an element of y, and looks at all updates of its line */
};

enum scatter_index {
    SCATTER_LIST,  /* one number per step of the sequence */
    SCATTER_FULL,  /* one per value */
    SCATTER_POINTS /* the last dim has a number for each hit dim */
};

/* Updates in a space. */
struct scatter_updates {
    uint32_t index[FRIT_MAX_RANK];         /* nodes, one per hit dim */
    uint32_t value;                        /* node */
    struct delinearizer at[FRIT_MAX_RANK]; /* per dim of y: of what lanes count, else of no dims */
    struct delinearizer seq;
};

struct scatter {
    struct sched *s;
    struct anchor anchor;
    const struct block_op *op;
    uint32_t how; /* enum scatter_index */
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];  /* of y */
    int64_t lines[FRIT_MAX_RANK]; /* extents that have lines, 1 at hit dims */
    uint32_t first, n_hits;       /* hit dims */
    uint32_t n_seq;               /* dims of the sequence */
    int64_t seq[FRIT_MAX_RANK];
    int64_t n_y, n_lines, n_steps;
    uint32_t dtype;
    struct fold
        fold; /* of what is there and a value, in the type that is gathered; no row: assign */
    enum scatter_form form;
    bool direct; /* LINES: y itself is updated, and nothing follows */
    uint32_t lanes;

    struct expr fill, update, finish;       /* LINES; OWNER: finish alone */
    struct delinearizer fill_at, finish_at; /* LINES: all points */
    uint32_t x;                             /* node, of fill or OWNER's finish */
    uint32_t result;                        /* node, of fill where direct, else of finish */
    struct scatter_updates updates;         /* of update or OWNER's finish */
};

/* Emits all phases and fills the grid and the workspace. */
void scatter_emit(struct scatter *scatter);

#endif
