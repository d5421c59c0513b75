/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's convolution. */
#ifndef LOWER_CONTRACT_WINOGRAD_H
#define LOWER_CONTRACT_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

struct block_op;
struct contract;
struct contract_emitter;

/* Plans a conv this way where that is predicted to cost less than its products; false: it is not.
 */
bool winograd_plan(struct contract *c, const struct block_op *op);
/* Chooses the form of the products. */
void winograd_choose(struct contract *c);
/* Reserves memory for transformed weights, which is kept, and for the rest in the workspace. */
void winograd_reserve(struct contract *c);
/* Emits the phases before the products and that after them, with their grids. */
void winograd_emit_operands(struct contract *c);
void winograd_emit_results(struct contract *c);

/* In the phase of products.  The group's first weight, of tile number `down`; the weight of place i
 * of the tile at a k; storing a sum. */
uint32_t winograd_first(const struct contract_emitter *w, uint32_t down);
uint32_t winograd_weight(const struct contract_emitter *w, uint32_t k, uint32_t i);
void winograd_store(const struct contract_emitter *w, uint32_t place, uint32_t sum);

#endif
