/* SPDX-License-Identifier: Apache-2.0 */
/* The pool schedule: means or maxima of windows that slide over spatial dims, with elementwise ops
 * and views around.
 *
 * A lane computes elements of the result, in loops over the window's dims.  Lanes lie along the
 * innermost dim where it is long enough, and windows a few elements apart (pool_lines.c); else they
 * have a point each, with masked loads. */
#include "lower/schedule/pool.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "lower/rows/rows.h"

enum { QUALITY = 900 };

/* ---- rows ---- */

static const struct {
    uint32_t id;
    enum pool_fold fold;
} rows[] = {{FRIT_OP_avg_pool, POOL_MEAN},
            {FRIT_OP_adaptive_avg_pool, POOL_MEAN},
            {FRIT_OP_max_pool, POOL_MAX}};

static enum pool_fold fold_of(uint32_t id)
{
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].id == id)
            return rows[i].fold;
    return POOL_NONE;
}

static bool takes(const struct block *block, uint32_t op)
{
    const struct block_op *o = &block->ops[op];
    uint32_t rank;

    if (fold_of(o->id) == POOL_NONE || o->n_in != 1 || o->in[0].kind != FRIT_OPERAND_TENSOR)
        return false;
    rank = block->values[o->in[0].value].rank;
    return rank >= 2 && rank <= 2 + POOL_SPATIAL;
}

static bool pool_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, takes);
}

/* ---- planning ---- */

static struct space_expr scaled(const struct space_expr *at, int64_t factor, int64_t more)
{
    struct space_expr sum = {.c = more};

    space_add(&sum, at, factor);
    return sum;
}

/* A window of fixed size at multiples of the stride. */
static void slide(struct pool_window *w, const struct space_expr *at, int64_t kernel,
                  int64_t stride, int64_t padding)
{
    w->kernel = kernel;
    w->stride = stride;
    w->padding = padding;
    w->first = scaled(at, stride, -padding);
    w->end = scaled(&w->first, 1, kernel);
}

/* An adaptive window: floor(i n / size) .. ceil((i + 1) n / size). */
static void adapt(struct pool_schedule *p, struct pool_window *w, const struct space_expr *at,
                  int64_t n, int64_t size)
{
    struct space_expr from = scaled(at, n, 0), to = scaled(at, n, n + size - 1);

    if (n % size == 0) {
        slide(w, at, n / size, n / size, 0);
        return;
    }
    w->kernel = n / size + 2 < n ? n / size + 2 : n;
    w->first = space_div(&p->e.space, &from, size);
    w->end = space_div(&p->e.space, &to, size);
    w->varies = true;
}

static bool plan_windows(struct pool_schedule *p, const struct block_op *op, const int64_t *x,
                         const int64_t *y)
{
    const frit_attrs_avg_pool *avg = op->attrs;
    const frit_attrs_max_pool *max = op->attrs;

    p->n_windows = p->rank - 2;
    for (uint32_t i = 0; i < p->n_windows; i++) {
        const struct space_expr *at = &p->root.at[2 + i];
        struct pool_window *w = &p->windows[i];

        w->dilation = 1;
        w->extent = x[2 + i];
        if (op->id == FRIT_OP_avg_pool) {
            slide(w, at, avg->kernel[i], avg->stride[i], avg->padding[i]);
            p->exclude_pad = avg->exclude_pad != 0;
        } else if (op->id == FRIT_OP_max_pool) {
            slide(w, at, max->kernel[i], max->stride[i], max->padding[i]);
            w->dilation = max->dilation[i];
        } else {
            adapt(p, w, at, x[2 + i], y[2 + i] ? y[2 + i] : 1); /* 0: the result is empty */
        }
        if (w->kernel < 1 || w->dilation < 1)
            return false;
    }
    return true;
}

/* Plans window bounds where the number of elements of a mean differs from the kernel's. */
static void plan_counts(struct pool_schedule *p)
{
    for (uint32_t i = 0; i < p->n_windows; i++) {
        struct pool_window *w = &p->windows[i];
        int64_t low, high, least, most, padding = p->exclude_pad ? 0 : w->padding;

        space_range(&p->e.space, &w->first, &low, &high);
        space_range(&p->e.space, &w->end, &least, &most);
        if (!w->varies && low >= -padding && most <= w->extent + padding)
            continue;
        w->varies = true;
        w->first_at = expr_coord(&p->e, &w->first);
        w->end_at = expr_coord(&p->e, &w->end);
    }
}

/* Plans the element, masked where it is outside of the window or of the operand. */
static void plan_masked(struct pool_schedule *p, const struct space_map *map)
{
    struct expr_fill fill = {BLOCK_NONE, p->fold == POOL_MAX ? -(double)INFINITY : 0};
    struct expr_within more[POOL_SPATIAL];
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_windows; i++) {
        const struct pool_window *w = &p->windows[i];

        if (!w->varies)
            continue;
        more[n] = (struct expr_within){w->end, w->extent + 1};
        space_add(&more[n].at, &map->at[2 + i], -1);
        more[n++].at.c--;
    }
    p->node = expr_guard_where(&p->e, p->x, map, fill, more, n);
}

/* Plans the element, and the coordinates that decide where a window is inside of the operand. */
static void plan_inside(struct pool_schedule *p, const struct space_map *map)
{
    for (uint32_t i = 0; i < p->n_windows; i++) {
        struct pool_window *w = &p->windows[i];

        space_range(&p->e.space, &w->first, &w->low, &w->high);
        if (i + 1 == p->n_windows && pool_any_crosses(w)) {
            p->column = expr_coord(&p->e, &map->at[2 + i]);
        } else if (pool_any_crosses(w) || !w->stride) {
            w->first_at = expr_coord(&p->e, &w->first);
            w->end_at = expr_coord(&p->e, &w->end);
        }
    }
    p->node = expr_node(&p->e, p->x, map);
}

static void plan_element(struct pool_schedule *p, const int64_t *x)
{
    struct space_map map = p->root, spatial = {.rank = p->n_windows};
    struct space_expr number;

    for (uint32_t i = 0; i < p->n_windows; i++) {
        const struct pool_window *w = &p->windows[i];
        struct space_expr tap = space_dim(&p->e.space, w->kernel, POOL_WINDOW);

        map.at[2 + i] = scaled(&tap, w->dilation, 0);
        space_add(&map.at[2 + i], &w->first, 1);
        spatial.at[i] = map.at[2 + i];
    }
    if (p->by_lines)
        plan_inside(p, &map);
    else
        plan_masked(p, &map);
    number = space_linear(&spatial, x + 2);
    if (p->fold == POOL_MAX)
        p->number = expr_coord(&p->e, &number);
}

static void plan(struct pool_schedule *p)
{
    const struct block *block = p->e.s->block;
    const struct block_op *op = &block->ops[p->anchor.op];
    int64_t x[FRIT_MAX_RANK], y[FRIT_MAX_RANK];

    p->x = op->in[0].value;
    p->y = op->out[0] != BLOCK_NONE ? op->out[0] : op->out[1];
    p->dtype = block->values[p->x].dtype;
    p->rank = p->root.rank = block->values[p->x].rank;
    p->fold = fold_of(op->id);
    expr_dims(&p->e, p->x, x);
    expr_dims(&p->e, p->y, y);
    for (uint32_t d = 0; d < p->rank; d++)
        p->root.at[d] = space_dim(&p->e.space, y[d] ? y[d] : 1, POOL_OUT);
    if (!plan_windows(p, op, x, y)) {
        expr_fail(&p->e, FRIT_UNSUPPORTED);
        return;
    }
    plan_element(p, x);
    if (p->fold == POOL_MEAN)
        plan_counts(p);
    anchor_stores(&p->anchor, &p->e, &p->root);
    p->result = op->out[0] != BLOCK_NONE ? anchor_result(&p->anchor, &p->e, 0) : BLOCK_NONE;
    p->index = op->n_out > 1 && op->out[1] != BLOCK_NONE ? anchor_result(&p->anchor, &p->e, 1)
                                                         : BLOCK_NONE;
    expr_settle(&p->e);
}

/* ---- by points ---- */

static frit_status emit_points(struct pool_schedule *p, frit_err *err)
{
    struct expr *e = &p->e;
    struct partition partition;
    struct delinearizer points;
    struct span span;
    uint32_t group, mask;

    delinearize_init(&points, e, POOL_OUT);
    partition_init_lines(&partition, e, &points, e->s->target->lanes, INT64_MAX);
    p->groups = partition.groups;
    TRY(sched_check_rounds(e->s, p->rounds, err));
    kir_phase(p->m, partition.lanes);
    expr_phase(e);
    partition_phase(&partition, e);
    pool_parameters(p);
    group = sched_wide(e->s, kir_emit_imm(p->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    span = partition_span(&partition, e, group,
                          sched_wide(e->s, kir_emit(p->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    partition_set_varying(&partition, e, &span);
    mask = partition_mask(&partition, e, &span);
    expr_mask(e, mask);
    expr_hoist(e);
    pool_fold(p, 0);
    pool_emit_results(p, mask);
    return FRIT_OK;
}

/* ---- building ---- */

static bool is_empty(const struct pool_schedule *p)
{
    int64_t dims[FRIT_MAX_RANK];

    expr_dims(&p->e, p->y, dims);
    for (uint32_t d = 0; d < p->rank; d++)
        if (dims[d] == 0)
            return true;
    return false;
}

static int64_t taps_of(const struct pool_schedule *p)
{
    int64_t taps = 1;

    for (uint32_t i = 0; i < p->n_windows; i++)
        taps *= p->windows[i].kernel;
    return taps;
}

static void set_numbers(const struct pool_schedule *p)
{
    const struct sched *s = p->e.s;

    memcpy(s->numbers->grid[0], (const uint32_t[3]){(uint32_t)p->groups, 1, 1},
           sizeof(s->numbers->grid[0]));
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        s->numbers->alias[i] = expr_alias(&p->e, i);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(p->count * (taps_of(p) + s->block->n_ops));
}

static frit_status build(struct pool_schedule *p, frit_err *err)
{
    struct sched *s = p->e.s;
    struct delinearizer points;

    plan(p);
    TRY(expr_status(&p->e, err));
    if (p->by_lines && (is_empty(p) || !pool_has_lines(p)))
        return FRIT_OK;
    expr_args(s);
    if (is_empty(p)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&p->e, err);
    }
    delinearize_init(&points, &p->e, POOL_OUT);
    p->count = points.count;
    p->rounds = 2 * taps_of(p); /* twice: includes the outer loops */
    if (p->by_lines)
        TRY(pool_emit_lines(p, err));
    else
        TRY(emit_points(p, err));
    if (p->groups > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    set_numbers(p);
    return expr_status(&p->e, err);
}

/* Plans and builds one way.  Nothing is built where lines are not worth while, and p->groups is 0.
 */
static frit_status build_one_way(struct sched *s, const struct anchor *anchor, bool by_lines,
                                 bool *built, frit_err *err)
{
    struct pool_schedule p = {.m = s->module, .anchor = *anchor, .by_lines = by_lines};
    frit_status status;

    expr_init(&p.e, s);
    p.e.separate_tags = 1u << POOL_WINDOW;
    p.e.const_factor = by_lines ? POOL_STEP : 0;
    status = build(&p, err);
    *built = p.groups || !by_lines;
    expr_fini(&p.e);
    return status;
}

static frit_status pool_build(struct sched *s, frit_err *err)
{
    struct anchor anchor = {0};
    frit_status status;
    bool built = false;

    if (!anchor_init(&anchor, s->block, takes))
        return fail_memory(err, s->block->n_values * sizeof(*anchor.lineage));
    if (!anchor.found || anchor.n_ops != s->block->n_ops)
        status = fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the pool schedule",
                      s->module->name);
    else
        status = build_one_way(s, &anchor, true, &built, err);
    if (!status && !built)
        status = build_one_way(s, &anchor, false, &built, err);
    anchor_fini(&anchor);
    return status;
}

const struct schedule sched_pool = {
    .name = "pool",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = pool_match,
    .fits = anchor_fits,
    .build = pool_build,
};
