/* SPDX-License-Identifier: Apache-2.0 */
/* Code for contractions through tiles of the group.
 *
 * In each step tile_depth of k lie in a tile for each side, [k][place], with what was done to the
 * elements before, and 0 where they are beyond an end.  There are two buffers of each tile: a step
 * first requests the elements of the next step from memory, then multiplies its own, then stores
 * what it requested into the other buffer.
 *
 * A lane's rows are neighbours in a tile, and so are the columns of neighbouring lanes: emitters
 * make wide accesses of both.  Where neighbouring lanes stage neighbours along k, rows of the tile
 * are TILE_PAD longer, so that such lanes store to different banks.
 *
 * Long sums are added up in blocks.  The sums of the blocks before are needed once a block and lie
 * in a tile too, so that the registers have room for two or more groups of a multiprocessor. */
#include "lower/contract/contract_tile.h"

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_slices_emit.h"

/* A number that bits of a lane's number make: lane / by % n + lane / high_by % high_n * n. */
struct lane_part {
    uint32_t by, n, high_by, high_n;
};

/* One side as the group stages it.  Tile elements are I32, places and k have the index type. */
struct tile_side {
    struct contract_side *side;
    uint32_t tile;
    uint32_t places, stride, size; /* of the group; from one k to the next; of a buffer */
    uint32_t n;                    /* elements of a step that a lane stages */
    bool along_k;                  /* by neighbouring lanes, else places */
    uint32_t corner;               /* the group's first place */
    bool linear_in_k;              /* loads are, of k's number */
    struct lane_part place, deep;  /* of the first element of a step, in the tile */
    uint32_t to;                   /* tile element of the first element */
    struct lane_part sums;         /* of the lane: a chunk of rows, a column */
    uint32_t from;                 /* tile element of the lane's first operand */
    uint32_t takes_part;           /* B: the lane stages anything; KIR_NONE: all do */
};

struct tile_emitter {
    struct contract_emitter *w;
    struct tile_side side[2];
    uint32_t lane;      /* I32 */
    uint32_t last_step; /* k where the last step begins; KIR_NONE: steps are masked at the end */
    uint32_t k_end;
    uint32_t part_begin, part_end;           /* of k, for the group */
    uint32_t totals, totals_at, totals_step; /* tile of sums, the lane's first one, how far apart */
};

/* ---- small numbers ---- */

static uint32_t shift_of(uint32_t n)
{
    uint32_t shift = 0;

    while (1u << shift < n)
        shift++;
    return shift;
}

static uint32_t const_i32(const struct tile_emitter *t, uint32_t value)
{
    return kir_const_i(t->w->m, KIR_I32, value);
}

static uint32_t plus(const struct tile_emitter *t, uint32_t value, uint32_t n)
{
    enum kir_type type = kir_type_at(t->w->m, value);

    return n ? op2(t->w, KIR_add, value, kir_const_i(t->w->m, type, n)) : value;
}

/* lane / by % n, I32. */
static uint32_t lane_bits(const struct tile_emitter *t, uint32_t by, uint32_t n)
{
    uint32_t value = t->lane;

    if (n == 1)
        return const_i32(t, 0);
    if (by > 1)
        value = op2(t->w, KIR_shr, value, const_i32(t, shift_of(by)));
    return by * n < t->w->c->lanes ? op2(t->w, KIR_and, value, const_i32(t, n - 1)) : value;
}

static uint32_t count_of(const struct lane_part *part)
{
    return part->n * part->high_n;
}

/* Whether neighbouring lanes have neighbouring numbers, in chunks of that many. */
static bool has_chunks(const struct lane_part *part, uint32_t chunk)
{
    return part->by == 1 && part->n % chunk == 0;
}

/* The number, I32, in chunks that it has. */
static uint32_t part_number(const struct tile_emitter *t, const struct lane_part *part,
                            uint32_t chunk)
{
    uint32_t value = lane_bits(t, part->by * chunk, part->n / chunk), high;

    if (part->high_n == 1)
        return value;
    high = op2(t->w, KIR_mul, lane_bits(t, part->high_by, part->high_n),
               const_i32(t, part->n / chunk));
    return op2(t->w, KIR_add, high, value);
}

static uint32_t index_of(const struct tile_emitter *t, uint32_t value)
{
    return sched_wide(t->w->e->s, value);
}

/* first / chunk + the part's number of chunks. */
static uint32_t chunk_number(const struct tile_emitter *t, uint32_t first,
                             const struct lane_part *part, uint32_t chunk)
{
    if (chunk > 1)
        first = op2(t->w, KIR_shr, first, index_const(t->w, shift_of(chunk)));
    return op2(t->w, KIR_add, first, index_of(t, part_number(t, part, chunk)));
}

/* B: first + the part's number < end, where `first` is a multiple of all chunks.  Neighbouring
 * lanes that make one access share the condition if `end` allows that. */
static uint32_t is_below(const struct tile_emitter *t, uint32_t first, const struct lane_part *part,
                         int64_t end)
{
    uint32_t chunk = 1;

    while (chunk < t->w->c->thread_lanes && has_chunks(part, 2 * chunk) && end % (2 * chunk) == 0)
        chunk *= 2;
    return op2(t->w, KIR_lt, chunk_number(t, first, part, chunk),
               sched_add_index(t->w->e->s, end / chunk));
}

/* Sets the place first + the part's number, likewise. */
static void set_place(const struct tile_emitter *t, const struct contract_side *side,
                      uint32_t first, const struct lane_part *part)
{
    const struct delinearizer *points = &side->points;
    const struct lane_part low = {1, points->chunk, 1, 1};

    if (points->chunk > 1 && has_chunks(part, points->chunk))
        delinearize_set_chunk(points, t->w->e, chunk_number(t, first, part, points->chunk),
                              index_of(t, part_number(t, &low, 1)));
    else
        delinearize_set(points, t->w->e, chunk_number(t, first, part, 1));
}

/* ---- staging ---- */

/* Neighbouring lanes take neighbours along what lies next to each other in memory. */
static bool runs_along_k(const struct contract *c, const struct contract_side *side)
{
    const struct delinearizer *k = &c->k, *own = &side->points;

    return k->n && contract_line_cost(c, side, k->dim[k->n - 1]) == 1 &&
           (!own->n || contract_line_cost(c, side, own->dim[own->n - 1]) > 1);
}

/* Whether what a side loads is linear in the row-major number of k, with nothing else that depends
 * on k. */
static bool is_linear_in_k(const struct contract *c, const struct contract_side *side)
{
    const struct expr *e = &c->e;
    const uint32_t *dim = c->k.dim, last = c->k.n - 1;

    for (uint32_t n = 0; n <= side->node; n++) {
        const struct expr_node *node = &e->nodes[n];

        if (node->kind == EXPR_GUARD || node->kind == EXPR_JOIN || node->indexed)
            return false;
        for (uint32_t a = 0; side->loads[n] && a < e->space.n_leaves; a++)
            if (node->at.k[SPACE_DIMS + a])
                return false;
        for (uint32_t i = last; side->loads[n] && i > 0; i--)
            if (node->at.k[dim[i - 1]] != node->at.k[dim[i]] * e->space.extent[dim[i]])
                return false;
    }
    return c->k.n > 1;
}

/* How far element `i` of a lane lies from its first one. */
static uint32_t place_step(const struct tile_emitter *t, const struct tile_side *s, uint32_t i)
{
    uint32_t number = i * t->w->c->lanes;

    return s->along_k ? number / t->w->c->tile_depth : number % s->places;
}

static uint32_t deep_step(const struct tile_emitter *t, const struct tile_side *s, uint32_t i)
{
    return s->along_k ? 0 : i * t->w->c->lanes / s->places;
}

/* Whether neighbours in memory can be one access: where they begin is a multiple of a thread's
 * lanes. */
static bool is_aligned(const struct contract *c, const struct contract_side *side, bool along_k)
{
    const struct delinearizer *points = along_k ? &c->k : &side->points;
    uint32_t line = points->n ? points->dim[points->n - 1] : SPACE_DIMS;

    for (uint32_t n = 0; n <= side->node; n++) {
        const struct space_expr *at = &c->e.nodes[n].at;

        for (uint32_t v = 0; side->loads[n] && v < SPACE_VARS; v++)
            if (v != line && at->k[v] % c->thread_lanes)
                return false;
        if (side->loads[n] && at->c % c->thread_lanes)
            return false;
    }
    return true;
}

/* Sets which elements lanes stage.  In the order of memory lane i has number i where a thread's
 * lanes make one access of their elements; else the threads' first lanes have the first numbers, so
 * that an access of all threads is to neighbours. */
static void share_elements(const struct tile_emitter *t, struct tile_side *s)
{
    const struct contract *c = t->w->c;
    uint32_t line = s->along_k ? c->tile_depth : s->places,
             lines = s->places * c->tile_depth / line;
    uint32_t each = c->thread_lanes, threads = c->lanes / each;
    struct lane_part *inner = s->along_k ? &s->deep : &s->place;
    struct lane_part *outer = s->along_k ? &s->place : &s->deep;

    *inner = (struct lane_part){1, line, 1, 1};
    *outer = (struct lane_part){line, c->lanes > line ? lines : 1, 1, 1};
    if (is_aligned(c, s->side, s->along_k) || c->lanes > line * lines || c->lanes < line)
        return;
    if (threads >= line) {
        *inner = (struct lane_part){each, line, 1, 1};
        *outer = (struct lane_part){each * line, threads / line, 1, each};
    } else {
        *inner = (struct lane_part){each, threads, 1, line / threads};
        *outer = (struct lane_part){line / threads, c->lanes / line, 1, 1};
    }
}

static void begin_side(struct tile_emitter *t, uint32_t number, uint32_t tile, uint32_t places)
{
    const struct contract *c = t->w->c;
    struct tile_side *s = &t->side[number];
    uint32_t depth = c->tile_depth, count = places * depth;

    s->side = t->w->side[number];
    s->places = places;
    s->along_k = runs_along_k(c, s->side);
    s->linear_in_k = is_linear_in_k(c, s->side);
    s->stride = places + (s->along_k ? TILE_PAD : 0);
    s->size = s->stride * depth;
    s->tile = kir_tile(t->w->m, KIR_GROUP, t->w->type, 2 * s->size);
    s->n = (uint32_t)tiles_of(count, c->lanes);
    s->corner = op2(t->w, KIR_mul, tile, index_const(t->w, places));
    share_elements(t, s);
    s->to =
        op2(t->w, KIR_add, op2(t->w, KIR_mul, part_number(t, &s->deep, 1), const_i32(t, s->stride)),
            part_number(t, &s->place, 1));
    s->takes_part = KIR_NONE;
    if (c->lanes > count)
        s->takes_part = op2(t->w, KIR_eq, lane_bits(t, count, c->lanes / count), const_i32(t, 0));
}

static uint32_t and_b(const struct tile_emitter *t, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : op2(t->w, KIR_and, a, b);
}

/* B: element `i` of the step at k is one of the operand's; KIR_NONE: it is for certain. */
static uint32_t is_inside(const struct tile_emitter *t, const struct tile_side *s, uint32_t i,
                          uint32_t k)
{
    const struct contract *c = t->w->c;
    uint32_t inside = s->takes_part, first;

    if (s->side->points.count % s->places) {
        first = plus(t, s->corner, place_step(t, s, i));
        inside = and_b(t, inside, is_below(t, first, &s->place, s->side->points.count));
    }
    if (t->last_step == KIR_NONE) {
        first = plus(t, k, deep_step(t, s, i));
        inside = and_b(t, inside, is_below(t, first, &s->deep, c->n_k));
    }
    return inside;
}

static void set_staged(const struct tile_emitter *t, const struct tile_side *s, uint32_t i)
{
    set_place(t, s->side, plus(t, s->corner, place_step(t, s, i)), &s->place);
}

/* Whether all elements of a lane have one place. */
static bool has_one_place(const struct tile_emitter *t, const struct tile_side *s)
{
    return s->n == 1 || (!s->along_k && t->w->c->lanes >= s->places);
}

/* Sets k; where loads are linear in its number, without dividing that. */
static void set_k(const struct tile_emitter *t, const struct tile_side *s, uint32_t k)
{
    const struct delinearizer *points = &t->w->c->k;

    if (!s->linear_in_k) {
        delinearize_set(points, t->w->e, k);
        return;
    }
    for (uint32_t i = 0; i + 1 < points->n; i++)
        expr_set(t->w->e, points->dim[i], index_const(t->w, 0));
    expr_set(t->w->e, points->dim[points->n - 1], k);
}

/* Element `i` of a side in the step at k. */
static uint32_t load_element(const struct tile_emitter *t, const struct tile_side *s, uint32_t i,
                             uint32_t k)
{
    struct expr *e = t->w->e;
    uint32_t mark = expr_mark(e), inside = is_inside(t, s, i, k), value;

    if (!has_one_place(t, s))
        set_staged(t, s, i);
    k = plus(t, k, deep_step(t, s, i));
    set_k(t, s, chunk_number(t, k, &s->deep, 1));
    expr_mask(e, inside);
    value = expr_value(e, s->side->node);
    expr_release(e, mark);
    if (inside == KIR_NONE || e->nodes[s->side->node].kind == EXPR_LOAD)
        return value;
    return kir_emit(t->w->m, KIR_select, value, zero(t->w), inside);
}

struct step_values {
    uint32_t value[2][TILE_STAGED];
};

static void load_step(const struct tile_emitter *t, uint32_t k, struct step_values *out)
{
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        for (uint32_t i = 0; i < t->side[s].n; i++)
            out->value[s][i] = load_element(t, &t->side[s], i, k);
}

/* The buffer of the step at k: 0 or 1, I32. */
static uint32_t buffer_of(const struct tile_emitter *t, uint32_t k)
{
    if (kir_type_at(t->w->m, k) != KIR_I32)
        k = kir_emit(t->w->m, KIR_i32, k, KIR_NONE, KIR_NONE);
    k = op2(t->w, KIR_shr, k, const_i32(t, shift_of(t->w->c->tile_depth)));
    return op2(t->w, KIR_and, k, const_i32(t, 1));
}

static uint32_t in_buffer(const struct tile_emitter *t, const struct tile_side *s, uint32_t buffer,
                          uint32_t at)
{
    return op2(t->w, KIR_add, op2(t->w, KIR_mul, buffer, const_i32(t, s->size)), at);
}

static void store_step(const struct tile_emitter *t, uint32_t buffer, const struct step_values *v)
{
    for (uint32_t number = DOWN; number <= ACROSS; number++) {
        const struct tile_side *s = &t->side[number];
        uint32_t first = in_buffer(t, s, buffer, s->to);

        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t at = plus(t, first, deep_step(t, s, i) * s->stride + place_step(t, s, i));

            kir_emit_imm(t->w->m, s->takes_part == KIR_NONE ? KIR_tstore : KIR_tstore_if, s->tile,
                         at, v->value[number][i], s->takes_part);
        }
    }
    kir_emit(t->w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* ---- sums ---- */

/* A lane's `n` operands of a side from `first` on, `step` apart. */
static void load_operands(const struct tile_emitter *t, const struct tile_side *s, uint32_t first,
                          uint32_t step, uint32_t n, uint32_t *out)
{
    uint32_t at[CONTRACT_SUMS];

    for (uint32_t i = 0; i < n; i++)
        at[i] = op2(t->w, KIR_add, first, const_i32(t, i * step));
    for (uint32_t i = 0; i < n; i++)
        out[i] = kir_emit_as(t->w->m, KIR_tload, t->w->type, s->tile, at[i], KIR_NONE, KIR_NONE);
}

/* The products of `n` places of k from those on whose operands begin at first[]. */
static void add_places(const struct tile_emitter *t, const uint32_t *first, uint32_t n,
                       uint32_t *sums)
{
    const struct contract *c = t->w->c;
    const struct tile_side *a = &t->side[DOWN], *b = &t->side[ACROSS];
    uint32_t down[CONTRACT_SUMS], across[CONTRACT_SUMS];

    for (uint32_t k = 0; k < n; k++) {
        load_operands(t, a, plus(t, first[DOWN], k * a->stride), 1, c->n_down, down);
        load_operands(t, b, plus(t, first[ACROSS], k * b->stride), count_of(&b->sums), c->n_across,
                      across);
        for (uint32_t i = 0; i < t->w->n; i++)
            sums[i] = add_product(t->w, sums[i], down[i / c->n_across], across[i % c->n_across]);
    }
}

/* Those of a step. */
static void add_step(const struct tile_emitter *t, uint32_t buffer, uint32_t *sums)
{
    const uint32_t depth = t->w->c->tile_depth, unroll = t->w->c->tile_unroll;
    uint32_t first[2], at[2], next[CONTRACT_SUMS], k;

    for (uint32_t s = DOWN; s <= ACROSS; s++)
        first[s] = in_buffer(t, &t->side[s], buffer, t->side[s].from);
    if (depth <= unroll) {
        add_places(t, first, depth, sums);
        return;
    }
    k = work_loop(t->w, const_i32(t, 0), const_i32(t, depth), unroll, sums);
    for (uint32_t i = 0; i < t->w->n; i++)
        next[i] = sums[i];
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        at[s] =
            op2(t->w, KIR_add, first[s], op2(t->w, KIR_mul, k, const_i32(t, t->side[s].stride)));
    add_places(t, at, unroll, next);
    kir_next(t->w->m, next, t->w->n);
}

/* All steps from begin to end. */
static void sum_steps(const struct tile_emitter *t, uint32_t begin, uint32_t end, uint32_t *sums)
{
    const uint32_t depth = t->w->c->tile_depth;
    uint32_t next[CONTRACT_SUMS], k = work_loop(t->w, begin, end, depth, sums), ahead, buffer;
    struct step_values values;

    for (uint32_t i = 0; i < t->w->n; i++)
        next[i] = sums[i];
    ahead = plus(t, k, depth);
    if (t->last_step != KIR_NONE)
        ahead = op2(t->w, KIR_smin, ahead, t->last_step);
    load_step(t, ahead, &values);
    buffer = buffer_of(t, k);
    add_step(t, buffer, next);
    store_step(t, op2(t->w, KIR_xor, buffer, const_i32(t, 1)), &values);
    kir_next(t->w->m, next, t->w->n);
}

static uint32_t total_at(const struct tile_emitter *t, uint32_t i)
{
    return plus(t, t->totals_at, t->totals_step * i);
}

static void put_total(const struct tile_emitter *t, uint32_t i, uint32_t value)
{
    kir_emit_imm(t->w->m, KIR_tstore, t->totals, total_at(t, i), value, KIR_NONE);
}

static uint32_t get_total(const struct tile_emitter *t, uint32_t i)
{
    return kir_emit_as(t->w->m, KIR_tload, t->w->type, t->totals, total_at(t, i), KIR_NONE,
                       KIR_NONE);
}

/* Declares where sums of blocks are added up: in a tile of the group where that has the memory, a
 * row for each of a lane's sums; else in tiles of lanes, addressed from a parameter that is 0,
 * which keeps compilers from holding them in registers. */
static void declare_totals(struct tile_emitter *t)
{
    const struct contract *c = t->w->c;

    if (tile_has_totals(c)) {
        t->totals = kir_tile(t->w->m, KIR_GROUP, t->w->type, t->w->n * c->lanes);
        t->totals_at = t->lane;
        t->totals_step = c->lanes;
    } else {
        t->totals = kir_tile(t->w->m, KIR_LANE, t->w->type, t->w->n);
        t->totals_at = sched_add_param(t->w->e->s, KIR_I32, 0);
        t->totals_step = 1;
    }
}

/* By blocks, whose sums are added up. */
static void sum_blocks(struct tile_emitter *t, uint32_t *sums)
{
    uint32_t zero_sum = sums[0], begin, end;

    declare_totals(t);
    for (uint32_t i = 0; i < t->w->n; i++)
        put_total(t, i, zero_sum);
    begin = kir_for(t->w->m, t->part_begin, t->part_end, SUM_BLOCK_CONTRACT);
    end = op2(t->w, KIR_smin, plus(t, begin, SUM_BLOCK_CONTRACT), t->part_end);
    sum_steps(t, begin, end, sums);
    for (uint32_t i = 0; i < t->w->n; i++)
        put_total(t, i, op2(t->w, KIR_add, get_total(t, i), sums[i]));
    kir_next(t->w->m, NULL, 0);
    for (uint32_t i = 0; i < t->w->n; i++)
        sums[i] = get_total(t, i);
}

/* ---- the phase ---- */

enum { NEAR_ROWS = 4, NEAR_COLUMNS = 8 }; /* of threads that are issued together */

/* Threads that are issued together lie in a rectangle, so that they load few operands. */
static void arrange_lanes(struct tile_emitter *t)
{
    const struct contract *c = t->w->c;
    uint32_t rows = c->tile_m / c->n_down, columns = c->tile_n / c->n_across;
    uint32_t wide = NEAR_COLUMNS * c->thread_lanes, high = NEAR_ROWS;

    wide = wide < columns ? wide : columns;
    high = high < rows && wide < columns ? high : rows;
    t->side[ACROSS].sums = (struct lane_part){1, wide, wide * high, columns / wide};
    t->side[DOWN].sums = (struct lane_part){wide, high, columns * high, rows / high};
}

/* The group's part of k. */
static void begin_part(struct tile_emitter *t)
{
    const struct contract *c = t->w->c;
    uint32_t size;

    t->part_begin = index_const(t->w, 0);
    t->part_end = t->k_end;
    if (t->w->split == KIR_NONE)
        return;
    size = op2(t->w, KIR_mul, sched_add_index(t->w->e->s, c->tile_part / (2 * c->tile_depth)),
               index_const(t->w, 2 * c->tile_depth)); /* so a part begins in the first buffer */
    t->part_begin = op2(t->w, KIR_mul, t->w->split, size);
    t->part_end = op2(t->w, KIR_smin, op2(t->w, KIR_add, t->part_begin, size), t->k_end);
}

static void begin(struct tile_emitter *t, uint32_t down, uint32_t across)
{
    const struct contract *c = t->w->c;
    int64_t steps = c->n_k / c->tile_depth;

    t->lane = kir_emit(t->w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    t->k_end = sched_add_index(t->w->e->s, c->n_k);
    t->last_step = KIR_NONE;
    if (c->n_k % c->tile_depth == 0)
        t->last_step = op2(t->w, KIR_mul, sched_add_index(t->w->e->s, steps - 1),
                           index_const(t->w, c->tile_depth));
    begin_part(t);
    begin_side(t, DOWN, down, c->tile_m);
    begin_side(t, ACROSS, across, c->tile_n);
    arrange_lanes(t);
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        t->side[s].from = part_number(t, &t->side[s].sums, 1);
    t->side[DOWN].from = op2(t->w, KIR_mul, t->side[DOWN].from, const_i32(t, c->n_down));
}

static void sum_all(struct tile_emitter *t, uint32_t *sums)
{
    struct expr *e = t->w->e;
    uint32_t mark = expr_mark(e);
    struct step_values values;

    for (uint32_t s = DOWN; s <= ACROSS; s++)
        if (has_one_place(t, &t->side[s]))
            set_staged(t, &t->side[s], 0);
    expr_hoist(e);
    load_step(t, t->part_begin, &values);
    store_step(t, const_i32(t, 0), &values);
    if (is_real(t->w) && t->w->c->tile_part > SUM_BLOCK_CONTRACT)
        sum_blocks(t, sums);
    else
        sum_steps(t, t->part_begin, t->part_end, sums);
    expr_release(e, mark);
}

static void emit_row(const struct tile_emitter *t, uint32_t i, const uint32_t *sums)
{
    const struct contract *c = t->w->c;
    const struct tile_side *a = &t->side[DOWN], *b = &t->side[ACROSS];
    struct expr *e = t->w->e;
    uint32_t row = plus(t, op2(t->w, KIR_add, a->corner, index_of(t, a->from)), i), ok = KIR_NONE;

    if (a->side->points.count % a->places)
        ok = op2(t->w, KIR_lt, row, sched_add_index(e->s, a->side->points.count));
    delinearize_set(&a->side->points, e, row);
    expr_hoist(e);
    for (uint32_t j = 0; j < c->n_across; j++) {
        uint32_t mark = expr_mark(e), mask = ok;
        uint32_t first = plus(t, b->corner, j * count_of(&b->sums));
        uint32_t places[2] = {row, chunk_number(t, first, &b->sums, 1)};

        if (b->side->points.count % b->places)
            mask = and_b(t, mask, is_below(t, first, &b->sums, b->side->points.count));
        set_place(t, b->side, first, &b->sums);
        slices_store(t->w, places, mask, sums[j]);
        expr_release(e, mark);
    }
}

void tile_emit(struct contract_emitter *w, uint32_t down, uint32_t across)
{
    struct tile_emitter t = {.w = w};
    uint32_t sums[CONTRACT_SUMS];

    for (uint32_t i = 0; i < w->n; i++)
        sums[i] = zero(w);
    if (w->split != KIR_NONE)
        slices_reserve(w);
    begin(&t, down, across);
    sum_all(&t, sums);
    for (uint32_t i = 0; i < w->c->n_down; i++) {
        uint32_t mark = expr_mark(w->e);

        emit_row(&t, i, sums + i * w->c->n_across);
        expr_release(w->e, mark);
    }
    if (w->split != KIR_NONE)
        slices_join(w);
}
