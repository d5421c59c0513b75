/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions with packed weights. */
#ifndef LOWER_CONTRACT_BLOCKS_H
#define LOWER_CONTRACT_BLOCKS_H

#include "lower/contract/contract_emit.h"

/* Whether an operand of the contraction is the result of dequantize, perhaps with views. */
bool blocks_is_dequantized(const struct block *block, uint32_t op);
/* Whether the target has the form for packed weights at all. */
bool blocks_can_be(const struct kir_target *target);
/* Chooses the form for packed weights, if the sizes, layouts and target are such. */
bool blocks_choose(struct contract *c);
/* Emits the sums of a lane. */
void blocks_sums(const struct contract_emitter *w, uint32_t *sums);
/* A part of them, for work_range. */
void blocks_range(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t *sums);
/* Sets the place across of sum number `j`. */
void blocks_set_place(const struct contract_emitter *w, uint32_t j);

#endif
