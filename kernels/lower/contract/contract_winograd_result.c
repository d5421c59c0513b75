/* SPDX-License-Identifier: Apache-2.0 */
/* Results of Winograd's convolution: transformed sums, mended where they are not finite, and stored
 * with what follows. */
#include "lower/contract/contract_winograd_result.h"

#include <float.h>
#include <string.h>

#include "lower/contract/contract_winograd.h"
#include "lower/contract/contract_winograd_emit.h"

enum { OUTPUTS = 8 /* of a group */ };

/* ---- the transform ---- */

/* A^T, of one vector, whose elements lie `step` apart, to another. */
static void result_row(const struct contract_emitter *w, uint32_t *v, uint32_t step)
{
    uint32_t m[WINOGRAD_PATCH] = {v[0], v[step], v[2 * step], v[3 * step]};

    v[0] = plus(w, plus(w, m[0], m[1]), m[2]);
    v[step] = minus(w, minus(w, m[1], m[2]), m[3]);
}

/* Columns of a matrix with rows of WINOGRAD_PATCH elements, then the rows that these leave. */
static void transform(const struct contract_emitter *w, uint32_t *matrix)
{
    for (uint32_t i = 0; i < WINOGRAD_PATCH; i++)
        result_row(w, matrix + i, WINOGRAD_PATCH);
    for (uint32_t i = 0; i < WINOGRAD_RESULT; i++)
        result_row(w, matrix + (size_t)WINOGRAD_PATCH * i, 1);
}

/* ---- what is not finite ---- */

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
        y[i] = kir_select(w->m, has,
                          add_product(w, y[i], element, winograd_element(w, at[0], at[1])), y[i]);
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
static void set_line(const struct contract_emitter *w, const struct winograd_lines *lines,
                     uint32_t row)
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
static void mend(const struct contract_emitter *w, const struct winograd_lines *lines, uint32_t *y)
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

/* ---- storing ---- */

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

/* Storing parts of vectors takes long without masks of their own, and so does interpreting how rows
 * are made. */
static void store_results(const struct contract_emitter *w, const struct places *p, uint32_t *y)
{
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = work_add_bias(w, y[i]);
    if (winograd_is_wide(w->c))
        store_rows(w, p, y);
    else
        store_tiles(w, p, y);
}

/* ---- the phase ---- */

/* A group has WINOGRAD_WIDTH tiles and OUTPUTS outputs. */
void winograd_result_emit(struct contract *c)
{
    int64_t n = c->down->points.count, pitch = winograd_panel_tiles(c);
    uint32_t panel, group, output, from, size, mark, m[WINOGRAD_MATRICES],
        y[WINOGRAD_RESULT * WINOGRAD_RESULT];
    struct contract_emitter w =
        winograd_begin(c, WINOGRAD_WIDTH, tiles_of(n, OUTPUTS),
                       tiles_of(c->across->points.count, WINOGRAD_WIDTH), &group, &panel);
    struct winograd_lines lines = winograd_begin_lines(c);
    struct places places = begin_places(c);

    w.n = WINOGRAD_RESULT * WINOGRAD_RESULT;
    delinearize_phase(&c->k, w.e);
    delinearize_phase(&c->down->points, w.e);
    set_first(&w, &places, winograd_first_tile(&w, panel));
    lines.first = plus(&w, places.first, w.lane);
    delinearize_set(&lines.tile, lines.e, work_part(&w, &lines.first, c->winograd.tiles));
    expr_hoist(w.e);
    from = plus(&w, op2(&w, KIR_mul, panel, index_const(&w, WINOGRAD_WIDTH)), w.lane);
    from = plus(&w, from, sched_add_index(w.e->s, c->winograd.first_sum));
    size = sched_add_index(w.e->s, n * pitch);
    output = winograd_begin_loop(&w, group, OUTPUTS, n);
    mark = expr_mark(w.e);
    delinearize_set(&c->down->points, w.e, output);
    expr_hoist(w.e);
    from = plus(&w, times(&w, output, pitch), from);
    for (uint32_t f = 0; f < WINOGRAD_MATRICES; f++) {
        m[f] = winograd_load(&w, c->winograd.sums, from);
        from = plus(&w, from, size);
    }
    transform(&w, m);
    for (uint32_t i = 0; i < WINOGRAD_RESULT * WINOGRAD_RESULT; i++)
        y[i] = m[WINOGRAD_PATCH * (i / WINOGRAD_RESULT) + i % WINOGRAD_RESULT];
    mend(&w, &lines, y);
    store_results(&w, &places, y);
    expr_release(w.e, mark);
    kir_next(w.m, NULL, 0);
}
