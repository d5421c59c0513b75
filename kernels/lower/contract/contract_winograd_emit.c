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
    FEW_TILES = 8,     /* of a group that makes lines, or with few registers */
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

/* Elements of `n` matrices, `next` apart, where the mask is. */
static void store_elements(const struct contract_emitter *w, uint32_t arg, uint32_t at,
                           uint32_t next, uint32_t n, const uint32_t *m)
{
    for (uint32_t f = 0; f < n; f++) {
        kir_emit_imm(w->m, w->mask == KIR_NONE ? KIR_store : KIR_store_if, arg, at, m[f], w->mask);
        at = plus(w, at, next);
    }
}

static uint32_t load(const struct contract_emitter *w, uint32_t arg, uint32_t at)
{
    return kir_emit_as(w->m, KIR_load, w->type, arg, at, KIR_NONE, KIR_NONE);
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
        next[ALL - ROW + i] = load_weight(w, row, index_const(w, i));
    weights_row(w, next + ALL - ROW, 1);
    expr_release(w->e, mark);
    kir_next(w->m, next, ALL);
}

/* Lanes are neighbours in what is written. */
static void emit_weights(struct contract *c)
{
    uint32_t lanes = sched_lanes(WEIGHT_LANES, c->n_k * c->n_down), tile, part, at, size;
    uint32_t m[WINOGRAD_MATRICES] = {0};
    struct contract_emitter w = begin(c, lanes, winograd_output_tiles(c),
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

    return load(w, c->winograd.weights, plus(w, at, index_const(w, i)));
}

/* ---- patches ---- */

/* The first tile of a panel: the last panels end with the last tile. */
static uint32_t first_tile(const struct contract_emitter *w, uint32_t panel)
{
    uint32_t first = op2(w, KIR_mul, panel, index_const(w, WINOGRAD_WIDTH));
    int64_t last = w->c->across->points.count - WINOGRAD_WIDTH;

    return op2(w, KIR_smin, first, sched_add_index(w->e->s, last));
}

/* The places of lines, of the expr of their elements. */
struct lines {
    struct expr *e;
    struct delinearizer channel, column, line, tile;
    uint32_t first; /* of the lane's tile, where its patch begins */
};

/* At the begin of a phase. */
static struct lines begin_lines(struct contract *c)
{
    struct lines lines = {.e = &c->pad.e};
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
        begin(c, WINOGRAD_WIDTH, tiles_of(c->n_k, CHANNELS), panels, &group, &panel);
    uint32_t size = sched_add_index(w.e->s, panels * c->n_k * WINOGRAD_WIDTH), next_row;
    uint32_t next = sched_add_index(w.e->s, c->winograd.n_lines * c->winograd.plane);

    from = plus(&w, first_tile(&w, panel), w.lane);
    for (uint32_t i = 0; i < WINOGRAD_PATCH; i++)
        line[i] = line_place(&w, i);
    next_row = op2(&w, KIR_mul, size, index_const(&w, WINOGRAD_PATCH));
    at = times(&w, panel, c->n_k);
    channel = begin_loop(&w, group, CHANNELS, c->n_k);
    from = plus(&w, times(&w, channel, c->pad.matrix), from);
    at = plus(&w, op2(&w, KIR_mul, plus(&w, at, channel), index_const(&w, WINOGRAD_WIDTH)), w.lane);
    at = plus(&w, at, sched_add_index(w.e->s, c->pack.first));
    for (uint32_t j = 0; j < WINOGRAD_PATCH; j++) {
        for (uint32_t i = 0; i < WINOGRAD_PATCH; i++)
            m[i] = load(&w, c->pad.arg, plus(&w, from, line[i]));
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
static uint32_t set_tile(struct contract_emitter *w, const struct lines *lines, uint32_t part,
                         uint32_t lanes)
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
    uint32_t lanes = winograd_is_wide(c) && tiles >= WINOGRAD_WIDTH ? WINOGRAD_WIDTH : FEW_TILES;
    uint32_t parts = (uint32_t)tiles_of(tiles, lanes), channel, line, part, at, end, next;
    uint32_t m[WINOGRAD_PATCH];
    struct contract_emitter w = begin(c, lanes, c->n_k, 1, &channel, &part);
    const struct lines lines = begin_lines(c);

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
    return kir_unary(w->m, KIR_not, fine);
}

/* Adds the products of the element at a row and a column of the patch, those of results whose
 * windows have it, where the mask is. */
static void add_element(const struct contract_emitter *w, uint32_t row, uint32_t column,
                        uint32_t mask, uint32_t element, uint32_t *y)
{
    uint32_t most = index_const(w, WINOGRAD_WINDOW - 1), none = index_const(w, 0);

    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++) {
        uint32_t at[] = {minus(w, row, index_const(w, i / WINOGRAD_RESULT)),
                         minus(w, column, index_const(w, i % WINOGRAD_RESULT))};
        uint32_t has = mask;

        for (uint32_t d = 0; d < 2; d++) {
            uint32_t inside = op2(w, KIR_smax, op2(w, KIR_smin, at[d], most), none);

            has = op2(w, KIR_and, has, op2(w, KIR_eq, at[d], inside));
            at[d] = inside;
        }
        y[i] = kir_select(w->m, has, add_product(w, y[i], element, load_weight(w, at[0], at[1])),
                          y[i]);
    }
}

/* Begins a loop that carries the results, from 0 to end; `next` has them in a round. */
static uint32_t carry(const struct contract_emitter *w, uint32_t end, uint32_t *y, uint32_t *next)
{
    uint32_t counter = work_loop(w, index_const(w, 0), end, 1, y);

    memcpy(next, y, WINOGRAD_RESULT * WINOGRAD_RESULT * sizeof(*y));
    return counter;
}

/* Sets the line of the patch at a row of it. */
static void set_line(const struct contract_emitter *w, const struct lines *lines, uint32_t row)
{
    const struct contract_winograd *winograd = &w->c->winograd;
    uint32_t line = op2(w, KIR_and, row, index_const(w, winograd->n_lines - 1));

    line = times(w, line, winograd->plane / winograd->tiles);
    if (winograd->n_lines < WINOGRAD_PATCH)
        line = plus(w, line, op2(w, KIR_shr, row, index_const(w, 1)));
    delinearize_set(&lines->line, lines->e, plus(w, line, lines->first));
}

/* Sums lanes that are spoilt element by element of the patch, if there are such: loops are empty
 * else. */
static void mend(const struct contract_emitter *w, const struct lines *lines, uint32_t *y)
{
    uint32_t mask = spoilt(w, y), side = index_const(w, WINOGRAD_PATCH), mark = expr_mark(w->e);
    uint32_t mark_x = expr_mark(lines->e), channel, row, column, any;
    uint32_t of_channel[WINOGRAD_RESULT * WINOGRAD_RESULT],
        of_row[WINOGRAD_RESULT * WINOGRAD_RESULT], of_column[WINOGRAD_RESULT * WINOGRAD_RESULT];

    any = sched_wide(w->e->s, any_lane(w, kir_unary(w->m, KIR_i32, mask)));
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = kir_select(w->m, mask, zero(w), y[i]);
    channel = carry(w, times(w, any, w->c->n_k), y, of_channel);
    delinearize_set(&w->c->k, w->e, channel);
    delinearize_set(&lines->channel, lines->e, channel);
    row = carry(w, side, of_channel, of_row);
    set_line(w, lines, row);
    column = carry(w, side, of_row, of_column);
    delinearize_set(&lines->column, lines->e, column);
    expr_mask(lines->e, mask);
    add_element(w, row, column, mask, expr_value(lines->e, w->c->pad.node), of_column);
    kir_next(w->m, of_column, WINOGRAD_RESULT * WINOGRAD_RESULT);
    kir_next(w->m, of_row, WINOGRAD_RESULT * WINOGRAD_RESULT);
    kir_next(w->m, of_channel, WINOGRAD_RESULT * WINOGRAD_RESULT);
    expr_release(w->e, mark);
    expr_release(lines->e, mark_x);
}

/* Swaps the bit of a lane's number with the number of the value: what one value has in lanes with
 * that bit, and the other one in those without. */
static void swap_bit(const struct contract_emitter *w, uint32_t bit, uint32_t v[2])
{
    uint32_t low = op2(w, KIR_and, w->lane, index_const(w, 2 * bit - 1)), moved[2], lower;

    lower = op2(w, KIR_lt, low, index_const(w, bit));
    for (uint32_t i = 0; i < 2; i++)
        moved[i] = kir_emit_imm(w->m, KIR_exchange, bit, v[i], KIR_NONE, KIR_NONE);
    v[0] = kir_select(w->m, lower, v[0], moved[1]);
    v[1] = kir_select(w->m, lower, moved[0], v[1]);
}

/* The results of a row: of even and odd columns of lanes' tiles, then of columns in order. */
static void interleave(const struct contract_emitter *w, uint32_t v[2])
{
    for (uint32_t bit = 1; bit < WINOGRAD_WIDTH; bit *= 2)
        swap_bit(w, bit, v);
}

/* Where results are. */
struct places {
    struct delinearizer image, row, column;
    uint32_t first, end; /* the panel's first tile; the last row of tiles, and 1 */
    uint32_t line;       /* the first row of tiles; in all images */
};

static struct places begin_places(struct contract *c)
{
    struct places p = {0};
    struct delinearizer *const all[] = {&p.image, &p.row, &p.column};

    for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        delinearize_init(all[i], &c->e, CONTRACT_RESULT + i);
        delinearize_phase(all[i], &c->e);
    }
    return p;
}

static uint32_t line_of(const struct contract_emitter *w, uint32_t tile)
{
    (void)work_part(w, &tile, w->c->winograd.tiles);
    return tile;
}

/* The panel's first tile is known. */
static void set_first(const struct contract_emitter *w, struct places *p, uint32_t first)
{
    uint32_t last = plus(w, first, index_const(w, WINOGRAD_WIDTH - 1));

    p->first = first;
    p->line = line_of(w, first);
    p->end = plus(w, line_of(w, last), index_const(w, 1));
}

/* The first row of results of a row of tiles, whose image is set. */
static uint32_t set_image(const struct contract_emitter *w, const struct places *p, uint32_t line)
{
    uint32_t row = line;

    if (p->image.n) {
        row = work_part(w, &line, p->row.count / WINOGRAD_RESULT);
        delinearize_set(&p->image, w->e, line);
    }
    return op2(w, KIR_mul, row, index_const(w, WINOGRAD_RESULT));
}

/* Sets the row; returns the mask of lanes where there is one, KIR_NONE: in all. */
static uint32_t set_row(const struct contract_emitter *w, const struct places *p, uint32_t first,
                        uint32_t inner)
{
    int64_t rows = w->c->winograd.rows;
    uint32_t row = plus(w, first, index_const(w, inner));

    delinearize_set(&p->row, w->e, row);
    return inner && rows % WINOGRAD_RESULT ? op2(w, KIR_lt, row, sched_add_index(w->e->s, rows))
                                           : KIR_NONE;
}

static void store_result(const struct contract_emitter *w, const struct places *p, uint32_t column,
                         uint32_t mask, uint32_t value)
{
    uint32_t mark = expr_mark(w->e);

    delinearize_set(&p->column, w->e, column);
    expr_mask(w->e, mask);
    work_store(w, value);
    expr_release(w->e, mark);
}

/* Row by row of tiles, of which those of a panel lie on a few: lanes store neighbours. */
static void store_rows(const struct contract_emitter *w, const struct places *p, uint32_t *y)
{
    uint32_t line, row, column, mark = expr_mark(w->e), mark_row;
    uint32_t end = sched_add_index(w->e->s, w->c->winograd.columns);

    for (uint32_t i = 0; i < WINOGRAD_RESULT; i++)
        interleave(w, y + (size_t)WINOGRAD_RESULT * i);
    line = kir_for(w->m, p->line, p->end, 1);
    column = minus(w, p->first, times(w, line, w->c->winograd.tiles));
    column = plus(w, op2(w, KIR_mul, column, index_const(w, WINOGRAD_RESULT)), w->lane);
    row = set_image(w, p, line);
    mark_row = expr_mark(w->e);
    for (uint32_t i = 0; i < WINOGRAD_RESULT; i++) {
        uint32_t ok = set_row(w, p, row, i);

        for (uint32_t j = 0; j < WINOGRAD_RESULT; j++) {
            uint32_t at = plus(w, column, index_const(w, j * WINOGRAD_WIDTH));

            store_result(w, p, at, mask_both(w, ok, op2(w, KIR_ult, at, end)),
                         y[WINOGRAD_RESULT * i + j]);
        }
        expr_release(w->e, mark_row);
    }
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

/* Lane by lane. */
static void store_tiles(const struct contract_emitter *w, const struct places *p, const uint32_t *y)
{
    uint32_t line = plus(w, p->first, w->lane);
    uint32_t column = work_part(w, &line, w->c->winograd.tiles);
    uint32_t row = set_image(w, p, line), mark = expr_mark(w->e);
    int64_t columns = w->c->winograd.columns;

    column = op2(w, KIR_mul, column, index_const(w, WINOGRAD_RESULT));
    for (uint32_t i = 0; i < WINOGRAD_RESULT; i++) {
        uint32_t ok = set_row(w, p, row, i);

        for (uint32_t j = 0; j < WINOGRAD_RESULT; j++) {
            uint32_t at = plus(w, column, index_const(w, j)), mask = ok;

            if (j && columns % WINOGRAD_RESULT)
                mask = mask_both(w, ok, op2(w, KIR_lt, at, sched_add_index(w->e->s, columns)));
            store_result(w, p, at, mask, y[WINOGRAD_RESULT * i + j]);
        }
        expr_release(w->e, mark);
    }
}

/* Storing parts of a vector of few lanes takes long. */
static void store_results(const struct contract_emitter *w, const struct places *p, uint32_t *y)
{
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = work_add_bias(w, y[i]);
    if (winograd_is_wide(w->c) || w->c->winograd.tiles > FEW_TILES)
        store_rows(w, p, y);
    else
        store_tiles(w, p, y);
}

/* A group has WINOGRAD_WIDTH tiles and OUTPUTS outputs. */
void winograd_emit_results(struct contract *c)
{
    int64_t n = c->down->points.count, pitch = winograd_panel_tiles(c);
    uint32_t panel, group, output, from, size, mark, m[WINOGRAD_MATRICES],
        y[WINOGRAD_RESULT * WINOGRAD_RESULT];
    struct contract_emitter w =
        begin(c, WINOGRAD_WIDTH, tiles_of(n, OUTPUTS),
              tiles_of(c->across->points.count, WINOGRAD_WIDTH), &group, &panel);
    struct lines lines = begin_lines(c);
    struct places places = begin_places(c);

    w.n = WINOGRAD_RESULT * WINOGRAD_RESULT;
    delinearize_phase(&c->k, w.e);
    delinearize_phase(&c->down->points, w.e);
    set_first(&w, &places, first_tile(&w, panel));
    lines.first = plus(&w, places.first, w.lane);
    delinearize_set(&lines.tile, lines.e, work_part(&w, &lines.first, c->winograd.tiles));
    expr_hoist(w.e);
    from = plus(&w, op2(&w, KIR_mul, panel, index_const(&w, WINOGRAD_WIDTH)), w.lane);
    from = plus(&w, from, sched_add_index(w.e->s, c->winograd.first_sum));
    size = sched_add_index(w.e->s, n * pitch);
    output = begin_loop(&w, group, OUTPUTS, n);
    mark = expr_mark(w.e);
    delinearize_set(&c->down->points, w.e, output);
    expr_hoist(w.e);
    from = plus(&w, times(&w, output, pitch), from);
    for (uint32_t f = 0; f < WINOGRAD_MATRICES; f++) {
        m[f] = load(&w, c->winograd.sums, from);
        from = plus(&w, from, size);
    }
    transform(&w, result_row, WINOGRAD_PATCH, WINOGRAD_RESULT, m);
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = m[WINOGRAD_PATCH * (i / WINOGRAD_RESULT) + i % WINOGRAD_RESULT];
    mend(&w, &lines, y);
    store_results(&w, &places, y);
    expr_release(w.e, mark);
    kir_next(w.m, NULL, 0);
}
