/* SPDX-License-Identifier: Apache-2.0 */
/* Emission of rows: rounds over elements (row_rounds.c), elements saved in tiles (row_save.c),
 * combining lanes (row_lanes.c), phases of split rows (row_split.c), and the rest (row_emit.c). */
#ifndef LOWER_ROW_EMIT_H
#define LOWER_ROW_EMIT_H

#include "lower/schedule/row.h"

enum { ROW_STATES = ROW_FOLDS * FOLD_PARTS };

/* A region of a row, as values of the module: full rounds cover begin .. full_end, a masked round
 * full_end .. end. */
struct row_region {
    uint32_t begin, full_end, end;
    bool tail;   /* full_end .. end may have elements */
    bool blocks; /* there may be more than one block of rounds */
    bool rounds; /* there are full rounds */
};

/* A node whose elements may be saved in a tile. */
struct row_saved {
    uint32_t first, last; /* first and last pass that need it */
    uint32_t tile;        /* KIR_NONE: it is not saved */
};

/* State of emission; `w` in all functions. */
struct row_emitter {
    struct row_schedule *row;
    struct expr *e;
    struct kir_module *m;
    uint32_t lane;       /* the lane's number among those of its row, in the index type */
    uint32_t lane_0;     /* KIR_B: that number is 0; the lane stores for its row */
    uint32_t column;     /* ROW_LANE, ROW_SLAB: number of the lane's row among those of the group */
    uint32_t row_number; /* of the lane's row, if rows are split */
    uint32_t n_rows;     /* number of rows, if rows are split */
    uint32_t mask;       /* KIR_B: the lane has a row; KIR_NONE: every lane has one */
    uint32_t pass;
    uint32_t *resident; /* values of nodes for each resident element; NULL: none are resident */
    const bool *needs;  /* per node: needed by the current pass; set if elements are prefetched */
    uint32_t
        *prefetched; /* values of nodes for each prefetched element; NULL: none are prefetched */
    struct row_saved *saved; /* per node; NULL: none are saved */
    uint32_t tile_capacity;  /* elements that further tiles may have */
};

/* a and b; KIR_NONE is true. */
static inline uint32_t mask_both(const struct row_emitter *w, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : kir_binary(w->m, KIR_and, a, b);
}

/* Whether the current pass has the fold's result at its end. */
static inline bool pass_has_result(const struct row_emitter *w, const struct row_fold *fold)
{
    return fold->level == w->pass + 1;
}

/* Whether the current pass computes the fold, for itself. */
static inline bool pass_has_fold(const struct row_emitter *w, const struct row_fold *fold)
{
    return pass_has_result(w, fold) && fold->computed_by == BLOCK_NONE;
}

/* ---- row_emit.c ---- */

/* Begins a phase: parameters and the lane. */
void phase_begin(struct row_emitter *w);
/* Ends a phase and sets its grid. */
void phase_end(const struct row_emitter *w, int64_t groups);
uint32_t phase_group(const struct row_emitter *w);
/* Gives each lane its row of block number `block`; the number of blocks. */
void rows_select(struct row_emitter *w, uint32_t block);
int64_t rows_blocks(const struct row_schedule *row);
/* Emits the nodes that are constant along the row and known in this pass. */
void rows_emit_constant(const struct row_emitter *w);
/* The fold's result, once the states of all lanes are combined. */
uint32_t rows_result(const struct row_emitter *w, const struct row_fold *fold);
/* Binds the fold's result to a value. */
void rows_bind(const struct row_emitter *w, const struct row_fold *fold, uint32_t value);
/* Stores the outputs that have one element per row. */
void rows_store(const struct row_emitter *w);

#endif
