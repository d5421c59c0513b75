/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds over the elements of rows. */
#ifndef SCHEDULE_ROW_ROUNDS_H
#define SCHEDULE_ROW_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "lower/rows/fold.h"
#include "lower/schedule/row_emit.h"

struct row_emitter;
struct row_fold;

/* The parts of the states of all folds of the pass, one after the other.  Returns their number. */
uint32_t states_pack(const struct row_emitter *w, uint32_t *parts);
void states_unpack(const struct row_emitter *w, const uint32_t *parts);
void states_identity(const struct row_emitter *w);
/* The state where the mask is true, else the identity; a mask of KIR_NONE is true. */
struct fold_state state_masked(const struct row_emitter *w, const struct row_fold *fold,
                               struct fold_state state, uint32_t mask);
/* Opens a loop that carries the states, which are its results after loop_close.  Returns the
 * counter and, in `phis`, the carried values, to be given to loop_close. */
uint32_t loop_open(const struct row_emitter *w, uint32_t begin, uint32_t end, uint32_t step,
                   uint32_t *phis);
void loop_close(const struct row_emitter *w, const uint32_t *phis);
/* The distance between a lane's elements of two rounds; the lane's element in a round. */
uint32_t round_step(const struct row_emitter *w);
uint32_t round_element(const struct row_emitter *w, uint32_t counter);
/* The region of elements 0 .. n. */
struct row_region region_whole(const struct row_emitter *w, int64_t n);
/* The region of elements begin .. begin + chunk of the row. */
struct row_region region_chunk(const struct row_emitter *w, uint32_t begin);
/* Folds the elements of a region, starting with the identity, and stores the outputs of whole rows
 * that are ready.  If elements are resident the region is the whole row. */
void region_emit(struct row_emitter *w, const struct row_region *region);
/* Whether the pass needs to visit elements. */
bool pass_has_rounds(const struct row_emitter *w);

#endif
