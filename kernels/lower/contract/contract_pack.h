/* SPDX-License-Identifier: Apache-2.0 */
/* Packing. */
#ifndef LOWER_CONTRACT_PACK_H
#define LOWER_CONTRACT_PACK_H

#include <stdbool.h>
#include <stdint.h>

struct contract;
struct contract_side;
struct contract_emitter;

/* Whether the copy of a side can be kept with its operand. */
bool pack_can_keep(const struct contract *c, const struct contract_side *side);
/* Reserves memory for the copy, once the form is chosen: such that is kept, or else, after that of
 * the padded copy, in the workspace. */
void pack_keep(struct contract *c);
void pack_reserve(struct contract *c);
/* Emits the phase that packs, with its grid. */
void pack_emit(struct contract *c);
/* The first element of a lane in its panel, and the element of `across` at k. */
uint32_t pack_first(const struct contract_emitter *w, uint32_t panel);
uint32_t pack_element(const struct contract_emitter *w, uint32_t k);

#endif
