/* SPDX-License-Identifier: Apache-2.0 */
/* Maps with transposed operands: their elements are far apart in memory along the innermost dim,
 * and neighbours along another dim, `across`.  A group has a square of these two dims.  It reads
 * transposed operands along `across` into tiles and, after a barrier, visits the square along the
 * innermost dim.  A line of a tile is one element longer than the square, which avoids bank
 * conflicts.  Other operands are loaded before the barrier too, so that one wait is enough. */
#include <stdlib.h>

#include "lower/expr/delinearize.h"
#include "lower/schedule/map.h"

enum {
    MAX_TILES = 4,
    MAX_ROUNDS = 8, /* over the square that are unrolled */
    MAX_DIRECT = 2  /* other operands that are loaded before the barrier */
};

enum { OUTSIDE, INSIDE }; /* tags: dims that are not, or are, of the square */

struct tiled {
    struct expr *e;
    struct kir_module *m;
    uint32_t inner, across; /* dims */
    uint32_t n, node[MAX_TILES], tile[MAX_TILES];
    uint32_t n_direct, direct[MAX_DIRECT]; /* loads before the barrier, if lines are unrolled */
    uint32_t loaded[MAX_ROUNDS][MAX_DIRECT];
    uint32_t side, lanes;
    struct delinearizer outer;
    uint32_t begin[2]; /* the group's square: along the innermost dim, along `across` */
    uint32_t end[2];   /* ends of the dims; KIR_NONE: a multiple of the side */
    uint32_t major,
        minor; /* the lane's line, of `lanes` / `side` at once, and its element in the line */
};

/* ---- planning ---- */

/* The dim along which the load's elements are neighbours, if those along the innermost dim are far
 * apart; else the innermost dim. */
static uint32_t across_of(const struct expr *e, const struct expr_node *node)
{
    const int64_t bytes = (int64_t)frit_storage_bytes(e->s->block->values[node->value].dtype, 1);
    const struct kir_tuning tuning = sched_tuning(e->s);
    uint32_t inner = e->space.n_dims - 1;
    int64_t step = llabs(node->at.k[inner]);

    for (uint32_t v = SPACE_DIMS; v < SPACE_VARS; v++)
        if (node->at.k[v])
            return inner;
    for (uint32_t d = 0; d < inner; d++)
        if (step * bytes >= tuning.far_bytes && llabs(node->at.k[d]) == 1 &&
            e->space.extent[d] >= tuning.tile_extent)
            return d;
    return inner;
}

/* Marks the nodes that every store needs at every point, so that their loads are unconditional. */
static bool *find_unconditional(const struct expr *e)
{
    bool *unconditional = calloc(e->n_nodes + 1u, sizeof(*unconditional));

    for (uint32_t i = 0; unconditional && i < e->n_stores; i++)
        unconditional[e->stores[i].node] = true;
    for (uint32_t i = e->n_nodes; unconditional && i-- > 0;) {
        const struct expr_node *node = &e->nodes[i];

        for (uint32_t k = 0; unconditional[i] && node->kind == EXPR_OP && k < node->n_in; k++)
            if (node->in[k] != BLOCK_NONE)
                unconditional[node->in[k]] = true;
    }
    return unconditional;
}

static bool is_tiled(const struct tiled *t, uint32_t node)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->node[i] == node)
            return true;
    return false;
}

static void find_loads(struct tiled *t, const bool *unconditional)
{
    for (uint32_t i = 0; i < t->e->n_nodes && t->n < MAX_TILES; i++) {
        uint32_t across = t->inner;

        if (unconditional[i] && t->e->nodes[i].kind == EXPR_LOAD)
            across = across_of(t->e, &t->e->nodes[i]);
        if (across == t->inner || (t->n && across != t->across))
            continue;
        t->across = across;
        t->node[t->n++] = i;
    }
    for (uint32_t i = 0; i < t->e->n_nodes && t->n_direct < MAX_DIRECT; i++)
        if (unconditional[i] && t->e->nodes[i].kind == EXPR_LOAD && !is_tiled(t, i))
            t->direct[t->n_direct++] = i;
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

/* Chooses loads, side and lanes; false if tiling does not pay.  Where a group is a loop of one
 * thread it handles a line at a time, so that neighbours share a vector. */
static bool plan(struct tiled *t)
{
    const struct kir_target *target = t->e->s->target;
    const struct kir_tuning tuning = sched_tuning(t->e->s);
    const struct space *space = &t->e->space;
    int64_t count = 1;
    bool *unconditional;

    for (uint32_t d = 0; d < space->n_dims; d++)
        count *= space->extent[d];
    if (space->n_dims < 2 || count < tuning.tile_points ||
        space->extent[t->inner] < tuning.tile_extent)
        return false;
    unconditional = find_unconditional(t->e);
    if (!unconditional) {
        expr_fail(t->e, FRIT_NO_HOST_MEMORY);
        return false;
    }
    find_loads(t, unconditional);
    free(unconditional);
    for (t->side = tuning.tile_side;
         t->side >= tuning.tile_least_side && tile_bytes(t) > target->group_bytes;)
        t->side /= 2;
    t->lanes = target->rereads_are_cached || target->lanes < t->side ? t->side : target->lanes;
    if (t->lanes > t->side * t->side)
        t->lanes = t->side * t->side;
    return t->n && t->side >= tuning.tile_least_side;
}

/* ---- emitting ---- */

/* The number of squares along a dim. */
static int64_t squares(const struct tiled *t, uint32_t dim)
{
    return (t->e->space.extent[dim] + t->side - 1) / t->side;
}

/* Sets the group's square and its point in the other dims. */
static void set_square(struct tiled *t)
{
    const uint32_t dims[2] = {t->inner, t->across};
    struct sched *s = t->e->s;
    uint32_t rest = sched_wide(s, kir_emit_imm(t->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));

    for (uint32_t i = 0; i < 2; i++) {
        int64_t extent = t->e->space.extent[dims[i]], n = squares(t, dims[i]);
        uint32_t at = n > 1 ? rest : kir_index(t->m, 0);

        if (n > 1) {
            struct sched_divisor by = sched_add_divisor(s, n);

            rest = sched_divide(s, &by, at);
            at = kir_binary(t->m, KIR_sub, at,
                            kir_binary(t->m, KIR_mul, rest, sched_add_index(s, n)));
        }
        t->begin[i] = kir_binary(t->m, KIR_mul, at, kir_index(t->m, t->side));
        t->end[i] = extent % t->side ? sched_add_index(s, extent) : KIR_NONE;
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

/* Sets both dims for the lane's element of line `line`, along dim `along` of the square (0:
 * innermost, 1: across).  Returns the mask. */
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

static bool is_unrolled(const struct tiled *t)
{
    return t->side / (t->lanes / t->side) <= MAX_ROUNDS;
}

/* Loads operands that need no tile, if lines are unrolled. */
static void load_direct(struct tiled *t, const uint32_t *lines, uint32_t n)
{
    for (uint32_t k = 0; k < n && is_unrolled(t); k++) {
        uint32_t mark = expr_mark(t->e);

        expr_mask(t->e, set_point(t, lines[k], 0));
        for (uint32_t i = 0; i < t->n_direct; i++)
            t->loaded[k][i] = expr_value(t->e, t->direct[i]);
        expr_release(t->e, mark);
    }
}

/* Reads lines along `across` into the tiles. */
static void read_lines(struct tiled *t, const uint32_t *lines, uint32_t n)
{
    uint32_t value[MAX_ROUNDS][MAX_TILES] = {0};

    for (uint32_t k = 0; k < n; k++) {
        uint32_t mark = expr_mark(t->e);

        expr_mask(t->e, set_point(t, lines[k], 1));
        for (uint32_t i = 0; i < t->n; i++)
            value[k][i] = expr_value(t->e, t->node[i]);
        expr_release(t->e, mark);
    }
    load_direct(t, lines, n);
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

/* Stores lines along the innermost dim, with operands from the tiles.  Computes all values before
 * the first store, so that other loads do not wait for stores. */
static void store_lines(struct tiled *t, const uint32_t *lines, uint32_t n)
{
    uint32_t value[MAX_ROUNDS][SCHED_OUTPUTS] = {0}, mark;

    for (uint32_t k = 0; k < n; k++) {
        mark = expr_mark(t->e);
        expr_mask(t->e, set_point(t, lines[k], 0));
        bind_tiles(t, lines[k]);
        for (uint32_t i = 0; i < t->n_direct && is_unrolled(t); i++)
            expr_bind(t->e, t->direct[i], t->loaded[k][i]);
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

/* Emits code for all lines of the square, as many at once as the group has lanes for. */
static void each_line(struct tiled *t,
                      void (*emit)(struct tiled *t, const uint32_t *lines, uint32_t n))
{
    uint32_t step = t->lanes / t->side, lines[MAX_ROUNDS], n = 0;

    if (!is_unrolled(t)) {
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
