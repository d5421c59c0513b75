/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/expr/expr_map.h"

#include <string.h>

#include "base/array.h"
#include "lower/rows/rows.h"

static bool map_equal(const struct space_map *a, const struct space_map *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, a->rank * sizeof(*a->at)) == 0;
}

const struct space_map *expr_map_keep(struct expr *e, const struct space_map *map)
{
    struct space_map *kept;

    for (uint32_t i = e->n_maps; i-- > 0;)
        if (map == e->maps[i] || map_equal(map, e->maps[i]))
            return e->maps[i];
    kept = arena_alloc(&e->arena, sizeof(*kept));
    if (!kept || !array_grow(&e->maps, &e->maps_capacity, e->n_maps, 1, sizeof(*e->maps))) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return NULL;
    }
    *kept = *map;
    return e->maps[e->n_maps++] = kept;
}

const struct space_map *expr_map_operand(struct expr *e, uint32_t value, const int64_t *out,
                                         const struct space_map *map)
{
    struct space_map narrow;
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = e->s->block->values[value].rank;
    bool fits = rank <= map->rank;

    expr_dims(e, value, dims);
    for (uint32_t d = 0; fits && d < rank; d++)
        fits = dims[d] == 1 || dims[d] == out[map->rank - rank + d];
    if (!fits) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return NULL;
    }
    space_broadcast(map, rank, dims, &narrow);
    return expr_map_keep(e, &narrow);
}

struct view expr_view(struct expr *e, const struct block_op *op, uint32_t i)
{
    const struct block_value *values = e->s->block->values;
    struct view view = {.space = &e->space,
                        .attrs = op->attrs,
                        .in_rank = values[op->in[i].value].rank,
                        .out_rank = values[op->out[0]].rank,
                        .s = e->s,
                        .first_bound = op->first_bound};

    expr_dims(e, op->in[i].value, view.in);
    expr_dims(e, op->out[0], view.out);
    return view;
}

const struct space_map *expr_map_view(struct expr *e, const struct block_op *op,
                                      const struct space_map *map)
{
    struct view view = expr_view(e, op, 0);
    struct space_map through = {0};

    if (!view_row_of(op->id)->fn(&view, map, &through)) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return NULL;
    }
    return expr_map_keep(e, &through);
}

const struct space_map *expr_map_rotated(struct expr *e, const struct block_op *op,
                                         const struct space_map *map, int64_t by)
{
    int64_t axis = ((const frit_attrs_axis *)op->attrs)->axis;
    struct space_map turned = *map;
    struct space_expr rounds;

    if (axis < 0 || axis >= map->rank) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return NULL;
    }
    turned.at[axis].c += by;
    rounds = space_div(&e->space, &turned.at[axis], 3);
    space_add(&turned.at[axis], &rounds, -3);
    return expr_map_keep(e, &turned);
}

const struct space_map *expr_map_block(struct expr *e, uint32_t value, const frit_dims *block,
                                       const struct space_map *map)
{
    struct space_map blocks = {0};

    if (e->s->block->values[value].rank == 0)
        return expr_map_keep(e, &blocks);
    if (block->rank != map->rank || e->s->block->values[value].rank != map->rank) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return NULL;
    }
    blocks.rank = map->rank;
    for (uint32_t d = 0; d < map->rank; d++)
        blocks.at[d] = space_div(&e->space, &map->at[d], block->dim[d] > 1 ? block->dim[d] : 1);
    return expr_map_keep(e, &blocks);
}

/* ---- pieces of joining rows ---- */

int64_t expr_piece_extent(const struct expr *e, uint32_t value, const struct join *join)
{
    int64_t dims[FRIT_MAX_RANK];
    uint32_t rank = join->map->rank - join->is_new;

    if (e->s->block->values[value].rank != rank)
        return -1;
    expr_dims(e, value, dims);
    for (uint32_t d = 0; d < rank; d++)
        if ((join->is_new || d != join->axis) &&
            dims[d] != join->out[d + (join->is_new && d >= join->axis)])
            return -1;
    return join->is_new ? 1 : dims[join->axis];
}

const struct space_map *expr_piece_map(struct expr *e, const struct join *join, int64_t begin)
{
    struct space_map piece = *join->map;

    if (!join->is_new) {
        piece.at[join->axis].c -= begin;
        return expr_map_keep(e, &piece);
    }
    piece.rank--;
    for (uint32_t d = join->axis; d < piece.rank; d++)
        piece.at[d] = piece.at[d + 1];
    return expr_map_keep(e, &piece);
}
