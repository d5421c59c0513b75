/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions by products of fragments: which, and how groups share them. */
#include "lower/contract/contract_fragment.h"

#include <frit/op_table.h>

#include "lower/contract/contract.h"
#include "lower/contract/contract_emit.h"

enum {
    FRAGMENT_K = 16,
    LEAST_K = 16,       /* products of a sum */
    LEAST_PLACES = 17,  /* along each side */
    PROCESSOR_UNITS = 4 /* of kir_target.units, for each that runs groups at the same time */
};

/* Those of blocks first.  Group tiles, and how fast they are: sums that one processor makes in a
 * time, relative to each other, groups that it runs at once, and what it takes longer, in tenths of
 * the time for a group; some were measured on one device, and the others estimated from these. */
static const struct choice {
    uint32_t tile[2], teams[2], side[2];
    bool copies; /* needs them */
    uint32_t depth, stages, speed, at_once, longer;
} choices[] = {
    {{128, 256}, {2, 1}, {64, 256}, true, 64, 4, 160, 1, 0},
    {{128, 192}, {2, 1}, {64, 192}, true, 64, 4, 150, 1, 0},
    {{128, 128}, {2, 1}, {64, 128}, true, 64, 2, 135, 3, 0},
    {{128, 64}, {2, 1}, {64, 64}, true, 64, 4, 90, 2, 0},
    {{128, 256}, {2, 4}, {16, 16}, true, 32, 4, 95, 1, 0},
    {{128, 128}, {2, 2}, {16, 16}, true, 32, 4, 95, 2, 0},
    {{128, 64}, {2, 2}, {16, 16}, true, 32, 4, 75, 3, 0},
    {{64, 64}, {2, 2}, {16, 16}, true, 32, 4, 60, 4, 0},
    {{128, 256}, {2, 8}, {16, 16}, false, 32, 1, 95, 1, 0},
    {{128, 128}, {2, 4}, {16, 16}, false, 64, 1, 98, 1, 3},
    {{128, 128}, {2, 2}, {16, 16}, false, 32, 1, 122, 2, 16},
    {{128, 64}, {2, 2}, {16, 16}, false, 64, 1, 80, 3, 15},
    {{64, 64}, {2, 2}, {16, 16}, false, 64, 1, 70, 4, 13},
    {{128, 64}, {2, 2}, {16, 16}, false, 32, 1, 55, 3, 15},
    {{64, 64}, {2, 2}, {16, 16}, false, 32, 1, 50, 4, 13},
};

/* Of few rows.  Reading the other side is all that takes time, so groups share k until there are
 * two for each processor. */
static const struct choice few = {{16, 64}, {1, 4}, {16, 16}, false, 128, 1, 10, 4, 0};

enum { LEAST_PART = 256 /* of k, of a group that shares it */ };

/* ---- operands ---- */

/* A cast of a float of 16 bits to F32 changes no value. */
static bool is_widened(const struct contract *c, const struct expr_node *node)
{
    const struct block *block = c->e.s->block;

    return node->kind == EXPR_OP && block->values[node->value].dtype == FRIT_F32 &&
           block->ops[block->values[node->value].maker].id == FRIT_OP_cast &&
           node->in[0] != BLOCK_NONE &&
           kir_is_16_bit_float(block->values[c->e.nodes[node->in[0]].value].dtype);
}

uint32_t contract_factor_node(const struct contract *c, const struct contract_side *side)
{
    const struct expr_node *node = &c->e.nodes[side->node];

    return is_widened(c, node) ? node->in[0] : side->node;
}

static uint32_t factor_dtype(const struct contract *c, const struct contract_side *side)
{
    return c->e.s->block->values[c->e.nodes[contract_factor_node(c, side)].value].dtype;
}

/* The target's shape with these sums; NULL: it has none. */
static const struct kir_fragment_shape *shape_of(const struct contract *c,
                                                 const struct choice *choice)
{
    const struct kir_target *target = c->e.s->target;

    for (uint32_t i = 0; i < target->n_shapes; i++) {
        const struct kir_fragment_shape *s = &target->shapes[i];

        if (s->dtype == factor_dtype(c, &c->a) && s->sum == FRIT_F32 && s->m == choice->side[0] &&
            s->n == choice->side[1] && s->k == FRAGMENT_K)
            return s;
    }
    return NULL;
}

/* ---- sizes ---- */

static uint32_t team_of(const struct contract *c, const struct kir_fragment_shape *shape)
{
    return shape->team ? shape->team : c->e.s->target->team;
}

static uint32_t lanes_of(const struct contract *c, const struct choice *choice)
{
    return choice->teams[0] * choice->teams[1] * team_of(c, shape_of(c, choice)) * FRAGMENT_CHUNK;
}

/* Lines of a slot are longer by a chunk, at most. */
static uint32_t staged_bytes(const struct choice *choice)
{
    return 2 * choice->stages * (choice->tile[0] + choice->tile[1]) *
           (choice->depth + FRAGMENT_CHUNK * FRAGMENT_CHUNK / choice->depth);
}

static uint32_t result_bytes(const struct choice *choice, bool in_pieces)
{
    uint32_t lines = in_pieces ? choice->teams[0] * choice->side[0] : choice->tile[0];

    return 4 * lines * (choice->tile[1] + FRAGMENT_CHUNK);
}

static bool has_room(const struct contract *c, const struct choice *choice, bool in_pieces)
{
    const struct kir_target *target = c->e.s->target;
    uint32_t staged = staged_bytes(choice), result = result_bytes(choice, in_pieces);
    uint32_t bytes = target->reuses_tiles ? (staged > result ? staged : result) : staged + result;

    return bytes <= (target->fragment_bytes ? target->fragment_bytes : target->group_bytes);
}

/* Whether all lanes have as many elements of each side's slot to stage. */
static bool is_even(const struct contract *c, const struct choice *choice)
{
    const uint32_t lanes = lanes_of(c, choice);

    return choice->tile[0] * choice->depth % lanes == 0 &&
           choice->tile[1] * choice->depth % lanes == 0;
}

static bool fits(const struct contract *c, const struct choice *choice)
{
    const struct kir_target *target = c->e.s->target;

    return choice->copies == target->copies && shape_of(c, choice) && is_even(c, choice) &&
           has_room(c, choice, true) &&
           choice->tile[1] <= 2 * sched_tuning(c->e.s).tile_side_sums &&
           lanes_of(c, choice) <=
               (target->fragment_lanes ? target->fragment_lanes : target->max_lanes);
}

/* What all take, in sums of one processor. */
static uint64_t cost_of(const struct contract *c, const struct choice *choice)
{
    const struct kir_target *target = c->e.s->target;
    uint64_t groups =
        (uint64_t)(contract_points(&c->e.space, CONTRACT_BOTH) *
                   tiles_of(contract_points(&c->e.space, CONTRACT_M), choice->tile[0]) *
                   tiles_of(contract_points(&c->e.space, CONTRACT_N), choice->tile[1]));
    uint64_t processors = target->units / PROCESSOR_UNITS + 1, rounds, rest, at_once;

    rounds = groups / (processors * choice->at_once);
    rest = groups % (processors * choice->at_once);
    at_once = (rest + processors - 1) / processors;
    return (10 * (rounds * choice->at_once + at_once) + choice->longer) * choice->tile[0] *
           choice->tile[1] * 100 / choice->speed;
}

/* The cheapest one.  Where products of blocks fit no others are taken, which may round otherwise:
 * results do not depend on which of these is the cheapest. */
static const struct choice *best_choice(const struct contract *c)
{
    const struct choice *best = NULL;
    bool from_blocks = false;

    for (uint32_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
        const struct choice *choice = &choices[i];

        if (!fits(c, choice) || (from_blocks && !shape_of(c, choice)->from_blocks))
            continue;
        from_blocks |= shape_of(c, choice)->from_blocks;
        if (!best || cost_of(c, choice) < cost_of(c, best))
            best = choice;
    }
    return best;
}

bool contract_fits_fragments(const struct contract *c)
{
    if (!c->e.s->target->n_shapes || c->n_k < LEAST_K || c->pad.used ||
        contract_points(&c->e.space, CONTRACT_M) < LEAST_PLACES ||
        contract_points(&c->e.space, CONTRACT_N) < LEAST_PLACES || contract_type(c) != KIR_F32)
        return false;
    return factor_dtype(c, &c->a) == factor_dtype(c, &c->b) && best_choice(c);
}

/* Results are stored along `across`: the side whose places are neighbours in the first output. */
static bool is_turned(const struct contract *c)
{
    uint32_t m = contract_last_dim(&c->e.space, CONTRACT_M),
             n = contract_last_dim(&c->e.space, CONTRACT_N);

    return m != SPACE_DIMS && n != SPACE_DIMS && c->e.n_stores && c->e.stores[0].at.k[m] == 1 &&
           c->e.stores[0].at.k[n] != 1;
}

static int64_t points_down(const struct contract *c)
{
    return contract_points(&c->e.space, is_turned(c) ? CONTRACT_N : CONTRACT_M);
}

static int64_t points_across(const struct contract *c)
{
    return contract_points(&c->e.space, is_turned(c) ? CONTRACT_M : CONTRACT_N);
}

bool contract_fits_few(const struct contract *c)
{
    if (!c->e.s->target->n_shapes || c->pad.used || contract_type(c) != KIR_F32 ||
        c->n_k < LEAST_PART || points_down(c) > few.tile[DOWN] ||
        c->n_k * points_across(c) < sched_tuning(c->e.s).few_weights)
        return false;
    return factor_dtype(c, &c->a) == factor_dtype(c, &c->b) && fits(c, &few);
}

static void choose(struct contract *c, const struct choice *choice)
{
    const struct kir_fragment_shape *shape = shape_of(c, choice);
    struct contract_fragments *f = &c->fragments;

    c->form = CONTRACT_FRAGMENTS;
    c->down = is_turned(c) ? &c->b : &c->a;
    c->across = is_turned(c) ? &c->a : &c->b;
    for (uint32_t s = DOWN; s <= ACROSS; s++) {
        f->tile[s] = choice->tile[s];
        f->teams[s] = choice->teams[s];
        f->side[s] = choice->side[s];
    }
    f->dtype = factor_dtype(c, &c->a);
    f->threads = team_of(c, shape);
    f->from_blocks = shape->from_blocks;
    f->depth = choice->depth;
    f->stages = choice->stages;
    f->in_pieces = !has_room(c, choice, false);
    c->n_down = c->n_across = 1;
    c->lanes = lanes_of(c, choice);
}

void contract_choose_fragments(struct contract *c)
{
    choose(c, best_choice(c));
}

void contract_choose_few(struct contract *c)
{
    int64_t n = 1, groups = contract_points(&c->e.space, CONTRACT_BOTH) *
                            tiles_of(points_across(c), few.tile[ACROSS]);

    choose(c, &few);
    while (n * groups < c->e.s->target->units / 2 && c->n_k / (2 * n) >= LEAST_PART)
        n *= 2;
    if (n == 1)
        return;
    c->fragments.part = tiles_of(tiles_of(c->n_k, (uint32_t)n), few.depth) * few.depth;
    c->slices.n_splits = (uint32_t)tiles_of(c->n_k, (uint32_t)c->fragments.part);
}
