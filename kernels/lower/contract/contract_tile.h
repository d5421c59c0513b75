/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions whose operands go through tiles of the group, and whose sums are tiles of registers.
 */
#ifndef LOWER_CONTRACT_TILE_H
#define LOWER_CONTRACT_TILE_H

#include <stdbool.h>
#include <stdint.h>

struct contract;
struct contract_emitter;

/* Whether TILES is the form: a device whose lanes are threads, and two sides of some length. */
bool contract_fits_tiles(const struct contract *c);
/* Sets the sides, the group tile, the register tile and the lanes. */
void contract_choose_tiles(struct contract *c);
/* Whether the group has memory for its sums beside its tiles. */
bool tile_has_totals(const struct contract *c);
/* Emits the sums of the group tile at row `down` and column `across` of group tiles, and all that
 * follows. */
void tile_emit(struct contract_emitter *w, uint32_t down, uint32_t across);

#endif
