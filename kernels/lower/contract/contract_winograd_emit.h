/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of Winograd's convolution, and what they share. */
#ifndef LOWER_CONTRACT_WINOGRAD_EMIT_H
#define LOWER_CONTRACT_WINOGRAD_EMIT_H

#include "lower/contract/contract_emit.h"

enum { WINOGRAD_FEW = 8 /* tiles: lanes of a group that makes lines, unless it is wide */ };

/* The places of lines, of the expr of their elements. */
struct winograd_lines {
    struct expr *e;
    struct delinearizer channel, column, line, tile;
    uint32_t first; /* of the lane's tile, where its patch begins */
};

/* Emit the phases before the products, with their grids. */
void winograd_emit_operands(struct contract *c);

/* In the phase of products: the group's first weight, of tile number `down`; the weight of place i
 * of the tile at a k; storing the sum of a place. */
uint32_t winograd_first(const struct contract_emitter *w, uint32_t down);
uint32_t winograd_weight(const struct contract_emitter *w, uint32_t k, uint32_t i);
void winograd_store(const struct contract_emitter *w, uint32_t place, uint32_t sum);

/* Begins a phase whose groups have numbers along two dims, of which the inner one has `n` points.
 */
struct contract_emitter winograd_begin(struct contract *c, uint32_t lanes, int64_t outer, int64_t n,
                                       uint32_t *group, uint32_t *inner);
/* Begins a loop over `each` numbers from group * each on, to `count`. */
uint32_t winograd_begin_loop(const struct contract_emitter *w, uint32_t group, uint32_t each,
                             int64_t count);
/* The places of lines, at the begin of a phase. */
struct winograd_lines winograd_begin_lines(struct contract *c);
/* The first tile of a panel: the last panels end with the last tile. */
uint32_t winograd_first_tile(const struct contract_emitter *w, uint32_t panel);
/* An element of the window whose output and channel are set. */
uint32_t winograd_element(const struct contract_emitter *w, uint32_t row, uint32_t column);
uint32_t winograd_load(const struct contract_emitter *w, uint32_t arg, uint32_t at);

static inline uint32_t plus(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return op2(w, KIR_add, a, b);
}

static inline uint32_t minus(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return op2(w, KIR_sub, a, b);
}

/* By a number that becomes a parameter. */
static inline uint32_t times(const struct contract_emitter *w, uint32_t value, int64_t by)
{
    return op2(w, KIR_mul, value, sched_add_index(w->e->s, by));
}

#endif
