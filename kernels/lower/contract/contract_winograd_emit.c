/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of Winograd's convolution, see contract_winograd.c. */
#include "lower/contract/contract_winograd_emit.h"

#include <float.h>
#include <string.h>

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_pad.h"
#include "lower/contract/contract_winograd.h"

enum {
    WEIGHT_LANES = 64, /* of a group that transforms weights */
    CHANNELS = 8,      /* that a group of patches transforms, */
    OUTPUTS = 8        /* and one of results */
};

/* ---- transforms ---- */

static uint32_t plus(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return op2(w, KIR_add, a, b);
}

static uint32_t minus(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return op2(w, KIR_sub, a, b);
}

/* A row of a transform: from one vector to another, whose elements lie `step` apart. */
typedef void (*transform_fn)(const struct contract_emitter *w, uint32_t *v, uint32_t step);

/* G. */
static void weights_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t half = kir_const_f(w->m, w->type, 0.5), sum = plus(w, v[0], v[2 * step]);
    uint32_t last = v[2 * step], middle = v[step];

    v[step] = op2(w, KIR_mul, plus(w, sum, middle), half);
    v[2 * step] = op2(w, KIR_mul, minus(w, sum, middle), half);
    v[3 * step] = last;
}

/* B^T. */
static void patch_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t d[WINOGRAD_PATCH] = {v[0], v[step], v[2 * step], v[3 * step]};

    v[0] = minus(w, d[0], d[2]);
    v[step] = plus(w, d[1], d[2]);
    v[2 * step] = minus(w, d[2], d[1]);
    v[3 * step] = minus(w, d[1], d[3]);
}

/* A^T. */
static void result_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t m[WINOGRAD_PATCH] = {v[0], v[step], v[2 * step], v[3 * step]};

    v[0] = plus(w, plus(w, m[0], m[1]), m[2]);
    v[step] = minus(w, minus(w, m[1], m[2]), m[3]);
}

/* Columns of a matrix with rows of WINOGRAD_PATCH elements, `columns` of them at first, then the
 * `rows` that these leave. */
static void transform(const struct contract_emitter *w, transform_fn row, uint32_t columns,
                      uint32_t rows, uint32_t *matrix)
{
    for (uint32_t i = 0; i < columns; i++)
        row(w, matrix + i, WINOGRAD_PATCH);
    for (uint32_t i = 0; i < rows; i++)
        row(w, matrix + (size_t)WINOGRAD_PATCH * i, 1);
}

static uint32_t dim_of(const struct contract_emitter *w, uint32_t tag)
{
    return contract_last_dim(&w->e->space, tag);
}

/* Sets the coordinates within a window, patch or tile of results. */
static void set_inner(const struct contract_emitter *w, uint32_t tag, uint32_t row, uint32_t column)
{
    expr_set(w->e, dim_of(w, tag), row);
    expr_set(w->e, dim_of(w, tag + 1), column);
}

static uint32_t times(const struct contract_emitter *w, uint32_t value, int64_t by)
{
    return op2(w, KIR_mul, value, sched_add_index(w->e->s, by));
}

/* Numbers of the group along two dims, of which the inner one has `n` points. */
static struct contract_emitter begin(struct contract *c, uint32_t lanes, int64_t outer, int64_t n,
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

/* A loop over `each` numbers from group * each on, to `count`. */
static uint32_t begin_loop(const struct contract_emitter *w, uint32_t group, uint32_t each,
                           int64_t count)
{
    uint32_t first = op2(w, KIR_mul, group, index_const(w, each));
    uint32_t end = plus(w, first, index_const(w, each));

    if (count % each)
        end = op2(w, KIR_smin, end, sched_add_index(w->e->s, count));
    return kir_for(w->m, first, end, 1);
}

/* ---- weights ---- */

static uint32_t load_weight(const struct contract_emitter *w, uint32_t row, uint32_t column)
{
    uint32_t mark = expr_mark(w->e), value;

    set_inner(w, CONTRACT_WINDOW, row, column);
    value = expr_value(w->e, w->c->a.node);
    expr_release(w->e, mark);
    return value;
}

/* A group has an output, its lanes channels. */
static void emit_weights(struct contract *c)
{
    uint32_t lanes = sched_lanes(WEIGHT_LANES, c->n_k), output, channel, at, size, in_tile;
    uint32_t m[WINOGRAD_MATRICES] = {0};
    struct contract_emitter w =
        begin(c, lanes, c->down->points.count, tiles_of(c->n_k, lanes), &output, &channel);

    delinearize_phase(&c->down->points, w.e);
    delinearize_phase(&c->k, w.e);
    delinearize_set(&c->down->points, w.e, output);
    channel = plus(&w, op2(&w, KIR_mul, channel, index_const(&w, lanes)), w.lane);
    if (c->n_k % lanes)
        w.mask = op2(&w, KIR_lt, channel, sched_add_index(w.e->s, c->n_k));
    delinearize_set(&c->k, w.e, channel);
    expr_mask(w.e, w.mask);
    in_tile = work_part(&w, &output, c->n_down);
    at = op2(&w, KIR_mul, plus(&w, times(&w, output, c->n_k), channel), index_const(&w, c->n_down));
    at = plus(&w, at, in_tile);
    for (uint32_t i = 0; i < WINOGRAD_WINDOW; i++)
        for (uint32_t j = 0; j < WINOGRAD_WINDOW; j++)
            m[WINOGRAD_PATCH * i + j] = load_weight(&w, index_const(&w, i), index_const(&w, j));
    transform(&w, weights_row, WINOGRAD_WINDOW, WINOGRAD_PATCH, m);
    size = sched_add_index(w.e->s, winograd_weights_size(c));
    for (uint32_t f = 0; f < WINOGRAD_MATRICES; f++)
        kir_emit_imm(w.m, w.mask == KIR_NONE ? KIR_store : KIR_store_if, c->winograd.weights,
                     plus(&w, at, op2(&w, KIR_mul, size, index_const(&w, f))), m[f], w.mask);
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

    return kir_emit_as(w->m, KIR_load, w->type, c->winograd.weights, plus(w, at, index_const(w, i)),
                       KIR_NONE, KIR_NONE);
}

/* ---- patches ---- */

/* The lane's tile, the last one for lanes beyond it; the number of the lane. */
static uint32_t set_tile(struct contract_emitter *w, uint32_t panel)
{
    const struct delinearizer *tiles = &w->c->across->points;
    uint32_t number = plus(w, op2(w, KIR_mul, panel, index_const(w, WINOGRAD_WIDTH)), w->lane);
    uint32_t tile = number;

    if (tiles->count % WINOGRAD_WIDTH || winograd_panel_tiles(w->c) > tiles->count) {
        w->mask = op2(w, KIR_lt, number, sched_add_index(w->e->s, tiles->count));
        tile = op2(w, KIR_smin, number, sched_add_index(w->e->s, tiles->count - 1));
    }
    delinearize_set(tiles, w->e, tile);
    return number;
}

static uint32_t load_patch(const struct contract_emitter *w, uint32_t row, uint32_t column)
{
    uint32_t mark = expr_mark(w->e), value;

    set_inner(w, CONTRACT_PATCH, row, column);
    value = pad_element(w, KIR_NONE);
    expr_release(w->e, mark);
    return value;
}

/* A group has WINOGRAD_WIDTH tiles and CHANNELS channels. */
static void emit_patches(struct contract *c)
{
    int64_t panels = winograd_panel_tiles(c) / WINOGRAD_WIDTH;
    uint32_t panel, group, channel, at, size, mark, m[WINOGRAD_MATRICES];
    struct contract_emitter w =
        begin(c, WINOGRAD_WIDTH, tiles_of(c->n_k, CHANNELS), panels, &group, &panel);

    delinearize_phase(&c->k, w.e);
    set_tile(&w, panel);
    expr_hoist(w.e);
    size = sched_add_index(w.e->s, panels * c->n_k * WINOGRAD_WIDTH);
    at = times(&w, panel, c->n_k);
    channel = begin_loop(&w, group, CHANNELS, c->n_k);
    mark = expr_mark(w.e);
    delinearize_set(&c->k, w.e, channel);
    expr_hoist(w.e);
    at = plus(&w, op2(&w, KIR_mul, plus(&w, at, channel), index_const(&w, WINOGRAD_WIDTH)), w.lane);
    if (c->pack.first)
        at = plus(&w, at, sched_add_index(w.e->s, c->pack.first));
    for (uint32_t i = 0; i < WINOGRAD_MATRICES; i++)
        m[i] = load_patch(&w, index_const(&w, i / WINOGRAD_PATCH),
                          index_const(&w, i % WINOGRAD_PATCH));
    transform(&w, patch_row, WINOGRAD_PATCH, WINOGRAD_PATCH, m);
    for (uint32_t f = 0; f < WINOGRAD_MATRICES; f++)
        kir_emit_imm(w.m, KIR_store, c->pack.arg,
                     plus(&w, at, op2(&w, KIR_mul, size, index_const(&w, f))), m[f], KIR_NONE);
    expr_release(w.e, mark);
    kir_next(w.m, NULL, 0);
}

void winograd_emit_operands(struct contract *c)
{
    emit_weights(c);
    pad_emit(c);
    emit_patches(c);
}

/* ---- results ---- */

void winograd_store(const struct contract_emitter *w, uint32_t place, uint32_t sum)
{
    const struct contract *c = w->c;
    uint32_t at = plus(w, times(w, w->both, c->down->points.count), place);

    at = plus(w, times(w, at, winograd_panel_tiles(c)), w->at[ACROSS]);
    at = plus(w, at, sched_add_index(w->e->s, c->winograd.first_sum));
    kir_emit_imm(w->m, KIR_store, c->winograd.sums, at, sum, KIR_NONE);
}

/* Whether any lane's flag, 0 or 1, is set: the same in all. */
static uint32_t any_lane(const struct contract_emitter *w, uint32_t flag)
{
    for (uint32_t by = 1; by < WINOGRAD_WIDTH; by *= 2)
        flag = op2(w, KIR_or, flag, kir_emit_imm(w->m, KIR_exchange, by, flag, KIR_NONE, KIR_NONE));
    return kir_emit(w->m, KIR_first, flag, KIR_NONE, KIR_NONE);
}

/* The lanes whose results are not all finite. */
static uint32_t spoilt(const struct contract_emitter *w, const uint32_t *y)
{
    uint32_t most = kir_const_f(w->m, w->type, FLT_MAX), fine = KIR_NONE, one;

    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++) {
        one = op2(w, KIR_le, kir_unary(w->m, KIR_abs, y[i]), most);
        fine = fine == KIR_NONE ? one : op2(w, KIR_and, fine, one);
    }
    fine = kir_unary(w->m, KIR_not, fine);
    return w->mask == KIR_NONE ? fine : op2(w, KIR_and, fine, w->mask);
}

/* One element of the window of each result, where the mask is. */
static void add_window(const struct contract_emitter *w, uint32_t row, uint32_t column,
                       uint32_t mask, uint32_t *y)
{
    uint32_t weight = load_weight(w, row, column);

    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++) {
        uint32_t x = load_patch(w, plus(w, row, index_const(w, i / WINOGRAD_RESULT)),
                                plus(w, column, index_const(w, i % WINOGRAD_RESULT)));

        y[i] = kir_select(w->m, mask, add_product(w, y[i], x, weight), y[i]);
    }
}

/* Begins a loop that carries the results, from 0 to end; `next` has them in a round. */
static uint32_t carry(const struct contract_emitter *w, uint32_t end, uint32_t *y, uint32_t *next)
{
    uint32_t counter = work_loop(w, index_const(w, 0), end, 1, y);

    memcpy(next, y, WINOGRAD_RESULT * WINOGRAD_RESULT * sizeof(*y));
    return counter;
}

/* Sums lanes that are spoilt window by window, if there are such: loops are empty else. */
static void mend(const struct contract_emitter *w, uint32_t *y)
{
    uint32_t mask = spoilt(w, y), window = index_const(w, WINOGRAD_WINDOW), mark, row, column, any;
    uint32_t of_channel[WINOGRAD_RESULT * WINOGRAD_RESULT],
        of_row[WINOGRAD_RESULT * WINOGRAD_RESULT], of_column[WINOGRAD_RESULT * WINOGRAD_RESULT];

    any = sched_wide(w->e->s, any_lane(w, kir_unary(w->m, KIR_i32, mask)));
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = kir_select(w->m, mask, zero(w), y[i]);
    mark = expr_mark(w->e);
    delinearize_set(&w->c->k, w->e, carry(w, times(w, any, w->c->n_k), y, of_channel));
    row = carry(w, window, of_channel, of_row);
    column = carry(w, window, of_row, of_column);
    add_window(w, row, column, mask, of_column);
    kir_next(w->m, of_column, WINOGRAD_RESULT * WINOGRAD_RESULT);
    kir_next(w->m, of_row, WINOGRAD_RESULT * WINOGRAD_RESULT);
    kir_next(w->m, of_channel, WINOGRAD_RESULT * WINOGRAD_RESULT);
    expr_release(w->e, mark);
}

/* The mask of lanes whose tile has a result at the coordinates that are set. */
static uint32_t inside(const struct contract_emitter *w)
{
    uint32_t mask = w->mask;

    for (uint32_t d = 0; d < 2; d++) {
        uint32_t in;

        if (w->c->winograd.rows[d] % WINOGRAD_RESULT == 0)
            continue;
        in = op2(w, KIR_lt, expr_coord_value(w->e, w->c->winograd.row[d]),
                 sched_add_index(w->e->s, w->c->winograd.rows[d]));
        mask = mask == KIR_NONE ? in : op2(w, KIR_and, mask, in);
    }
    return mask;
}

static void store_results(const struct contract_emitter *w, const uint32_t *y)
{
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++) {
        uint32_t mark = expr_mark(w->e);

        set_inner(w, CONTRACT_RESULT, index_const(w, i / WINOGRAD_RESULT),
                  index_const(w, i % WINOGRAD_RESULT));
        expr_mask(w->e, inside(w));
        work_finish(w, y[i]);
        expr_release(w->e, mark);
    }
}

/* A group has WINOGRAD_WIDTH tiles and OUTPUTS outputs. */
void winograd_emit_results(struct contract *c)
{
    int64_t n = c->down->points.count, pitch = winograd_panel_tiles(c);
    uint32_t panel, group, output, at, size, mark, tile, m[WINOGRAD_MATRICES],
        y[WINOGRAD_RESULT * WINOGRAD_RESULT];
    struct contract_emitter w =
        begin(c, WINOGRAD_WIDTH, tiles_of(n, OUTPUTS),
              tiles_of(c->across->points.count, WINOGRAD_WIDTH), &group, &panel);

    w.n = WINOGRAD_RESULT * WINOGRAD_RESULT;
    delinearize_phase(&c->k, w.e);
    delinearize_phase(&c->down->points, w.e);
    tile = set_tile(&w, panel);
    tile = plus(&w, tile, sched_add_index(w.e->s, c->winograd.first_sum));
    expr_hoist(w.e);
    size = sched_add_index(w.e->s, n * pitch);
    output = begin_loop(&w, group, OUTPUTS, n);
    mark = expr_mark(w.e);
    delinearize_set(&c->down->points, w.e, output);
    expr_hoist(w.e);
    at = plus(&w, times(&w, output, pitch), tile);
    for (uint32_t f = 0; f < WINOGRAD_MATRICES; f++)
        m[f] = kir_emit_as(w.m, KIR_load, w.type, c->winograd.sums,
                           plus(&w, at, op2(&w, KIR_mul, size, index_const(&w, f))), KIR_NONE,
                           KIR_NONE);
    transform(&w, result_row, WINOGRAD_PATCH, WINOGRAD_RESULT, m);
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = m[WINOGRAD_PATCH * (i / WINOGRAD_RESULT) + i % WINOGRAD_RESULT];
    mend(&w, y);
    store_results(&w, y);
    expr_release(w.e, mark);
    kir_next(w.m, NULL, 0);
}
