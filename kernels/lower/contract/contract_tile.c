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
    IN_STEP = 32,          /* threads that are issued together */
    REGISTER_FILE = 65536, /* words of a multiprocessor */
    OTHER_WORDS = 20,      /* of a thread, beside its sums and as many for all that is in flight */
    SPLIT_SIDE = 64,  /* sums along each side of a tile by which groups are counted that share k */
    LEAST_PART = 128, /* of k that is worth a group */
    PART_STEP = 64,   /* parts of k are multiples of it, and so of two steps */
    HALF_BUSY = 1     /* of those on a multiprocessor, with which half of its cycles multiply */
};

/* A group tile, the register tile of a thread, and how fast a device is that is full of such
 * groups: TFLOP/s of f32 on one where PyTorch has 51; those of the smallest are estimates. */
struct tile_choice {
    uint32_t tile_m, tile_n, rows, columns, speed;
};

static const struct tile_choice shapes[] = {
    {64, 128, 8, 8, 43}, {128, 64, 8, 8, 42}, {128, 128, 8, 8, 41}, {64, 64, 8, 8, 42},
    {64, 64, 8, 4, 39},  {128, 64, 8, 4, 36}, {32, 128, 4, 8, 34},  {128, 32, 8, 4, 34},
    {64, 64, 4, 4, 29},  {32, 64, 4, 4, 28},  {64, 32, 4, 4, 26},   {32, 32, 4, 4, 25},
    {16, 128, 4, 4, 22}, {16, 64, 4, 4, 22},  {128, 16, 4, 4, 20},  {64, 16, 4, 4, 20},
    {16, 32, 2, 4, 15},
};

/* Lanes that emitters give a thread: 16 bytes of the widest elements. */
static uint32_t lanes_of_thread(const struct contract *c)
{
    const struct block *block = c->e.s->block;
    uint32_t widest = 1, n;

    for (uint32_t i = 0; i < block->n_inputs + block->n_outputs; i++) {
        uint32_t bytes = (uint32_t)frit_storage_bytes(expr_arg(&c->e, i)->dtype, 1);

        widest = bytes > widest ? bytes : widest;
    }
    n = widest < ACCESS_BYTES ? ACCESS_BYTES / widest : 1;
    return n < MOST_LANES ? n : MOST_LANES;
}

static uint32_t words_of_sum(const struct contract *c)
{
    enum kir_type type = contract_type(c);

    return type == KIR_F64 || type == KIR_I64 ? 2 : 1;
}

/* Columns of a lane. */
static uint32_t lane_columns(const struct contract *c, const struct tile_choice *shape)
{
    uint32_t n = shape->columns / lanes_of_thread(c);

    return n ? n : 1;
}

/* Words of registers for a thread's sums. */
static uint32_t sum_words(const struct contract *c, const struct tile_choice *shape)
{
    return shape->rows * lane_columns(c, shape) * lanes_of_thread(c) * words_of_sum(c);
}

static uint32_t lanes_of(const struct contract *c, const struct tile_choice *shape)
{
    return shape->tile_m / shape->rows * (shape->tile_n / lane_columns(c, shape));
}

static uint32_t threads_of(const struct contract *c, const struct tile_choice *shape)
{
    return (lanes_of(c, shape) + lanes_of_thread(c) - 1) / lanes_of_thread(c);
}

/* ---- memory of a group ---- */

static uint32_t tile_bytes(const struct contract *c, uint32_t tile_m, uint32_t tile_n)
{
    return 2 * sched_tuning(c->e.s).tile_depth * WORD_BYTES * words_of_sum(c) *
           (tile_m + tile_n + 2 * TILE_PAD);
}

/* That a group has which exchanges no values of lanes. */
static uint32_t available_bytes(const struct contract *c)
{
    const struct kir_target *target = c->e.s->target;
    uint32_t bytes = target->group_bytes + target->lanes * target->lane_bytes;
    uint32_t most = sched_tuning(c->e.s).tile_bytes;

    return bytes < most ? bytes : most;
}

bool tile_has_totals(const struct contract *c)
{
    return c->tiles.m * c->tiles.n * WORD_BYTES * words_of_sum(c) +
               tile_bytes(c, c->tiles.m, c->tiles.n) <=
           available_bytes(c);
}

static bool is_legal(const struct contract *c, const struct tile_choice *shape)
{
    const struct kir_tuning tuning = sched_tuning(c->e.s);
    uint32_t lanes = lanes_of(c, shape), side = shape->tile_m;

    if (side < shape->tile_n)
        side = shape->tile_n;
    return side <= tuning.tile_side_sums && sum_words(c, shape) <= tuning.tile_sums &&
           shape->rows * lane_columns(c, shape) <= CONTRACT_SUMS && lanes >= SCHED_MIN_LANES &&
           lanes <= c->e.s->target->max_lanes &&
           tile_bytes(c, shape->tile_m, shape->tile_n) <= available_bytes(c) &&
           tuning.tile_depth * side <= TILE_STAGED * lanes;
}

/* ---- cost ---- */

static int64_t count_groups(const struct contract *c, uint32_t tile_m, uint32_t tile_n)
{
    const struct space *space = &c->e.space;

    return contract_points(space, CONTRACT_BOTH) *
           tiles_of(contract_points(space, CONTRACT_M), tile_m) *
           tiles_of(contract_points(space, CONTRACT_N), tile_n);
}

static int64_t count_processors(const struct contract *c)
{
    return tiles_of(c->e.s->target->units, GROUPS_OF_UNITS);
}

/* Has groups share k where there is not more than one for each multiprocessor: a group alone waits
 * for memory in each step, which two hide from each other.  The order of sums depends on it, so it
 * does not depend on the tiles that are chosen. */
static void split_k(struct contract *c)
{
    int64_t groups = count_groups(c, SPLIT_SIDE, SPLIT_SIDE), n = 1;

    while (n * groups <= count_processors(c) && c->n_k / (2 * n) >= LEAST_PART)
        n *= 2;
    c->tiles.part = c->n_k;
    if (n == 1)
        return;
    c->tiles.part = tiles_of(tiles_of(c->n_k, (uint32_t)n), PART_STEP) * PART_STEP;
    c->slices.n_splits = (uint32_t)tiles_of(c->n_k, (uint32_t)c->tiles.part);
}

/* Time in which a multiprocessor does the sums of `n` groups at once, for each k: few threads
 * cannot multiply in all cycles. */
static double time_of(const struct contract *c, const struct tile_choice *shape, int64_t n)
{
    double busy = (double)(n * threads_of(c, shape)) / IN_STEP;

    return (double)(n * shape->tile_m * shape->tile_n) / shape->speed * (1 + HALF_BUSY / busy);
}

/* Of all groups.  Multiprocessors take as many as fit their registers, again and again; when there
 * are too few left for all, some get one more than others. */
static double cost_of(const struct contract *c, const struct tile_choice *shape)
{
    int64_t processors = count_processors(c);
    uint32_t registers = 2 * sum_words(c, shape) + OTHER_WORDS;
    int64_t resident = REGISTER_FILE / (threads_of(c, shape) * registers), rounds, rest;
    int64_t groups = count_groups(c, shape->tile_m, shape->tile_n);
    double cost = 0;

    if (c->slices.n_splits)
        groups *= c->slices.n_splits;
    if (resident < 1)
        resident = 1;
    rounds = groups / (processors * resident);
    rest = (groups % (processors * resident) + processors - 1) / processors;
    if (rounds)
        cost = (double)rounds * time_of(c, shape, resident);
    if (rest)
        cost += time_of(c, shape, rounds && rest < resident ? rest + 1 : rest);
    return cost;
}

static const struct tile_choice *best_shape(const struct contract *c)
{
    const struct tile_choice *best = NULL;

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
    const struct kir_tuning tuning = sched_tuning(c->e.s);
    const struct tile_choice *shape;

    split_k(c);
    shape = best_shape(c);
    c->form = CONTRACT_TILES;
    c->across = &c->b;
    c->down = &c->a;
    c->tiles.m = shape->tile_m;
    c->tiles.n = shape->tile_n;
    c->tiles.depth = tuning.tile_depth;
    c->tiles.unroll = tuning.tile_unroll;
    c->n_down = shape->rows;
    c->n_across = lane_columns(c, shape);
    c->lanes = lanes_of(c, shape);
    c->tiles.thread_lanes = lanes_of_thread(c);
}
