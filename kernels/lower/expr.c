/* SPDX-License-Identifier: Apache-2.0 */
/* Planning: from wanted values back to arguments.
 *
 * Maps are kept once each, so that a node is known by its value and the address of its map.  The
 * depth of the recursion is the length of the longest chain of ops, its frames are small: maps are
 * made in the arena or in frames that do not recurse. */
#include "lower/expr.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "lower/emit.h"
#include "lower/rows.h"

enum { MOST_NODES = 4096 };

void expr_init(struct expr *e, struct sched *s)
{
    *e = (struct expr){.s = s};
    e->seen = arena_array(&e->arena, s->block->n_values + 1u, sizeof(*e->seen));
    if (!e->seen)
        e->status = FRIT_NO_HOST_MEMORY;
}

void expr_fini(struct expr *e)
{
    emit_fini(e);
    free(e->maps);
    free(e->nodes);
    free(e->stores);
    arena_fini(&e->arena);
    *e = (struct expr){0};
}

frit_status expr_status(const struct expr *e, frit_err *err)
{
    if (e->status == FRIT_NO_HOST_MEMORY || e->s->module->failed)
        return fail_memory(err, e->n_nodes * sizeof(*e->nodes));
    if (e->status || e->space.full)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s is not one space with these dims",
                    e->s->module->name);
    return FRIT_OK;
}

bool expr_knows(const struct block *block, uint32_t op)
{
    uint32_t id = block->ops[op].id;

    return lower_row_of(id) || view_row_of(id) || pick_row_of(id) ||
           (join_row_of(id) && block->ops[op].n_in <= FRIT_OP_MAX_IN);
}

void expr_dims(const struct expr *e, uint32_t value, int64_t *dims)
{
    const struct block_value *v = &e->s->block->values[value];

    for (uint32_t d = 0; d < v->rank; d++)
        dims[d] = e->s->extents[v->extent[d]];
}

const frit_arg_sig *expr_arg(const struct expr *e, uint32_t argument)
{
    return (const frit_arg_sig *)(const void *)((const char *)e->s->sig->args +
                                                (size_t)argument * e->s->sig->arg_stride);
}

void expr_args(struct sched *s)
{
    const struct block *block = s->block;

    for (uint32_t i = 0; i < block->n_inputs; i++)
        kir_arg(s->module, block->values[block->inputs[i]].dtype, KIR_READ);
    for (uint32_t i = 0; i < block->n_outputs; i++)
        kir_arg(s->module, block->values[block->outputs[i]].dtype, KIR_WRITE);
}

/* ---- maps ---- */

static bool map_equal(const struct space_map *a, const struct space_map *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, a->rank * sizeof(*a->at)) == 0;
}

/* The kept copy of a map. */
static const struct space_map *keep_map(struct expr *e, const struct space_map *map)
{
    struct space_map *kept;

    for (uint32_t i = e->n_maps; i-- > 0;)
        if (map == e->maps[i] || map_equal(map, e->maps[i]))
            return e->maps[i];
    kept = arena_alloc(&e->arena, sizeof(*kept));
    if (!kept || !array_grow(&e->maps, &e->maps_room, e->n_maps, 1, sizeof(*e->maps))) {
        e->status = FRIT_NO_HOST_MEMORY;
        return NULL;
    }
    *kept = *map;
    return e->maps[e->n_maps++] = kept;
}

/* The map of operand `value` of an elementwise row from that of the result. */
static const struct space_map *operand_map(struct expr *e, uint32_t value, const int64_t *out,
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
        e->status = FRIT_UNSUPPORTED;
        return NULL;
    }
    space_broadcast(map, rank, dims, &narrow);
    return keep_map(e, &narrow);
}

/* The map of a view's operand. */
static const struct space_map *view_map(struct expr *e, const struct block_op *op,
                                        const struct space_map *map)
{
    const struct block_value *in = &e->s->block->values[op->in[0].value];
    struct view view = {&e->space, op->attrs, in->rank, map->rank, {0}, {0}};
    struct space_map through = {0};

    expr_dims(e, op->in[0].value, view.in);
    expr_dims(e, op->out[0], view.out);
    if (!view_row_of(op->id)->fn(&view, map, &through)) {
        e->status = FRIT_UNSUPPORTED;
        return NULL;
    }
    return keep_map(e, &through);
}

/* ---- nodes ---- */

static uint32_t find_node(const struct expr *e, uint32_t value, const struct space_map *map)
{
    for (uint32_t i = e->n_nodes; i-- > 0;)
        if (e->nodes[i].value == value && e->nodes[i].map == map)
            return i;
    return BLOCK_NONE;
}

/* Whether the target computes in the type. */
static bool has_type(const struct expr *e, uint32_t dtype)
{
    enum kir_type type = kir_type_of(dtype);

    return type != KIR_VOID && (type != KIR_F64 || e->s->target->f64) &&
           (type != KIR_I64 || e->s->target->i64);
}

static uint32_t add_node(struct expr *e, const struct expr_node *node)
{
    if (e->n_nodes == MOST_NODES || !has_type(e, e->s->block->values[node->value].dtype)) {
        e->status = FRIT_UNSUPPORTED;
        return BLOCK_NONE;
    }
    if (!array_grow(&e->nodes, &e->nodes_room, e->n_nodes, 1, sizeof(*e->nodes))) {
        e->status = FRIT_NO_HOST_MEMORY;
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
    struct expr_node node = {.kind = EXPR_OP, .value = value, .n_in = op->n_in, .map = map};
    int64_t dims[FRIT_MAX_RANK];

    if (op->n_in > FRIT_OP_MAX_IN || (op->n_extra && !e->s->target->i64)) {
        e->status = FRIT_UNSUPPORTED;
        return BLOCK_NONE;
    }
    expr_dims(e, value, dims);
    for (uint32_t i = 0; i < op->n_in && !e->status; i++) {
        const struct space_map *to;

        node.in[i] = BLOCK_NONE;
        if (op->in[i].kind != FRIT_OPERAND_TENSOR) {
            if (!has_type(e, op->in[i].dtype))
                e->status = FRIT_UNSUPPORTED;
            continue;
        }
        to = operand_map(e, op->in[i].value, dims, map);
        if (to)
            node.in[i] = plan(e, op->in[i].value, to);
    }
    if (e->status)
        return BLOCK_NONE;
    node.indexed = row->at != LOWER_NOTHING;
    if (row->at == LOWER_NUMBER) {
        node.at = space_linear(map, dims);
    } else if (row->at == LOWER_DIAGONAL && map->rank >= 2) {
        node.at = map->at[map->rank - 1];
        space_add(&node.at, &map->at[map->rank - 2], -1);
    }
    return add_node(e, &node);
}

/* The map of the operand that an op reads where its index operand says: the index is planned. */
static const struct space_map *pick_map(struct expr *e, const struct block_op *op,
                                        const struct space_map *map)
{
    const struct block_value *values = e->s->block->values;
    uint32_t x = op->in[0].value, index = op->in[1].value, axis, node;
    struct pick *pick = arena_alloc(&e->arena, sizeof(*pick));
    struct space_map *maps = arena_array(&e->arena, 2, sizeof(*maps));

    if (!pick || !maps) {
        e->status = FRIT_NO_HOST_MEMORY;
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
        e->status = FRIT_UNSUPPORTED;
        return NULL;
    }
    node = expr_node(e, index, &maps[1]);
    if (node == BLOCK_NONE)
        return NULL;
    maps[0].at[axis] = space_found(&e->space, pick->dims[axis], node);
    return keep_map(e, &maps[0]);
}

/* Whether an operand has the dims of the result but along the axis. */
static bool piece_fits(const struct expr *e, uint32_t value, const int64_t *out, uint32_t rank,
                       uint32_t axis, int64_t *dims)
{
    if (e->s->block->values[value].rank != rank)
        return false;
    expr_dims(e, value, dims);
    for (uint32_t d = 0; d < rank; d++)
        if (d != axis && dims[d] != out[d])
            return false;
    return true;
}

/* The map of the operand that begins at `begin` along the axis: beyond its ends it says nothing. */
static const struct space_map *piece_map(struct expr *e, const struct space_map *map, uint32_t axis,
                                         int64_t begin)
{
    struct space_map piece = *map;

    piece.at[axis].c -= begin;
    return keep_map(e, &piece);
}

static uint32_t add_join(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block_op *op = &e->s->block->ops[e->s->block->values[value].maker];
    struct expr_node node = {
        .kind = EXPR_JOIN, .value = value, .n_in = op->n_in, .map = map, .indexed = true};
    int64_t dims[FRIT_MAX_RANK], out[FRIT_MAX_RANK], end = 0;
    int64_t axis = ((const frit_attrs_axis *)op->attrs)->axis;
    bool fits = op->n_in <= FRIT_OP_MAX_IN && axis >= 0 && axis < map->rank;

    expr_dims(e, value, out);
    for (uint32_t i = 0; fits && i < op->n_in; i++) {
        const struct space_map *piece;

        fits = piece_fits(e, op->in[i].value, out, map->rank, (uint32_t)axis, dims);
        if (!fits)
            break;
        piece = piece_map(e, map, (uint32_t)axis, end);
        node.in[i] = piece && dims[axis] ? plan(e, op->in[i].value, piece) : BLOCK_NONE;
        node.end[i] = end += dims[axis];
    }
    if (e->status || !fits || end != out[axis]) {
        e->status = e->status ? e->status : FRIT_UNSUPPORTED;
        return BLOCK_NONE;
    }
    node.at = map->at[axis];
    return add_node(e, &node);
}

/* `map` is kept.  Goes through views, and what is read by index, to what they view. */
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
        map = view_row_of(op->id) ? view_map(e, op, map) : pick_map(e, op, map);
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
        return add_op(e, value, map);
    if (join_row_of(block->ops[v->maker].id))
        return add_join(e, value, map);
    return add_node(e, &(struct expr_node){.kind = EXPR_BOUND, .value = value, .map = map});
}

uint32_t expr_node(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct space_map *kept = e->status ? NULL : keep_map(e, map);

    return kept ? plan(e, value, kept) : BLOCK_NONE;
}

uint32_t expr_store(struct expr *e, uint32_t value, const struct space_map *map)
{
    const struct block *block = e->s->block;
    uint32_t node = expr_node(e, value, map), output = block->values[value].output;

    if (node == BLOCK_NONE)
        return BLOCK_NONE;
    if (!array_grow(&e->stores, &e->stores_room, e->n_stores, 1, sizeof(*e->stores))) {
        e->status = FRIT_NO_HOST_MEMORY;
        return BLOCK_NONE;
    }
    e->stores[e->n_stores] = (struct expr_store){
        node, output, space_offset(map, expr_arg(e, block->n_inputs + output)->strides)};
    return e->n_stores++;
}

const struct space_map *expr_seen(const struct expr *e, uint32_t value)
{
    return e->status ? NULL : e->seen[value];
}

/* ---- settling ---- */

void expr_settle(struct expr *e)
{
    struct space_expr **in_use;
    uint32_t n = 0;

    if (e->status)
        return;
    in_use = arena_array(&e->arena, (size_t)e->n_nodes + e->n_stores + 1, sizeof(*in_use));
    if (!in_use) {
        e->status = FRIT_NO_HOST_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_LOAD || e->nodes[i].indexed)
            in_use[n++] = &e->nodes[i].at;
    for (uint32_t i = 0; i < e->n_stores; i++)
        in_use[n++] = &e->stores[i].at;
    space_settle(&e->space, in_use, n);
    emit_plan(e);
}

/* ---- aliases ---- */

static const struct expr_store *store_of(const struct expr *e, uint32_t output)
{
    for (uint32_t i = 0; i < e->n_stores; i++)
        if (e->stores[i].output == output)
            return &e->stores[i];
    return NULL;
}

static int64_t count_of(const frit_arg_sig *arg)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < arg->rank; d++)
        count *= arg->dims[d];
    return count;
}

static bool same_size(const frit_arg_sig *a, const frit_arg_sig *b)
{
    return count_of(a) == count_of(b) &&
           frit_storage_bytes(a->dtype, 1) == frit_storage_bytes(b->dtype, 1);
}

/* Whether every load of the value reads where the store writes: since that is each place of a dense
 * tensor, the value's memory begins where the tensor's does. */
static bool read_in_place(const struct expr *e, uint32_t value, const struct expr_store *store)
{
    bool some = false;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        if (e->nodes[i].kind != EXPR_LOAD || e->nodes[i].value != value)
            continue;
        if (!space_equal(&e->nodes[i].at, &store->at))
            return false;
        some = true;
    }
    return some;
}

uint64_t expr_alias(const struct expr *e, uint32_t output)
{
    const struct block *block = e->s->block;
    const struct expr_store *store = store_of(e, output);
    const frit_arg_sig *out = expr_arg(e, block->n_inputs + output);
    uint64_t set = 0;

    if (!store)
        return 0;
    for (uint32_t i = 0; i < block->n_inputs && i < 64; i++)
        if (same_size(expr_arg(e, i), out) && read_in_place(e, block->inputs[i], store))
            set |= 1ull << i;
    return set;
}
