/* SPDX-License-Identifier: Apache-2.0 */
/* The row schedule: row.c and row_slab.c plan, row_emit.h emits.
 *
 * The space has the dims of the root of the block's labels (label.h); the folded dims are tagged
 * ROW_INNER.  A fold's level is 1 + the highest level of the folds that its elements depend on.
 * There is one pass over the row per level: it folds the elements that are known by then and stores
 * the outputs of whole rows that are ready.  Each pass loads and computes values anew, unless a row
 * has so few elements per lane that they stay in registers.  Outputs with one element per row are
 * stored at the end. */
#ifndef LOWER_ROW_H
#define LOWER_ROW_H

#include "lower/expr/partition.h"
#include "lower/rows/fold.h"
#include "lower/schedule/label.h"

enum { ROW_OUTER, ROW_INNER };
enum { ROW_FOLDS = 32, ROW_RESIDENT = 32 /* elements per lane in registers at most */ };

/* How rows are divided among lanes. */
enum row_form {
    ROW_GROUP, /* a group works on one row */
    ROW_LANE,  /* each lane has a row of its own */
    ROW_SLAB   /* a group works on adjacent rows, several lanes on each; see row_slab.c */
};

struct row_fold {
    struct fold fold;
    uint32_t node;           /* node of the elements */
    uint32_t value;          /* the result, a value of the block */
    uint32_t level;          /* 1 or more */
    uint32_t computed_by;    /* number of the fold that computes this one too; BLOCK_NONE: itself */
    struct fold_state state; /* during emission */
};

struct row_schedule {
    struct expr e;
    struct labels labels;
    struct space_map root;
    struct delinearizer outer, inner;
    int64_t n_row; /* elements of a row, may be 0 */
    uint32_t n_levels;
    uint32_t n_folds;
    bool rescales; /* a sum of exponentials relative to a maximum is folded beside that */
    struct row_fold folds[ROW_FOLDS];
    uint32_t *level;  /* per node: the level of the last fold that it depends on, or 0 */
    bool *varies;     /* per node: whether it varies along the row */
    bool *whole_rows; /* per store: whether it has an element per element of the row */
    enum row_form form;
    bool in_lockstep; /* ROW_LANE: lanes with adjacent rows visit each element at the same time */
    uint32_t lanes, lanes_per_row;
    struct partition partition; /* ROW_LANE, ROW_SLAB: divides rows among lanes, or sets of them */
    int64_t n_chunks;   /* per row, each computed by a group of its own; 1: rows are not split */
    int64_t chunk_size; /* elements of a row per chunk */
    uint32_t resident;  /* elements per lane that stay in registers from pass to pass; 0: none */
    uint32_t unmasked;  /* that many of them are in the row in every lane */
};

/* Divides the rows among groups of `lanes` lanes or fewer. */
void row_partition(struct row_schedule *row, uint32_t lanes);
/* Per node: whether a pass needs its elements; NULL if out of memory. */
bool *row_needs(struct row_schedule *row, uint32_t pass);
/* Number of passes over a row. */
uint32_t row_passes(const struct row_schedule *row);
/* Emits all phases and fills the grid and the workspace. */
void row_emit(struct row_schedule *row);

#endif
