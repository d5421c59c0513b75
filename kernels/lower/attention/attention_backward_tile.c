/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients on lanes that are threads, as in attention_tile.c: a group is a grid of threads,
 * DOWN along its rows and ACROSS along those of a block, or along results.  A thread has a few of
 * each, whose sums stay in registers; operands go through tiles of the group, a row in each line.
 * Lines are longer by PAD, so that neighbours begin in different banks; what a thread multiplies is
 * read RUN by RUN. */
#include <math.h>

#include "lower/attention/attention_backward.h"

enum {
    DOWN = 8,
    ACROSS = 16,
    SMALL_SIZE = 64, /* of rows up to this a thread has SMALL_ROWS, */
    SMALL_ROWS = 8,  /* else LARGE_ROWS: registers hold what a block makes */
    LARGE_ROWS = 4,
    LINES = 4, /* of a block, of a thread */
    LEAST_DEPTH = 16,
    RUN = 4,
    PAD = 4,
    STEP = RUN, /* of a product in a round of its loop: NVRTC takes half as long again for two */
    MOST_SUMS = SMALL_ROWS * LINES,
    ACCESS_BYTES = 16 /* of a thread */
};

struct tile_pair {
    struct attention_source own, other;
    uint32_t n;              /* results along a row that a thread has */
    uint32_t sum[MOST_SUMS]; /* of the gradient by own rows */
};

/* Numbers of the thread's rows of queries; in the end the base and the sum of w * dw are those in
 * `largest` and `product`. */
struct tile_numbers {
    uint32_t largest[SMALL_ROWS], total[SMALL_ROWS], product[SMALL_ROWS];
};

struct tile_phase {
    struct gradient_phase p;
    uint32_t each;         /* rows of a thread */
    uint32_t down, across; /* the thread's place in the grid */
    struct tile_pair pair[PAIRS];
    uint32_t part[PAIRS][MOST_SUMS]; /* products of a block: scores, then weights; slopes of
                                        weights, then of scores */
    uint32_t weights;                /* tile of either */
    struct tile_numbers row;
};

/* ---- a phase ---- */

static uint32_t chunk_of(const struct kir_target *target)
{
    return target->align_bytes < ACCESS_BYTES ? 1 : ACCESS_BYTES / sizeof(float);
}

static uint32_t depth_of(int64_t size)
{
    return power_above(size < LEAST_DEPTH ? LEAST_DEPTH : size);
}

static struct attention_source source(const struct tile_phase *t, uint32_t node, uint32_t row_tag,
                                      uint32_t column_tag, uint32_t lines)
{
    const struct attention *a = t->p.w.a;
    const int64_t columns = column_tag == ATTENTION_SIZE ? a->size : a->outs;
    const uint32_t depth = depth_of(columns);
    struct attention_source s = {.node = node,
                                 .pitch = depth + PAD,
                                 .row_tag = row_tag,
                                 .column_tag = column_tag,
                                 .rows = a->points[row_tag].count,
                                 .columns = columns,
                                 .line = depth};

    s.tile = kir_tile(t->p.w.m, KIR_GROUP, t->p.w.type, lines * s.pitch);
    s.copies =
        attention_can_copy(a, node, FRIT_F32) && lines * depth >= t->p.w.threads * t->p.w.chunk;
    return s;
}

static void add_pair(struct tile_phase *t, uint32_t which, uint32_t column_tag)
{
    struct tile_pair *p = &t->pair[which];

    p->own = source(t, gradient_own(&t->p, which), t->p.own_tag, column_tag, t->p.rows);
    p->other = source(t, gradient_other(&t->p, which), t->p.other_tag, column_tag, t->p.lines);
    p->n = (uint32_t)tiles_of(p->own.columns, ACROSS);
    p->n = p->n > RUN ? (uint32_t)tiles_of(p->n, RUN) * RUN : p->n;
    for (uint32_t i = 0; i < t->each * p->n; i++)
        p->sum[i] = at_real(&t->p.w, 0);
}

static bool begin(struct tile_phase *t, uint32_t own_tag)
{
    struct attention_emitter *w = &t->p.w;
    const uint32_t chunk = chunk_of(w->e->s->target);

    gradient_begin(&t->p, own_tag, DOWN * ACROSS, chunk);
    if (w->m->failed)
        return false;
    w->m->phases[w->m->n_phases - 1].per_thread = chunk;
    add_pair(t, SCORES, ATTENTION_SIZE);
    add_pair(t, SLOPES, ATTENTION_OUT);
    t->weights = kir_tile(w->m, KIR_GROUP, w->type, t->p.rows * (t->p.lines + PAD));
    if (own_tag == ATTENTION_KEY)
        t->p.numbers = kir_tile(w->m, KIR_GROUP, w->type, ROW_NUMBERS * t->p.lines);
    t->down = at_high(w, w->thread, ACROSS);
    t->across = at_low(w, w->thread, ACROSS);
    for (uint32_t i = 0; i < PAIRS; i++)
        attention_stage(
            w, &t->pair[i].own,
            &(struct attention_part){w->first_row, at_index(w, 0), t->p.rows, at_index(w, 0)});
    return true;
}

static void barrier(const struct tile_phase *t)
{
    kir_emit(t->p.w.m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Number `i` of a thread's rows, as of the group. */
static uint32_t line_of_row(const struct tile_phase *t, uint32_t i)
{
    return at_plus(&t->p.w, t->down, (int64_t)i * DOWN);
}

static uint32_t row_of(const struct tile_phase *t, uint32_t i)
{
    return at2(&t->p.w, KIR_add, t->p.w.first_row, line_of_row(t, i));
}

/* Likewise of a block's lines. */
static uint32_t line_of(const struct tile_phase *t, uint32_t j)
{
    return at_plus(&t->p.w, t->across, (int64_t)j * ACROSS);
}

/* Likewise of results along a row: runs of RUN neighbours. */
static uint32_t column_of(const struct tile_phase *t, const struct tile_pair *p, uint32_t i)
{
    const uint32_t run = p->n % RUN ? p->n : RUN;
    uint32_t at = at_times(&t->p.w, t->across, run);

    return at_plus(&t->p.w, at, (int64_t)(i / run) * run * ACROSS + i % run);
}

/* ---- products ---- */

/* Begins a loop that carries `n` values; they become its phis. */
static uint32_t carry(const struct tile_phase *t, uint32_t end, uint32_t *values, uint32_t n)
{
    uint32_t counter = kir_for(t->p.w.m, at_index(&t->p.w, 0), end, STEP);

    for (uint32_t i = 0; i < n; i++)
        values[i] = kir_phi(t->p.w.m, values[i]);
    return counter;
}

static uint32_t load(const struct tile_phase *t, uint32_t tile, uint32_t at)
{
    return kir_emit_as(t->p.w.m, KIR_tload, t->p.w.type, tile, at, KIR_NONE, KIR_NONE);
}

/* RUN neighbours of a tile from `at` on, a multiple of RUN, in one access. */
static void load_run(const struct tile_phase *t, uint32_t tile, uint32_t at, uint32_t *out)
{
    uint32_t place[RUN];

    for (uint32_t i = 0; i < RUN; i++)
        place[i] = at2(&t->p.w, KIR_add, at, at_index(&t->p.w, i));
    for (uint32_t i = 0; i < RUN; i++)
        out[i] = load(t, tile, place[i]);
}

/* Of `n` lines, `step` apart from line `first` on, RUN elements from `column` on. */
static void load_lines(const struct tile_phase *t, uint32_t tile, uint32_t pitch, uint32_t first,
                       uint32_t step, uint32_t n, uint32_t column, uint32_t (*out)[RUN])
{
    uint32_t at = at2(&t->p.w, KIR_add, at_times(&t->p.w, first, pitch), column);

    for (uint32_t i = 0; i < n; i++)
        load_run(t, tile, at_plus(&t->p.w, at, (int64_t)i * step * pitch), out[i]);
}

static void multiply_run(const struct tile_phase *t, const struct tile_pair *p, uint32_t at,
                         uint32_t *sums)
{
    uint32_t own[SMALL_ROWS][RUN], other[LINES][RUN];

    load_lines(t, p->own.tile, p->own.pitch, t->down, DOWN, t->each, at, own);
    load_lines(t, p->other.tile, p->other.pitch, t->across, ACROSS, LINES, at, other);
    for (uint32_t k = 0; k < RUN; k++)
        for (uint32_t i = 0; i < t->each * LINES; i++)
            sums[i] = at_mad(&t->p.w, own[i / LINES][k], other[i % LINES][k], sums[i]);
}

/* The products of the thread's rows and a block's: scores or slopes.  Columns up to the next STEP
 * are zeros. */
static void multiply(struct tile_phase *t, uint32_t which)
{
    const struct attention_emitter *w = &t->p.w;
    const struct tile_pair *p = &t->pair[which];
    const uint32_t n = t->each * LINES;
    uint32_t *sums = t->part[which], next[MOST_SUMS], at;

    for (uint32_t i = 0; i < n; i++)
        sums[i] = at_real(w, 0);
    at = carry(t, at_index(w, p->own.columns), sums, n);
    for (uint32_t i = 0; i < n; i++)
        next[i] = sums[i];
    for (uint32_t i = 0; i < STEP; i += RUN)
        multiply_run(t, p, at_plus(w, at, i), next);
    kir_next(w->m, next, n);
}

static void load_results(const struct tile_phase *t, const struct tile_pair *p, uint32_t line,
                         uint32_t *out)
{
    uint32_t at = at_times(&t->p.w, line, p->other.pitch);

    for (uint32_t i = 0; i < p->n && p->n % RUN == 0; i += RUN)
        load_run(t, p->other.tile, at2(&t->p.w, KIR_add, at, column_of(t, p, i)), out + i);
    for (uint32_t i = 0; i < p->n && p->n % RUN; i++)
        out[i] = load(t, p->other.tile, at2(&t->p.w, KIR_add, at, column_of(t, p, i)));
}

static void add_run(const struct tile_phase *t, const struct tile_pair *p, uint32_t line,
                    uint32_t *sums)
{
    uint32_t weights[SMALL_ROWS][RUN], results[MOST_SUMS] = {0};

    load_lines(t, t->weights, t->p.lines + PAD, t->down, DOWN, t->each, line, weights);
    for (uint32_t k = 0; k < RUN; k++) {
        load_results(t, p, at_plus(&t->p.w, line, k), results);
        for (uint32_t i = 0; i < t->each * p->n; i++)
            sums[i] = at_mad(&t->p.w, weights[i / p->n][k], results[i % p->n], sums[i]);
    }
}

/* Adds a block's rows of a pair, times weights or slopes, to the gradient. */
static void add_block(struct tile_phase *t, uint32_t which, uint32_t to)
{
    const struct attention_emitter *w = &t->p.w;
    struct tile_pair *p = &t->pair[to];
    const uint32_t n = t->each * p->n;
    uint32_t next[MOST_SUMS] = {0}, line;

    barrier(t);
    for (uint32_t i = 0; i < t->each * LINES; i++) {
        uint32_t at = at_times(w, line_of_row(t, i / LINES), t->p.lines + PAD);

        kir_emit_imm(w->m, KIR_tstore, t->weights, at2(w, KIR_add, at, line_of(t, i % LINES)),
                     t->part[which][i], KIR_NONE);
    }
    barrier(t);
    line = carry(t, at_index(w, t->p.lines), p->sum, n);
    for (uint32_t i = 0; i < n; i++)
        next[i] = p->sum[i];
    for (uint32_t i = 0; i < STEP; i += RUN)
        add_run(t, p, at_plus(w, line, i), next);
    kir_next(w->m, next, n);
}

/* ---- going over blocks ---- */

/* Makes scores of a block's sums: of each of the thread's keys, with each of its rows. */
static void find_scores(struct tile_phase *t, uint32_t first)
{
    const bool by_keys = t->p.own_tag == ATTENTION_KEY;
    const uint32_t keys = by_keys ? t->each : LINES, rows = by_keys ? LINES : t->each;
    struct attention_emitter *w = &t->p.w;

    if (by_keys)
        attention_set_rows(w, at2(w, KIR_add, first, t->across), LINES, ACROSS);
    for (uint32_t k = 0; k < keys; k++) {
        uint32_t key = by_keys ? row_of(t, k) : at2(w, KIR_add, first, line_of(t, k));
        uint32_t inside = gradient_is_key(&t->p, key);

        for (uint32_t r = 0; r < rows; r++) {
            uint32_t *score = &t->part[SCORES][by_keys ? k * LINES + r : r * LINES + k];

            *score = attention_score(w, r, key, inside, *score);
        }
    }
}

/* Begins a loop over blocks, which carries `n` values, with the products of one. */
static void begin_blocks(struct tile_phase *t, uint32_t **carried, uint32_t *phis, uint32_t n)
{
    const struct attention_emitter *w = &t->p.w;
    uint32_t first = kir_for(w->m, w->begin, w->end, t->p.lines);

    for (uint32_t i = 0; i < n; i++)
        *carried[i] = phis[i] = kir_phi(w->m, *carried[i]);
    barrier(t);
    for (uint32_t i = 0; i < PAIRS; i++)
        attention_stage(
            w, &t->pair[i].other,
            &(struct attention_part){first, at_index(w, 0), t->p.lines, at_index(w, 0)});
    if (t->p.own_tag == ATTENTION_KEY)
        gradient_stage(&t->p, first);
    attention_arrive(w);
    for (uint32_t i = 0; i < PAIRS; i++)
        multiply(t, i);
    find_scores(t, first);
}

static void end_blocks(const struct tile_phase *t, uint32_t **carried, const uint32_t *phis,
                       uint32_t n)
{
    uint32_t next[2 * MOST_SUMS] = {0};

    for (uint32_t i = 0; i < n; i++)
        next[i] = *carried[i];
    kir_next(t->p.w.m, next, n);
    for (uint32_t i = 0; i < n; i++)
        *carried[i] = phis[i];
}

/* ---- what rows of queries have ---- */

static uint32_t exchange(const struct tile_phase *t, uint32_t distance, uint32_t value)
{
    return kir_emit_imm(t->p.w.m, KIR_exchange, distance * t->p.w.chunk, value, KIR_NONE, KIR_NONE);
}

static uint32_t largest_across(const struct tile_phase *t, uint32_t largest)
{
    for (uint32_t d = 1; d < ACROSS; d *= 2)
        largest = attention_larger(&t->p.w, largest, exchange(t, d, largest));
    return largest;
}

static uint32_t sum_across(const struct tile_phase *t, uint32_t sum)
{
    for (uint32_t d = 1; d < ACROSS; d *= 2)
        sum = at2(&t->p.w, KIR_add, sum, exchange(t, d, sum));
    return sum;
}

/* Adds a block to the numbers of row `i`, which become relative to the new maximum. */
static void add_totals(struct tile_phase *t, uint32_t i)
{
    const struct attention_emitter *w = &t->p.w;
    struct tile_numbers *r = &t->row;
    uint32_t largest = r->largest[i], base, scale;

    for (uint32_t j = 0; j < LINES; j++)
        largest = attention_larger(w, largest, t->part[SCORES][i * LINES + j]);
    largest = largest_across(t, largest);
    base = attention_base(w, largest);
    scale = attention_rescale(w, r->largest[i], base);
    r->largest[i] = largest;
    r->total[i] = at2(w, KIR_mul, r->total[i], scale);
    r->product[i] = at2(w, KIR_mul, r->product[i], scale);
    for (uint32_t j = 0; j < LINES; j++) {
        uint32_t weight = attention_weight(w, t->part[SCORES][i * LINES + j], base);

        r->total[i] = at2(w, KIR_add, r->total[i], weight);
        r->product[i] = at_mad(w, weight, t->part[SLOPES][i * LINES + j], r->product[i]);
    }
}

static void find_numbers(struct tile_phase *t)
{
    const struct attention_emitter *w = &t->p.w;
    struct tile_numbers *r = &t->row;
    uint32_t *carried[3 * SMALL_ROWS], phis[3 * SMALL_ROWS], n = 0, mark = expr_mark(w->e);
    uint32_t is_first = at2(w, KIR_eq, t->across, at_index(w, 0));

    for (uint32_t i = 0; i < t->each; i++) {
        r->largest[i] = at_real(w, -INFINITY);
        r->total[i] = r->product[i] = at_real(w, 0);
        carried[n++] = &r->largest[i];
        carried[n++] = &r->total[i];
        carried[n++] = &r->product[i];
    }
    begin_blocks(t, carried, phis, n);
    for (uint32_t i = 0; i < t->each; i++)
        add_totals(t, i);
    expr_release(w->e, mark);
    end_blocks(t, carried, phis, n);
    for (uint32_t i = 0; i < t->each; i++) {
        uint32_t total = sum_across(t, r->total[i]), none = at2(w, KIR_eq, total, at_real(w, 0));

        r->largest[i] = gradient_base(&t->p, r->largest[i], total);
        total = kir_select(w->m, none, at_real(w, 1), total);
        r->product[i] = at2(w, KIR_div, sum_across(t, r->product[i]), total);
        gradient_keep(&t->p, row_of(t, i), r->largest[i], r->product[i], is_first);
    }
}

/* Makes weights of scores, and gradients of scores of those of weights. */
static void find_slopes(struct tile_phase *t)
{
    const struct attention_emitter *w = &t->p.w;
    const bool by_keys = t->p.own_tag == ATTENTION_KEY;
    uint32_t base[LINES], sum[LINES];

    for (uint32_t j = 0; j < LINES && by_keys; j++) {
        base[j] = load(t, t->p.numbers, line_of(t, j));
        sum[j] = load(t, t->p.numbers, at_plus(w, line_of(t, j), t->p.lines));
    }
    for (uint32_t n = 0; n < t->each * LINES; n++) {
        const uint32_t i = n / LINES, j = n % LINES;
        uint32_t *weight = &t->part[SCORES][n], *slope = &t->part[SLOPES][n];

        *weight = attention_weight(w, *weight, by_keys ? base[j] : t->row.largest[i]);
        *slope = at2(w, KIR_sub, *slope, by_keys ? sum[j] : t->row.product[i]);
        *slope = at2(w, KIR_mul, *weight, *slope);
    }
}

/* ---- results ---- */

/* Stores a gradient, whose sums are in the tile of own rows, by as many neighbours as a thread has
 * lanes. */
static void store_tile(const struct tile_phase *t, const struct attention_source *s,
                       uint32_t result)
{
    const struct attention_emitter *w = &t->p.w;
    const uint32_t chunks = s->line / w->chunk;
    uint32_t mark = expr_mark(w->e), number, line, column, value;

    number = kir_for(w->m, at_index(w, 0), at_index(w, (int64_t)t->p.rows * chunks), w->threads);
    number = at2(w, KIR_add, number, w->thread);
    line = at_high(w, number, chunks);
    column = at_times(w, at_low(w, number, chunks), w->chunk);
    value = at2(w, KIR_add, at2(w, KIR_add, at_times(w, line, s->pitch), column), w->low);
    gradient_store(&t->p, result, at2(w, KIR_add, w->first_row, line), column, true,
                   load(t, s->tile, value));
    kir_next(w->m, NULL, 0);
    expr_release(w->e, mark);
}

/* Stores the gradient by own rows, which nobody reads any more. */
static void store_sums(const struct tile_phase *t, const struct tile_pair *p, uint32_t result)
{
    const struct attention_emitter *w = &t->p.w;

    if (t->p.g->store[result] == BLOCK_NONE)
        return;
    barrier(t);
    for (uint32_t i = 0; i < t->each * p->n; i++) {
        uint32_t at = at_times(w, line_of_row(t, i / p->n), p->own.pitch);

        at = at2(w, KIR_add, at, column_of(t, p, i % p->n));
        kir_emit_imm(w->m, KIR_tstore, p->own.tile, at, p->sum[i], KIR_NONE);
    }
    barrier(t);
    store_tile(t, &p->own, result);
}

/* ---- the phases ---- */

static uint32_t list_sums(struct tile_phase *t, struct tile_pair *p, uint32_t **out)
{
    for (uint32_t i = 0; i < t->each * p->n; i++)
        out[i] = &p->sum[i];
    return t->each * p->n;
}

static void set_rows(struct tile_phase *t)
{
    struct attention_emitter *w = &t->p.w;

    attention_set_rows(w, at2(w, KIR_add, w->first_row, t->down), t->each, DOWN);
}

static void row_numbers(struct tile_phase *t)
{
    if (!begin(t, ATTENTION_ROW))
        return;
    set_rows(t);
    find_numbers(t);
}

static void by_queries(struct tile_phase *t)
{
    const struct attention_emitter *w = &t->p.w;
    uint32_t *carried[MOST_SUMS], phis[MOST_SUMS], n, mark;

    if (!begin(t, ATTENTION_ROW))
        return;
    set_rows(t);
    for (uint32_t i = 0; i < t->each; i++) {
        t->row.largest[i] = gradient_kept(&t->p, w->row[i], ROW_BASE);
        t->row.product[i] = gradient_kept(&t->p, w->row[i], ROW_SUM);
    }
    n = list_sums(t, &t->pair[SCORES], carried);
    mark = expr_mark(w->e);
    begin_blocks(t, carried, phis, n);
    find_slopes(t);
    add_block(t, SLOPES, SCORES);
    expr_release(w->e, mark);
    end_blocks(t, carried, phis, n);
    store_sums(t, &t->pair[SCORES], DQ);
}

static void by_keys(struct tile_phase *t)
{
    const struct attention_emitter *w = &t->p.w;
    uint32_t *carried[2 * MOST_SUMS], phis[2 * MOST_SUMS], n, mark;

    if (!begin(t, ATTENTION_KEY))
        return;
    n = list_sums(t, &t->pair[SCORES], carried);
    n += list_sums(t, &t->pair[SLOPES], carried + n);
    mark = expr_mark(w->e);
    begin_blocks(t, carried, phis, n);
    find_slopes(t);
    add_block(t, SCORES, SLOPES);
    add_block(t, SLOPES, SCORES);
    expr_release(w->e, mark);
    end_blocks(t, carried, phis, n);
    store_sums(t, &t->pair[SCORES], DK);
    store_sums(t, &t->pair[SLOPES], DV);
}

/* ---- the form ---- */

static uint32_t each_of(const struct gradients *g)
{
    return g->a.size <= SMALL_SIZE && g->a.outs <= SMALL_SIZE ? SMALL_ROWS : LARGE_ROWS;
}

uint32_t gradient_tile_rows(struct gradients *g)
{
    return DOWN * each_of(g);
}

uint64_t gradient_tile_bytes(struct gradients *g)
{
    const uint64_t rows = gradient_tile_rows(g), lines = LINES * ACROSS;
    const uint64_t pitches = depth_of(g->a.size) + depth_of(g->a.outs) + 2 * PAD;
    const struct kir_target *target = g->a.e.s->target;

    if (DOWN * ACROSS * chunk_of(target) > target->max_lanes)
        return UINT64_MAX;
    return 4 * ((rows + lines) * pitches + rows * (lines + PAD) + ROW_NUMBERS * lines);
}

void gradient_tiles(struct gradients *g)
{
    struct attention *a = &g->a;
    struct tile_phase t = {.p = {.w = {.a = a, .e = &a->e, .m = a->e.s->module},
                                 .g = g,
                                 .rows = gradient_tile_rows(g),
                                 .lines = LINES * ACROSS,
                                 .n_slots = 1},
                           .each = each_of(g)};

    row_numbers(&t);
    by_queries(&t);
    by_keys(&t);
}
