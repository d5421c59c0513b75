/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of Winograd's convolution. */
#ifndef LOWER_CONTRACT_WINOGRAD_EMIT_H
#define LOWER_CONTRACT_WINOGRAD_EMIT_H

#include <stdint.h>

struct contract;
struct contract_emitter;

/* Emit the phases before the products and that after them, with their grids. */
void winograd_emit_operands(struct contract *c);
void winograd_emit_results(struct contract *c);

/* In the phase of products: the group's first weight, of tile number `down`; the weight of place i
 * of the tile at a k; storing the sum of a place. */
uint32_t winograd_first(const struct contract_emitter *w, uint32_t down);
uint32_t winograd_weight(const struct contract_emitter *w, uint32_t k, uint32_t i);
void winograd_store(const struct contract_emitter *w, uint32_t place, uint32_t sum);

#endif
