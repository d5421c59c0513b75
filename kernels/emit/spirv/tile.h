/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of lanes and of the group. */
#ifndef EMIT_SPIRV_TILE_H
#define EMIT_SPIRV_TILE_H

#include "emit/spirv/emit.h"

/* A tile of the phase as a variable. */
struct spirv_tile {
    uint32_t *variables; /* one for each lane of a thread; of the group all the same */
    uint32_t unit; /* elements that one access has, a power of two: a vector if more than one */
    uint32_t unit_type;
};

void tile_declare(struct emit *e);
void tile_load(struct emit *e, uint32_t at);
void tile_store(struct emit *e, uint32_t at);
/* Copies load where they stand and store where they have to be done: at a wait, or where the block
 * around them ends. */
void tile_copy(struct emit *e, uint32_t at);
void tile_batch(struct emit *e, uint32_t at);
void tile_wait(struct emit *e, uint32_t at);
void tile_end_copies(struct emit *e);
/* A pointer to the unit of a tile of the group that begins at element `offset`, a value. */
uint32_t tile_pointer(struct emit *e, uint32_t tile, uint32_t offset, uint32_t j);
/* A number of elements in units. */
uint32_t tile_units(struct emit *e, uint32_t tile, uint32_t value, uint32_t j);

#endif
