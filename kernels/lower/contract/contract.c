/* SPDX-License-Identifier: Apache-2.0 */
/* The contract schedule: what it takes, the space, and how lanes share it. */
#include "lower/contract/contract.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lower/contract/contract_blocks.h"
#include "lower/contract/contract_fragment.h"
#include "lower/contract/contract_pack.h"
#include "lower/contract/contract_pad.h"
#include "lower/contract/contract_pairs.h"
#include "lower/contract/contract_tile.h"
#include "lower/contract/contract_winograd.h"
#include "lower/contract/contract_winograd_emit.h"
#include "lower/contract/contract_winograd_result.h"
#include "lower/rows/rows.h"
#include "lower/sum_blocks.h"

enum {
    QUALITY = 850,
    LEAST_LANES = 16,
    FEW_LANES = 64,       /* a group with more is cut where there are few groups */
    GROUPS_PER_UNIT = 2,  /* to have work for all */
    READERS_PER_UNIT = 4, /* likewise, to end at the same time where memory is all that counts */
    STREAM_ROUNDS = 16,   /* rows that are read side by side, each in order */
    GROUP_COST = 32,      /* in lanes */
    FEW_ROWS = 6,         /* sums of a lane, which fit 16 registers with their operands */
    MANY_ROWS = 8,        /* likewise for more; */
    MANY_ON_LINE = 14,    /* with those, where a lane's places are neighbours in memory */
    DOT_PLACES = 4,
    FEW_DOT_LANES = 96,   /* of all sums of a group along k, which fit 16 registers */
    MANY_DOT_LANES = 384, /* likewise for more */
    PACK_LANES = 64,
    GROUP_LANES = 64,     /* on several widths of packed lanes; */
    WIDE_LANES = 128,     /* likewise of vectors of 16, which do more than the last cache gives */
    WIDE_LARGE = 1 << 19, /* elements that groups read from there, at least */
    LEAST_PACKED = 32,    /* lanes that fill the vectors of a lane's sums */
    FEW_PACKED =
        1 << 17, /* elements that stay in the second cache, beside those of the other side */
    PACK_LEAST = 1 << 15, /* elements */
    PACK_MAX = 1 << 29,
    LEAST_TURNED = 4,     /* places of a lane */
    LINE_PART = 8,        /* places that idle at ends of lines are that part of all at most */
    KEPT_READERS = 8,     /* of a copy that is kept, at least */
    KEPT_PRODUCTS = 16,   /* likewise, of a sum */
    KEPT_LARGE = 1 << 21, /* elements of one that could be read where it is, at least: beyond caches
                             its lines, which lie apart, are what takes time */
    STREAM_LARGE = 1 << 19, /* likewise, of one that is read once */
    LEAST_DOT = 32,         /* a sum of that many is worth lanes of its own */
    DOTS_COST = 2048,       /* of a product with lanes along k that load neighbours, in 1024ths */
    LEAST_ROUNDS = 32,      /* of lanes along k, which pay for adding them up */
    GATHER_COST = 8,        /* of an access whose lanes lie apart, in accesses of neighbours */
    STEP_COST = 2,   /* likewise of one at every second element, per element of the distance, */
    STEP_MOST = 3,   /* which is so far at most */
    PADDED_COST = 7, /* of products whose lanes lie along a copy with zeros, in quarters of those
                        on packed weights: they do 0.5 of all FMAs that a processor can, the others
                        0.8 to 0.9 */
    APART_COST = 12, /* of storing a result whose lanes lie apart, in products */
    TURN_COST = 8,   /* likewise, turned */
    PACK_COST = 6    /* likewise, of packing an element that is not kept */
};

/* ---- matching ---- */

static bool multiplies(const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];

    if (!contract_row_of(op->id) || op->out[0] == BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_ABSENT && i >= 2)
            continue;
        if (op->in[i].kind != FRIT_OPERAND_TENSOR)
            return false;
    }
    return true;
}

static bool takes(const struct block *block, uint32_t number)
{
    return multiplies(block, number) && anchor_is_cheap(block, number, 0);
}

/* Weights are unpacked in the product too. */
static bool takes_dequantized(const struct block *block, uint32_t number)
{
    return multiplies(block, number) && anchor_is_cheap(block, number, ANCHOR_DEQUANTIZED);
}

static bool contract_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, blocks_can_be(m->target) ? takes_dequantized : takes);
}

/* A cast of a float to the type that it is computed in changes no value. */
static bool widens(const struct block *block, const struct block_op *op)
{
    return op->id == FRIT_OP_cast && op->in[0].kind == FRIT_OPERAND_TENSOR &&
           op->out[0] != BLOCK_NONE && kir_is_16_bit_float(block->values[op->in[0].value].dtype) &&
           block->values[op->out[0]].dtype == FRIT_F32;
}

/* Views, casts that widen and packed weights, then the contraction. */
static bool contract_match_alone(struct matcher *m, const struct block *block)
{
    const struct anchor *anchor = m->state;
    const struct block_op *op = &block->ops[m->n_ops];
    const frit_op_info *info = frit_op_info_at(op->id);

    if (anchor->found || (!contract_row_of(op->id) && !widens(block, op) &&
                          (!info || info->cls != FRIT_CLASS_VIEW) &&
                          !(op->id == FRIT_OP_dequantize && blocks_can_be(m->target))))
        return false;
    return anchor_match(m, block, multiplies);
}

/* ---- how lanes lie ---- */

bool contract_has_vectors(const struct contract *c)
{
    const struct kir_target *target = c->e.s->target;

    return target->lanes_interleaved && !target->stages_tiles;
}

/* The loads that a side's elements are made of. */
static void find_loads(struct contract *c, struct contract_side *side)
{
    const struct expr *e = &c->e;
    bool *needed = arena_array(&c->e.arena, e->n_nodes + 1u, sizeof(*needed));

    side->loads = needed;
    if (!needed) {
        expr_fail(&c->e, FRIT_NO_HOST_MEMORY);
        return;
    }
    memset(needed, 0, e->n_nodes + 1u);
    needed[side->node] = true;
    for (uint32_t n = side->node + 1; n-- > 0;) {
        const struct expr_node *node = &e->nodes[n];

        for (uint32_t i = 0; needed[n] && i < node->n_in; i++)
            if (node->in[i] != BLOCK_NONE)
                needed[node->in[i]] = true;
        needed[n] = needed[n] && node->kind == EXPR_LOAD;
    }
}

/* How far neighbours of a load along `dim` lie apart; 0: anywhere. */
static int64_t apart_of(const struct expr *e, const struct expr_node *load, uint32_t dim)
{
    for (uint32_t a = 0; a < e->space.n_leaves; a++)
        if (load->at.k[SPACE_DIMS + a])
            return 0;
    return llabs(load->at.k[dim]) < 2 ? 1 : load->at.k[dim];
}

/* The largest distance among a side's loads, likewise. */
static int64_t side_apart(const struct contract *c, const struct contract_side *side, uint32_t dim)
{
    int64_t most = 1;

    if (side == &c->b && c->pad.used)
        return pad_apart(c, dim);
    for (uint32_t n = 0; n <= side->node; n++) {
        int64_t apart = side->loads[n] ? apart_of(&c->e, &c->e.nodes[n], dim) : 1;

        if (apart < 1 || apart > STEP_MOST)
            return 0;
        most = apart > most ? apart : most;
    }
    return most;
}

uint32_t contract_line_cost(const struct contract *c, const struct contract_side *side,
                            uint32_t dim)
{
    int64_t apart = side_apart(c, side, dim);

    if (apart == 1)
        return 1;
    return apart > 1 && apart <= STEP_MOST && contract_has_vectors(c) ? (uint32_t)apart * STEP_COST
                                                                      : GATHER_COST;
}

bool contract_runs_along_k(const struct contract *c, const struct contract_side *side)
{
    const struct delinearizer *k = &c->k, *own = &side->points;

    return k->n && contract_line_cost(c, side, k->dim[k->n - 1]) == 1 &&
           (!own->n || contract_line_cost(c, side, own->dim[own->n - 1]) > 1);
}

uint32_t contract_last_dim(const struct space *space, uint32_t tag)
{
    for (uint32_t d = space->n_dims; d-- > 0;)
        if (space->tag[d] == tag)
            return d;
    return SPACE_DIMS;
}

int64_t contract_points(const struct space *space, uint32_t tag)
{
    int64_t n = 1;

    for (uint32_t d = 0; d < space->n_dims; d++)
        if (space->tag[d] == tag)
            n *= space->extent[d];
    return n;
}

/* Whether lanes along a line that does not fill them cost less than loads from several lines. */
static bool is_worth_line(const struct contract *c, const struct contract_side *side, uint32_t dim)
{
    int64_t extent = c->e.space.extent[dim];

    return extent >= sched_tuning(c->e.s).short_line ||
           (side == &c->b && c->pad.used &&
            tiles_of(extent, LEAST_LANES) * LEAST_LANES * contract_line_cost(c, side, dim) <
                extent * GATHER_COST);
}

/* Elements that the lanes of a side number: its innermost dim where that is long. */
static int64_t line_of(const struct contract *c, const struct contract_side *side)
{
    uint32_t dim = contract_last_dim(&c->e.space, side->tag);

    if (dim != SPACE_DIMS && is_worth_line(c, side, dim))
        return c->e.space.extent[dim];
    return contract_points(&c->e.space, side->tag);
}

/* Whether a side is read by all groups together, and has this many elements. */
static bool is_large(const struct contract *c, const struct contract_side *side, int64_t least)
{
    const struct space *space = &c->e.space;

    return contract_points(space, CONTRACT_BOTH) == 1 &&
           c->n_k * contract_points(space, side->tag) >= least;
}

/* What a product costs with lanes along k, whose sums are added up at the end, in 1024ths of one
 * where all lanes work and load neighbours. */
static uint64_t dots_cost(const struct contract *c)
{
    uint32_t dim = contract_last_dim(&c->e.space, CONTRACT_K), worst, other;

    if (c->n_k < LEAST_DOT || c->e.space.extent[dim] != c->n_k)
        return UINT64_MAX;
    worst = contract_line_cost(c, &c->a, dim);
    other = contract_line_cost(c, &c->b, dim);
    return DOTS_COST * (uint64_t)(worst > other ? worst : other);
}

/* Of a kept copy.  Where lanes along k would not read neighbours either, even copying for each use
 * costs no more than reading what lies apart. */
static uint32_t least_readers(const struct contract *c)
{
    return dots_cost(c) > DOTS_COST ? 1 : KEPT_READERS;
}

/* Whether a side is put in order first: one that many read, where lanes would lie apart, or the
 * steps of k so far apart that caches suffer. */
static bool is_packed(const struct contract *c, const struct contract_side *side)
{
    const struct space *space = &c->e.space;
    uint32_t dim = contract_last_dim(space, side->tag), k = contract_last_dim(space, CONTRACT_K);
    bool is_kept = dim != SPACE_DIMS && pack_can_keep(c, side) &&
                   (contract_line_cost(c, side, dim) > 1 || is_large(c, side, KEPT_LARGE));
    uint32_t least = is_kept ? least_readers(c) : sched_tuning(c->e.s).pack_readers;
    int64_t line = line_of(c, side), size, readers = contract_points(space, CONTRACT_M);

    if (side == &c->a)
        readers = contract_points(space, CONTRACT_N);
    if ((c->pad.used && side == &c->b) || dim == SPACE_DIMS || k == SPACE_DIMS ||
        (space->extent[k] != c->n_k && !c->pack.is_numbered) || line != space->extent[dim] ||
        c->n_k < (is_kept ? KEPT_PRODUCTS : LEAST_DOT) || readers < least)
        return false;
    size = c->n_k * tiles_of(line, PACK_LANES) * PACK_LANES;
    return (size >= PACK_LEAST || contract_line_cost(c, side, dim) > 1) &&
           size <= PACK_MAX / contract_points(space, CONTRACT_BOTH) /
                       (contract_points(space, side->tag) / line);
}

/* Whether neighbours along `dim` are neighbours in all that is stored, and those along `apart` are
 * not. */
static bool stores_lie_along(const struct contract *c, uint32_t dim, uint32_t apart)
{
    for (uint32_t i = 0; i < c->e.n_stores; i++) {
        const int64_t *k = c->e.stores[i].at.k;

        if (k[dim] != 1 || (k[apart] >= -1 && k[apart] <= 1))
            return false;
    }
    return c->e.n_stores > 0;
}

/* Storing the results with lanes along a side whose neighbours lie apart, likewise: turned if they
 * lie along `other`. */
static uint64_t store_cost(const struct contract *c, uint32_t dim, uint32_t other)
{
    bool turned = contract_has_vectors(c) && other != SPACE_DIMS &&
                  c->e.space.extent[other] >= LEAST_TURNED && stores_lie_along(c, other, dim);
    uint64_t each = 1024 * (uint64_t)(turned ? TURN_COST : APART_COST) / (uint64_t)c->n_k, cost = 0;

    for (uint32_t i = 0; i < c->e.n_stores; i++) {
        int64_t k = c->e.stores[i].at.k[dim];

        if (k < -1 || k > 1)
            cost += each;
    }
    return cost;
}

/* Packing a side, likewise. */
static uint64_t pack_cost(const struct contract *c, const struct contract_side *side)
{
    uint32_t readers = side == &c->a ? CONTRACT_N : CONTRACT_M;

    if (!contract_has_vectors(c) || pack_can_keep(c, side))
        return 0;
    return 1024 * (uint64_t)PACK_COST / (uint64_t)contract_points(&c->e.space, readers);
}

/* The group with which n lanes cost least: what idles, and beginning a group. */
static uint32_t lanes_for(uint32_t most, int64_t n)
{
    uint32_t best = most;

    for (uint32_t lanes = most; lanes >= LEAST_LANES; lanes /= 2)
        if (tiles_of(n, lanes) * (lanes + GROUP_COST) < tiles_of(n, best) * (best + GROUP_COST))
            best = lanes;
    return best;
}

/* Lanes of all groups along a packed line. */
static uint64_t packed_lanes(const struct contract *c, int64_t line)
{
    uint32_t most = sched_tuning(c->e.s).pack_lanes, lanes;

    most = most < GROUP_LANES ? GROUP_LANES : most;
    lanes = lanes_for(most < c->e.s->target->lanes ? most : c->e.s->target->lanes, line);
    return (uint64_t)tiles_of(line, lanes) * lanes;
}

/* What a product costs with lanes along a side, in 1024ths of one where all lanes work and load
 * neighbours. */
static uint64_t side_cost(const struct contract *c, const struct contract_side *side)
{
    int64_t n = line_of(c, side), lanes = tiles_of(n, LEAST_LANES) * LEAST_LANES;
    uint32_t dim = contract_last_dim(&c->e.space, side->tag);
    uint32_t other = contract_last_dim(&c->e.space, side == &c->a ? CONTRACT_N : CONTRACT_M);
    uint64_t cost = 1024 * (uint64_t)lanes / (uint64_t)n;

    if (dim == SPACE_DIMS || !c->n_k)
        return cost;
    if (is_packed(c, side))
        return packed_lanes(c, n) * 1024 / (uint64_t)n + store_cost(c, dim, other) +
               pack_cost(c, side);
    if (n != c->e.space.extent[dim])
        return cost * GATHER_COST;
    cost *= contract_line_cost(c, side, dim);
    if (side == &c->b && c->pad.used && contract_points(&c->e.space, CONTRACT_M) > 1)
        cost = cost * PADDED_COST / 4;
    return cost + store_cost(c, dim, other);
}

/* How many places a lane has: each round of them costs their products and a load more. */
static uint32_t places_for(uint32_t most, int64_t n)
{
    uint32_t best = 1;

    for (uint32_t places = 2; places <= most; places++)
        if ((n + places - 1) / places * (places + 1) <= (n + best - 1) / best * (best + 1))
            best = places;
    return best;
}

void contract_cut_line(struct contract *c, int64_t line)
{
    struct space *space = &c->e.space;
    uint32_t last = contract_last_dim(space, c->across->tag);

    for (uint32_t d = 0; d < last && last < SPACE_DIMS && space->extent[last] == line; d++)
        if (space->tag[d] == c->across->tag)
            space->tag[d] = CONTRACT_BOTH;
}

/* Reduces lanes while what groups read again and again along them does not fit a cache: the first
 * one, or if it is packed, and so read in order, the second one.  Each place along the other side
 * beyond the first n_down makes them read it again. */
static void limit_lanes(struct contract *c)
{
    const struct kir_tuning tuning = sched_tuning(c->e.s);
    const uint32_t least = !c->pack.used                      ? FEW_LANES
                           : tuning.pack_lanes < LEAST_PACKED ? tuning.pack_lanes
                                                              : LEAST_PACKED;
    const int64_t most = c->pack.used ? tuning.pack_panel : tuning.line_panel;

    if (contract_points(&c->e.space, c->down->tag) <= c->n_down)
        return;
    while (c->lanes > least && c->lanes * c->n_k > most)
        c->lanes /= 2;
}

/* Whether a side is read once, from memory beyond the caches, which is all that takes time. */
static bool is_streamed(const struct contract *c)
{
    const enum kir_type type = contract_type(c);
    uint32_t k = contract_last_dim(&c->e.space, CONTRACT_K);

    return c->e.s->target->lanes_interleaved && !c->pack.used && !c->pad.used &&
           c->n_k > SUM_BLOCK_CONTRACT && c->e.space.extent[k] == c->n_k &&
           is_large(c, c->across, STREAM_LARGE) && (type == KIR_F32 || type == KIR_F64);
}

/* Groups read memory almost in order: a block of k, and of that a few rows at a time, as long as
 * sums stay in the first cache.  Sums of blocks are added up as they are in one group. */
static void choose_splits(struct contract *c, int64_t line, int64_t *n)
{
    c->slices.n_splits = (uint32_t)tiles_of(c->n_k, SUM_BLOCK_CONTRACT);
    c->rounds = STREAM_ROUNDS;
    while (line % (2 * c->lanes) == 0 && 2 * c->lanes * c->n_down <= c->e.s->target->max_lanes)
        c->lanes *= 2;
    c->down_by_line = c->turns = false; /* sums are stored by numbers of places */
    *n *= c->slices.n_splits;
}

/* The most places of a lane. */
static uint32_t most_places(const struct contract *c)
{
    return c->e.s->target->registers > 16 ? MANY_ROWS : FEW_ROWS;
}

/* Likewise of a lane whose places lie on a line of `dim`.  On packed lanes, the more there are the
 * less often the panel of packed elements is read from the second cache; where groups read the
 * packed side again for other places, fewer were faster. */
static uint32_t most_on_line(const struct contract *c, uint32_t dim)
{
    bool are_neighbours = !c->pad.used && contract_line_cost(c, c->down, dim) == 1;

    return c->e.s->target->registers > 16 && c->pack.used && !c->across_first && are_neighbours
               ? MANY_ON_LINE
               : most_places(c);
}

/* What tiles of a line cost, in places: each costs a load more, and fewer places than LEAST_TURNED
 * do not hide how long a product takes. */
static int64_t line_cost(int64_t line, uint32_t places)
{
    int64_t tiles = tiles_of(line, places), n_short = tiles * places - line;
    uint32_t fewer = places - 1 < LEAST_TURNED ? LEAST_TURNED : places - 1;

    return (tiles - n_short) * (places + 1) + n_short * (fewer + 1);
}

/* Keeps a lane's places on a line where that costs few more of them, and turns them if the results
 * lie along such lines. */
static void choose_turn(struct contract *c)
{
    const struct space *space = &c->e.space;
    uint32_t dim = contract_last_dim(space, c->down->tag);
    uint32_t apart = contract_last_dim(space, c->across->tag);
    int64_t points = contract_points(space, c->down->tag), line;
    uint32_t places;

    if (dim == SPACE_DIMS || apart == SPACE_DIMS || !contract_has_vectors(c) || !c->n_k ||
        !expr_can_shift(&c->e, dim))
        return;
    line = space->extent[dim];
    places = (uint32_t)tiles_of(line, (uint32_t)tiles_of(line, most_on_line(c, dim)));
    if (places < LEAST_TURNED ||
        points / line * line_cost(line, places) * LINE_PART >
            tiles_of(points, c->n_down) * (c->n_down + 1) * (LINE_PART + 1))
        return;
    c->n_down = places;
    c->down_by_line = true;
    c->turns = stores_lie_along(c, dim, apart);
}

/* Lanes of a group on a packed line, with so many sums each.  Where these leave registers for one
 * width of packed lanes alone, a group has several after each other, which read the other side from
 * the first cache.  The more there are the less often all groups read a large side from the last
 * one. */
static uint32_t most_packed(const struct contract *c, uint32_t places)
{
    const struct kir_target *target = c->e.s->target;
    uint32_t lanes = sched_tuning(c->e.s).pack_lanes, least = GROUP_LANES;

    if (target->registers > 16 && c->across == c->weights && is_large(c, c->down, WIDE_LARGE))
        least = WIDE_LANES;
    if (contract_has_vectors(c) && 4 * places > target->registers / 4 * 3)
        lanes = lanes < least ? least : lanes;
    return lanes < target->lanes ? lanes : target->lanes;
}

/* The distance of neighbours on a line that is a constant of the module, so that vectors of all
 * elements between them are loaded; 0: there is none. */
static int64_t const_step(const struct contract *c, int64_t line)
{
    uint32_t dim = contract_last_dim(&c->e.space, c->across->tag);
    int64_t apart = dim == SPACE_DIMS ? 1 : side_apart(c, c->across, dim);

    return apart > 1 && apart <= STEP_MOST && line == c->e.space.extent[dim] &&
                   contract_has_vectors(c)
               ? apart
               : 0;
}

/* Whether consecutive groups have the same places, with all lanes in turn: all that is packed is
 * read again for each of these places, from the second cache.  Else they have the same lanes, with
 * all places in turn, and read all of the other side again. */
static bool goes_across_first(const struct contract *c)
{
    int64_t n_lanes = contract_points(&c->e.space, c->across->tag);

    return c->pack.used && contract_has_vectors(c) &&
           contract_points(&c->e.space, CONTRACT_BOTH) == 1 && n_lanes * c->n_k <= FEW_PACKED &&
           n_lanes < contract_points(&c->e.space, c->down->tag);
}

static void choose_lines(struct contract *c)
{
    const struct kir_target *target = c->e.s->target;
    const uint32_t packed = sched_tuning(c->e.s).pack_lanes;
    int64_t line = line_of(c, c->across), others;
    uint32_t each;

    c->pack.used = c->n_k && is_packed(c, c->across);
    if (c->n_k && !c->pack.used)
        c->e.const_factor = const_step(c, line);
    contract_cut_line(c, line);
    c->across_first = goes_across_first(c);
    c->n_down = places_for(most_places(c), contract_points(&c->e.space, c->down->tag));
    c->n_across = 1;
    choose_turn(c);
    c->lanes = lanes_for(c->pack.used ? most_packed(c, c->n_down) : target->lanes, line);
    limit_lanes(c);
    c->pack.width = c->lanes < packed ? c->lanes : packed;
    others = contract_points(&c->e.space, CONTRACT_BOTH) *
             tiles_of(contract_points(&c->e.space, c->down->tag), c->n_down);
    if (others == 1 && is_streamed(c))
        choose_splits(c, line, &others);
    each = c->slices.n_splits ? READERS_PER_UNIT : GROUPS_PER_UNIT;
    while (c->lanes > FEW_LANES && !c->pack.used &&
           tiles_of(line, c->lanes) * others < (int64_t)each * target->units)
        c->lanes /= 2;
    if (!c->slices.n_splits)
        pairs_choose(c);
}

/* Groups go over k once, so all sums are to fit the registers. */
static void choose_dots(struct contract *c)
{
    const struct kir_target *target = c->e.s->target;
    const bool many = target->registers > 16;
    const uint32_t most = many ? MANY_DOT_LANES : FEW_DOT_LANES;
    const uint32_t least = many ? LEAST_LANES : LEAST_LANES / 2;

    c->n_down = places_for(DOT_PLACES, contract_points(&c->e.space, c->down->tag));
    c->n_across = places_for(DOT_PLACES, contract_points(&c->e.space, c->across->tag));
    while (c->n_across > 1 && c->n_down * c->n_across * least > most)
        c->n_across--;
    c->lanes = target->lanes_per_row;
    while (c->lanes > least &&
           (c->n_k / c->lanes < LEAST_ROUNDS || c->n_down * c->n_across * c->lanes > most))
        c->lanes /= 2;
}

/* Other packed weights are unpacked as they are staged, once for many readers.  Else unpacking them
 * first is faster, and so it is where a vendor's library multiplies. */
static void choose_dequantized(struct contract *c)
{
    if (c->is_alone || !contract_fits_tiles(c))
        expr_fail(&c->e, FRIT_UNSUPPORTED);
    else
        contract_choose_tiles(c);
}

static void choose_form(struct contract *c)
{
    uint64_t a, b;

    if (c->winograd.used) {
        winograd_choose(c);
        return;
    }
    if (blocks_choose(c))
        return;
    if (blocks_is_dequantized(c->e.s->block, c->anchor.op)) {
        choose_dequantized(c);
        return;
    }
    a = side_cost(c, &c->a);
    b = side_cost(c, &c->b);
    if (contract_fits_few(c)) {
        contract_choose_few(c);
        return;
    }
    if (contract_fits_slices(c)) {
        contract_choose_slices(c);
        return;
    }
    if (contract_fits_fragments(c)) {
        contract_choose_fragments(c);
        return;
    }
    if (contract_fits_tiles(c)) {
        contract_choose_tiles(c);
        return;
    }
    c->across = a < b ? &c->a : &c->b;
    c->down = a < b ? &c->b : &c->a;
    c->form = c->n_k && dots_cost(c) < (a < b ? a : b) ? CONTRACT_DOTS : CONTRACT_LINES;
    if (c->form == CONTRACT_LINES) {
        choose_lines(c);
        return;
    }
    choose_dots(c);
}

/* ---- aliases ---- */

/* What is multiplied is read by many groups, at any time. */
static void find_aliases(const struct contract *c)
{
    uint64_t read = 0;

    if (c->n_k)
        read = c->e.nodes[c->a.node].inputs |
               (c->pad.used ? c->pad.e.nodes[c->pad.node].inputs : c->e.nodes[c->b.node].inputs);

    for (uint32_t i = 0; i < c->e.n_stores; i++) {
        uint32_t output = c->e.stores[i].output;

        c->e.s->numbers->alias[output] =
            c->winograd.used && winograd_repeats(c) ? 0 : expr_alias(&c->e, output) & ~read;
    }
}

/* ---- building ---- */

static bool is_empty(const struct contract *c)
{
    const struct block *block = c->e.s->block;
    uint32_t value = block->ops[c->anchor.op].out[0];
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&c->e, value, dims);
    for (uint32_t d = 0; d < block->values[value].rank; d++)
        if (dims[d] == 0)
            return true;
    return false;
}

static frit_status plan(struct contract *c, frit_err *err)
{
    const struct block_op *op = &c->e.s->block->ops[c->anchor.op];

    c->weights = op->id == FRIT_OP_conv ? &c->a : &c->b;
    if (!contract_row_of(op->id)->plan(c, op))
        expr_fail(&c->e, FRIT_UNSUPPORTED);
    if (!c->e.status)
        anchor_stores(&c->anchor, &c->e, &c->root);
    expr_settle(&c->e);
    pad_settle(c);
    TRY(expr_status(&c->e, err));
    c->result = anchor_result(&c->anchor, &c->e, 0);
    if (c->n_k) {
        find_loads(c, &c->a);
        if (!c->pad.used)
            find_loads(c, &c->b);
    }
    return expr_status(&c->e, err);
}

/* Reserves memory for copies of operands, and emits the phases that make them. */
static void emit_operands(struct contract *c)
{
    if (c->winograd.used) {
        winograd_reserve(c);
        winograd_emit_operands(c);
        return;
    }
    pack_keep(c);
    pad_reserve(c);
    pack_reserve(c);
    if (c->pack.used)
        pack_emit(c);
    if (c->pad.used)
        pad_emit(c);
}

static frit_status build(struct contract *c, frit_err *err)
{
    struct sched *s = c->e.s;
    struct sched_numbers *numbers = s->numbers;
    int64_t groups;

    expr_args(s);
    if (is_empty(c)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&c->e, err);
    }
    TRY(plan(c, err));
    choose_form(c);
    delinearize_init(&c->both, &c->e, CONTRACT_BOTH);
    delinearize_init(&c->a.points, &c->e, CONTRACT_M);
    delinearize_init(&c->b.points, &c->e, CONTRACT_N);
    delinearize_init(&c->k, &c->e, CONTRACT_K);
    if (c->form == CONTRACT_TILES)
        delinearize_chunk(&c->across->points, &c->e, c->tiles.thread_lanes);
    TRY(expr_status(&c->e, err));
    groups = c->both.count * contract_down_tiles(c) *
             tiles_of(c->across->points.count, contract_width(c));
    if (c->slices.n_splits)
        groups *= c->slices.n_splits;
    if (groups > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    TRY(sched_check_rounds(s, 2 * c->k.count / (c->form == CONTRACT_SLICES ? c->slices.deep : 1),
                           err));
    emit_operands(c);
    contract_set_grid(c, groups);
    contract_emit(c);
    if (c->winograd.used)
        winograd_result_emit(c);
    TRY(expr_status(&c->e, err));
    find_aliases(c);
    numbers->bytes = sched_bytes(s);
    numbers->flops = 2 * (uint64_t)(c->both.count * c->a.points.count * c->b.points.count * c->n_k);
    return FRIT_OK;
}

static frit_status build_any(struct sched *s, bool is_alone, frit_err *err)
{
    struct contract c = {.is_alone = is_alone,
                         .a = {.node = BLOCK_NONE, .tag = CONTRACT_M},
                         .b = {.node = BLOCK_NONE, .tag = CONTRACT_N},
                         .bias = BLOCK_NONE};
    frit_status status;

    expr_init(&c.e, s);
    if (s->target->stages_tiles) /* where lanes are a thread's vectors wide offsets cost nothing */
        c.e.separate_tags = 1u << CONTRACT_K;
    if (anchor_init(&c.anchor, s->block, multiplies)) { /* matching checked the operands' cost */
        status = c.anchor.n_ops == s->block->n_ops && c.anchor.found
                     ? build(&c, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s is not one contraction",
                            s->module->name);
        anchor_fini(&c.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(uint32_t));
    }
    pad_fini(&c);
    expr_fini(&c.e);
    return status;
}

static frit_status contract_build(struct sched *s, frit_err *err)
{
    return build_any(s, false, err);
}

static frit_status contract_build_alone(struct sched *s, frit_err *err)
{
    return build_any(s, true, err);
}

const struct schedule sched_contract = {
    .name = "contract",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = contract_match,
    .fits = anchor_fits,
    .build = contract_build,
};

const struct schedule sched_contract_alone = {
    .name = "contract",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = contract_match_alone,
    .fits = anchor_fits,
    .build = contract_build_alone,
};
