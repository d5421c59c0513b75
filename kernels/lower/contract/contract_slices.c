/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions with few places along one side, on lanes that are threads: reading the other side is
 * all that takes time, so its elements are read once, by neighbours that lie next to each other in
 * memory, and k is shared by as many lanes as it takes to keep memory busy.
 *
 * What is chosen here decides the order of sums: it follows from extents, layouts and the widths of
 * the target's groups, never from how many of them run at the same time. */
#include "lower/contract/contract.h"

enum {
    FEW_PLACES = 32,     /* along one side; more are worth tiles of the group */
    LEAST_K = 32,        /* products, to share them */
    WANTED_GROUPS = 256, /* one or two for each multiprocessor of a large device */
    SECTOR_BYTES = 32,   /* what memory moves at least */
    ACCESS_BYTES = 16,   /* of a thread */
    SUM_REGISTERS = 64,  /* of a thread, for its lanes' sums */
    LEAST_STEPS = 4,     /* of k, of a lane; */
    FEWEST_STEPS = 2,    /* likewise where adding up costs least */
    ALONG_PLACES = 4,    /* places across, of a lane along k */
    LOADS = 16,          /* of a lane along k before it multiplies */
    AHEAD_DOWN = 8,      /* more leave no registers to load ahead */
    SPLIT_GROUPS = 64,   /* with fewer, groups share sums */
    SPLIT_STEPS = 64,    /* of a lane, that are worth a phase more */
    LARGE_DOWN = 4       /* places that are read badly, and matter */
};

bool contract_fits_slices(const struct contract *c)
{
    const struct space *space = &c->e.space;
    uint32_t k = contract_last_dim(space, CONTRACT_K);
    int64_t m = contract_points(space, CONTRACT_M), n = contract_points(space, CONTRACT_N);

    return !c->e.s->target->lanes_interleaved && c->n_k >= LEAST_K &&
           (c->blocks.used || space->extent[k] == c->n_k) && (m < n ? m : n) <= FEW_PLACES;
}

/* ---- layouts ---- */

static bool is_line(const struct contract *c, const struct contract_side *side, uint32_t dim)
{
    return dim != SPACE_DIMS && contract_line_cost(c, side, dim) == 1;
}

/* Bytes of the widest elements that a side is made of. */
static uint32_t bytes_of(const struct contract *c, const struct contract_side *side)
{
    uint32_t widest = 1;

    for (uint32_t n = 0; n <= side->node; n++) {
        uint32_t bytes =
            side->loads[n]
                ? (uint32_t)frit_storage_bytes(c->e.s->block->values[c->e.nodes[n].value].dtype, 1)
                : 0;

        if (bytes > widest)
            widest = bytes;
    }
    return widest;
}

/* The side with more places lies across, and lanes along what lies next to each other in its
 * memory.  Where that is k and the few places are apart along k, they lie across themselves. */
static void choose_sides(struct contract *c)
{
    const struct space *space = &c->e.space;
    uint32_t k = contract_last_dim(space, CONTRACT_K), last;
    bool swap = contract_points(space, CONTRACT_M) > contract_points(space, CONTRACT_N);

    c->across = swap ? &c->a : &c->b;
    c->down = swap ? &c->b : &c->a;
    last = contract_last_dim(space, c->across->tag);
    c->slices.along_k =
        last == SPACE_DIMS || (is_line(c, c->across, k) && !is_line(c, c->across, last));
    if (c->slices.along_k && !is_line(c, c->down, k) &&
        is_line(c, c->down, contract_last_dim(space, c->down->tag)) &&
        contract_points(space, c->down->tag) >= LARGE_DOWN) {
        struct contract_side *few = c->down;

        c->down = c->across;
        c->across = few;
        c->slices.along_k = false;
    }
}

/* ---- sizes ---- */

/* Up to `most` places, with which the last of `n` are hardly fewer. */
static uint32_t even_places(int64_t n, uint32_t most)
{
    return (uint32_t)tiles_of(n, (uint32_t)tiles_of(n, most));
}

static int64_t groups_of(const struct contract *c)
{
    const struct space *space = &c->e.space;

    return contract_points(space, CONTRACT_BOTH) *
           tiles_of(contract_points(space, c->down->tag), c->n_down) *
           tiles_of(contract_points(space, c->across->tag),
                    c->slices.wide * contract_points_across(c));
}

/* Neighbours along `across`: as wide as leaves enough groups, and no narrower than memory is. */
static void choose_across(struct contract *c)
{
    struct contract_slices *slices = &c->slices;
    uint32_t bytes = bytes_of(c, c->across), most = c->e.s->target->lanes;
    uint32_t sums = SUM_REGISTERS * bytes / ACCESS_BYTES;
    int64_t line;

    line = c->e.space.extent[contract_last_dim(&c->e.space, c->across->tag)];
    contract_cut_line(c, line);
    c->n_across = c->blocks.used ? c->blocks.pieces : 1;
    c->n_down = even_places(contract_points(&c->e.space, c->down->tag),
                            (sums < CONTRACT_SUMS ? sums : CONTRACT_SUMS) / c->n_across);
    slices->wide = most;
    while (slices->wide > 1 && slices->wide / 2 >= line)
        slices->wide /= 2;
    while (groups_of(c) < WANTED_GROUPS && slices->wide * bytes > SECTOR_BYTES)
        slices->wide /= 2;
    slices->deep = most / slices->wide;
    while (slices->deep > 1 && contract_steps(c) / slices->deep < LEAST_STEPS)
        slices->deep /= 2;
    slices->steps = c->n_down <= 2 ? 8 : c->n_down <= 8 ? 4 : 2;
    slices->loads_ahead = c->n_down <= AHEAD_DOWN && !c->blocks.used;
}

/* Neighbours along k: those that exchange values at little cost, more where groups are few. */
static void choose_along(struct contract *c)
{
    const struct kir_target *target = c->e.s->target;
    struct contract_slices *slices = &c->slices;
    uint32_t most = target->lanes, near = target->near_lanes ? target->near_lanes : most;

    c->n_down = even_places(contract_points(&c->e.space, c->down->tag), CONTRACT_SUMS / 2);
    c->n_across = ALONG_PLACES;
    while (c->n_across > 1 && c->n_down * c->n_across > CONTRACT_SUMS)
        c->n_across /= 2;
    slices->deep = near < most ? near : most;
    while (slices->deep > 1 && contract_steps(c) / slices->deep < FEWEST_STEPS)
        slices->deep /= 2;
    slices->wide = most / slices->deep;
    while (c->n_across > 2 && groups_of(c) < WANTED_GROUPS)
        c->n_across /= 2;
    while (slices->wide > 1 && groups_of(c) < WANTED_GROUPS &&
           contract_steps(c) / slices->deep >= 2 * FEWEST_STEPS) {
        slices->wide /= 2;
        slices->deep *= 2;
    }
    slices->loads_ahead = !c->blocks.used;
    slices->steps = LOADS / (c->n_down + c->n_across);
    if (slices->steps < 2)
        slices->steps = 2;
}

/* Steps that divide those of a lane, where about as many do. */
static void fit_steps(const struct contract *c, struct contract_slices *slices)
{
    int64_t rounds = contract_steps(c) / slices->deep;

    for (uint32_t steps = slices->steps; 2 * steps >= slices->steps && steps > 0; steps--)
        if (rounds % steps == 0) {
            slices->steps = steps;
            return;
        }
    if (rounds < slices->steps)
        slices->steps = (uint32_t)rounds;
}

void contract_choose_slices(struct contract *c)
{
    struct contract_slices *slices = &c->slices;
    int64_t groups;

    c->form = CONTRACT_SLICES;
    if (c->blocks.used)
        slices->along_k = c->blocks.along_k;
    else
        choose_sides(c);
    if (slices->along_k)
        choose_along(c);
    else
        choose_across(c);
    fit_steps(c, slices);
    c->lanes = slices->wide * slices->deep;
    groups = groups_of(c);
    slices->n_splits = 1;
    while (!c->blocks.used && groups * slices->n_splits < SPLIT_GROUPS &&
           contract_steps(c) / (2 * slices->n_splits) >= (int64_t)SPLIT_STEPS * slices->deep)
        slices->n_splits *= 2;
}
