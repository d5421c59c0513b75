/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the maps of operands from the map of a result.  Functions that return NULL have recorded
 * an error in the expression. */
#ifndef LOWER_EXPR_MAP_H
#define LOWER_EXPR_MAP_H

#include "lower/expr/expr.h"
#include "lower/rows/rows.h"

/* Returns the expression's only copy of a map. */
const struct space_map *expr_map_keep(struct expr *e, const struct space_map *map);

/* The map of an elementwise op's operand `value`, which may broadcast, from the map of the result
 * with dims `out`. */
const struct space_map *expr_map_operand(struct expr *e, uint32_t value, const int64_t *out,
                                         const struct space_map *map);
/* The arguments of a view's mapping function for operand number `i`. */
struct view expr_view(struct expr *e, const struct block_op *op, uint32_t i);
/* The map of a view's operand. */
const struct space_map *expr_map_view(struct expr *e, const struct block_op *op,
                                      const struct space_map *map);
/* The map with `by` added to the coordinate along the op's axis, of extent 3, modulo 3. */
const struct space_map *expr_map_rotated(struct expr *e, const struct block_op *op,
                                         const struct space_map *map, int64_t by);
/* The map of an operand with one element per block of these extents; an operand of rank 0 has one
 * for all blocks. */
const struct space_map *expr_map_block(struct expr *e, uint32_t value, const frit_dims *block,
                                       const struct space_map *map);

/* A join: the operands are concatenated or stacked along an axis. */
struct join {
    const struct space_map *map; /* of the result */
    uint32_t axis;
    bool is_new; /* the axis exists only in the result (stack) */
    int64_t out[FRIT_MAX_RANK];
};

/* The operand's extent along the axis, or -1 if its other dims differ from the result's. */
int64_t expr_piece_extent(const struct expr *e, uint32_t value, const struct join *join);
/* The map of the operand whose piece begins at `begin`; outside of the piece its coordinates are
 * out of bounds. */
const struct space_map *expr_piece_map(struct expr *e, const struct join *join, int64_t begin);

#endif
