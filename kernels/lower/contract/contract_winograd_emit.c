/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of Winograd's convolution, see contract_winograd.c. */
#include "lower/contract/contract_winograd_emit.h"

#include <string.h>

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_pad.h"
#include "lower/contract/contract_winograd.h"

enum {
    WEIGHT_LANES = 64, /* of a group that transforms weights */
    CHANNELS = 8       /* that a group of patches transforms */
};

/* ---- transforms ---- */

/* G, of one vector, whose elements lie `step` apart, to another. */
static void weights_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t half = kir_const_f(w->m, w->type, 0.5), sum = plus(w, v[0], v[2 * step]);
    uint32_t last = v[2 * step], middle = v[step];

    v[step] = op2(w, KIR_mul, plus(w, sum, middle), half);
    v[2 * step] = op2(w, KIR_mul, minus(w, sum, middle), half);
    v[3 * step] = last;
}

/* B^T, likewise. */
static void patch_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t d[WINOGRAD_PATCH] = {v[0], v[step], v[2 * step], v[3 * step]};

    v[0] = minus(w, d[0], d[2]);
    v[step] = plus(w, d[1], d[2]);
    v[2 * step] = minus(w, d[2], d[1]);
    v[3 * step] = minus(w, d[1], d[3]);
}

struct contract_emitter winograd_begin(struct contract *c, uint32_t lanes, int64_t outer, int64_t n,
                                       uint32_t *group, uint32_t *inner)
{
    struct contract_emitter w = {.c = c,
                                 .e = &c->e,
                                 .m = c->e.s->module,
                                 .type = contract_type(c),
                                 .mask = KIR_NONE,
                                 .side = {c->down, c->across}};

    contract_set_grid(c, outer * n);
    *group = work_begin(&w, lanes);
    *inner = work_part(&w, group, n);
    return w;
}

uint32_t winograd_begin_loop(const struct contract_emitter *w, uint32_t group, uint32_t each,
                             int64_t count)
{
    uint32_t first = op2(w, KIR_mul, group, index_const(w, each));
    uint32_t end = plus(w, first, index_const(w, each));

    if (count % each)
        end = op2(w, KIR_smin, end, sched_add_index(w->e->s, count));
    return kir_for(w->m, first, end, 1);
}

/* Elements of `n` matrices, `next` apart, where the mask is. */
static void store_elements(const struct contract_emitter *w, uint32_t arg, uint32_t at,
                           uint32_t next, uint32_t n, const uint32_t *m)
{
    for (uint32_t f = 0; f < n; f++) {
        kir_emit_imm(w->m, w->mask == KIR_NONE ? KIR_store : KIR_store_if, arg, at, m[f], w->mask);
        at = plus(w, at, next);
    }
}

uint32_t winograd_load(const struct contract_emitter *w, uint32_t arg, uint32_t at)
{
    return kir_emit_as(w->m, KIR_load, w->type, arg, at, KIR_NONE, KIR_NONE);
}

/* ---- weights ---- */

uint32_t winograd_element(const struct contract_emitter *w, uint32_t row, uint32_t column)
{
    uint32_t mark = expr_mark(w->e), value;

    expr_set(w->e, contract_last_dim(&w->e->space, CONTRACT_WINDOW), row);
    expr_set(w->e, contract_last_dim(&w->e->space, CONTRACT_WINDOW + 1), column);
    value = expr_value(w->e, w->c->a.node);
    expr_release(w->e, mark);
    return value;
}

/* Sets the lane's channel and its output, which is the last one for places beyond it; returns the
 * number of both among those of the tile of outputs.  The last group begins where it ends with the
 * last number. */
static uint32_t set_weight(const struct contract_emitter *w, uint32_t tile, uint32_t part,
                           uint32_t lanes)
{
    struct contract *c = w->c;
    int64_t n = c->n_k * c->n_down;
    uint32_t number = op2(w, KIR_mul, part, index_const(w, lanes)), channel, output;

    number = op2(w, KIR_smin, number, sched_add_index(w->e->s, n - lanes));
    number = channel = plus(w, number, w->lane);
    output = plus(w, times(w, tile, c->n_down), work_part(w, &channel, c->n_down));
    output = op2(w, KIR_smin, output, sched_add_index(w->e->s, c->down->points.count - 1));
    delinearize_set(&c->down->points, w->e, output);
    delinearize_set(&c->k, w->e, channel);
    return number;
}

/* Rows of windows one after the other: m has the last three. */
static void transform_rows(struct contract_emitter *w, uint32_t *m)
{
    enum { ROW = WINOGRAD_PATCH, ALL = WINOGRAD_WINDOW * ROW };
    uint32_t next[ALL], mark = expr_mark(w->e), row;

    w->n = ALL;
    for (uint32_t i = 0; i < ALL; i++)
        m[i] = zero(w);
    row = work_loop(w, index_const(w, 0), index_const(w, WINOGRAD_WINDOW), 1, m);
    memcpy(next, m + ROW, sizeof(next) - ROW * sizeof(*next));
    for (uint32_t i = 0; i < WINOGRAD_WINDOW; i++)
        next[ALL - ROW + i] = winograd_element(w, row, index_const(w, i));
    weights_row(w, next + ALL - ROW, 1);
    expr_release(w->e, mark);
    kir_next(w->m, next, ALL);
}

/* Lanes are neighbours in what is written. */
static void emit_weights(struct contract *c)
{
    uint32_t lanes = sched_lanes(WEIGHT_LANES, c->n_k * c->n_down), tile, part, at, size;
    uint32_t m[WINOGRAD_MATRICES] = {0};
    struct contract_emitter w = winograd_begin(c, lanes, winograd_output_tiles(c),
                                               tiles_of(c->n_k * c->n_down, lanes), &tile, &part);

    delinearize_phase(&c->down->points, w.e);
    delinearize_phase(&c->k, w.e);
    at = plus(&w, times(&w, tile, c->n_k * c->n_down), set_weight(&w, tile, part, lanes));
    expr_hoist(w.e);
    transform_rows(&w, m);
    for (uint32_t i = 0; i < WINOGRAD_PATCH; i++)
        weights_row(&w, m + i, WINOGRAD_PATCH);
    size = sched_add_index(w.e->s, winograd_weights_size(c));
    store_elements(&w, c->winograd.weights, at, size, WINOGRAD_MATRICES, m);
}

uint32_t winograd_first(const struct contract_emitter *w, uint32_t down)
{
    const struct contract *c = w->c;
    uint32_t tile = plus(w, times(w, w->both, winograd_output_tiles(c)), down);

    return times(w, tile, c->n_k * c->n_down);
}

uint32_t winograd_weight(const struct contract_emitter *w, uint32_t k, uint32_t i)
{
    const struct contract *c = w->c;
    uint32_t at = plus(w, op2(w, KIR_mul, k, index_const(w, c->n_down)), w->weights);

    return winograd_load(w, c->winograd.weights, plus(w, at, index_const(w, i)));
}

/* ---- patches ---- */

uint32_t winograd_first_tile(const struct contract_emitter *w, uint32_t panel)
{
    uint32_t first = op2(w, KIR_mul, panel, index_const(w, WINOGRAD_WIDTH));
    int64_t last = w->c->across->points.count - WINOGRAD_WIDTH;

    return op2(w, KIR_smin, first, sched_add_index(w->e->s, last));
}

struct winograd_lines winograd_begin_lines(struct contract *c)
{
    struct winograd_lines lines = {.e = &c->pad.e};
    struct delinearizer *const all[] = {&lines.channel, &lines.column, &lines.line, &lines.tile};
    static const uint32_t tags[] = {WINOGRAD_CHANNEL, WINOGRAD_COLUMN, WINOGRAD_LINE,
                                    WINOGRAD_TILE};

    expr_phase(lines.e);
    for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        delinearize_init(all[i], lines.e, tags[i]);
        delinearize_phase(all[i], lines.e);
    }
    return lines;
}

/* Where line number `line` of the first tile's patch begins, in a channel. */
static uint32_t line_place(const struct contract_emitter *w, uint32_t line)
{
    const struct contract_winograd *winograd = &w->c->winograd;
    uint32_t plane = times(w, index_const(w, line % winograd->n_lines), winograd->plane);

    return line < winograd->n_lines ? plane
                                    : plus(w, plane, sched_add_index(w->e->s, winograd->tiles));
}

/* A group has WINOGRAD_WIDTH tiles and CHANNELS channels. */
static void emit_patches(struct contract *c)
{
    int64_t panels = winograd_panel_tiles(c) / WINOGRAD_WIDTH;
    uint32_t panel, group, channel, at, from, line[WINOGRAD_PATCH], m[WINOGRAD_PATCH];
    struct contract_emitter w =
        winograd_begin(c, WINOGRAD_WIDTH, tiles_of(c->n_k, CHANNELS), panels, &group, &panel);
    uint32_t size = sched_add_index(w.e->s, panels * c->n_k * WINOGRAD_WIDTH), next_row;
    uint32_t next = sched_add_index(w.e->s, c->winograd.n_lines * c->winograd.plane);

    from = plus(&w, winograd_first_tile(&w, panel), w.lane);
    for (uint32_t i = 0; i < WINOGRAD_PATCH; i++)
        line[i] = line_place(&w, i);
    next_row = op2(&w, KIR_mul, size, index_const(&w, WINOGRAD_PATCH));
    at = times(&w, panel, c->n_k);
    channel = winograd_begin_loop(&w, group, CHANNELS, c->n_k);
    from = plus(&w, times(&w, channel, c->pad.matrix), from);
    at = plus(&w, op2(&w, KIR_mul, plus(&w, at, channel), index_const(&w, WINOGRAD_WIDTH)), w.lane);
    at = plus(&w, at, sched_add_index(w.e->s, c->pack.first));
    for (uint32_t j = 0; j < WINOGRAD_PATCH; j++) {
        for (uint32_t i = 0; i < WINOGRAD_PATCH; i++)
            m[i] = winograd_load(&w, c->pad.arg, plus(&w, from, line[i]));
        patch_row(&w, m, 1);
        store_elements(&w, c->pack.arg, at, next_row, WINOGRAD_PATCH, m);
        from = plus(&w, from, next);
        at = plus(&w, at, size);
    }
    kir_next(w.m, NULL, 0);
}

/* The lane's tile of those side by side, in part number `part`.  The last parts overlap: a
 * processor may take as long for a store with a mask as for ten others.  Where tiles are fewer than
 * lanes the mask is a constant. */
static uint32_t set_tile(struct contract_emitter *w, const struct winograd_lines *lines,
                         uint32_t part, uint32_t lanes)
{
    int64_t tiles = w->c->winograd.tiles;
    uint32_t tile = w->lane;

    if (tiles < lanes) {
        w->mask = op2(w, KIR_lt, tile, index_const(w, tiles));
    } else {
        tile = op2(w, KIR_mul, part, index_const(w, lanes));
        tile = op2(w, KIR_smin, tile, sched_add_index(w->e->s, tiles - lanes));
        tile = plus(w, tile, w->lane);
    }
    delinearize_set(&lines->tile, w->e, tile);
    expr_mask(w->e, w->mask);
    return tile;
}

/* A group has a channel. */
static void emit_lines(struct contract *c)
{
    int64_t tiles = c->winograd.tiles;
    uint32_t lanes = winograd_is_wide(c) && tiles >= WINOGRAD_WIDTH ? WINOGRAD_WIDTH : WINOGRAD_FEW;
    uint32_t parts = (uint32_t)tiles_of(tiles, lanes), channel, line, part, at, end, next;
    uint32_t m[WINOGRAD_PATCH];
    struct contract_emitter w = winograd_begin(c, lanes, c->n_k, 1, &channel, &part);
    const struct winograd_lines lines = winograd_begin_lines(c);

    w.e = lines.e;
    next = sched_add_index(w.e->s, c->winograd.n_lines * c->winograd.plane);
    delinearize_set(&lines.channel, w.e, channel);
    expr_hoist(w.e);
    end = sched_add_index(w.e->s, lines.line.count * parts);
    line = kir_for(w.m, index_const(&w, 0), end, 1);
    part = work_part(&w, &line, parts);
    delinearize_set(&lines.line, w.e, line);
    at = plus(&w, times(&w, channel, c->pad.matrix), times(&w, line, tiles));
    at = plus(&w, at, set_tile(&w, &lines, part, lanes));
    for (uint32_t i = 0; i < WINOGRAD_PATCH; i++) {
        uint32_t mark = expr_mark(w.e);

        delinearize_set(&lines.column, w.e, index_const(&w, i));
        m[i] = expr_value(w.e, c->pad.node);
        expr_release(w.e, mark);
    }
    patch_row(&w, m, 1);
    store_elements(&w, c->pad.arg, at, next, WINOGRAD_PATCH, m);
    kir_next(w.m, NULL, 0);
}

void winograd_emit_operands(struct contract *c)
{
    emit_weights(c);
    emit_lines(c);
    emit_patches(c);
}

void winograd_store(const struct contract_emitter *w, uint32_t place, uint32_t sum)
{
    const struct contract *c = w->c;
    uint32_t at = plus(w, times(w, w->both, c->down->points.count), place);

    at = plus(w, times(w, at, winograd_panel_tiles(c)), w->at[ACROSS]);
    at = plus(w, at, sched_add_index(w->e->s, c->winograd.first_sum));
    kir_emit_imm(w->m, KIR_store, c->winograd.sums, at, sum, KIR_NONE);
}
