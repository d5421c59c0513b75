/* SPDX-License-Identifier: Apache-2.0 */
/* Padding. */
#ifndef LOWER_CONTRACT_PAD_H
#define LOWER_CONTRACT_PAD_H

#include <stdbool.h>
#include <stdint.h>

#include "lower/space/space.h"

struct contract;
struct contract_emitter;

/* A dim of the copy, and of the value dim number `of`: the copy's element at `place` is the value's
 * at `place * step - before`, 0 where there is none. */
struct pad_dim {
    uint32_t of;
    int64_t extent, step, before;
};

/* Plans a copy of a value with these dims, from the outermost one on, and side b as the elements of
 * the copy at `at`, which is inside it; its dims are in the value's order. */
void pad_plan(struct contract *c, uint32_t value, const struct pad_dim *dims,
              const struct space_map *at);
/* The length of a line that is stored without masks: `width`, or a little more. */
int64_t pad_pitch(int64_t width);
/* Ends planning. */
void pad_settle(struct contract *c);
void pad_fini(struct contract *c);
/* How far neighbours along a dim lie apart in the copy, 1 also for the same element; 0: backwards.
 */
int64_t pad_apart(const struct contract *c, uint32_t dim);
/* Reserves the copy's memory, at the begin of the workspace; once the form is chosen. */
void pad_reserve(struct contract *c);
/* Emits the phase that copies, with its grid. */
void pad_emit(struct contract *c);
/* The element of side b at the dims that are set, where the mask is; elsewhere any number. */
uint32_t pad_element(const struct contract_emitter *w, uint32_t mask);

#endif
