/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of attention by products of fragments, with no scores in memory: weights are computed
 * again from scores and what the softmax of a row has subtracted (Dao 2023, FlashAttention-2).
 *
 * With w the weights, g the results' gradients: dv = w' g, and with slopes dw = g v',
 * ds = w * (dw - the sum of w * dw along the row), dq = scale * ds k, dk = scale * ds' q.
 *
 *   phase 0   a team has rows of queries, and goes over the keys twice: first it finds each row's
 *             base, by which weights are e^(score - base), and its sum of w * dw, which it keeps in
 *             the workspace; then it adds up dq
 *   phase 1   a team has rows of keys, goes over the queries, and adds up dk and dv
 *
 * Nothing is added up by two teams, so that results are the same in each run.  The rows that a team
 * has are fragments; what it goes over is in tiles of the group, in two slots, one of which is
 * copied to while the other one is multiplied. */
#include <math.h>

#include "base/fail.h"
#include "lower/attention/attention_fragment.h"
#include "lower/rows/rows.h"
#include "math/math.h"

enum {
    QUALITY = 860,
    TEAMS = 4,        /* of a group */
    SLOTS = 2,        /* blocks in tiles at a time */
    SMALL_SIZE = 64,  /* of rows up to this, blocks have SMALL_LINES, */
    SMALL_LINES = 64, /* else LARGE_LINES: registers hold what a block makes */
    LARGE_LINES = 32,
    LARGEST_SIZE = 128,
    MOST_ACROSS = SMALL_LINES / SIDE,
    MOST_ALONG = LARGEST_SIZE / SIDE,
    ROW_PAD = 4 /* by which lines of results are longer */
};

/* Of a row of queries, in the workspace and in fragments: its base, its sum of w * dw. */
enum { BASE, SUM, ROW_NUMBERS };

enum { Q, K, V, GRAD = 5, OPERANDS };
enum { DQ, DK, DV, RESULTS };

struct gradients {
    struct attention a;
    uint32_t grad;           /* node */
    uint32_t store[RESULTS]; /* BLOCK_NONE: it is not used */
};

/* Operands with rows of equal length: queries and keys, or results' gradients and values.  A team
 * has rows of one of them, and goes over the other one. */
struct gradient_pair {
    struct attention_source own, other; /* both by the same tile */
    uint32_t n;                         /* fragments along a row */
    uint32_t left[MOST_ALONG];          /* fragments of the team's rows, */
    uint32_t sum[MOST_ALONG];           /* and of the gradient by them */
};

enum { SCORES, SLOPES, PAIRS };

struct gradient_phase {
    struct attention_emitter w;
    const struct gradients *g;
    uint32_t dtype, rows, lines; /* rows of a group; of a block that it goes over */
    uint32_t across;             /* fragments along that */
    uint32_t own_tag, other_tag;
    uint32_t first_row; /* of the team */
    struct gradient_pair pair[PAIRS];
    uint32_t part[PAIRS][MOST_ACROSS]; /* products of a block: scores, then weights; slopes of
                                          weights, then of scores */
    uint32_t left, right;              /* fragments */
    uint32_t number[ROW_NUMBERS];      /* likewise: of the queries that elements are of */
    uint32_t numbers;                  /* tile of a block's queries', in slots */
    uint32_t results, pitch;           /* tile of results, and the step between its lines */
};

/* ---- what it takes ---- */

static bool takes(const struct kir_target *target, const struct block *block)
{
    const struct block_op *op = &block->ops[0];

    if (op->id != FRIT_OP_attention_backward || !target || !target->folds_fragments ||
        !target->stages_tiles || op->n_in != OPERANDS || op->out[RESULTS] != BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind != FRIT_OPERAND_TENSOR &&
            (i <= V || i == GRAD || op->in[i].kind != FRIT_OPERAND_ABSENT))
            return false;
    return attention_has_shape(target, block->values[op->in[Q].value].dtype);
}

static bool backward_match(struct matcher *m, const struct block *block)
{
    return m->n_ops == 0 && takes(m->target, block);
}

static bool backward_fits(const struct matcher *m, const struct block *block)
{
    (void)block;
    return m->n_ops == 1;
}

/* ---- phases ---- */

/* Phases have the rows with most work first. */
static void begin_phase(struct gradient_phase *f, uint32_t own_tag)
{
    struct attention_emitter *w = &f->w;
    struct attention *a = w->a;
    const uint32_t team = a->e.s->target->team;
    int64_t tiles = tiles_of(a->points[own_tag].count, f->rows);
    uint32_t number;

    f->own_tag = own_tag;
    f->other_tag = own_tag == ATTENTION_ROW ? ATTENTION_KEY : ATTENTION_ROW;
    attention_threads(w, TEAMS * team, CHUNK);
    if (w->m->failed)
        return;
    w->m->phases[w->m->n_phases - 1].team = team * CHUNK;
    number = attention_group(w);
    w->both = attention_take_part(w, &number, a->points[ATTENTION_BOTH].count);
    w->tile = own_tag == ATTENTION_KEY
                  ? number
                  : at2(w, KIR_sub, sched_add_index(w->e->s, tiles - 1), number);
    delinearize_set(&a->points[ATTENTION_BOTH], w->e, w->both);
    expr_hoist(w->e);
    w->first_row = at_times(w, w->tile, f->rows);
    w->n_keys = sched_add_index(w->e->s, a->keys);
    w->begin = at_index(w, 0);
    w->first_out = at_index(w, 0);
    attention_set_scale(w);
    f->first_row =
        at2(w, KIR_add, w->first_row, at_times(w, at_high(w, w->lane, team * CHUNK), SIDE));
}

static void emit_op(const struct gradient_phase *f, enum kir_op op, uint64_t imm)
{
    kir_emit_imm(f->w.m, op, imm, KIR_NONE, KIR_NONE, KIR_NONE);
}

static uint32_t new_sum(const struct gradient_phase *f, double value)
{
    const struct kir_fragment sums = {KIR_SUM, FRIT_F32, SIDE, SIDE};
    uint32_t fragment = kir_fragment(f->w.m, &sums);

    kir_emit_imm(f->w.m, KIR_mfill, fragment, at_real(&f->w, value), KIR_NONE, KIR_NONE);
    return fragment;
}

static struct attention_source source(const struct gradient_phase *f, uint32_t node,
                                      uint32_t row_tag, uint32_t column_tag)
{
    const struct attention *a = f->w.a;
    const int64_t columns = column_tag == ATTENTION_SIZE ? a->size : a->outs;
    const uint32_t chunks = fragment_chunks(a, columns);

    return (struct attention_source){.node = node,
                                     .pitch = fragment_line(chunks),
                                     .copies = attention_can_copy(a, node, f->dtype),
                                     .row_tag = row_tag,
                                     .column_tag = column_tag,
                                     .rows = a->points[row_tag].count,
                                     .columns = columns,
                                     .line = chunks * CHUNK};
}

static uint32_t tile_lines(const struct gradient_phase *f)
{
    return SLOTS * f->lines < f->rows ? f->rows : SLOTS * f->lines;
}

static void add_pair(struct gradient_phase *f, struct gradient_pair *p, uint32_t own,
                     uint32_t other, uint32_t column_tag)
{
    const struct kir_fragment left = {KIR_LEFT, f->dtype, SIDE, SIDE};

    p->own = source(f, own, f->own_tag, column_tag);
    p->other = source(f, other, f->other_tag, column_tag);
    p->own.tile = p->other.tile =
        kir_tile_of(f->w.m, KIR_GROUP, f->dtype, tile_lines(f) * p->own.pitch);
    p->n = fragment_parts(p->own.columns);
    for (uint32_t i = 0; i < p->n; i++) {
        p->left[i] = kir_fragment(f->w.m, &left);
        p->sum[i] = new_sum(f, 0);
    }
}

static void add_pairs(struct gradient_phase *f)
{
    const struct attention *a = f->w.a;
    const struct kir_fragment left = {KIR_LEFT, f->dtype, SIDE, SIDE},
                              right = {KIR_RIGHT, f->dtype, SIDE, SIDE};

    if (f->own_tag == ATTENTION_ROW) {
        add_pair(f, &f->pair[SCORES], a->q, a->k, ATTENTION_SIZE);
        add_pair(f, &f->pair[SLOPES], f->g->grad, a->v, ATTENTION_OUT);
    } else {
        add_pair(f, &f->pair[SCORES], a->k, a->q, ATTENTION_SIZE);
        add_pair(f, &f->pair[SLOPES], a->v, f->g->grad, ATTENTION_OUT);
    }
    f->left = kir_fragment(f->w.m, &left);
    f->right = kir_fragment(f->w.m, &right);
    for (uint32_t i = 0; i < ROW_NUMBERS; i++)
        f->number[i] = new_sum(f, 0);
    for (uint32_t i = 0; i < PAIRS; i++)
        for (uint32_t j = 0; j < f->across; j++)
            f->part[i][j] = new_sum(f, 0);
}

/* ---- products ---- */

/* Loads the part of a pair's tile that begins in `line`, at column `column`. */
static void load_part(const struct gradient_phase *f, uint32_t fragment,
                      const struct gradient_pair *p, uint32_t line, int64_t column, bool by_columns)
{
    const struct kir_fragment_place place = {fragment, true, p->own.tile, by_columns, false};

    kir_emit_imm(f->w.m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(&f->w, at_times(&f->w, line, p->own.pitch), column),
                 at_index(&f->w, p->own.pitch), KIR_NONE);
}

/* Loads the fragments of the team's rows, through the tiles of the others. */
static void load_own(const struct gradient_phase *f)
{
    const struct attention_emitter *w = &f->w;
    const struct attention_part rows = {w->first_row, at_index(w, 0), f->rows, at_index(w, 0)};
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
static void multiply(const struct gradient_phase *f, uint32_t which, uint32_t line)
{
    const struct gradient_pair *p = &f->pair[which];

    for (uint32_t j = 0; j < f->across; j++) {
        kir_emit_imm(f->w.m, KIR_mfill, f->part[which][j], at_real(&f->w, 0), KIR_NONE, KIR_NONE);
        for (uint32_t d = 0; d < p->n; d++) {
            load_part(f, f->right, p, at_plus(&f->w, line, (int64_t)j * SIDE), (int64_t)d * SIDE,
                      true);
            emit_op(f, KIR_mma, kir_product(f->part[which][j], p->left[d], f->right));
        }
    }
}

/* Adds a block's rows of a pair, times weights or slopes, to the gradient. */
static void add_block(const struct gradient_phase *f, uint32_t which, uint32_t to, uint32_t line)
{
    const struct gradient_pair *p = &f->pair[to];

    for (uint32_t j = 0; j < f->across; j++) {
        emit_op(f, KIR_mnarrow, kir_pair(f->left, f->part[which][j]));
        for (uint32_t i = 0; i < p->n; i++) {
            load_part(f, f->right, p, at_plus(&f->w, line, (int64_t)j * SIDE), (int64_t)i * SIDE,
                      false);
            emit_op(f, KIR_mma, kir_product(p->sum[i], f->left, f->right));
        }
    }
}

/* ---- elements ---- */

static uint32_t coordinate(const struct gradient_phase *f, enum kir_op op)
{
    return sched_wide(f->w.e->s, kir_emit(f->w.m, op, KIR_NONE, KIR_NONE, KIR_NONE));
}

static uint32_t peer(const struct gradient_phase *f, uint32_t fragment)
{
    return kir_emit_as(f->w.m, KIR_peer, f->w.type, fragment, KIR_NONE, KIR_NONE, KIR_NONE);
}

/* Scores, hidden where a query does not see the key, of a block that begins at `first`. */
static void finish_scores(const struct gradient_phase *f, uint32_t first)
{
    const bool by_keys = f->own_tag == ATTENTION_KEY;
    const int64_t step = by_keys ? f->rows : f->lines;

    for (uint32_t j = 0; j < f->across; j++) {
        uint32_t mark = expr_mark(f->w.e), sum = kir_each(f->w.m, f->part[SCORES][j]);
        struct attention_emitter w = f->w;
        uint32_t own = at2(&w, KIR_add, f->first_row, coordinate(f, KIR_row));
        uint32_t other =
            at2(&w, KIR_add, at_plus(&w, first, (int64_t)j * SIDE), coordinate(f, KIR_column));
        uint32_t key = by_keys ? own : other, inside = KIR_NONE;

        attention_set_rows(&w, by_keys ? other : own, 1, 1);
        if (w.a->keys % step)
            inside = at2(&w, KIR_lt, key, w.n_keys);
        kir_done(w.m, attention_score(&w, 0, key, inside, sum));
        expr_release(w.e, mark);
    }
}

/* B: some query of the block does not see some of the group's keys, which end before the last key.
 */
static uint32_t hides_keys(const struct gradient_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->w;
    const struct attention *a = w->a;

    if (!a->causal)
        return KIR_NONE;
    return at2(w, KIR_lt, at2(w, KIR_add, first, sched_add_index(w->e->s, a->keys - a->queries)),
               at_plus(w, w->first_row, (int64_t)f->rows - 1));
}

/* Where only hiding keys is to be done, in blocks alone that have such. */
static void finish_block(const struct gradient_phase *f, uint32_t first)
{
    const bool is_plain = attention_is_plain(&f->w);
    uint32_t hides = KIR_NONE;

    if (is_plain)
        hides = f->own_tag == ATTENTION_KEY ? hides_keys(f, first)
                                            : attention_hides(&f->w, first, f->lines);
    if (is_plain && hides == KIR_NONE)
        return;
    if (is_plain)
        kir_if(f->w.m, hides);
    finish_scores(f, first);
    if (is_plain)
        kir_end(f->w.m);
}

/* ---- going over blocks ---- */

static uint32_t line_of(const struct gradient_phase *f, uint32_t first)
{
    return at_times(&f->w, at_low(&f->w, at_high(&f->w, first, f->lines), SLOTS), f->lines);
}

/* Where a row's base is in the workspace, after those of all others its sum. */
static uint32_t workspace_at(const struct gradient_phase *f, uint32_t row)
{
    const struct attention *a = f->w.a;
    uint32_t line = sched_add_index(f->w.e->s, a->points[ATTENTION_ROW].count);

    return at2(&f->w, KIR_add, at2(&f->w, KIR_mul, f->w.both, line), row);
}

static uint32_t workspace_rows(const struct gradient_phase *f)
{
    const struct attention *a = f->w.a;

    return sched_add_index(f->w.e->s,
                           a->points[ATTENTION_BOTH].count * a->points[ATTENTION_ROW].count);
}

/* Bases and sums of a block's queries; beyond the end weights become 0. */
static void stage_numbers(const struct gradient_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->w;
    const struct attention *a = w->a;
    const uint32_t n = ROW_NUMBERS * f->lines;
    uint32_t mask = at2(w, KIR_lt, w->lane, at_index(w, n)), is_base, at, value, inside;
    uint32_t row = at2(w, KIR_add, first, at_low(w, w->lane, f->lines));

    is_base = at2(w, KIR_lt, w->lane, at_index(w, f->lines));
    inside = at2(w, KIR_lt, row, sched_add_index(w->e->s, a->points[ATTENTION_ROW].count));
    at = at2(w, KIR_add, workspace_at(f, row),
             kir_select(w->m, is_base, at_index(w, 0), workspace_rows(f)));
    value = kir_select(w->m, is_base, at_real(w, INFINITY), at_real(w, 0));
    value = kir_emit_as(w->m, KIR_load_if, w->type, a->partial, at, at2(w, KIR_and, mask, inside),
                        value);
    at = at2(w, KIR_add, at_times(w, line_of(f, first), ROW_NUMBERS), w->lane);
    kir_emit_imm(w->m, KIR_tstore_if, f->numbers, at, value, mask);
}

static void stage_block(const struct gradient_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->w;
    const struct attention_part block = {first, at_index(w, 0), f->lines, line_of(f, first)};

    for (uint32_t i = 0; i < PAIRS; i++)
        attention_stage(w, &f->pair[i].other, &block);
    if (f->own_tag == ATTENTION_KEY)
        stage_numbers(f, first);
}

/* Begins a loop over blocks, whose body has the products of one; returns its first row. */
static uint32_t begin_blocks(const struct gradient_phase *f)
{
    const struct attention_emitter *w = &f->w;
    uint32_t first, next;

    kir_if(w->m, at2(w, KIR_lt, w->begin, w->end));
    stage_block(f, w->begin);
    kir_end(w->m);
    first = kir_for(w->m, w->begin, w->end, f->lines);
    next = at_plus(w, first, f->lines);
    attention_arrive(w);
    kir_if(w->m, at2(w, KIR_lt, next, w->end));
    stage_block(f, next);
    kir_end(w->m);
    for (uint32_t i = 0; i < PAIRS; i++)
        multiply(f, i, line_of(f, first));
    finish_block(f, first);
    return first;
}

/* ---- what rows of queries have ---- */

/* Fragments with a number of the row in each of its elements; largest: of the scores. */
struct row_numbers {
    uint32_t largest, next_largest, part, scale;
    uint32_t total; /* sum of weights relative to it; that of weights times slopes is f's SUM */
};

static void find_largest(const struct gradient_phase *f, const struct row_numbers *r)
{
    uint32_t largest;

    (void)kir_each(f->w.m, r->part);
    largest = peer(f, r->largest);
    for (uint32_t j = 0; j < f->across; j++)
        largest = attention_larger(&f->w, largest, peer(f, f->part[SCORES][j]));
    kir_done(f->w.m, largest);
    emit_op(f, KIR_mlargest, kir_pair(r->next_largest, r->part));
}

static void add_totals(const struct gradient_phase *f, const struct row_numbers *r)
{
    const struct attention_emitter *w = &f->w;
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
    sum = kir_each(w->m, f->number[SUM]);
    sum = at2(w, KIR_mul, sum, peer(f, r->scale));
    for (uint32_t j = 0; j < f->across; j++)
        sum = at_mad(w, peer(f, f->part[SCORES][j]), peer(f, f->part[SLOPES][j]), sum);
    kir_done(w->m, sum);
}

/* The base by which weights are final ones: with the logarithm of the row's total.  Of a row that
 * sees no key it is infinite, and the sum 0. */
static uint32_t final_base(const struct gradient_phase *f, const struct row_numbers *r)
{
    const struct attention_emitter *w = &f->w;
    uint32_t total = peer(f, r->scale), none = at2(w, KIR_eq, total, at_real(w, 0)), log;

    log = math_log(w->m, w->e->s->target, kir_select(w->m, none, at_real(w, 1), total));
    if (w->by_powers)
        log = at2(w, KIR_mul, log, at_real(w, M_LOG2E));
    log = at2(w, KIR_add, attention_base(w, peer(f, r->largest)), log);
    return kir_select(w->m, none, at_real(w, INFINITY), log);
}

static void keep_numbers(const struct gradient_phase *f)
{
    const struct attention_emitter *w = &f->w;
    uint32_t row, at, ok, value = kir_each(w->m, f->number[BASE]);

    row = at2(w, KIR_add, f->first_row, coordinate(f, KIR_row));
    ok = at2(w, KIR_eq, coordinate(f, KIR_column), at_index(w, 0));
    ok = at2(w, KIR_and, ok,
             at2(w, KIR_lt, row, sched_add_index(w->e->s, w->a->points[ATTENTION_ROW].count)));
    at = workspace_at(f, row);
    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at, value, ok);
    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at2(w, KIR_add, at, workspace_rows(f)),
                 peer(f, f->number[SUM]), ok);
    kir_done(w->m, value);
}

/* Goes over the keys once for the numbers of rows. */
static void find_numbers(const struct gradient_phase *f, const struct row_numbers *r)
{
    const struct attention_emitter *w = &f->w;
    uint32_t mark = expr_mark(w->e), total, none;

    (void)begin_blocks(f);
    find_largest(f, r);
    add_totals(f, r);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    emit_op(f, KIR_mtotal, kir_pair(r->scale, r->total));
    emit_op(f, KIR_mtotal, kir_pair(r->part, f->number[SUM]));
    (void)kir_each(w->m, f->number[SUM]);
    total = peer(f, r->scale);
    none = at2(w, KIR_eq, total, at_real(w, 0));
    total = kir_select(w->m, none, at_real(w, 1), total);
    kir_done(w->m, at2(w, KIR_div, peer(f, r->part), total));
    (void)kir_each(w->m, f->number[BASE]);
    kir_done(w->m, final_base(f, r));
    keep_numbers(f);
}

/* ---- slopes of scores ---- */

/* Loads a number of the queries that columns of fragment `j` of a block's products are. */
static void load_number(const struct gradient_phase *f, uint32_t first, uint32_t j, uint32_t number)
{
    const struct attention_emitter *w = &f->w;
    const struct kir_fragment_place place = {f->number[number], true, f->numbers, false, false};

    kir_emit_imm(w->m, KIR_mload, kir_fragment_imm(&place),
                 at_plus(w, at_times(w, line_of(f, first), ROW_NUMBERS),
                         (int64_t)number * f->lines + (int64_t)j * SIDE),
                 at_index(w, 0), KIR_NONE);
}

/* Makes weights of scores, and gradients of scores of those of weights. */
static void find_slopes(const struct gradient_phase *f, uint32_t first)
{
    const struct attention_emitter *w = &f->w;

    for (uint32_t j = 0; j < f->across; j++) {
        uint32_t value;

        for (uint32_t i = 0; i < ROW_NUMBERS && f->own_tag == ATTENTION_KEY; i++)
            load_number(f, first, j, i);
        value = kir_each(w->m, f->part[SCORES][j]);
        kir_done(w->m, attention_weight(w, value, peer(f, f->number[BASE])));
        value = kir_each(w->m, f->part[SLOPES][j]);
        value = at2(w, KIR_sub, value, peer(f, f->number[SUM]));
        kir_done(w->m, at2(w, KIR_mul, peer(f, f->part[SCORES][j]), value));
    }
}

/* ---- results ---- */

static uint32_t result_pitch(const struct attention *a)
{
    return fragment_parts(a->size > a->outs ? a->size : a->outs) * SIDE + ROW_PAD;
}

static void add_results(struct gradient_phase *f)
{
    f->pitch = result_pitch(f->w.a);
    f->results = kir_tile_of(f->w.m, KIR_GROUP, FRIT_F32, f->rows * f->pitch);
}

/* A thread's results of chunk number `number` of the group's. */
static void store_chunk(const struct gradient_phase *f, const struct gradient_pair *p,
                        uint32_t store, uint32_t number)
{
    const struct attention_emitter *w = &f->w;
    const struct delinearizer *points = &w->a->points[f->own_tag];
    const uint32_t columns = p->n * SIDE, chunks = power_above(columns / CHUNK);
    uint32_t line = at_high(w, number, chunks), node = w->e->stores[store].node, row, ok, value;
    uint32_t column = at_times(w, at_low(w, number, chunks), CHUNK);

    row = at2(w, KIR_add, w->first_row, line);
    ok = at2(w, KIR_lt, row, sched_add_index(w->e->s, points->count));
    row = at2(w, KIR_smin, row, sched_add_index(w->e->s, points->count - 1));
    if (p->own.columns % CHUNK)
        ok = at2(w, KIR_and, ok,
                 at2(w, KIR_lt, at2(w, KIR_add, column, w->low),
                     sched_add_index(w->e->s, p->own.columns)));
    else if (p->own.columns != chunks * CHUNK)
        ok = at2(w, KIR_and, ok, at2(w, KIR_lt, column, sched_add_index(w->e->s, p->own.columns)));
    delinearize_set(points, w->e, row);
    attention_set_chunk(w, p->own.column_tag, column);
    expr_mask(w->e, ok);
    column = at2(w, KIR_smin, column, at_index(w, columns - CHUNK));
    value = at2(w, KIR_add, at_times(w, line, f->pitch), at2(w, KIR_add, column, w->low));
    value = kir_emit_as(w->m, KIR_tload, w->type, f->results, value, KIR_NONE, KIR_NONE);
    if (p == &f->pair[SCORES])
        value = at2(w, KIR_mul, value, w->scale);
    expr_bind(w->e, node, lower_fit(w->m, f->dtype, value));
    expr_emit_store(w->e, store);
}

/* Results go through a tile, from which a thread takes some that are one access. */
static void store_sums(const struct gradient_phase *f, const struct gradient_pair *p,
                       uint32_t result)
{
    const struct attention_emitter *w = &f->w;
    const uint32_t store = f->g->store[result], chunks = power_above(p->n * SIDE / CHUNK);
    uint32_t mark = expr_mark(w->e), line, number;

    if (store == BLOCK_NONE)
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
    number = kir_for(w->m, at_index(w, 0), at_index(w, (int64_t)f->rows * chunks), w->threads);
    store_chunk(f, p, store, at2(w, KIR_add, number, w->thread));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

/* ---- the phases ---- */

static void by_queries(struct gradient_phase *f)
{
    struct attention_emitter *w = &f->w;
    struct row_numbers r;
    uint32_t mark, first;

    begin_phase(f, ATTENTION_ROW);
    if (w->m->failed)
        return;
    w->end = attention_last_end(w, f->rows);
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
    add_block(f, SLOPES, SCORES, line_of(f, first));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    add_results(f);
    store_sums(f, &f->pair[SCORES], DQ);
}

/* The first query that sees the group's first key, at the beginning of a block. */
static uint32_t first_query(const struct gradient_phase *f)
{
    const struct attention_emitter *w = &f->w;
    const struct attention *a = w->a;
    uint32_t first;

    if (!a->causal)
        return at_index(w, 0);
    first = at2(w, KIR_sub, w->first_row, sched_add_index(w->e->s, a->keys - a->queries));
    first = at2(w, KIR_smax, first, at_index(w, 0));
    return at2(w, KIR_and, first, at_index(w, -(int64_t)f->lines));
}

static void by_keys(struct gradient_phase *f)
{
    struct attention_emitter *w = &f->w;
    uint32_t mark, first;

    begin_phase(f, ATTENTION_KEY);
    if (w->m->failed)
        return;
    w->begin = first_query(f);
    w->end = sched_add_index(w->e->s, w->a->points[ATTENTION_ROW].count);
    add_pairs(f);
    f->numbers = kir_tile_of(w->m, KIR_GROUP, FRIT_F32, SLOTS * ROW_NUMBERS * f->lines);
    load_own(f);
    mark = expr_mark(w->e);
    first = begin_blocks(f);
    find_slopes(f, first);
    add_block(f, SCORES, SLOPES, line_of(f, first));
    add_block(f, SLOPES, SCORES, line_of(f, first));
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
    add_results(f);
    store_sums(f, &f->pair[SCORES], DK);
    store_sums(f, &f->pair[SLOPES], DV);
}

/* ---- building ---- */

static void plan_store(struct gradients *g, const struct block_op *op, uint32_t result,
                       const struct space_map *map)
{
    struct expr *e = &g->a.e;

    g->store[result] = BLOCK_NONE;
    if (op->out[result] != BLOCK_NONE)
        g->store[result] = expr_store(e, op->out[result], map);
}

static frit_status plan(struct gradients *g, frit_err *err)
{
    struct attention *a = &g->a;
    const struct block_op *op = &a->e.s->block->ops[0];
    struct space_map maps[RESULTS];

    if (!attention_plan_row(a, op))
        return fail(err, FRIT_UNSUPPORTED, "kernels: attention without keys or columns");
    TRY(expr_status(&a->e, err));
    maps[DQ] = *a->e.nodes[a->q].map;
    maps[DK] = *a->e.nodes[a->k].map;
    maps[DV] = *a->e.nodes[a->v].map;
    g->grad = expr_node(&a->e, op->in[GRAD].value, &a->root);
    for (uint32_t i = 0; i < RESULTS; i++)
        plan_store(g, op, i, &maps[i]);
    expr_settle(&a->e);
    TRY(expr_status(&a->e, err));
    if (!a->e.n_stores)
        return fail(err, FRIT_UNSUPPORTED, "kernels: no gradient is used");
    a->result = a->e.stores[0].node;
    for (uint32_t tag = 0; tag < ATTENTION_TAGS; tag++)
        delinearize_init(&a->points[tag], &a->e, tag);
    return FRIT_OK;
}

/* Where heads share keys their gradients would be added up by several groups. */
static bool is_possible(const struct attention *a)
{
    const struct block_op *op = &a->e.s->block->ops[0];
    int64_t q[FRIT_MAX_RANK], k[FRIT_MAX_RANK];
    uint32_t rank = a->root.rank;

    expr_dims(&a->e, op->in[Q].value, q);
    expr_dims(&a->e, op->in[K].value, k);
    return q[rank - 3] == k[rank - 3] && !a->has_cap && a->queries > 0 && a->outs > 0 &&
           a->points[ATTENTION_BOTH].count > 0 && a->size <= LARGEST_SIZE &&
           a->outs <= LARGEST_SIZE;
}

static uint64_t group_bytes(const struct gradient_phase *f, const struct attention *a)
{
    const uint64_t lines = (uint64_t)fragment_line(fragment_chunks(a, a->size)) +
                           fragment_line(fragment_chunks(a, a->outs));
    const uint64_t operands = 2 * tile_lines(f) * lines, results = 4ull * f->rows * result_pitch(a);
    const uint64_t numbers = 4ull * SLOTS * ROW_NUMBERS * f->lines;

    if (!a->e.s->target->reuses_tiles)
        return operands + numbers + results;
    return operands + numbers > results ? operands + numbers : results;
}

static frit_status emit(struct gradients *g, frit_err *err)
{
    struct attention *a = &g->a;
    struct sched *s = a->e.s;
    const struct kir_target *target = s->target;
    const int64_t both = a->points[ATTENTION_BOTH].count;
    const uint64_t most = target->fragment_bytes ? target->fragment_bytes : target->group_bytes;
    const bool is_small = a->size <= SMALL_SIZE && a->outs <= SMALL_SIZE;
    struct gradient_phase f = {.w = {.a = a, .e = &a->e, .m = s->module, .type = KIR_F32},
                               .g = g,
                               .rows = TEAMS * SIDE,
                               .lines = is_small ? SMALL_LINES : LARGE_LINES};
    int64_t groups[2];

    f.dtype = s->block->values[s->block->ops[0].in[Q].value].dtype;
    f.across = f.lines / SIDE;
    a->sizes = (struct attention_sizes){.down = TEAMS, .rows = SIDE, .keys = f.lines};
    groups[0] = both * tiles_of(a->points[ATTENTION_ROW].count, f.rows);
    groups[1] = both * tiles_of(a->points[ATTENTION_KEY].count, f.rows);
    if (group_bytes(&f, a) > most || (uint64_t)TEAMS * target->team * CHUNK > target->max_lanes ||
        groups[0] > INT32_MAX || groups[1] > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: groups of %s are too large", s->module->name);
    TRY(sched_check_rounds(s, (a->keys + a->queries) / 8 * (2 + a->size / 8), err));
    a->partial = kir_arg(s->module, FRIT_F32, KIR_READ | KIR_WRITE);
    s->numbers->workspace_bytes =
        (uint64_t)both * (uint64_t)a->points[ATTENTION_ROW].count * ROW_NUMBERS * sizeof(float);
    for (uint32_t i = 0; i < 2; i++) {
        s->numbers->grid[i][0] = (uint32_t)groups[i];
        s->numbers->grid[i][1] = s->numbers->grid[i][2] = 1;
    }
    by_queries(&f);
    by_keys(&f);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = 2 * (uint64_t)both * (uint64_t)a->queries * (uint64_t)a->keys *
                        (uint64_t)(5 * a->size + 4 * a->outs) / (a->causal ? 2 : 1);
    return expr_status(&a->e, err);
}

static frit_status build(struct gradients *g, frit_err *err)
{
    struct sched *s = g->a.e.s;

    expr_args(s);
    TRY(plan(g, err));
    if (!is_possible(&g->a))
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s has no form for these sizes",
                    s->module->name);
    return emit(g, err);
}

static frit_status backward_build(struct sched *s, frit_err *err)
{
    struct gradients g = {.a = {.mask = BLOCK_NONE,
                                .bias = BLOCK_NONE,
                                .dot = BLOCK_NONE,
                                .score = BLOCK_NONE,
                                .factor = BLOCK_NONE,
                                .n_splits = 1}};
    frit_status status;

    expr_init(&g.a.e, s);
    g.a.e.separate_tags = (1u << ATTENTION_TAGS) - 1;
    status = build(&g, err);
    expr_fini(&g.a.e);
    return status;
}

const struct schedule sched_attention_backward = {
    .name = "attention_backward",
    .quality = QUALITY,
    .match = backward_match,
    .fits = backward_fits,
    .build = backward_build,
};
