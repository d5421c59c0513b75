/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of lanes. */
#ifndef EMIT_SPIRV_LANE_TILE_H
#define EMIT_SPIRV_LANE_TILE_H

#include "emit/spirv/tile.h"

/* Each of a tile of the space KIR_LANE. */
void lane_tile_declare(struct emit *e, uint32_t tile);
void lane_tile_load(struct emit *e, uint32_t at);
void lane_tile_store(struct emit *e, uint32_t at);

#endif
