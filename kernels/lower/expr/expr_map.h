/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of planning: from the map of a value to those of its operands.  NULL: the expression has
 * failed. */
#ifndef LOWER_EXPR_MAP_H
#define LOWER_EXPR_MAP_H

#include "lower/expr/expr.h"
#include "lower/rows/rows.h"

/* The kept copy of a map. */
const struct space_map *expr_map_keep(struct expr *e, const struct space_map *map);

/* The map of operand `value` of an elementwise row from that of the result, of dims `out`. */
const struct space_map *expr_map_operand(struct expr *e, uint32_t value, const int64_t *out,
                                         const struct space_map *map);
/* What a row sees of its operand number `i`. */
struct view expr_view(struct expr *e, const struct block_op *op, uint32_t i);
/* The map of a view's operand. */
const struct space_map *expr_map_view(struct expr *e, const struct block_op *op,
                                      const struct space_map *map);
/* The map with the coordinate along the op's axis, of extent 3, turned by some places. */
const struct space_map *expr_map_turned(struct expr *e, const struct block_op *op,
                                        const struct space_map *map, int64_t by);
/* The map of an operand that has one element for each block of these extents; of rank 0: one for
 * all. */
const struct space_map *expr_map_block(struct expr *e, uint32_t value, const frit_dims *block,
                                       const struct space_map *map);

/* How operands lie in the result of a joining row. */
struct join {
    const struct space_map *map; /* of the result */
    uint32_t axis;
    bool is_new; /* the operands lack the axis */
    int64_t out[FRIT_MAX_RANK];
};

/* The extent along the axis of an operand that has the dims of the result but for it, or -1. */
int64_t expr_piece_extent(const struct expr *e, uint32_t value, const struct join *join);
/* The map of the operand that begins at `begin` along the axis: beyond its ends it says nothing. */
const struct space_map *expr_piece_map(struct expr *e, const struct join *join, int64_t begin);

#endif
