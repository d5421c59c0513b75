/* SPDX-License-Identifier: Apache-2.0 */
/* Code of contractions by products of fragments.
 *
 * A group makes a tile of sums, each of its teams a part of it in fragments.  Some of k of both
 * sides at a time lies in one of several slots of a tile; while one is multiplied the next ones are
 * copied, or where that takes more than a copy loaded, and stored after the products; a
 * single slot takes another barrier for that.  Beyond the ends of sides there are zeros.  A slot
 * has lines along what lies next to each other in memory, k or places; lines are longer by a chunk,
 * so that they begin in different banks.  Where the target loads blocks, lines are cut into these,
 * and swizzled.  Sums are added in order of k, whatever the tile.
 *
 * In the end sums go through a tile too, all at once or piece by piece, so that chunks of
 * neighbours are computed and stored together.  A thread has FRAGMENT_CHUNK lanes: what they load
 * and store is one access. */
#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_fragment.h"
#include "lower/contract/contract_slices_emit.h"

enum {
    DEEP = 16, /* k of fragments */
    CHUNK = FRAGMENT_CHUNK,
    AT_ONCE = 2,     /* chunks of results, of a thread */
    MAX_PIECES = 16, /* fragments of a team along a side */
    MAX_ROUNDS = 64, /* of the group's lanes over a slot */
    BAND = 8         /* tiles down that groups next to each other share, for the cache's sake */
};

/* A side in the tile. */
struct staged {
    uint32_t node;   /* elements */
    bool along_k;    /* lines of the slot, and its chunks */
    bool copies;     /* elements are those of an argument */
    uint32_t places; /* of the group */
    uint32_t depth;  /* of k */
    uint32_t line; /* elements from one line to the next, or from one block of lines to the next */
    uint32_t slot; /* elements of a slot */
    uint32_t tile;
    uint32_t loaded[MAX_ROUNDS]; /* values that are stored after the products */
    uint32_t at[MAX_ROUNDS];     /* where in the slot */
};

struct fragment_emitter {
    struct contract_emitter *w;
    const struct contract_fragments *f;
    uint32_t chunk, low; /* the lane's number in chunks, and in its chunk */
    uint32_t team[2];    /* the team's, along each side */
    uint32_t yes;        /* KIR_B */
    uint32_t k_begin;    /* of the group's part of k, to k_end */
    struct staged side[2];
    uint32_t pieces[2];           /* of a team */
    uint32_t part[2][MAX_PIECES]; /* fragments of a step of k; where products go on, of all steps */
    uint32_t sums[MAX_PIECES][MAX_PIECES];
};

static uint32_t shift_of(uint32_t n)
{
    return (uint32_t)__builtin_ctz(n);
}

static uint32_t plus(const struct contract_emitter *w, uint32_t value, int64_t n)
{
    return n ? op2(w, KIR_add, value, index_const(w, n)) : value;
}

static uint32_t times(const struct contract_emitter *w, uint32_t value, int64_t n)
{
    return op2(w, KIR_mul, value, index_const(w, n));
}

static bool is_power_of_two(uint32_t n)
{
    return !(n & (n - 1));
}

/* Remainder and quotient by a number. */
static uint32_t low_part(const struct contract_emitter *w, uint32_t value, uint32_t n)
{
    return is_power_of_two(n) ? op2(w, KIR_and, value, index_const(w, n - 1))
                              : op2(w, KIR_urem, value, index_const(w, n));
}

static uint32_t high_part(const struct contract_emitter *w, uint32_t value, uint32_t n)
{
    return is_power_of_two(n) ? op2(w, KIR_shr, value, index_const(w, shift_of(n)))
                              : op2(w, KIR_udiv, value, index_const(w, n));
}

static void barrier(const struct contract_emitter *w)
{
    kir_emit(w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- places ---- */

/* Sets the place `first` + the lane's in its chunk, where `first` is a multiple of a chunk. */
static void set_chunk(const struct fragment_emitter *x, const struct delinearizer *points,
                      uint32_t first)
{
    const struct contract_emitter *w = x->w;

    if (points->chunk == CHUNK)
        delinearize_set_chunk(points, w->e, high_part(w, first, CHUNK), x->low);
    else
        delinearize_set(points, w->e, op2(w, KIR_add, first, x->low));
}

/* Whether lanes of the chunk at `first` are below `end`, one answer for all where ends are those of
 * chunks. */
static uint32_t chunk_below(const struct fragment_emitter *x, uint32_t first, int64_t count,
                            uint32_t end)
{
    const struct contract_emitter *w = x->w;

    return op2(w, KIR_lt, count % CHUNK ? op2(w, KIR_add, first, x->low) : first, end);
}

static uint32_t both(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : op2(w, KIR_and, a, b);
}

/* ---- slots ---- */

static uint32_t chunks_of(const struct staged *side)
{
    return (side->along_k ? side->depth : side->places) / CHUNK;
}

static uint32_t rounds_of(const struct fragment_emitter *x, const struct staged *side)
{
    return side->places * side->depth / x->w->c->lanes;
}

/* Where a chunk of a line is in a slot. */
static uint32_t place_in(const struct fragment_emitter *x, const struct staged *side, uint32_t line,
                         uint32_t chunk)
{
    const struct contract_emitter *w = x->w;
    uint32_t at, block;

    if (!x->f->from_blocks)
        return op2(w, KIR_add, times(w, line, side->line), times(w, chunk, CHUNK));
    block = high_part(w, chunk, KIR_BLOCK / CHUNK);
    at = op2(w, KIR_add, times(w, low_part(w, chunk, KIR_BLOCK / CHUNK), CHUNK),
             times(w, line, KIR_BLOCK));
    at = op2(w, KIR_add, at, times(w, block, side->line));
    return op2(w, KIR_xor, at, times(w, low_part(w, high_part(w, at, KIR_BLOCK), 8), CHUNK));
}

/* Sets a lane's element of round `i` from k on.  *at: where in the slot it is; returns whether it
 * is below the ends, KIR_NONE: surely. */
static uint32_t set_element(const struct fragment_emitter *x, uint32_t s, uint32_t i, uint32_t k,
                            bool is_whole, uint32_t *at)
{
    const struct contract_emitter *w = x->w;
    const struct staged *side = &x->side[s];
    const struct delinearizer *points = &w->side[s]->points;
    uint32_t number = plus(w, x->chunk, (int64_t)i * w->c->lanes / CHUNK);
    uint32_t line = high_part(w, number, chunks_of(side));
    uint32_t chunk = low_part(w, number, chunks_of(side)), first = times(w, chunk, CHUNK),
             inside = KIR_NONE;

    *at = op2(w, KIR_add, place_in(x, side, line, chunk), x->low);
    line = op2(w, KIR_add, line, side->along_k ? w->corner[s] : k);
    first = op2(w, KIR_add, first, side->along_k ? k : w->corner[s]);
    if (side->along_k) {
        delinearize_set(points, w->e, line);
        set_chunk(x, &w->c->k, first);
    } else {
        set_chunk(x, points, first);
        delinearize_set(&w->c->k, w->e, line);
    }
    if (points->count % side->places)
        inside = side->along_k ? op2(w, KIR_lt, line, w->end[s])
                               : chunk_below(x, first, points->count, w->end[s]);
    if (!is_whole)
        inside = both(w, inside,
                      side->along_k ? chunk_below(x, first, w->c->n_k, w->k_end)
                                    : op2(w, KIR_lt, line, w->k_end));
    return inside;
}

static void copy_side(const struct fragment_emitter *x, uint32_t s, uint32_t k, uint32_t slot)
{
    const struct contract_emitter *w = x->w;
    const struct staged *side = &x->side[s];
    const struct kir_copy copy = {side->tile,
                                  w->e->s->block->values[w->e->nodes[side->node].value].input};
    uint32_t to = times(w, slot, side->slot);

    for (uint32_t i = 0; i < rounds_of(x, side); i++) {
        uint32_t mark = expr_mark(w->e), at;
        uint32_t inside = set_element(x, s, i, k, w->c->n_k % x->f->depth == 0, &at);

        kir_emit_imm(w->m, KIR_tcopy, kir_copy_imm(&copy), op2(w, KIR_add, to, at),
                     expr_load_at(w->e, side->node), inside == KIR_NONE ? x->yes : inside);
        expr_release(w->e, mark);
    }
}

static void load_side(struct fragment_emitter *x, uint32_t s, uint32_t k)
{
    const struct contract_emitter *w = x->w;
    struct staged *side = &x->side[s];

    for (uint32_t i = 0; i < rounds_of(x, side); i++) {
        uint32_t mark = expr_mark(w->e), inside = set_element(x, s, i, k, false, &side->at[i]);

        expr_mask(w->e, inside);
        side->loaded[i] = expr_value(w->e, side->node);
        expr_release(w->e, mark);
        if (w->e->nodes[side->node].kind != EXPR_LOAD) /* which has zeros elsewhere */
            side->loaded[i] = kir_select(w->m, inside, side->loaded[i], zero(w));
    }
}

static void store_side(const struct fragment_emitter *x, uint32_t s, uint32_t slot)
{
    const struct contract_emitter *w = x->w;
    const struct staged *side = &x->side[s];
    uint32_t to = times(w, slot, side->slot);

    for (uint32_t i = 0; i < rounds_of(x, side); i++)
        kir_emit_imm(w->m, KIR_tstore, side->tile, op2(w, KIR_add, to, side->at[i]),
                     side->loaded[i], KIR_NONE);
}

static bool has_copies(const struct fragment_emitter *x)
{
    return x->side[DOWN].copies || x->side[ACROSS].copies;
}

/* What is done for the slot of k before products, and after them. */
static void begin_slot(struct fragment_emitter *x, uint32_t k, uint32_t slot)
{
    const struct contract_emitter *w = x->w;

    if (has_copies(x)) {
        kir_if(w->m, op2(w, KIR_lt, k, w->k_end));
        for (uint32_t s = DOWN; s <= ACROSS; s++)
            if (x->side[s].copies)
                copy_side(x, s, k, slot);
        kir_end(w->m);
        kir_emit(w->m, KIR_tbatch, KIR_NONE, KIR_NONE, KIR_NONE);
    }
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        if (!x->side[s].copies)
            load_side(x, s, k);
}

static void end_slot(const struct fragment_emitter *x, uint32_t slot)
{
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        if (!x->side[s].copies)
            store_side(x, s, slot);
}

/* ---- products ---- */

/* Where place `place` and k `deep` of a side are in a slot, before swizzling. */
static int64_t offset_in(const struct fragment_emitter *x, uint32_t s, uint32_t place,
                         uint32_t deep)
{
    const struct staged *side = &x->side[s];
    uint32_t far = side->along_k ? place : deep, near = side->along_k ? deep : place;

    return x->f->from_blocks
               ? (int64_t)near / KIR_BLOCK * side->line + far * KIR_BLOCK + near % KIR_BLOCK
               : (int64_t)far * side->line + near;
}

static const uint32_t *part_of(const struct fragment_emitter *x, uint32_t s, uint32_t i,
                               uint32_t deep)
{
    return &x->part[s][x->f->from_blocks ? deep / DEEP * x->pieces[s] + i : i];
}

/* Loads a team's fragments of a side, from `deep` of the slot on. */
static void load_parts(const struct fragment_emitter *x, uint32_t s, uint32_t slot, uint32_t deep)
{
    const struct contract_emitter *w = x->w;
    const struct staged *side = &x->side[s];
    uint32_t first = times(w, x->team[s], offset_in(x, s, x->pieces[s] * x->f->side[s], 0));

    first = op2(w, KIR_add, times(w, slot, side->slot), first);
    for (uint32_t i = 0; i < x->pieces[s]; i++) {
        const struct kir_fragment_place place = {.fragment = *part_of(x, s, i, deep),
                                                 .is_tile = true,
                                                 .place = side->tile,
                                                 .by_columns = side->along_k == (s == ACROSS),
                                                 .in_blocks = x->f->from_blocks};

        kir_emit_imm(w->m, KIR_mload, kir_fragment_imm(&place),
                     plus(w, first, offset_in(x, s, i * x->f->side[s], deep)),
                     index_const(w, side->line), KIR_NONE);
    }
}

static void multiply(const struct fragment_emitter *x, uint32_t slot)
{
    for (uint32_t deep = 0; deep < x->f->depth; deep += DEEP) {
        load_parts(x, DOWN, slot, deep);
        load_parts(x, ACROSS, slot, deep);
        for (uint32_t i = 0; i < x->pieces[DOWN]; i++)
            for (uint32_t j = 0; j < x->pieces[ACROSS]; j++)
                kir_emit_imm(x->w->m, KIR_mma,
                             kir_product(x->sums[i][j], *part_of(x, DOWN, i, deep),
                                         *part_of(x, ACROSS, j, deep)),
                             KIR_NONE, KIR_NONE, KIR_NONE);
    }
}

/* The slots that are copied before they are multiplied. */
static uint32_t ahead_of(const struct fragment_emitter *x)
{
    return x->f->stages > 1 ? x->f->stages - 1 : 1;
}

/* Until the slot is copied, and the products before, which read the next one that is written, are
 * done. */
static void wait_for_slot(const struct fragment_emitter *x)
{
    const struct contract_emitter *w = x->w;

    if (has_copies(x))
        kir_emit_imm(w->m, KIR_twait, ahead_of(x) - 1, KIR_NONE, KIR_NONE, KIR_NONE);
    if (x->f->from_blocks)
        kir_emit_imm(w->m, KIR_mwait, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    barrier(w);
}

static void emit_sums(struct fragment_emitter *x)
{
    const struct contract_emitter *w = x->w;
    const uint32_t ahead = ahead_of(x);
    uint32_t mark = expr_mark(w->e), k, slot, next;

    slot = kir_for(w->m, index_const(w, 0), index_const(w, ahead), 1);
    begin_slot(x, op2(w, KIR_add, x->k_begin, times(w, slot, x->f->depth)), slot);
    end_slot(x, slot);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    k = kir_for(w->m, x->k_begin, w->k_end, x->f->depth);
    slot = low_part(w, high_part(w, k, x->f->depth), x->f->stages);
    next = low_part(w, plus(w, slot, ahead), x->f->stages);
    wait_for_slot(x);
    if (x->f->from_blocks) {
        multiply(x, slot);
        kir_emit(w->m, KIR_mbatch, KIR_NONE, KIR_NONE, KIR_NONE);
    }
    begin_slot(x, plus(w, k, (int64_t)ahead * x->f->depth), next);
    if (!x->f->from_blocks)
        multiply(x, slot);
    if (x->f->stages == 1)
        barrier(w);
    end_slot(x, next);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

/* ---- results ---- */

/* Sums in a tile: of each team those of `n` fragments down, at the round `round` of all. */
struct results {
    uint32_t tile, line, n;
    uint32_t round; /* a value; KIR_NONE: there is one round */
};

/* Lines of the tile for a team. */
static uint32_t team_lines(const struct fragment_emitter *x, const struct results *r)
{
    return r->n * x->f->side[DOWN];
}

/* Puts a team's sums of fragments from `piece` on into the tile. */
static void store_sums(const struct fragment_emitter *x, const struct results *r, uint32_t piece)
{
    const struct contract_emitter *w = x->w;
    const uint32_t *side = x->f->side;
    uint32_t row = times(w, x->team[DOWN], (int64_t)team_lines(x, r) * r->line);
    uint32_t first =
        op2(w, KIR_add, row, times(w, x->team[ACROSS], (int64_t)x->pieces[ACROSS] * side[ACROSS]));

    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t j = 0; j < x->pieces[ACROSS]; j++) {
            const struct kir_fragment_place place = {
                .fragment = x->sums[piece + i][j], .is_tile = true, .place = r->tile};

            kir_emit_imm(w->m, KIR_mstore, kir_fragment_imm(&place),
                         plus(w, first, (int64_t)i * side[DOWN] * r->line + j * side[ACROSS]),
                         index_const(w, r->line), KIR_NONE);
        }
}

/* The line of the group's sums that a line of the tile has. */
static uint32_t line_of(const struct fragment_emitter *x, const struct results *r, uint32_t row)
{
    const struct contract_emitter *w = x->w;
    const uint32_t lines = team_lines(x, r);
    uint32_t team;

    if (r->round == KIR_NONE)
        return row;
    team = times(w, high_part(w, row, lines), (int64_t)x->pieces[DOWN] * x->f->side[DOWN]);
    team = op2(w, KIR_add, team, times(w, r->round, lines));
    return op2(w, KIR_add, team, low_part(w, row, lines));
}

/* The lanes' results from chunk number `number` of the tile on. */
static void finish_chunk(const struct fragment_emitter *x, const struct results *r, uint32_t number)
{
    const struct contract_emitter *w = x->w;
    const struct delinearizer *points[2] = {&w->side[DOWN]->points, &w->side[ACROSS]->points};
    const uint32_t chunks = x->f->tile[ACROSS] / CHUNK;
    uint32_t row = high_part(w, number, chunks), mask = KIR_NONE, mark = expr_mark(w->e), sum;
    uint32_t first = times(w, low_part(w, number, chunks), CHUNK), places[2];
    uint32_t at = op2(w, KIR_add, op2(w, KIR_add, times(w, row, r->line), first), x->low);

    sum = kir_emit_as(w->m, KIR_tload, w->type, r->tile, at, KIR_NONE, KIR_NONE);
    row = op2(w, KIR_add, line_of(x, r, row), w->corner[DOWN]);
    first = op2(w, KIR_add, first, w->corner[ACROSS]);
    delinearize_set(points[DOWN], w->e, row);
    set_chunk(x, points[ACROSS], first);
    if (points[DOWN]->count % x->f->tile[DOWN])
        mask = op2(w, KIR_lt, row, w->end[DOWN]);
    if (points[ACROSS]->count % x->f->tile[ACROSS])
        mask = both(w, mask, chunk_below(x, first, points[ACROSS]->count, w->end[ACROSS]));
    places[DOWN] = row;
    places[ACROSS] = op2(w, KIR_add, first, x->low);
    slices_store(w, places, mask, sum);
    expr_release(w->e, mark);
}

/* Computes and stores the results of sums that are in the tile. */
static void finish_tile(const struct fragment_emitter *x, const struct results *r)
{
    const struct contract_emitter *w = x->w;
    const uint32_t mark = expr_mark(w->e), lines = x->f->teams[DOWN] * team_lines(x, r);
    const uint32_t chunks = lines * x->f->tile[ACROSS] / CHUNK, step = w->c->lanes / CHUNK;
    const uint32_t at_once = chunks % (AT_ONCE * step) ? 1 : AT_ONCE;
    uint32_t i = kir_for(w->m, index_const(w, 0), index_const(w, chunks), at_once * step);

    for (uint32_t n = 0; n < at_once; n++) {
        finish_chunk(x, r, op2(w, KIR_add, i, plus(w, x->chunk, (int64_t)n * step)));
        expr_release(w->e, mark);
    }
    kir_next(w->m, NULL, 0);
}

/* A round for each fragment down of the teams. */
static void finish_in_rounds(const struct fragment_emitter *x, struct results *r)
{
    const struct contract_emitter *w = x->w;
    const uint32_t mark = expr_mark(w->e);

    r->round = kir_for(w->m, index_const(w, 0), index_const(w, x->pieces[DOWN]), 1);
    for (uint32_t i = 0; i < x->pieces[DOWN]; i++) {
        kir_if(w->m, op2(w, KIR_eq, r->round, index_const(w, i)));
        store_sums(x, r, i);
        expr_release(w->e, mark);
        kir_end(w->m);
    }
    barrier(w);
    finish_tile(x, r);
    barrier(w);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

static void emit_results(const struct fragment_emitter *x)
{
    const struct contract_emitter *w = x->w;
    struct results r = {.line = x->f->tile[ACROSS] + CHUNK,
                        .n = x->f->in_pieces ? 1 : x->pieces[DOWN],
                        .round = KIR_NONE};

    r.tile = kir_tile(w->m, KIR_GROUP, w->type, x->f->teams[DOWN] * team_lines(x, &r) * r.line);
    if (has_copies(x))
        kir_emit_imm(w->m, KIR_twait, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    if (x->f->from_blocks)
        kir_emit_imm(w->m, KIR_mwait, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    barrier(w);
    if (x->f->in_pieces) {
        finish_in_rounds(x, &r);
        return;
    }
    store_sums(x, &r, 0);
    barrier(w);
    finish_tile(x, &r);
}

/* ---- the phase ---- */

static void begin_side(struct fragment_emitter *x, uint32_t s)
{
    struct contract_emitter *w = x->w;
    struct staged *side = &x->side[s];
    const struct kir_fragment left = {KIR_LEFT, x->f->dtype, x->f->side[DOWN], DEEP},
                              right = {KIR_RIGHT, x->f->dtype, DEEP, x->f->side[ACROSS]};
    uint32_t lines;

    side->node = contract_factor_node(w->c, w->side[s]);
    side->along_k = contract_runs_along_k(w->c, w->side[s]);
    side->copies = w->e->s->target->copies && w->e->nodes[side->node].kind == EXPR_LOAD;
    side->places = x->f->tile[s];
    side->depth = x->f->depth;
    lines = side->along_k ? side->places : side->depth;
    side->line = x->f->from_blocks ? lines * KIR_BLOCK : (chunks_of(side) + 1) * CHUNK;
    side->slot = x->f->from_blocks ? lines * chunks_of(side) * CHUNK : side->line * lines;
    side->tile = kir_tile_of(w->m, KIR_GROUP, x->f->dtype, side->slot * x->f->stages);
    x->pieces[s] = x->f->tile[s] / x->f->teams[s] / x->f->side[s];
    for (uint32_t i = 0; i < x->pieces[s] * (x->f->from_blocks ? x->f->depth / DEEP : 1); i++)
        x->part[s][i] = kir_fragment(w->m, s == DOWN ? &left : &right);
    w->end[s] = sched_add_index(w->e->s, w->side[s]->points.count);
}

static void begin_sums(struct fragment_emitter *x)
{
    const struct kir_fragment sums = {KIR_SUM, FRIT_F32, x->f->side[DOWN], x->f->side[ACROSS]};
    struct kir_module *m = x->w->m;

    for (uint32_t i = 0; i < x->pieces[DOWN]; i++)
        for (uint32_t j = 0; j < x->pieces[ACROSS]; j++)
            x->sums[i][j] = kir_fragment(m, &sums);
}

/* The lane's place among teams and chunks. */
static void begin_lanes(struct fragment_emitter *x)
{
    struct contract_emitter *w = x->w;
    const uint32_t lanes = x->f->threads * CHUNK;
    uint32_t team = high_part(w, w->lane, lanes);

    if (!w->m->failed)
        w->m->phases[w->m->n_phases - 1].team = lanes;
    x->chunk = high_part(w, w->lane, CHUNK);
    x->low = low_part(w, w->lane, CHUNK);
    x->team[DOWN] = high_part(w, team, x->f->teams[ACROSS]);
    x->team[ACROSS] = low_part(w, team, x->f->teams[ACROSS]);
    x->yes = kir_const_b(w->m, true);
}

/* The group's tile: groups that run at the same time have few lines of tiles of both sides. */
static void begin_group(struct fragment_emitter *x, uint32_t group)
{
    struct contract_emitter *w = x->w;
    const struct contract *c = w->c;
    int64_t n[2], all;
    uint32_t band, in, height, tile[2];

    for (uint32_t s = DOWN; s <= ACROSS; s++)
        n[s] = tiles_of(w->side[s]->points.count, x->f->tile[s]);
    all = n[DOWN] * n[ACROSS];
    in = work_part(w, &group, all);
    if (c->slices.n_splits > 1) {
        w->both = work_part(w, &group, c->both.count);
        w->split = group;
        group = w->both;
    }
    delinearize_set(&c->both, w->e, group);
    band = in;
    in = work_part(w, &band, BAND * n[ACROSS]);
    band = times(w, band, BAND);
    height = op2(w, KIR_smin, op2(w, KIR_sub, sched_add_index(w->e->s, n[DOWN]), band),
                 index_const(w, BAND));
    tile[ACROSS] = op2(w, KIR_udiv, in, height);
    tile[DOWN] = op2(w, KIR_add, band, op2(w, KIR_sub, in, op2(w, KIR_mul, tile[ACROSS], height)));
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        w->corner[s] = times(w, tile[s], x->f->tile[s]);
}

static void begin_part(struct fragment_emitter *x)
{
    struct contract_emitter *w = x->w;
    uint32_t steps;

    x->k_begin = index_const(w, 0);
    w->k_end = sched_add_index(w->e->s, w->c->n_k);
    if (w->split == KIR_NONE)
        return;
    steps = sched_add_index(w->e->s, x->f->part / x->f->depth);
    x->k_begin = times(w, op2(w, KIR_mul, w->split, steps), x->f->depth);
    w->k_end =
        op2(w, KIR_smin, w->k_end, op2(w, KIR_add, x->k_begin, times(w, steps, x->f->depth)));
}

void fragment_emit(struct contract_emitter *w)
{
    struct contract *c = w->c;
    struct fragment_emitter x = {.w = w, .f = &c->fragments};
    uint32_t group, none;

    delinearize_chunk(&c->a.points, w->e, CHUNK);
    delinearize_chunk(&c->b.points, w->e, CHUNK);
    delinearize_chunk(&c->k, w->e, CHUNK);
    group = work_begin(w, c->lanes);
    delinearize_phase(&c->down->points, w->e);
    delinearize_phase(&c->k, w->e);
    if (c->slices.n_splits > 1)
        slices_reserve(w);
    begin_side(&x, DOWN);
    begin_side(&x, ACROSS);
    begin_sums(&x);
    begin_lanes(&x);
    begin_group(&x, group);
    begin_part(&x);
    expr_hoist(w->e);
    none = zero(w);
    for (uint32_t i = 0; i < x.pieces[DOWN]; i++)
        for (uint32_t j = 0; j < x.pieces[ACROSS]; j++)
            kir_emit_imm(w->m, KIR_mfill, x.sums[i][j], none, KIR_NONE, KIR_NONE);
    emit_sums(&x);
    emit_results(&x);
    if (w->split != KIR_NONE)
        slices_join(w);
}
