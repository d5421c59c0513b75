/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of tiles for contractions on lanes that are threads.
 *
 * A group computes tile_m x tile_n sums.  A thread has a register tile of them: `rows` neighbours
 * along m, which all its lanes share, and along n its lanes, each with n_across columns.  Large
 * tiles read memory seldom and multiply often per access of a tile; small ones give all
 * multiprocessors work.  Sums are added in the order of k whatever the tiles, so the choice changes
 * no result. */
#include "lower/contract/contract_tile.h"

#include "lower/contract/contract.h"

enum {
    LEAST_SIDE = 16,       /* sums along each side; with fewer, most lanes would idle */
    ACCESS_BYTES = 16,     /* of a thread */
    MOST_LANES = 8,        /* of a thread, see emit/shape.c */
    WORD_BYTES = 4,        /* of a register */
    GROUPS_OF_UNITS = 4,   /* target.units for each multiprocessor */
    WARP = 32,             /* threads that a scheduler issues at once */
    REGISTER_FILE = 65536, /* words of a multiprocessor */
    OTHER_WORDS = 40       /* of a thread, beside its sums and their operands */
};

/* A group tile and the register tile of a thread. */
struct tile_shape {
    uint32_t tile_m, tile_n, rows, columns;
};

static const struct tile_shape shapes[] = {
    {128, 128, 8, 8}, {128, 64, 8, 8}, {64, 128, 8, 8}, {128, 64, 8, 4}, {64, 64, 8, 8},
    {64, 64, 8, 4},   {64, 64, 4, 4},  {128, 32, 8, 4}, {32, 128, 4, 8}, {64, 32, 4, 4},
    {32, 64, 4, 4},   {32, 32, 4, 4},  {16, 128, 4, 4}, {16, 64, 4, 4},  {128, 16, 4, 4},
    {64, 16, 4, 4},   {16, 32, 2, 4},
};

static uint32_t least_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Lanes that emitters give a thread: 16 bytes of the widest elements. */
static uint32_t lanes_of_thread(const struct contract *c)
{
    const struct block *block = c->e.s->block;
    uint32_t widest = 1;

    for (uint32_t i = 0; i < block->n_inputs + block->n_outputs; i++) {
        uint32_t bytes = (uint32_t)frit_storage_bytes(expr_arg(&c->e, i)->dtype, 1);

        widest = bytes > widest ? bytes : widest;
    }
    return least_u32(ACCESS_BYTES / least_u32(widest, ACCESS_BYTES), MOST_LANES);
}

static uint32_t words_of_sum(const struct contract *c)
{
    enum kir_type type = contract_type(c);

    return type == KIR_F64 || type == KIR_I64 ? 2 : 1;
}

/* Columns of a lane. */
static uint32_t lane_columns(const struct contract *c, const struct tile_shape *shape)
{
    uint32_t n = shape->columns / lanes_of_thread(c);

    return n ? n : 1;
}

static uint32_t lanes_of(const struct contract *c, const struct tile_shape *shape)
{
    return shape->tile_m / shape->rows * (shape->tile_n / lane_columns(c, shape));
}

static uint32_t group_bytes(const struct contract *c, const struct tile_shape *shape)
{
    return 2 * sched_tuning(c->e.s).tile_depth * WORD_BYTES * words_of_sum(c) *
           (shape->tile_m + shape->tile_n + 2 * TILE_PAD);
}

static bool is_legal(const struct contract *c, const struct tile_shape *shape)
{
    const struct kir_target *target = c->e.s->target;
    const struct kir_tuning tuning = sched_tuning(c->e.s);
    uint32_t lanes = lanes_of(c, shape), columns = lane_columns(c, shape), most;

    most = target->group_bytes;
    if (lanes > target->lanes) {
        uint32_t less = (lanes - target->lanes) * target->lane_bytes;

        most = most > less ? most - less : 0;
    }
    return shape->tile_m <= tuning.tile_side_sums && shape->tile_n <= tuning.tile_side_sums &&
           shape->rows * columns * lanes_of_thread(c) * words_of_sum(c) <= tuning.tile_sums &&
           shape->rows * columns <= CONTRACT_SUMS && lanes >= SCHED_MIN_LANES &&
           lanes <= target->max_lanes && group_bytes(c, shape) <= most &&
           tuning.tile_depth * (shape->tile_m > shape->tile_n ? shape->tile_m : shape->tile_n) <=
               TILE_STAGED * lanes;
}

/* ---- cost ---- */

/* Time of a step of k over all groups, if every multiprocessor gets as many groups as any: that of
 * its products, longer where a register tile loads much for a product, and where there are too few
 * warps to fill the pipeline of a product. */
static uint64_t cost_of(const struct contract *c, const struct tile_shape *shape)
{
    const struct space *space = &c->e.space;
    uint32_t processors = (c->e.s->target->units + GROUPS_OF_UNITS - 1) / GROUPS_OF_UNITS;
    uint64_t threads = lanes_of(c, shape) / lanes_of_thread(c), resident, warps, loads;
    uint64_t sums = (uint64_t)shape->rows * shape->columns;
    int64_t rounds = tiles_of(contract_points(space, CONTRACT_BOTH) *
                                  tiles_of(contract_points(space, CONTRACT_M), shape->tile_m) *
                                  tiles_of(contract_points(space, CONTRACT_N), shape->tile_n),
                              processors);

    resident = REGISTER_FILE / (sums + sums / 4 + OTHER_WORDS);
    if (resident > (uint64_t)rounds * threads)
        resident = (uint64_t)rounds * threads;
    warps = resident / WARP;
    loads = 16 + 10 * (shape->rows + shape->columns) / (uint32_t)sums;
    loads = 160 + 100 * (uint64_t)(shape->rows + shape->columns) / sums;
    return (uint64_t)rounds * shape->tile_m * shape->tile_n * loads * (warps + 4) / (warps + 1);
}

static const struct tile_shape *best_shape(const struct contract *c)
{
    const struct tile_shape *best = NULL;

    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (is_legal(c, &shapes[i]) && (!best || cost_of(c, &shapes[i]) < cost_of(c, best)))
            best = &shapes[i];
    return best;
}

bool contract_fits_tiles(const struct contract *c)
{
    return c->e.s->target->stages_tiles && c->n_k >= sched_tuning(c->e.s).tile_depth &&
           contract_points(&c->e.space, CONTRACT_M) >= LEAST_SIDE &&
           contract_points(&c->e.space, CONTRACT_N) >= LEAST_SIDE && best_shape(c);
}

void contract_choose_tiles(struct contract *c)
{
    const struct tile_shape *shape = best_shape(c);

    c->form = CONTRACT_TILES;
    c->across = &c->b;
    c->down = &c->a;
    c->tile_m = shape->tile_m;
    c->tile_n = shape->tile_n;
    c->tile_depth = sched_tuning(c->e.s).tile_depth;
    c->tile_unroll = sched_tuning(c->e.s).tile_unroll;
    c->n_down = shape->rows;
    c->n_across = lane_columns(c, shape);
    c->lanes = lanes_of(c, shape);
    c->thread_lanes = lanes_of_thread(c);
}
