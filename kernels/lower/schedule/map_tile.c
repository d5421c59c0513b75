/* SPDX-License-Identifier: Apache-2.0 */
/* Maps with operands that lie across: neighbours along the innermost dim are far apart in memory,
 * those along another dim, `across`, are neighbours there.  A group has a square of the two dims.
 * It reads such operands along the other dim into tiles, and after a barrier goes over the square
 * along the innermost one.  A line of a tile has one element more than the square, so that lanes
 * that read across do not meet in one bank. */
#include <stdlib.h>

#include "lower/expr/delinearize.h"
#include "lower/schedule/map.h"

enum {
    MOST_SIDE = 64,
    LEAST_SIDE = 16,
    LEAST_EXTENT = 32, /* of both dims */
    LEAST_COUNT = 1 << 14,
    FAR_BYTES = 64, /* between neighbours that do not share much in a cache */
    MOST_TILES = 4,
    MOST_ROUNDS = 8 /* over the square that are written out */
};

enum { OUTSIDE, INSIDE }; /* tags: of the square or not */

struct tiled {
    struct expr *e;
    struct kir_module *m;
    uint32_t inner, across; /* dims */
    uint32_t n, node[MOST_TILES], tile[MOST_TILES];
    uint32_t side, lanes;
    struct delinearizer outer;
    uint32_t begin[2];     /* of the group's square: along the innermost dim, the other one */
    uint32_t end[2];       /* of the dims, or KIR_NONE: squares fill them */
    uint32_t major, minor; /* of the lane in a line of lines: `lanes` / `side` lines at once */
};

/* ---- whether, and how ---- */

/* The dim along which the load's elements are neighbours, while those along the innermost one are
 * far apart; else the innermost. */
static uint32_t across_of(const struct expr *e, const struct expr_node *node)
{
    const int64_t bytes = (int64_t)frit_storage_bytes(e->s->block->values[node->value].dtype, 1);
    uint32_t inner = e->space.n_dims - 1;
    int64_t step = llabs(node->at.k[inner]);

    for (uint32_t v = SPACE_DIMS; v < SPACE_VARS; v++)
        if (node->at.k[v])
            return inner;
    for (uint32_t d = 0; d < inner; d++)
        if (step * bytes >= FAR_BYTES && llabs(node->at.k[d]) == 1 &&
            e->space.extent[d] >= LEAST_EXTENT)
            return d;
    return inner;
}

/* Marks what stores are made of whatever the point: no read that has a condition of its own. */
static bool *find_free(const struct expr *e)
{
    bool *is_free = calloc(e->n_nodes + 1u, sizeof(*is_free));

    for (uint32_t i = 0; is_free && i < e->n_stores; i++)
        is_free[e->stores[i].node] = true;
    for (uint32_t i = e->n_nodes; is_free && i-- > 0;) {
        const struct expr_node *node = &e->nodes[i];

        for (uint32_t k = 0; is_free[i] && node->kind == EXPR_OP && k < node->n_in; k++)
            if (node->in[k] != BLOCK_NONE)
                is_free[node->in[k]] = true;
    }
    return is_free;
}

static void find_loads(struct tiled *t, const bool *is_free)
{
    for (uint32_t i = 0; i < t->e->n_nodes && t->n < MOST_TILES; i++) {
        uint32_t across = t->inner;

        if (is_free[i] && t->e->nodes[i].kind == EXPR_LOAD)
            across = across_of(t->e, &t->e->nodes[i]);
        if (across == t->inner || (t->n && across != t->across))
            continue;
        t->across = across;
        t->node[t->n++] = i;
    }
}

static enum kir_type tile_type(const struct tiled *t, uint32_t i)
{
    enum kir_type type = expr_type(t->e, t->node[i]);

    return type == KIR_B ? KIR_I32 : type;
}

static uint32_t tile_bytes(const struct tiled *t)
{
    uint32_t bytes = 0;

    for (uint32_t i = 0; i < t->n; i++)
        bytes += tile_type(t, i) == KIR_I64 || tile_type(t, i) == KIR_F64 ? 8 : 4;
    return bytes * t->side * (t->side + 1);
}

/* Where groups are loops of one thread a line at a time keeps neighbours in one vector. */
static bool plan(struct tiled *t)
{
    const struct kir_target *target = t->e->s->target;
    const struct space *space = &t->e->space;
    int64_t count = 1;
    bool *is_free;

    for (uint32_t d = 0; d < space->n_dims; d++)
        count *= space->extent[d];
    if (space->n_dims < 2 || count < LEAST_COUNT || space->extent[t->inner] < LEAST_EXTENT)
        return false;
    is_free = find_free(t->e);
    if (!is_free) {
        expr_fail(t->e, FRIT_NO_HOST_MEMORY);
        return false;
    }
    find_loads(t, is_free);
    free(is_free);
    for (t->side = MOST_SIDE; t->side >= LEAST_SIDE && tile_bytes(t) > target->group_bytes;)
        t->side /= 2;
    t->lanes = target->caches_rows || target->lanes < t->side ? t->side : target->lanes;
    if (t->lanes > t->side * t->side)
        t->lanes = t->side * t->side;
    return t->n && t->side >= LEAST_SIDE;
}

/* ---- emitting ---- */

/* Squares along a dim of the square. */
static int64_t squares(const struct tiled *t, uint32_t dim)
{
    return (t->e->space.extent[dim] + t->side - 1) / t->side;
}

/* Where the group's square begins, and its point in the other dims. */
static void set_square(struct tiled *t)
{
    const uint32_t dims[2] = {t->inner, t->across};
    struct sched *s = t->e->s;
    uint32_t rest = sched_wide(s, kir_emit_imm(t->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));

    for (uint32_t i = 0; i < 2; i++) {
        int64_t extent = t->e->space.extent[dims[i]], n = squares(t, dims[i]);
        uint32_t at = n > 1 ? rest : kir_index(t->m, 0);

        if (n > 1) {
            struct sched_divisor by = sched_divisor(s, n);

            rest = sched_divide(s, &by, at);
            at = kir_binary(t->m, KIR_sub, at, kir_binary(t->m, KIR_mul, rest, sched_index(s, n)));
        }
        t->begin[i] = kir_binary(t->m, KIR_mul, at, kir_index(t->m, t->side));
        t->end[i] = extent % t->side ? sched_index(s, extent) : KIR_NONE;
    }
    delinearize_set(&t->outer, t->e, rest);
}

static void set_lane(struct tiled *t)
{
    uint32_t lane = kir_emit(t->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    uint32_t side = kir_const_i(t->m, KIR_I32, t->side);

    t->major = kir_const_i(t->m, KIR_I32, 0);
    t->minor = lane;
    if (t->lanes > t->side) {
        t->major = kir_binary(t->m, KIR_udiv, lane, side);
        t->minor = kir_binary(t->m, KIR_and, lane, kir_const_i(t->m, KIR_I32, t->side - 1));
    }
}

/* Sets both dims to where the lane is in line `line`, along dim number `along` of the square.
 * Gives the mask. */
static uint32_t set_point(const struct tiled *t, uint32_t line, uint32_t along)
{
    const uint32_t dims[2] = {t->inner, t->across};
    uint32_t mask = KIR_NONE;

    for (uint32_t i = 0; i < 2; i++) {
        uint32_t at = sched_wide(t->e->s, i == along ? t->minor : line), inside;

        at = kir_binary(t->m, KIR_add, t->begin[i], at);
        expr_set(t->e, dims[i], at);
        if (t->end[i] == KIR_NONE)
            continue;
        inside = kir_binary(t->m, KIR_lt, at, t->end[i]);
        mask = mask == KIR_NONE ? inside : kir_binary(t->m, KIR_and, mask, inside);
    }
    return mask;
}

/* Reads along `across` into the tiles. */
static void read_lines(const struct tiled *t, const uint32_t *lines, uint32_t n)
{
    uint32_t value[MOST_ROUNDS][MOST_TILES];

    for (uint32_t k = 0; k < n; k++) {
        uint32_t mark = expr_mark(t->e);

        expr_mask(t->e, set_point(t, lines[k], 1));
        for (uint32_t i = 0; i < t->n; i++)
            value[k][i] = expr_value(t->e, t->node[i]);
        expr_release(t->e, mark);
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = kir_binary(t->m, KIR_mul, lines[k], kir_const_i(t->m, KIR_I32, t->side + 1));

        at = kir_binary(t->m, KIR_add, at, t->minor);
        for (uint32_t i = 0; i < t->n; i++) {
            if (kir_type_at(t->m, value[k][i]) == KIR_B)
                value[k][i] = kir_unary(t->m, KIR_i32, value[k][i]);
            kir_emit_imm(t->m, KIR_tstore, t->tile[i], at, value[k][i], KIR_NONE);
        }
    }
}

static void bind_tiles(const struct tiled *t, uint32_t line)
{
    uint32_t at = kir_binary(t->m, KIR_mul, t->minor, kir_const_i(t->m, KIR_I32, t->side + 1));

    at = kir_binary(t->m, KIR_add, at, line);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t value =
            kir_emit_as(t->m, KIR_tload, tile_type(t, i), t->tile[i], at, KIR_NONE, KIR_NONE);

        if (expr_type(t->e, t->node[i]) == KIR_B)
            value = kir_binary(t->m, KIR_ne, value, kir_const_i(t->m, KIR_I32, 0));
        expr_bind(t->e, t->node[i], value);
    }
}

/* Stores along the innermost dim, with what the tiles have.  All values are made before the first
 * store, so that what else is read does not wait for it. */
static void store_lines(const struct tiled *t, const uint32_t *lines, uint32_t n)
{
    uint32_t value[MOST_ROUNDS][SCHED_OUTPUTS] = {0}, mark;

    for (uint32_t k = 0; k < n; k++) {
        mark = expr_mark(t->e);
        expr_mask(t->e, set_point(t, lines[k], 0));
        bind_tiles(t, lines[k]);
        for (uint32_t i = 0; i < t->e->n_stores; i++)
            value[k][i] = expr_value(t->e, t->e->stores[i].node);
        expr_release(t->e, mark);
    }
    for (uint32_t k = 0; k < n; k++) {
        mark = expr_mark(t->e);
        expr_mask(t->e, set_point(t, lines[k], 0));
        for (uint32_t i = 0; i < t->e->n_stores; i++) {
            expr_bind(t->e, t->e->stores[i].node, value[k][i]);
            expr_emit_store(t->e, i);
        }
        expr_release(t->e, mark);
    }
}

/* All lines of the square, as many at once as the group has lanes for. */
static void each_line(const struct tiled *t,
                      void (*emit)(const struct tiled *t, const uint32_t *lines, uint32_t n))
{
    uint32_t step = t->lanes / t->side, lines[MOST_ROUNDS], n = 0;

    if (t->side / step > MOST_ROUNDS) {
        lines[0] =
            kir_for(t->m, kir_const_i(t->m, KIR_I32, 0), kir_const_i(t->m, KIR_I32, t->side), step);
        lines[0] = kir_binary(t->m, KIR_add, lines[0], t->major);
        emit(t, lines, 1);
        kir_next(t->m, NULL, 0);
        return;
    }
    for (uint32_t line = 0; line < t->side; line += step)
        lines[n++] = kir_binary(t->m, KIR_add, t->major, kir_const_i(t->m, KIR_I32, line));
    emit(t, lines, n);
}

int64_t map_tiled(struct expr *e)
{
    struct tiled t = {.e = e, .m = e->s->module, .inner = e->space.n_dims - 1};
    int64_t groups;

    if (!plan(&t))
        return 0;
    e->space.tag[t.inner] = e->space.tag[t.across] = INSIDE;
    delinearize_init(&t.outer, e, OUTSIDE);
    groups = t.outer.count * squares(&t, t.inner) * squares(&t, t.across);
    if (groups > INT32_MAX)
        return 0;
    kir_phase(t.m, t.lanes);
    expr_phase(e);
    delinearize_phase(&t.outer, e);
    for (uint32_t i = 0; i < t.n; i++)
        t.tile[i] = kir_tile(t.m, KIR_GROUP, tile_type(&t, i), t.side * (t.side + 1));
    set_square(&t);
    set_lane(&t);
    expr_hoist(e);
    each_line(&t, read_lines);
    kir_emit(t.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    each_line(&t, store_lines);
    return groups;
}
