/* SPDX-License-Identifier: Apache-2.0 */
/* Staging for contractions through tiles: numbers that lanes have in a group, and elements of both
 * sides from memory to tiles, [k][place], with what was done to them before, and 0 where they are
 * beyond an end.
 *
 * Where neighbouring lanes stage neighbours along k, rows of the tile are TILE_PAD longer, so that
 * such lanes store to different banks. */
#include "lower/contract/contract_tile_stage.h"

/* ---- small numbers ---- */

static uint32_t shift_of(uint32_t n)
{
    uint32_t shift = 0;

    while (1u << shift < n)
        shift++;
    return shift;
}

uint32_t tile_i32(const struct tile_emitter *t, uint32_t value)
{
    return kir_const_i(t->w->m, KIR_I32, value);
}

uint32_t tile_plus(const struct tile_emitter *t, uint32_t value, uint32_t n)
{
    enum kir_type type = kir_type_at(t->w->m, value);

    return n ? op2(t->w, KIR_add, value, kir_const_i(t->w->m, type, n)) : value;
}

/* lane / by % n, I32. */
static uint32_t lane_bits(const struct tile_emitter *t, uint32_t by, uint32_t n)
{
    uint32_t value = t->lane;

    if (n == 1)
        return tile_i32(t, 0);
    if (by > 1)
        value = op2(t->w, KIR_shr, value, tile_i32(t, shift_of(by)));
    return by * n < t->w->c->lanes ? op2(t->w, KIR_and, value, tile_i32(t, n - 1)) : value;
}

/* Whether neighbouring lanes have neighbouring numbers, in chunks of that many. */
static bool has_chunks(const struct lane_part *part, uint32_t chunk)
{
    return part->by == 1 && part->n % chunk == 0;
}

uint32_t tile_part_number(const struct tile_emitter *t, const struct lane_part *part,
                          uint32_t chunk)
{
    uint32_t value = lane_bits(t, part->by * chunk, part->n / chunk), high;

    if (part->high_n == 1)
        return value;
    high =
        op2(t->w, KIR_mul, lane_bits(t, part->high_by, part->high_n), tile_i32(t, part->n / chunk));
    return op2(t->w, KIR_add, high, value);
}

uint32_t tile_index(const struct tile_emitter *t, uint32_t value)
{
    return sched_wide(t->w->e->s, value);
}

uint32_t tile_chunk_number(const struct tile_emitter *t, uint32_t first,
                           const struct lane_part *part, uint32_t chunk)
{
    if (chunk > 1)
        first = op2(t->w, KIR_shr, first, index_const(t->w, shift_of(chunk)));
    return op2(t->w, KIR_add, first, tile_index(t, tile_part_number(t, part, chunk)));
}

uint32_t tile_is_below(const struct tile_emitter *t, uint32_t first, const struct lane_part *part,
                       int64_t end)
{
    uint32_t chunk = 1;

    while (chunk < t->w->c->tiles.thread_lanes && has_chunks(part, 2 * chunk) &&
           end % (2 * chunk) == 0)
        chunk *= 2;
    return op2(t->w, KIR_lt, tile_chunk_number(t, first, part, chunk),
               sched_add_index(t->w->e->s, end / chunk));
}

void tile_set_place(const struct tile_emitter *t, const struct contract_side *side, uint32_t first,
                    const struct lane_part *part)
{
    const struct delinearizer *points = &side->points;
    const struct lane_part low = {1, points->chunk, 1, 1};

    if (points->chunk > 1 && has_chunks(part, points->chunk))
        delinearize_set_chunk(points, t->w->e, tile_chunk_number(t, first, part, points->chunk),
                              tile_index(t, tile_part_number(t, &low, 1)));
    else
        delinearize_set(points, t->w->e, tile_chunk_number(t, first, part, 1));
}

/* ---- staging ---- */

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

    return s->along_k ? number / t->w->c->tiles.depth : number % s->places;
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
            if (v != line && at->k[v] % c->tiles.thread_lanes)
                return false;
        if (side->loads[n] && at->c % c->tiles.thread_lanes)
            return false;
    }
    return true;
}

/* Sets which elements lanes stage.  In the order of memory lane i has number i where a thread's
 * lanes make one access of their elements; else lanes of a thread lie apart, so that an access of
 * neighbouring threads is to neighbours: along k in another line, and along places in the same one,
 * which leaves a thread one k to divide. */
static void share_elements(const struct tile_emitter *t, struct tile_side *s)
{
    const struct contract *c = t->w->c;
    uint32_t line = s->along_k ? c->tiles.depth : s->places,
             lines = s->places * c->tiles.depth / line;
    uint32_t each = c->tiles.thread_lanes, threads = c->lanes / each;
    struct lane_part *inner = s->along_k ? &s->deep : &s->place;
    struct lane_part *outer = s->along_k ? &s->place : &s->deep;

    *inner = (struct lane_part){1, line, 1, 1};
    *outer = (struct lane_part){line, c->lanes > line ? lines : 1, 1, 1};
    if (is_aligned(c, s->side, s->along_k) || c->lanes > line * lines || c->lanes < line)
        return;
    if (!s->along_k) {
        *inner = (struct lane_part){each, line / each, 1, each};
    } else if (threads >= line) {
        *inner = (struct lane_part){each, line, 1, 1};
        *outer = (struct lane_part){each * line, threads / line, 1, each};
    }
}

void tile_begin_side(struct tile_emitter *t, uint32_t number, uint32_t tile, uint32_t places)
{
    const struct contract *c = t->w->c;
    struct tile_side *s = &t->side[number];
    uint32_t depth = c->tiles.depth, count = places * depth;

    s->side = t->w->side[number];
    s->places = places;
    s->along_k = contract_runs_along_k(c, s->side);
    s->linear_in_k = is_linear_in_k(c, s->side);
    s->stride = places + (s->along_k ? TILE_PAD : 0);
    s->size = s->stride * depth;
    s->tile = kir_tile(t->w->m, KIR_GROUP, t->w->type, 2 * s->size);
    s->n = (uint32_t)tiles_of(count, c->lanes);
    s->corner = op2(t->w, KIR_mul, tile, index_const(t->w, places));
    share_elements(t, s);
    s->to = op2(t->w, KIR_add,
                op2(t->w, KIR_mul, tile_part_number(t, &s->deep, 1), tile_i32(t, s->stride)),
                tile_part_number(t, &s->place, 1));
    s->takes_part = KIR_NONE;
    if (c->lanes > count)
        s->takes_part = op2(t->w, KIR_eq, lane_bits(t, count, c->lanes / count), tile_i32(t, 0));
}

uint32_t tile_and(const struct tile_emitter *t, uint32_t a, uint32_t b)
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
        first = tile_plus(t, s->corner, place_step(t, s, i));
        inside = tile_and(t, inside, tile_is_below(t, first, &s->place, s->side->points.count));
    }
    if (t->last_step == KIR_NONE) {
        first = tile_plus(t, k, deep_step(t, s, i));
        inside = tile_and(t, inside, tile_is_below(t, first, &s->deep, c->n_k));
    }
    return inside;
}

static void set_staged(const struct tile_emitter *t, const struct tile_side *s, uint32_t i)
{
    tile_set_place(t, s->side, tile_plus(t, s->corner, place_step(t, s, i)), &s->place);
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
    k = tile_plus(t, k, deep_step(t, s, i));
    set_k(t, s, tile_chunk_number(t, k, &s->deep, 1));
    expr_mask(e, inside);
    value = expr_value(e, s->side->node);
    expr_release(e, mark);
    if (inside == KIR_NONE || e->nodes[s->side->node].kind == EXPR_LOAD)
        return value;
    return kir_emit(t->w->m, KIR_select, value, zero(t->w), inside);
}

void tile_load_step(const struct tile_emitter *t, uint32_t k, struct step_values *out)
{
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        for (uint32_t i = 0; i < t->side[s].n; i++)
            out->value[s][i] = load_element(t, &t->side[s], i, k);
}

uint32_t tile_buffer(const struct tile_emitter *t, uint32_t k)
{
    if (kir_type_at(t->w->m, k) != KIR_I32)
        k = kir_emit(t->w->m, KIR_i32, k, KIR_NONE, KIR_NONE);
    k = op2(t->w, KIR_shr, k, tile_i32(t, shift_of(t->w->c->tiles.depth)));
    return op2(t->w, KIR_and, k, tile_i32(t, 1));
}

uint32_t tile_in_buffer(const struct tile_emitter *t, const struct tile_side *s, uint32_t buffer,
                        uint32_t at)
{
    return op2(t->w, KIR_add, op2(t->w, KIR_mul, buffer, tile_i32(t, s->size)), at);
}

void tile_store_step(const struct tile_emitter *t, uint32_t buffer, const struct step_values *v)
{
    for (uint32_t number = DOWN; number <= ACROSS; number++) {
        const struct tile_side *s = &t->side[number];
        uint32_t first = tile_in_buffer(t, s, buffer, s->to);

        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t at = tile_plus(t, first, deep_step(t, s, i) * s->stride + place_step(t, s, i));

            kir_emit_imm(t->w->m, s->takes_part == KIR_NONE ? KIR_tstore : KIR_tstore_if, s->tile,
                         at, v->value[number][i], s->takes_part);
        }
    }
    kir_emit(t->w->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

void tile_begin_steps(const struct tile_emitter *t)
{
    for (uint32_t s = DOWN; s <= ACROSS; s++)
        if (has_one_place(t, &t->side[s]))
            set_staged(t, &t->side[s], 0);
    expr_hoist(t->w->e);
}
