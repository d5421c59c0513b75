/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that emit rows share: rounds over elements (row_rounds.c), values of lanes brought
 * together (row_lanes.c), phases of split rows (row_split.c), and the rest (row_emit.c). */
#ifndef LOWER_ROW_EMIT_H
#define LOWER_ROW_EMIT_H

#include "lower/schedule/row.h"

enum { ROW_STATES = ROW_FOLDS * FOLD_PARTS };

/* A stretch of a row, as values: full rounds from begin to full, then up to end with a mask. */
struct row_region {
    uint32_t begin, full, end;
    bool tail;   /* there may be elements behind full */
    bool blocks; /* there may be many rounds */
    bool rounds; /* there are full rounds */
};

/* A node whose elements a tile may have. */
struct saved {
    uint32_t first, last; /* passes that need it */
    uint32_t tile;        /* KIR_NONE: it has none */
};

/* What emitting needs at hand. */
struct row_emitter {
    struct row_schedule *row;
    struct expr *e;
    struct kir_module *m;
    uint32_t lane;   /* as an index */
    uint32_t lane_0; /* B: this is the lane that stores for its group */
    uint32_t rows;   /* number of the lane's row, where they are split */
    uint32_t n_rows; /* how many there are, where they are split */
    uint32_t mask;   /* ROW_LANE: of lanes that have a row; KIR_NONE: all have */
    uint32_t pass;
    uint32_t *kept;      /* values of nodes, of each element that is kept; NULL: none is */
    const bool *needs;   /* per node: the pass at hand, where elements are read ahead */
    uint32_t *ahead;     /* values of nodes, of each element that is read ahead; NULL: none is */
    struct saved *saved; /* per node; NULL: none is */
    uint32_t save_room;  /* elements that tiles may have yet */
};

/* Whether the fold is made in the pass at hand. */
static inline bool work_folds(const struct row_emitter *w, const struct row_fold *fold)
{
    return fold->level == w->pass + 1;
}

/* ---- row_rounds.c ---- */

/* States of the folds of the pass: their parts one after the other, and how many there are. */
uint32_t states_pack(const struct row_emitter *w, uint32_t *parts);
void states_unpack(const struct row_emitter *w, const uint32_t *parts);
void states_identity(const struct row_emitter *w);
/* The state where the mask is true, else the identity; KIR_NONE: it is. */
struct fold_state states_masked(const struct row_emitter *w, const struct row_fold *fold,
                                struct fold_state state, uint32_t mask);
/* A loop with the states as what it carries, which are its results afterwards.  Gives the counter
 * and the carried values, which loop_close wants. */
uint32_t loop_open(const struct row_emitter *w, uint32_t begin, uint32_t end, uint32_t step,
                   uint32_t *phis);
void loop_close(const struct row_emitter *w, const uint32_t *phis);

/* From element to element of a lane, and the element that a lane has in a round. */
uint32_t round_step(const struct row_emitter *w);
uint32_t round_element(const struct row_emitter *w, uint32_t counter);
/* `n` elements from 0 on. */
struct row_region stretch_whole(const struct row_emitter *w, int64_t n);
/* Elements begin .. begin + chunk of the row. */
struct row_region stretch_chunk(const struct row_emitter *w, uint32_t begin);
/* Folds from the identity on, and stores what is ready, over a stretch; all of the row where
 * elements are kept. */
void stretch_emit(struct row_emitter *w, const struct row_region *stretch);
/* Whether the pass has anything to do for elements. */
bool pass_has_rounds(const struct row_emitter *w);
/* Per node whether a pass needs its elements; NULL without memory. */
bool *pass_needs(const struct row_emitter *w, uint32_t pass);

/* ---- row_save.c ---- */

/* Before the passes over a row in one phase. */
void save_begin(struct row_emitter *w);
/* In a round, with the element set: computes, leaves and takes what tiles have. */
void save_round(struct row_emitter *w, uint32_t element);

/* ---- row_lanes.c ---- */

/* The states of the pass over all lanes of the group: the same in all afterwards. */
void lanes_combine(const struct row_emitter *w);

/* ---- row_split.c ---- */

/* All phases of a row whose chunks are for groups of their own. */
void row_emit_split(struct row_emitter *w);

/* ---- row_emit.c ---- */

/* Begins a phase: parameters, and the lane. */
void phase_begin(struct row_emitter *w);
/* Ends one: its grid. */
void phase_end(const struct row_emitter *w, int64_t groups);
uint32_t phase_group(const struct row_emitter *w);
/* Sets the row of each lane, that of the `block`-th group of them, and how many such groups. */
void rows_set(struct row_emitter *w, uint32_t block);
int64_t rows_blocks(const struct row_schedule *row);
/* What is the same along the row and known in this pass. */
void rows_constant(const struct row_emitter *w);
/* The fold's value is this one from now on. */
void rows_bind(const struct row_emitter *w, const struct row_fold *fold, uint32_t value);
/* Stores what there is once per row. */
void rows_store(const struct row_emitter *w);

#endif
