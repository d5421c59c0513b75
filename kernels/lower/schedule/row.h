/* SPDX-License-Identifier: Apache-2.0 */
/* The row schedule, between row.c (what is to be done) and row_emit.h (the code).
 *
 * The space is the root of the block's labels; its dims that are folded are tagged ROW_INNER. Folds
 * have levels: one more than the folds their elements come from.  A pass per level goes over the
 * row, folds what has its elements by then, and stores the full outputs that are ready.  Values are
 * loaded and computed again in each pass, unless a row has few elements per lane: then they are
 * kept.  What is stored once per row follows at the end. */
#ifndef LOWER_ROW_H
#define LOWER_ROW_H

#include "lower/expr/partition.h"
#include "lower/rows/fold.h"
#include "lower/schedule/label.h"

enum { ROW_OUTER, ROW_INNER };
enum { ROW_FOLDS = 32 };

/* How lanes share rows. */
enum row_form {
    ROW_GROUP, /* a group works on one row */
    ROW_LANE   /* each lane has a row of its own */
};

struct row_fold {
    struct fold fold;
    uint32_t node;           /* elements */
    uint32_t value;          /* of the block: the result */
    uint32_t level;          /* from 1 on */
    struct fold_state state; /* while code is emitted */
};

struct row_schedule {
    struct expr e;
    struct labels labels;
    struct space_map root;
    struct delinearizer outer, inner;
    int64_t n_row; /* elements of a row: 0 too */
    uint32_t n_levels;
    uint32_t n_folds;
    struct row_fold folds[ROW_FOLDS];
    uint32_t *level; /* per node */
    bool *varies;    /* per node: along the row */
    bool *full;      /* per store */
    enum row_form form;
    bool in_step; /* lanes, whose rows lie beside each other, go from element to element together */
    uint32_t lanes;
    struct partition partition; /* ROW_LANE: how rows are shared out to them */
    int64_t splits, chunk;      /* of a row; 1: it is folded in one piece */
    uint32_t kept;              /* elements per lane that are kept from pass to pass; 0: none */
};

/* Groups of so many lanes, or fewer. */
void row_share(struct row_schedule *row, uint32_t lanes);
/* Emits all phases and fills the grid and the workspace. */
void row_emit(struct row_schedule *row);

#endif
