/* SPDX-License-Identifier: Apache-2.0 */
/* Planning, from requested values back to arguments.
 *
 * Each map is stored once, so a value and the address of its map identify a node.  The recursion is
 * as deep as the longest chain of ops; its frames are small, since maps are allocated in the arena
 * or in functions that do not recurse. */
#include "lower/expr/expr.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "lower/expr/expr_alias.h"
#include "lower/expr/expr_emit.h"
#include "lower/expr/expr_index.h"
#include "lower/expr/expr_map.h"
#include "lower/rows/packed.h"
#include "lower/rows/rows.h"

enum { MAX_NODES = 4096 };

void expr_init(struct expr *e, struct sched *s)
{
    *e = (struct expr){.s = s};
    e->seen = arena_array(&e->arena, s->block->n_values + 1u, sizeof(*e->seen));
    if (!e->seen)
        expr_fail(e, FRIT_NO_HOST_MEMORY);
}

void expr_fini(struct expr *e)
{
    emit_fini(e);
    free(e->maps);
    free(e->nodes);
    free(e->stores);
    free(e->coords);
    arena_fini(&e->arena);
    *e = (struct expr){0};
}

void expr_fail(struct expr *e, frit_status status)
{
    if (!e->status)
        e->status = status;
}

frit_status expr_status(const struct expr *e, frit_err *err)
{
    if (e->status == FRIT_NO_HOST_MEMORY || e->s->module->failed)
        return fail_memory(err, e->n_nodes * sizeof(*e->nodes));
    if (e->status || e->space.overflow)
        return fail(err, FRIT_UNSUPPORTED,
                    "kernels: %s does not fit one iteration space with these dims",
                    e->s->module->name);
    return FRIT_OK;
}

/* Operands of packed types and their scales have other sizes than the result, so they must be
 * arguments: the matchers' size classes assume elementwise operands of equal size. */
static bool has_arguments(const struct block *block, const struct block_op *op)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR &&
            block->values[op->in[i].value].maker != BLOCK_NONE)
            return false;
    return true;
}

/* Each element computes all pieces of all joins, so the number of pieces in a block is limited. */
static bool has_few_pieces(const struct block *block, uint32_t op)
{
    uint32_t pieces = 0;

    for (uint32_t i = 0; i <= op; i++)
        if (join_row_of(block->ops[i].id))
            pieces += block->ops[i].n_in;
    return pieces <= FRIT_OP_MAX_IN;
}

bool expr_supports(const struct block *block, uint32_t op)
{
    uint32_t id = block->ops[op].id;
    const struct lower_row *row = lower_row_of(id);

    if (row && row->at == LOWER_PACKED)
        return has_arguments(block, &block->ops[op]);
    return row || view_row_of(id) || pick_row_of(id) || part_row_of(id) ||
           (join_row_of(id) && has_few_pieces(block, op));
}

void expr_dims(const struct expr *e, uint32_t value, int64_t *dims)
{
    const struct block_value *v = &e->s->block->values[value];

    for (uint32_t d = 0; d < v->rank; d++)
        dims[d] = e->s->extents[v->extent[d]];
}

const frit_arg_sig *expr_arg(const struct expr *e, uint32_t argument)
{
    return frit_arg_sig_at(e->s->sig, argument);
}

void expr_args(struct sched *s)
{
    const struct block *block = s->block;

    for (uint32_t i = 0; i < block->n_inputs; i++)
        kir_arg(s->module, packed_stored(block->values[block->inputs[i]].dtype), KIR_READ);
    for (uint32_t i = 0; i < block->n_outputs; i++)
        kir_arg(s->module, packed_stored(block->values[block->outputs[i]].dtype), KIR_WRITE);
}

/* ---- nodes ---- */

static uint32_t find_node(const struct expr *e, uint32_t value, const struct space_map *map)
{
    for (uint32_t i = e->n_nodes; i-- > 0;)
        if (e->nodes[i].value == value && e->nodes[i].map == map && e->nodes[i].kind != EXPR_GUARD)
            return i;
    return BLOCK_NONE;
}

/* Whether the target has arithmetic of the type. */
static bool has_type(const struct expr *e, uint32_t dtype)
{
    enum kir_type type = kir_type_of(dtype);

    return type != KIR_VOID && (type != KIR_F64 || e->s->target->f64) &&
           (type != KIR_I64 || e->s->target->i64);
}

static uint32_t add_node(struct expr *e, const struct expr_node *node)
{
    uint32_t dtype = e->s->block->values[node->value].dtype;

    if (node->kind == EXPR_LOAD)
        dtype = packed_stored(dtype);
    if (e->n_nodes == MAX_NODES || !has_type(e, dtype)) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return BLOCK_NONE;
    }
    if (!array_grow(&e->nodes, &e->nodes_capacity, e->n_nodes, 1, sizeof(*e->nodes))) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return BLOCK_NONE;
    }
    e->nodes[e->n_nodes] = *node;
    return e->n_nodes++;
}

static uint32_t add_load(struct expr *e, uint32_t value, const struct space_map *map)
{
    const frit_arg_sig *arg = expr_arg(e, e->s->block->values[value].input);

    return add_node(e, &(struct expr_node){.kind = EXPR_LOAD,
                                           .value = value,
                                           .map = map,
                                           .at = space_offset(map, arg->strides)});
}

static uint32_t plan(struct expr *e, uint32_t value, const struct space_map *map);

static uint32_t add_op(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block_op *op = &e->s->block->ops[e->s->block->values[value].maker];
    const struct lower_row *row = lower_row_of(op->id);
    bool turned = row->at == LOWER_TURNED;
    struct expr_node node = {
        .kind = EXPR_OP, .value = value, .n_in = turned ? 4 : op->n_in, .map = map};
    int64_t dims[FRIT_MAX_RANK];

    if (op->n_in > FRIT_OP_MAX_IN || (op->n_extra && !e->s->target->i64)) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return BLOCK_NONE;
    }
    expr_dims(e, value, dims);
    for (uint32_t i = 0; i < node.n_in && !e->status; i++) {
        const struct block_input *in = &op->in[i % op->n_in];
        const struct space_map *to =
            turned ? expr_map_rotated(e, op, map, i == 0 || i == 3 ? 1 : 2) : map;

        node.in[i] = BLOCK_NONE;
        if (in->kind != FRIT_OPERAND_TENSOR) {
            if (!has_type(e, in->dtype))
                expr_fail(e, FRIT_UNSUPPORTED);
            continue;
        }
        to = to ? expr_map_operand(e, in->value, dims, to) : NULL;
        if (to)
            node.in[i] = plan(e, in->value, to);
    }
    if (e->status)
        return BLOCK_NONE;
    node.indexed = row->at == LOWER_NUMBER || row->at == LOWER_DIAGONAL;
    if (row->at == LOWER_NUMBER) {
        node.at = space_linear(map, dims);
    } else if (row->at == LOWER_DIAGONAL && map->rank >= 2) {
        node.at = map->at[map->rank - 1];
        space_add(&node.at, &map->at[map->rank - 2], -1);
    }
    return add_node(e, &node);
}

/* Plans the byte that contains the packed element; adds the bit position in it to `at`. */
static uint32_t packed_byte(struct expr *e, uint32_t value, const struct space_map *map,
                            struct space_expr *at)
{
    int64_t dims[FRIT_MAX_RANK], width = packed_width(e->s->block->values[value].dtype);
    struct expr_node byte = {.kind = EXPR_LOAD, .value = value, .map = map};
    struct space_expr number;
    uint32_t found = find_node(e, value, map);

    expr_dims(e, value, dims);
    number = space_linear(map, dims);
    byte.at = space_div(&e->space, &number, 8 / width);
    space_add(at, &number, width);
    space_add(at, &byte.at, -8);
    return found == BLOCK_NONE ? add_node(e, &byte) : found;
}

/* Plans an op with a packed first operand and scales of its blocks as the others. */
static uint32_t add_packed(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block_op *op = &e->s->block->ops[e->s->block->values[value].maker];
    const frit_attrs_dequantize *attrs = op->attrs;
    struct expr_node node = {.kind = EXPR_OP, .value = value, .map = map};

    node.in[0] = packed_byte(e, op->in[0].value, map, &node.at);
    node.indexed = packed_width(e->s->block->values[op->in[0].value].dtype) < 8;
    for (node.n_in = 1; node.n_in < op->n_in && !e->status; node.n_in++) {
        const struct block_input *in = &op->in[node.n_in];
        const struct space_map *to;

        if (in->kind != FRIT_OPERAND_TENSOR)
            break;
        to = expr_map_block(e, in->value, &attrs->block, map);
        node.in[node.n_in] = to ? find_node(e, in->value, to) : BLOCK_NONE;
        if (to && node.in[node.n_in] == BLOCK_NONE)
            node.in[node.n_in] = add_load(e, in->value, to);
    }
    return e->status ? BLOCK_NONE : add_node(e, &node);
}

/* Plans the index of an op that reads its operand by index; returns the operand's map. */
static const struct space_map *pick_map(struct expr *e, const struct block_op *op,
                                        const struct space_map *map)
{
    const struct block_value *values = e->s->block->values;
    uint32_t x = op->in[0].value, index = op->in[1].value, axis, node;
    struct pick *pick = arena_alloc(&e->arena, sizeof(*pick));
    struct space_map *maps = arena_array(&e->arena, 2, sizeof(*maps));
    const struct space_map *of_index;

    if (!pick || !maps) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return NULL;
    }
    *pick = (struct pick){.attrs = op->attrs,
                          .rank = values[x].rank,
                          .index_rank = values[index].rank,
                          .out_rank = map->rank};
    expr_dims(e, x, pick->dims);
    expr_dims(e, index, pick->index);
    expr_dims(e, op->out[0], pick->out);
    if (!pick_row_of(op->id)(pick, map, &maps[0], &maps[1], &axis) || pick->dims[axis] == 0) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return NULL;
    }
    of_index = expr_map_keep(e, &maps[1]);
    node = of_index ? plan(e, index, of_index) : BLOCK_NONE;
    if (node == BLOCK_NONE)
        return NULL;
    maps[0].at[axis] = space_loaded(&e->space, pick->dims[axis], node);
    return expr_map_keep(e, &maps[0]);
}

static uint32_t add_join(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block_op *op = &e->s->block->ops[e->s->block->values[value].maker];
    struct expr_node node = {
        .kind = EXPR_JOIN, .value = value, .n_in = op->n_in, .map = map, .indexed = true};
    int64_t end = 0, axis = ((const frit_attrs_axis *)op->attrs)->axis;
    struct join join = {map, (uint32_t)axis, join_row_of(op->id) == JOIN_NEW, {0}};
    bool fits = op->n_in <= FRIT_OP_MAX_IN && axis >= 0 && axis < map->rank;

    expr_dims(e, value, join.out);
    for (uint32_t i = 0; fits && i < op->n_in; i++) {
        int64_t extent = expr_piece_extent(e, op->in[i].value, &join);
        const struct space_map *piece;

        fits = extent >= 0;
        if (!fits)
            break;
        piece = expr_piece_map(e, &join, end);
        node.in[i] = piece && extent ? plan(e, op->in[i].value, piece) : BLOCK_NONE;
        node.end[i] = end += extent;
    }
    if (e->status || !fits || end != join.out[axis]) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return BLOCK_NONE;
    }
    node.at = map->at[axis];
    return add_node(e, &node);
}

/* ---- guards ---- */

static bool same_bits(double a, double b)
{
    uint64_t of_a, of_b;

    memcpy(&of_a, &a, sizeof(a));
    memcpy(&of_b, &b, sizeof(b));
    return of_a == of_b;
}

/* An existing node equal to the EXPR_GUARD `node`. */
static uint32_t find_guard(const struct expr *e, const struct expr_node *node)
{
    for (uint32_t i = e->n_nodes; i-- > 0;) {
        const struct expr_node *n = &e->nodes[i];

        if (n->kind == EXPR_GUARD && n->value == node->value && n->map == node->map &&
            n->in[1] == node->in[1] && n->fill.scalar == node->fill.scalar &&
            same_bits(n->fill.number, node->fill.number) && n->n_within == node->n_within &&
            memcmp(n->within, node->within, n->n_within * sizeof(*n->within)) == 0)
            return i;
    }
    return BLOCK_NONE;
}

/* Adds the condition 0 <= at < end unless it always holds. */
static void add_within(const struct expr *e, const struct space_expr *at, int64_t end,
                       struct expr_node *node)
{
    int64_t low, high;

    space_range(&e->space, at, &low, &high);
    if (low < 0 || high >= end)
        node->within[node->n_within++] = (struct expr_within){*at, end};
}

/* Plans a GUARD of node->value at node->map, with `n` more conditions.  A value without elements is
 * not planned. */
static uint32_t plan_guard(struct expr *e, struct expr_node *node, const struct expr_within *more,
                           uint32_t n)
{
    int64_t dims[FRIT_MAX_RANK];
    bool empty = false;
    uint32_t found;

    node->kind = EXPR_GUARD;
    node->n_in = 2;
    node->within = arena_array(&e->arena, node->map->rank + n + 1u, sizeof(*node->within));
    if (!node->within) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return BLOCK_NONE;
    }
    expr_dims(e, node->value, dims);
    for (uint32_t d = 0; d < node->map->rank; d++) {
        add_within(e, &node->map->at[d], dims[d], node);
        empty |= dims[d] == 0;
    }
    for (uint32_t i = 0; i < n; i++)
        add_within(e, &more[i].at, more[i].end, node);
    found = find_guard(e, node);
    if (found != BLOCK_NONE)
        return found;
    node->in[0] = empty ? BLOCK_NONE : plan(e, node->value, node->map);
    if (e->status || (!empty && node->n_within == 0))
        return node->in[0];
    return empty && node->in[1] != BLOCK_NONE ? node->in[1] : add_node(e, node);
}

/* Plans an op whose result contains one operand as a part, e.g. padding. */
static uint32_t plan_part(struct expr *e, const struct block_op *op, const struct space_map *map)
{
    const struct part_row *row = part_row_of(op->id);
    const struct block_input *rest = &op->in[row->rest];
    struct view view = expr_view(e, op, row->part);
    struct expr_within *more = arena_array(&e->arena, FRIT_MAX_RANK, sizeof(*more));
    struct space_map *maps = arena_array(&e->arena, 2, sizeof(*maps));
    struct expr_node node = {
        .value = op->in[row->part].value, .in = {BLOCK_NONE, BLOCK_NONE}, .fill = {BLOCK_NONE, 0}};

    if (!maps || !more) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return BLOCK_NONE;
    }
    if (!row->fn(&view, map, &maps[0], &maps[1])) {
        expr_fail(e, FRIT_UNSUPPORTED);
        return BLOCK_NONE;
    }
    node.map = expr_map_keep(e, &maps[0]);
    if (rest->kind == FRIT_OPERAND_SCALAR)
        node.fill.scalar = rest->scalar;
    else
        node.in[1] = plan(e, rest->value, map);
    for (uint32_t d = 0; d < maps[1].rank; d++)
        more[d] = (struct expr_within){maps[1].at[d], 1};
    return node.map && !e->status ? plan_guard(e, &node, more, maps[1].rank) : BLOCK_NONE;
}

/* Plans `value` at `map`, a map of expr_map_keep.  Follows views and reads by index to their
 * operands. */
static uint32_t plan(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block *block = e->s->block;
    const struct block_value *v = &block->values[value];
    uint32_t node;

    while (map && v->maker != BLOCK_NONE && !lower_row_of(block->ops[v->maker].id)) {
        const struct block_op *op = &block->ops[v->maker];

        if (!view_row_of(op->id) && !pick_row_of(op->id))
            break;
        if (!e->seen[value])
            e->seen[value] = map;
        map = view_row_of(op->id) ? expr_map_view(e, op, map) : pick_map(e, op, map);
        value = op->in[0].value;
        v = &block->values[value];
    }
    if (!map || e->status)
        return BLOCK_NONE;
    if (!e->seen[value])
        e->seen[value] = map;
    node = find_node(e, value, map);
    if (node != BLOCK_NONE)
        return node;
    if (v->maker == BLOCK_NONE)
        return add_load(e, value, map);
    if (lower_row_of(block->ops[v->maker].id))
        return lower_row_of(block->ops[v->maker].id)->at == LOWER_PACKED ? add_packed(e, value, map)
                                                                         : add_op(e, value, map);
    if (join_row_of(block->ops[v->maker].id))
        return add_join(e, value, map);
    if (part_row_of(block->ops[v->maker].id))
        return plan_part(e, &block->ops[v->maker], map);
    return add_node(e, &(struct expr_node){.kind = EXPR_EXTERNAL, .value = value, .map = map});
}

uint32_t expr_node(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct space_map *kept = e->status ? NULL : expr_map_keep(e, map);

    return kept ? plan(e, value, kept) : BLOCK_NONE;
}

uint32_t expr_guard(struct expr *e, uint32_t value, const struct space_map *map,
                    struct expr_fill fill)
{
    return expr_guard_where(e, value, map, fill, NULL, 0);
}

uint32_t expr_guard_where(struct expr *e, uint32_t value, const struct space_map *map,
                          struct expr_fill fill, const struct expr_within *more, uint32_t n)
{
    struct expr_node node = {.value = value,
                             .in = {BLOCK_NONE, BLOCK_NONE},
                             .map = e->status ? NULL : expr_map_keep(e, map),
                             .fill = fill};

    return node.map ? plan_guard(e, &node, more, n) : BLOCK_NONE;
}

uint32_t expr_coord(struct expr *e, const struct space_expr *at)
{
    if (!array_grow(&e->coords, &e->coords_capacity, e->n_coords, 1, sizeof(*e->coords))) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return 0;
    }
    e->coords[e->n_coords] = *at;
    return e->n_coords++;
}

uint32_t expr_store(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block *block = e->s->block;
    uint32_t node = expr_node(e, value, map), output = block->values[value].output;

    if (node == BLOCK_NONE)
        return BLOCK_NONE;
    if (!array_grow(&e->stores, &e->stores_capacity, e->n_stores, 1, sizeof(*e->stores))) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return BLOCK_NONE;
    }
    e->stores[e->n_stores] = (struct expr_store){
        node, output, space_offset(map, expr_arg(e, block->n_inputs + output)->strides)};
    return e->n_stores++;
}

const struct space_map *expr_first_map(const struct expr *e, uint32_t value)
{
    return e->status ? NULL : e->seen[value];
}

/* ---- settling ---- */

void expr_settle(struct expr *e)
{
    size_t capacity = (size_t)e->n_nodes + e->n_stores + e->n_coords + 1;
    struct space_expr **in_use;
    uint32_t n = 0;

    if (e->status)
        return;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        capacity += e->nodes[i].n_within;
    in_use = arena_array(&e->arena, capacity, sizeof(*in_use));
    if (!in_use) {
        expr_fail(e, FRIT_NO_HOST_MEMORY);
        return;
    }
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_LOAD || e->nodes[i].indexed)
            in_use[n++] = &e->nodes[i].at;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        for (uint32_t k = 0; k < e->nodes[i].n_within; k++)
            in_use[n++] = &e->nodes[i].within[k].at;
    for (uint32_t i = 0; i < e->n_stores; i++)
        in_use[n++] = &e->stores[i].at;
    for (uint32_t i = 0; i < e->n_coords; i++)
        in_use[n++] = &e->coords[i];
    space_settle(&e->space, in_use, n);
    emit_inputs(e);
    emit_plan(e);
}
