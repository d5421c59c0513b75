/* SPDX-License-Identifier: Apache-2.0 */
/* Staging of TILES: numbers of lanes, and elements from memory to tiles. */
#ifndef LOWER_CONTRACT_TILE_STAGE_H
#define LOWER_CONTRACT_TILE_STAGE_H

#include "lower/contract/contract_emit.h"

/* A number that bits of a lane's number make: lane / by % n + lane / high_by % high_n * n. */
struct lane_part {
    uint32_t by, n, high_by, high_n;
};

/* One side as the group stages it.  Tile elements are I32, places and k have the index type. */
struct tile_side {
    struct contract_side *side;
    uint32_t tile;
    uint32_t places, stride, size; /* of the group; from one k to the next; of a buffer */
    uint32_t n;                    /* elements of a step that a lane stages */
    bool along_k;                  /* by neighbouring lanes, else places */
    uint32_t corner;               /* the group's first place */
    bool linear_in_k;              /* loads are, of k's number */
    struct lane_part place, deep;  /* of the first element of a step, in the tile */
    uint32_t to;                   /* tile element of the first element */
    struct lane_part sums;         /* of the lane: a chunk of rows, a column */
    uint32_t from;                 /* tile element of the lane's first operand */
    uint32_t takes_part;           /* B: the lane stages anything; KIR_NONE: all do */
};

struct tile_emitter {
    struct contract_emitter *w;
    struct tile_side side[2];
    uint32_t lane;      /* I32 */
    uint32_t last_step; /* k where the last step begins; KIR_NONE: steps are masked at the end */
    uint32_t k_end;
    uint32_t part_begin, part_end;           /* of k, for the group */
    uint32_t totals, totals_at, totals_step; /* tile of sums, the lane's first one, how far apart */
};

/* Elements of a step that a lane requested. */
struct step_values {
    uint32_t value[2][TILE_STAGED];
};

static inline uint32_t tile_part_count(const struct lane_part *part)
{
    return part->n * part->high_n;
}

uint32_t tile_i32(const struct tile_emitter *t, uint32_t value);
/* value + n, in the value's type. */
uint32_t tile_plus(const struct tile_emitter *t, uint32_t value, uint32_t n);
/* An I32 in the index type. */
uint32_t tile_index(const struct tile_emitter *t, uint32_t value);
/* a and b; KIR_NONE is true. */
uint32_t tile_and(const struct tile_emitter *t, uint32_t a, uint32_t b);

/* The part's number, I32, in chunks that it has. */
uint32_t tile_part_number(const struct tile_emitter *t, const struct lane_part *part,
                          uint32_t chunk);
/* first / chunk + the part's number of chunks. */
uint32_t tile_chunk_number(const struct tile_emitter *t, uint32_t first,
                           const struct lane_part *part, uint32_t chunk);
/* B: first + the part's number < end, where `first` is a multiple of all chunks.  Neighbouring
 * lanes that make one access share the condition if `end` allows that. */
uint32_t tile_is_below(const struct tile_emitter *t, uint32_t first, const struct lane_part *part,
                       int64_t end);
/* Sets the place first + the part's number, likewise. */
void tile_set_place(const struct tile_emitter *t, const struct contract_side *side, uint32_t first,
                    const struct lane_part *part);

/* Declares the tile of side `number`, whose group tile is `tile`, and shares its elements among
 * lanes. */
void tile_begin_side(struct tile_emitter *t, uint32_t number, uint32_t tile, uint32_t places);
/* Sets the places that lanes stage, as far as these are the same in all steps. */
void tile_begin_steps(const struct tile_emitter *t);
/* Requests the elements of the step at k. */
void tile_load_step(const struct tile_emitter *t, uint32_t k, struct step_values *out);
/* Stores them in a buffer, I32, for all lanes to read. */
void tile_store_step(const struct tile_emitter *t, uint32_t buffer, const struct step_values *v);
/* The buffer of the step at k: 0 or 1, I32. */
uint32_t tile_buffer(const struct tile_emitter *t, uint32_t k);
/* Tile element `at` of a side in a buffer. */
uint32_t tile_in_buffer(const struct tile_emitter *t, const struct tile_side *s, uint32_t buffer,
                        uint32_t at);

#endif
