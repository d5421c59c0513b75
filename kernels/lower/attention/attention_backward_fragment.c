/* SPDX-License-Identifier: Apache-2.0 */
/* By products of fragments: the rows that a team has are fragments; what it goes over is in tiles
 * of the group, in two slots, one of which is copied to while the other one is multiplied.  A row's
 * numbers are fragments too, in every element of the row, or of the column that is its. */
#include <math.h>

#include "lower/attention/attention_backward.h"
#include "lower/attention/attention_fragment.h"

enum {
    TEAMS = 4,        /* of a group */
    SLOTS = 2,        /* blocks in tiles at a time */
    SMALL_SIZE = 64,  /* of rows up to this, blocks have SMALL_LINES, */
    SMALL_LINES = 64, /* else LARGE_LINES: registers hold what a block makes */
    LARGE_LINES = 32,
    MOST_ACROSS = SMALL_LINES / SIDE,
    MOST_ALONG = 128 / SIDE,
    ROW_PAD = 4 /* by which lines of results are longer */
};

/* A team has rows of one operand, and goes over the other one. */
struct fragment_pair {
    struct attention_source own, other; /* both by the same tile */
    uint32_t n;                         /* fragments along a row */
    uint32_t left[MOST_ALONG];          /* fragments of the team's rows, */
    uint32_t sum[MOST_ALONG];           /* and of the gradient by them */
};

struct fragment_phase {
    struct gradient_phase p;
    uint32_t dtype;
    uint32_t across;    /* fragments along a block */
    uint32_t first_row; /* of the team */
    struct fragment_pair pair[PAIRS];
    uint32_t part[PAIRS][MOST_ACROSS]; /* products of a block: scores, then weights; slopes of
                                          weights, then of scores */
    uint32_t left, right;              /* fragments */
    uint32_t number[ROW_NUMBERS];      /* likewise: of the queries that elements are of */
    uint32_t results, pitch;           /* tile of results, and the step between its lines */
};

/* ---- a phase ---- */

static void begin(struct fragment_phase *f, uint32_t own_tag)
{
    struct attention_emitter *w = &f->p.w;
    const uint32_t team = w->e->s->target->team;

    gradient_begin(&f->p, own_tag, TEAMS * team, CHUNK);
    if (w->m->failed)
        return;
    w->m->phases[w->m->n_phases - 1].team = team * CHUNK;
    f->first_row =
        at2(w, KIR_add, w->first_row, at_times(w, at_high(w, w->lane, team * CHUNK), SIDE));
}

static void emit_op(const struct fragment_phase *f, enum kir_op op, uint64_t imm)
{
    kir_emit_imm(f->p.w.m, op, imm, KIR_NONE, KIR_NONE, KIR_NONE);
}

static uint32_t new_sum(const struct fragment_phase *f, double value)
{
    const struct kir_fragment sums = {KIR_SUM, FRIT_F32, SIDE, SIDE};
    uint32_t fragment = kir_fragment(f->p.w.m, &sums);

    kir_emit_imm(f->p.w.m, KIR_mfill, fragment, at_real(&f->p.w, value), KIR_NONE, KIR_NONE);
    return fragment;
}

static struct attention_source source(const struct fragment_phase *f, uint32_t node,
                                      uint32_t row_tag, uint32_t column_tag)
{
    const struct attention *a = f->p.w.a;
    const int64_t columns = column_tag == ATTENTION_SIZE ? a->size : a->outs;
    const uint32_t chunks = fragment_chunks(f->p.w.threads, f->p.lines, columns);

    return (struct attention_source){.node = node,
                                     .pitch = fragment_line(chunks),
                                     .copies = attention_can_copy(a, node, f->dtype),
                                     .row_tag = row_tag,
                                     .column_tag = column_tag,
                                     .rows = a->points[row_tag].count,
                                     .columns = columns,
                                     .line = chunks * CHUNK};
}

static uint32_t tile_lines(const struct fragment_phase *f)
{
    return SLOTS * f->p.lines < f->p.rows ? f->p.rows : SLOTS * f->p.lines;
}

static void add_pair(struct fragment_phase *f, uint32_t which, uint32_t column_tag)
{
    const struct kir_fragment left = {KIR_LEFT, f->dtype, SIDE, SIDE};
    struct fragment_pair *p = &f->pair[which];

    p->own = source(f, gradient_own(&f->p, which), f->p.own_tag, column_tag);
    p->other = source(f, gradient_other(&f->p, which), f->p.other_tag, column_tag);
    p->own.tile = p->other.tile =
        kir_tile_of(f->p.w.m, KIR_GROUP, f->dtype, tile_lines(f) * p->own.pitch);
    p->n = fragment_parts(p->own.columns);
    for (uint32_t i = 0; i < p->n; i++) {
        p->left[i] = kir_fragment(f->p.w.m, &left);
        p->sum[i] = new_sum(f, 0);
    }
}

static void add_pairs(struct fragment_phase *f)
{
    const struct kir_fragment left = {KIR_LEFT, f->dtype, SIDE, SIDE},
                              right = {KIR_RIGHT, f->dtype, SIDE, SIDE};

    add_pair(f, SCORES, ATTENTION_SIZE);
    add_pair(f, SLOPES, ATTENTION_OUT);
    f->left = kir_fragment(f->p.w.m, &left);
    f->right = kir_fragment(f->p.w.m, &right);
    for (uint32_t i = 0; i < ROW_NUMBERS; i++)
        f->number[i] = new_sum(f, 0);
    for (uint32_t i = 0; i < PAIRS; i++)
        for (uint32_t j = 0; j < f->across; j++)
            f->part[i][j] = new_sum(f, 0);
}

/* ---- products ---- */

/* Loads the part of a pair's tile that begins in `line`, at column `column`. */
static void load_part(const struct fragment_phase *f, uint32_t fragment,
                      const struct fragment_pair *p, uint32_t line, int64_t column, bool by_columns)
{
    const struct kir_fragment_place place = {fragment, true, p->own.tile, by_columns, false};

    kir_emit_imm(f->p.w.m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(&f->p.w, at_times(&f->p.w, line, p->own.pitch), column),
                 at_index(&f->p.w, p->own.pitch), KIR_NONE);
}

/* Loads the fragments of the team's rows, through the tiles of the others. */
static void load_own(const struct fragment_phase *f)
{
    const struct attention_emitter *w = &f->p.w;
    const struct attention_part rows = {w->first_row, at_index(w, 0), f->p.rows, at_index(w, 0)};
    uint32_t line = at2(w, KIR_sub, f->first_row, w->first_row);

    for (uint32_t i = 0; i < PAIRS; i++)
        attention_stage(w, &f->pair[i].own, &rows);
    attention_arrive(w);
    for (uint32_t i = 0; i < PAIRS; i++)
        for (uint32_t d = 0; d < f->pair[i].n; d++)
            load_part(f, f->pair[i].left[d], &f->pair[i], line, (int64_t)d * SIDE, false);
    emit_op(f, KIR_barrier, 0);
}

/* The products of the team's rows and a block's, whose first one is at `line`: scores or slopes. */
static void multiply(const struct fragment_phase *f, uint32_t which, uint32_t line)
{
    const struct fragment_pair *p = &f->pair[which];

    for (uint32_t j = 0; j < f->across; j++) {
        kir_emit_imm(f->p.w.m, KIR_mfill, f->part[which][j], at_real(&f->p.w, 0), KIR_NONE,
                     KIR_NONE);
        for (uint32_t d = 0; d < p->n; d++) {
            load_part(f, f->right, p, at_plus(&f->p.w, line, (int64_t)j * SIDE), (int64_t)d * SIDE,
                      true);
            emit_op(f, KIR_mma, kir_product(f->part[which][j], p->left[d], f->right));
        }
    }
}

/* Adds a block's rows of a pair, times weights or slopes, to the gradient. */
static void add_block(const struct fragment_phase *f, uint32_t which, uint32_t to, uint32_t line)
{
    const struct fragment_pair *p = &f->pair[to];

    for (uint32_t j = 0; j < f->across; j++) {
        emit_op(f, KIR_mnarrow, kir_pair(f->left, f->part[which][j]));
        for (uint32_t i = 0; i < p->n; i++) {
            load_part(f, f->right, p, at_plus(&f->p.w, line, (int64_t)j * SIDE), (int64_t)i * SIDE,
                      false);
            emit_op(f, KIR_mma, kir_product(p->sum[i], f->left, f->right));
        }
    }
}

/* ---- elements ---- */

static uint32_t coordinate(const struct fragment_phase *f, enum kir_op op)
{
    return sched_wide(f->p.w.e->s, kir_emit(f->p.w.m, op, KIR_NONE, KIR_NONE, KIR_NONE));
}

static uint32_t peer(const struct fragment_phase *f, uint32_t fragment)
{
    return kir_emit_as(f->p.w.m, KIR_peer, f->p.w.type, fragment, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Scores, hidden where a query does not see the key, of a block that begins at `first`. */
static void finish_scores(const struct fragment_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->p.w;

    for (uint32_t j = 0; j < f->across; j++) {
        uint32_t mark = expr_mark(w->e), sum = kir_each(w->m, f->part[SCORES][j]), own, other;

        own = at2(w, KIR_add, f->first_row, coordinate(f, KIR_row));
        other = at2(w, KIR_add, at_plus(w, first, (int64_t)j * SIDE), coordinate(f, KIR_column));
        kir_done(w->m, gradient_score(&f->p, own, other, sum));
        expr_release(w->e, mark);
    }
}

/* B: some query of the block does not see some of the group's keys, which end before the last key.
 */
static uint32_t hides_keys(const struct fragment_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->p.w;
    const struct attention *a = w->a;

    if (!a->causal)
        return KIR_NONE;
    return at2(w, KIR_lt, at2(w, KIR_add, first, sched_add_index(w->e->s, a->keys - a->queries)),
               at_plus(w, w->first_row, (int64_t)f->p.rows - 1));
}

/* Where only hiding keys is to be done, in blocks alone that have such. */
static void finish_block(const struct fragment_phase *f, uint32_t first)
{
    const bool is_plain = attention_is_plain(&f->p.w);
    uint32_t hides = KIR_NONE;

    if (is_plain)
        hides = f->p.own_tag == ATTENTION_KEY ? hides_keys(f, first)
                                              : attention_hides(&f->p.w, first, f->p.lines);
    if (is_plain && hides == KIR_NONE)
        return;
    if (is_plain)
        kir_if(f->p.w.m, hides);
    finish_scores(f, first);
    if (is_plain)
        kir_end(f->p.w.m);
}

/* ---- going over blocks ---- */

static void stage_block(const struct fragment_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->p.w;
    const struct attention_part block = {first, at_index(w, 0), f->p.lines,
                                         gradient_line(&f->p, first)};

    for (uint32_t i = 0; i < PAIRS; i++)
        attention_stage(w, &f->pair[i].other, &block);
    if (f->p.own_tag == ATTENTION_KEY)
        gradient_stage(&f->p, first);
}

/* Begins a loop over blocks, whose body has the products of one; returns its first row. */
static uint32_t begin_blocks(const struct fragment_phase *f)
{
    const struct attention_emitter *w = &f->p.w;
    uint32_t first, next;

    kir_if(w->m, at2(w, KIR_lt, w->begin, w->end));
    stage_block(f, w->begin);
    kir_end(w->m);
    first = kir_for(w->m, w->begin, w->end, f->p.lines);
    next = at_plus(w, first, f->p.lines);
    attention_arrive(w);
    kir_if(w->m, at2(w, KIR_lt, next, w->end));
    stage_block(f, next);
    kir_end(w->m);
    for (uint32_t i = 0; i < PAIRS; i++)
        multiply(f, i, gradient_line(&f->p, first));
    finish_block(f, first);
    return first;
}

/* ---- what rows of queries have ---- */

/* Fragments with a number of the row in each of its elements; largest: of the scores. */
struct row_numbers {
    uint32_t largest, next_largest, part, scale;
    uint32_t total; /* sum of weights relative to it; that of weights times slopes is f's SUM */
};

static void find_largest(const struct fragment_phase *f, const struct row_numbers *r)
{
    uint32_t largest;

    (void)kir_each(f->p.w.m, r->part);
    largest = peer(f, r->largest);
    for (uint32_t j = 0; j < f->across; j++)
        largest = attention_larger(&f->p.w, largest, peer(f, f->part[SCORES][j]));
    kir_done(f->p.w.m, largest);
    emit_op(f, KIR_mlargest, kir_pair(r->next_largest, r->part));
}

static void add_totals(const struct fragment_phase *f, const struct row_numbers *r)
{
    const struct attention_emitter *w = &f->p.w;
    uint32_t base, sum;

    (void)kir_each(w->m, r->scale);
    base = attention_base(w, peer(f, r->next_largest));
    kir_done(w->m, attention_rescale(w, peer(f, r->largest), base));
    for (uint32_t j = 0; j < f->across; j++) {
        uint32_t score = kir_each(w->m, f->part[SCORES][j]);

        base = attention_base(w, peer(f, r->next_largest));
        kir_done(w->m, attention_weight(w, score, base));
    }
    (void)kir_each(w->m, r->largest);
    kir_done(w->m, peer(f, r->next_largest));
    sum = kir_each(w->m, r->total);
    sum = at2(w, KIR_mul, sum, peer(f, r->scale));
    for (uint32_t j = 0; j < f->across; j++)
        sum = at2(w, KIR_add, sum, peer(f, f->part[SCORES][j]));
    kir_done(w->m, sum);
    sum = kir_each(w->m, f->number[ROW_SUM]);
    sum = at2(w, KIR_mul, sum, peer(f, r->scale));
    for (uint32_t j = 0; j < f->across; j++)
        sum = at_mad(w, peer(f, f->part[SCORES][j]), peer(f, f->part[SLOPES][j]), sum);
    kir_done(w->m, sum);
}

static void keep_numbers(const struct fragment_phase *f)
{
    const struct attention_emitter *w = &f->p.w;
    uint32_t value = kir_each(w->m, f->number[ROW_BASE]), ok;

    ok = at2(w, KIR_eq, coordinate(f, KIR_column), at_index(w, 0));
    gradient_keep(&f->p, at2(w, KIR_add, f->first_row, coordinate(f, KIR_row)), value,
                  peer(f, f->number[ROW_SUM]), ok);
    kir_done(w->m, value);
}

/* Goes over the keys once for the numbers of rows. */
static void find_numbers(const struct fragment_phase *f, const struct row_numbers *r)
{
    const struct attention_emitter *w = &f->p.w;
    uint32_t mark = expr_mark(w->e), total, none;

    (void)begin_blocks(f);
    find_largest(f, r);
    add_totals(f, r);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    emit_op(f, KIR_mtotal, kir_pair(r->scale, r->total));
    emit_op(f, KIR_mtotal, kir_pair(r->part, f->number[ROW_SUM]));
    (void)kir_each(w->m, f->number[ROW_SUM]);
    total = peer(f, r->scale);
    none = at2(w, KIR_eq, total, at_real(w, 0));
    total = kir_select(w->m, none, at_real(w, 1), total);
    kir_done(w->m, at2(w, KIR_div, peer(f, r->part), total));
    (void)kir_each(w->m, f->number[ROW_BASE]);
    kir_done(w->m, gradient_base(&f->p, peer(f, r->largest), peer(f, r->scale)));
    keep_numbers(f);
}

/* ---- slopes of scores ---- */

/* Loads a number of the queries that columns of fragment `j` of a block's products are. */
static void load_number(const struct fragment_phase *f, uint32_t first, uint32_t j, uint32_t number)
{
    const struct attention_emitter *w = &f->p.w;
    const struct kir_fragment_place place = {f->number[number], true, f->p.numbers, false, false};

    kir_emit_imm(w->m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(w, at_times(w, gradient_line(&f->p, first), ROW_NUMBERS),
                         (int64_t)number * f->p.lines + (int64_t)j * SIDE),
                 at_index(w, 0), KIR_NONE);
}

/* Makes weights of scores, and gradients of scores of those of weights. */
static void find_slopes(const struct fragment_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->p.w;

    for (uint32_t j = 0; j < f->across; j++) {
        uint32_t value;

        for (uint32_t i = 0; i < ROW_NUMBERS && f->p.own_tag == ATTENTION_KEY; i++)
            load_number(f, first, j, i);
        value = kir_each(w->m, f->part[SCORES][j]);
        kir_done(w->m, attention_weight(w, value, peer(f, f->number[ROW_BASE])));
        value = kir_each(w->m, f->part[SLOPES][j]);
        value = at2(w, KIR_sub, value, peer(f, f->number[ROW_SUM]));
        kir_done(w->m, at2(w, KIR_mul, peer(f, f->part[SCORES][j]), value));
    }
}

/* ---- results ---- */

static uint32_t result_pitch(const struct attention *a)
{
    return fragment_parts(a->size > a->outs ? a->size : a->outs) * SIDE + ROW_PAD;
}

static void add_results(struct fragment_phase *f)
{
    f->pitch = result_pitch(f->p.w.a);
    f->results = kir_tile_of(f->p.w.m, KIR_GROUP, FRIT_F32, f->p.rows * f->pitch);
}

/* A thread's results of chunk number `number` of the group's. */
static void store_chunk(const struct fragment_phase *f, uint32_t result, uint32_t n,
                        uint32_t number)
{
    const struct attention_emitter *w = &f->p.w;
    const uint32_t columns = n * SIDE, chunks = power_above(columns / CHUNK);
    uint32_t line = at_high(w, number, chunks), at, sum;
    uint32_t column = at_times(w, at_low(w, number, chunks), CHUNK);

    at = at2(w, KIR_smin, column, at_index(w, columns - CHUNK));
    at = at2(w, KIR_add, at_times(w, line, f->pitch), at2(w, KIR_add, at, w->low));
    sum = kir_emit_as(w->m, KIR_tload, w->type, f->results, at, KIR_NONE, KIR_NONE);
    gradient_store(&f->p, result, at2(w, KIR_add, w->first_row, line), column, true, sum);
}

/* Results go through a tile, from which a thread takes some that are one access. */
static void store_sums(const struct fragment_phase *f, const struct fragment_pair *p,
                       uint32_t result)
{
    const struct attention_emitter *w = &f->p.w;
    const uint32_t chunks = power_above(p->n * SIDE / CHUNK);
    uint32_t mark = expr_mark(w->e), line, number;

    if (f->p.g->store[result] == BLOCK_NONE)
        return;
    line = at2(w, KIR_sub, f->first_row, w->first_row);
    emit_op(f, KIR_barrier, 0);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct kir_fragment_place to = {p->sum[i], true, f->results, false, false};

        kir_emit_imm(w->m, KIR_mstore, kir_fragment_imm(&to),
                     at_plus(w, at_times(w, line, f->pitch), (int64_t)i * SIDE),
                     at_index(w, f->pitch), KIR_NONE);
    }
    emit_op(f, KIR_barrier, 0);
    number = kir_for(w->m, at_index(w, 0), at_index(w, (int64_t)f->p.rows * chunks), w->threads);
    store_chunk(f, result, p->n, at2(w, KIR_add, number, w->thread));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

/* ---- the phases ---- */

static void by_queries(struct fragment_phase *f)
{
    struct attention_emitter *w = &f->p.w;
    struct row_numbers r;
    uint32_t mark, first;

    begin(f, ATTENTION_ROW);
    if (w->m->failed)
        return;
    add_pairs(f);
    r = (struct row_numbers){.largest = new_sum(f, -INFINITY),
                             .next_largest = new_sum(f, -INFINITY),
                             .part = new_sum(f, -INFINITY),
                             .scale = new_sum(f, 0),
                             .total = new_sum(f, 0)};
    load_own(f);
    find_numbers(f, &r);
    emit_op(f, KIR_barrier, 0);
    mark = expr_mark(w->e);
    first = begin_blocks(f);
    find_slopes(f, first);
    add_block(f, SLOPES, SCORES, gradient_line(&f->p, first));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    add_results(f);
    store_sums(f, &f->pair[SCORES], DQ);
}

static void by_keys(struct fragment_phase *f)
{
    struct attention_emitter *w = &f->p.w;
    uint32_t mark, first;

    begin(f, ATTENTION_KEY);
    if (w->m->failed)
        return;
    add_pairs(f);
    f->p.numbers = kir_tile_of(w->m, KIR_GROUP, FRIT_F32, SLOTS * ROW_NUMBERS * f->p.lines);
    load_own(f);
    mark = expr_mark(w->e);
    first = begin_blocks(f);
    find_slopes(f, first);
    add_block(f, SCORES, SLOPES, gradient_line(&f->p, first));
    add_block(f, SLOPES, SCORES, gradient_line(&f->p, first));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    add_results(f);
    store_sums(f, &f->pair[SCORES], DK);
    store_sums(f, &f->pair[SLOPES], DV);
}

/* ---- the form ---- */

static uint32_t lines_of(struct gradients *g)
{
    return g->a.size <= SMALL_SIZE && g->a.outs <= SMALL_SIZE ? SMALL_LINES : LARGE_LINES;
}

uint32_t gradient_fragment_rows(struct gradients *g)
{
    (void)g;
    return TEAMS * SIDE;
}

uint64_t gradient_fragment_bytes(struct gradients *g)
{
    const struct attention *a = &g->a;
    const uint32_t rows = TEAMS * SIDE, n = lines_of(g), threads = TEAMS * a->e.s->target->team;
    const uint64_t lines = (uint64_t)fragment_line(fragment_chunks(threads, n, a->size)) +
                           fragment_line(fragment_chunks(threads, n, a->outs));
    const uint64_t operands = 2 * (SLOTS * n < rows ? rows : SLOTS * n) * lines;
    const uint64_t results = 4ull * rows * result_pitch(a),
                   numbers = 4ull * SLOTS * ROW_NUMBERS * n;

    if (threads * CHUNK > a->e.s->target->max_lanes)
        return UINT64_MAX;
    if (!a->e.s->target->reuses_tiles)
        return operands + numbers + results;
    return operands + numbers > results ? operands + numbers : results;
}

void gradient_fragments(struct gradients *g)
{
    struct attention *a = &g->a;
    struct fragment_phase f = {.p = {.w = {.a = a, .e = &a->e, .m = a->e.s->module},
                                     .g = g,
                                     .rows = TEAMS * SIDE,
                                     .lines = lines_of(g),
                                     .n_slots = SLOTS}};

    f.dtype = a->e.s->block->values[a->e.nodes[a->q].value].dtype;
    f.across = f.p.lines / SIDE;
    by_queries(&f);
    by_keys(&f);
}
