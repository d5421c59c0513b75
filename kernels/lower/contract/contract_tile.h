/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions through tiles of the group. */
#ifndef LOWER_CONTRACT_TILE_H
#define LOWER_CONTRACT_TILE_H

#include <stdint.h>

struct contract_emitter;

/* TILES: what a phase begins with, and the sum from begin to end. */
void tile_begin(struct contract_emitter *w, uint32_t down, uint32_t across);
void tile_sums(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t *sums);

#endif
