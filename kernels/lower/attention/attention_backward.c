/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of attention's gradients: what it takes, and what its forms share. */
#include "lower/attention/attention_backward.h"

#include <math.h>

#include "base/fail.h"
#include "lower/rows/rows.h"
#include "math/math.h"

enum {
    QUALITY = 860,
    LARGEST_SIZE = 128,    /* of rows */
    TILE_BYTES = 96 << 10, /* of a group, that targets for tiles have */
};

enum { Q, K, V, GRAD = 5, OPERANDS };

/* ---- what it takes ---- */

/* By products of fragments; F32 where groups have the memory that rows of usual sizes need. */
static bool has_form(const struct kir_target *target, uint32_t dtype)
{
    if (dtype == FRIT_F32)
        return target->fragment_bytes >= TILE_BYTES && !target->lanes_interleaved;
    return target->folds_fragments && attention_has_shape(target, dtype);
}

static bool takes(const struct kir_target *target, const struct block *block)
{
    const struct block_op *op = &block->ops[0];

    if (op->id != FRIT_OP_attention_backward || !target || !target->stages_tiles ||
        op->n_in != OPERANDS || op->out[GRADIENTS] != BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind != FRIT_OPERAND_TENSOR &&
            (i <= V || i == GRAD || op->in[i].kind != FRIT_OPERAND_ABSENT))
            return false;
    return has_form(target, block->values[op->in[Q].value].dtype);
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

/* ---- a phase ---- */

/* The first query that sees the group's first key, at the beginning of a block. */
static uint32_t first_query(const struct gradient_phase *p)
{
    const struct attention_emitter *w = &p->w;
    const struct attention *a = w->a;
    uint32_t first;

    if (!a->causal)
        return at_index(w, 0);
    first = at2(w, KIR_sub, w->first_row, sched_add_index(w->e->s, a->keys - a->queries));
    first = at2(w, KIR_smax, first, at_index(w, 0));
    return at2(w, KIR_and, first, at_index(w, -(int64_t)p->lines));
}

/* Groups with most work come first. */
void gradient_begin(struct gradient_phase *p, uint32_t own_tag, uint32_t threads, uint32_t chunk)
{
    struct attention_emitter *w = &p->w;
    struct attention *a = w->a;
    int64_t tiles = tiles_of(a->points[own_tag].count, p->rows);
    uint32_t number;

    p->own_tag = own_tag;
    p->other_tag = own_tag == ATTENTION_ROW ? ATTENTION_KEY : ATTENTION_ROW;
    attention_threads(w, threads, chunk);
    number = attention_group(w);
    w->both = attention_take_part(w, &number, a->points[ATTENTION_BOTH].count);
    w->tile = own_tag == ATTENTION_KEY
                  ? number
                  : at2(w, KIR_sub, sched_add_index(w->e->s, tiles - 1), number);
    delinearize_set(&a->points[ATTENTION_BOTH], w->e, w->both);
    expr_hoist(w->e);
    w->first_row = at_times(w, w->tile, p->rows);
    w->first_out = at_index(w, 0);
    w->n_keys = sched_add_index(w->e->s, a->keys);
    p->row_count = sched_add_index(w->e->s, a->points[ATTENTION_ROW].count);
    p->all_rows =
        sched_add_index(w->e->s, a->points[ATTENTION_BOTH].count * a->points[ATTENTION_ROW].count);
    attention_set_scale(w);
    w->begin = own_tag == ATTENTION_KEY ? first_query(p) : at_index(w, 0);
    w->end = own_tag == ATTENTION_KEY ? p->row_count : attention_last_end(w, p->rows);
}

uint32_t gradient_own(const struct gradient_phase *p, uint32_t pair)
{
    const struct attention *a = p->w.a;

    if (p->own_tag == ATTENTION_ROW)
        return pair == SCORES ? a->q : p->g->grad;
    return pair == SCORES ? a->k : a->v;
}

uint32_t gradient_other(const struct gradient_phase *p, uint32_t pair)
{
    const struct attention *a = p->w.a;

    if (p->own_tag == ATTENTION_ROW)
        return pair == SCORES ? a->k : a->v;
    return pair == SCORES ? a->q : p->g->grad;
}

uint32_t gradient_line(const struct gradient_phase *p, uint32_t first)
{
    if (p->n_slots == 1)
        return at_index(&p->w, 0);
    return at_times(&p->w, at_low(&p->w, at_high(&p->w, first, p->lines), p->n_slots), p->lines);
}

/* ---- scores ---- */

uint32_t gradient_is_key(const struct gradient_phase *p, uint32_t key)
{
    const int64_t step = p->own_tag == ATTENTION_KEY ? p->rows : p->lines;

    return p->w.a->keys % step ? at2(&p->w, KIR_lt, key, p->w.n_keys) : KIR_NONE;
}

uint32_t gradient_score(const struct gradient_phase *p, uint32_t own, uint32_t other, uint32_t sum)
{
    const bool by_keys = p->own_tag == ATTENTION_KEY;
    struct attention_emitter w = p->w;
    uint32_t key = by_keys ? own : other;

    attention_set_rows(&w, by_keys ? other : own, 1, 1);
    return attention_score(&w, 0, key, gradient_is_key(p, key), sum);
}

/* ---- numbers of rows ---- */

/* Where a row's base is in the workspace, after those of all others its sum. */
static uint32_t workspace_at(const struct gradient_phase *p, uint32_t row)
{
    return at2(&p->w, KIR_add, at2(&p->w, KIR_mul, p->w.both, p->row_count), row);
}

uint32_t gradient_kept(const struct gradient_phase *p, uint32_t row, uint32_t number)
{
    const struct attention_emitter *w = &p->w;
    uint32_t at = workspace_at(p, row);

    if (number == ROW_SUM)
        at = at2(w, KIR_add, at, p->all_rows);
    return kir_emit_as(w->m, KIR_load, w->type, w->a->partial, at, KIR_NONE, KIR_NONE);
}

uint32_t gradient_base(const struct gradient_phase *p, uint32_t largest, uint32_t total)
{
    const struct attention_emitter *w = &p->w;
    uint32_t none = at2(w, KIR_eq, total, at_real(w, 0)), log;

    log = math_log(w->m, w->e->s->target, kir_select(w->m, none, at_real(w, 1), total));
    if (w->by_powers)
        log = at2(w, KIR_mul, log, at_real(w, M_LOG2E));
    log = at2(w, KIR_add, attention_base(w, largest), log);
    return kir_select(w->m, none, at_real(w, INFINITY), log);
}

void gradient_keep(const struct gradient_phase *p, uint32_t row, uint32_t base, uint32_t sum,
                   uint32_t ok)
{
    const struct attention_emitter *w = &p->w;
    uint32_t at = workspace_at(p, row);

    ok = at2(w, KIR_and, ok, at2(w, KIR_lt, row, p->row_count));
    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at, base, ok);
    kir_emit_imm(w->m, KIR_store_if, w->a->partial, at2(w, KIR_add, at, p->all_rows), sum, ok);
}

void gradient_stage(const struct gradient_phase *p, uint32_t first)
{
    const struct attention_emitter *w = &p->w;
    const struct attention *a = w->a;
    uint32_t mask = at2(w, KIR_lt, w->lane, at_index(w, (int64_t)ROW_NUMBERS * p->lines));
    uint32_t is_base = at2(w, KIR_lt, w->lane, at_index(w, p->lines)), at, value, inside;
    uint32_t row = at2(w, KIR_add, first, at_low(w, w->lane, p->lines));

    inside = at2(w, KIR_lt, row, p->row_count);
    at = at2(w, KIR_add, workspace_at(p, row),
             kir_select(w->m, is_base, at_index(w, 0), p->all_rows));
    value = kir_select(w->m, is_base, at_real(w, INFINITY), at_real(w, 0));
    value = kir_emit_as(w->m, KIR_load_if, w->type, a->partial, at, at2(w, KIR_and, mask, inside),
                        value);
    at = at2(w, KIR_add, at_times(w, gradient_line(p, first), ROW_NUMBERS), w->lane);
    kir_emit_imm(w->m, KIR_tstore_if, p->numbers, at, value, mask);
}

/* ---- results ---- */

static bool is_scaled(uint32_t result)
{
    return result != DV;
}

void gradient_store(const struct gradient_phase *p, uint32_t result, uint32_t row, uint32_t column,
                    bool chunked, uint32_t sum)
{
    const struct attention_emitter *w = &p->w;
    const struct attention *a = w->a;
    const struct delinearizer *points = &a->points[p->own_tag];
    const uint32_t store = p->g->store[result], node = w->e->stores[store].node;
    const uint32_t tag = result == DV ? ATTENTION_OUT : ATTENTION_SIZE;
    const int64_t columns = result == DV ? a->outs : a->size;
    uint32_t ok = at2(w, KIR_lt, row, sched_add_index(w->e->s, points->count)), end = column;

    if (chunked && columns % w->chunk)
        end = at2(w, KIR_add, column, w->low);
    ok = at2(w, KIR_and, ok, at2(w, KIR_lt, end, sched_add_index(w->e->s, columns)));
    delinearize_set(points, w->e,
                    at2(w, KIR_smin, row, sched_add_index(w->e->s, points->count - 1)));
    if (chunked)
        attention_set_chunk(w, tag, column);
    else
        delinearize_set(&a->points[tag], w->e, column);
    expr_mask(w->e, ok);
    if (is_scaled(result))
        sum = at2(w, KIR_mul, sum, w->scale);
    expr_bind(w->e, node,
              lower_fit(w->m, w->e->s->block->values[w->e->nodes[node].value].dtype, sum));
    expr_emit_store(w->e, store);
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
    struct space_map maps[GRADIENTS];

    if (!attention_plan_row(a, op))
        return fail(err, FRIT_UNSUPPORTED, "kernels: attention without keys or columns");
    TRY(expr_status(&a->e, err));
    maps[DQ] = *a->e.nodes[a->q].map;
    maps[DK] = *a->e.nodes[a->k].map;
    maps[DV] = *a->e.nodes[a->v].map;
    g->grad = expr_node(&a->e, op->in[GRAD].value, &a->root);
    for (uint32_t i = 0; i < GRADIENTS; i++)
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

static void set_grid(struct gradients *g, uint32_t phase, uint32_t tag, uint32_t rows)
{
    struct attention *a = &g->a;
    int64_t groups = a->points[ATTENTION_BOTH].count * tiles_of(a->points[tag].count, rows);

    if (groups > INT32_MAX)
        expr_fail(&a->e, FRIT_UNSUPPORTED);
    a->e.s->numbers->grid[phase][0] = (uint32_t)groups;
    a->e.s->numbers->grid[phase][1] = a->e.s->numbers->grid[phase][2] = 1;
}

static frit_status emit(struct gradients *g, frit_err *err)
{
    struct attention *a = &g->a;
    struct sched *s = a->e.s;
    const struct kir_target *target = s->target;
    const int64_t rows = a->points[ATTENTION_BOTH].count * a->points[ATTENTION_ROW].count;
    const uint64_t most = target->fragment_bytes ? target->fragment_bytes : target->group_bytes;
    const bool by_tiles = s->block->values[s->block->ops[0].in[Q].value].dtype == FRIT_F32;
    const uint32_t by_queries = by_tiles ? 2 : 1; /* phases */
    const uint32_t group_rows = by_tiles ? gradient_tile_rows(g) : gradient_fragment_rows(g);

    if ((by_tiles ? gradient_tile_bytes : gradient_fragment_bytes)(g) > most)
        return fail(err, FRIT_UNSUPPORTED, "kernels: groups of %s are too large", s->module->name);
    TRY(sched_check_rounds(s, (a->keys + a->queries) / 8 * (2 + a->size / 8), err));
    for (uint32_t i = 0; i < by_queries; i++)
        set_grid(g, i, ATTENTION_ROW, group_rows);
    set_grid(g, by_queries, ATTENTION_KEY, group_rows);
    TRY(expr_status(&a->e, err));
    a->partial = kir_arg(s->module, FRIT_F32, KIR_READ | KIR_WRITE);
    s->numbers->workspace_bytes = frit_storage_bytes(FRIT_F32, rows * ROW_NUMBERS);
    (by_tiles ? gradient_tiles : gradient_fragments)(g);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = 2 * (uint64_t)rows * (uint64_t)a->keys *
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
