/* SPDX-License-Identifier: Apache-2.0 */
/* The pool schedule: means or maxima of windows that slide over spatial dims, with elementwise ops
 * and views around.
 *
 * A lane computes one element of the result, in loops over the window's dims with masked loads.
 * Lanes lie along the innermost dim where it is long enough, and where windows are a few elements
 * apart a module is for that step, so that emitters see it.  A mean sums each innermost line of the
 * window by itself, a long one in blocks, so that rounding errors stay small. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "lower/expr/anchor.h"
#include "lower/expr/partition.h"
#include "lower/rows/rows.h"
#include "lower/sum_blocks.h"

enum {
    QUALITY = 900,
    SPATIAL = 3,   /* maximum number of spatial dims */
    STEP_MOST = 3, /* from window to window, that is a constant of the module */
    IDLE_PART = 3, /* of a line may idle */
    STATES = 2
};

enum { POOL_OUT, POOL_WINDOW }; /* tags of dims */

enum pool_fold { POOL_NONE, POOL_MEAN, POOL_MAX };

/* A window along one spatial dim: first .. end - 1 in steps of `dilation`, at most `kernel`
 * elements. */
struct window {
    struct space_expr first, end;
    int64_t kernel, dilation;
    bool varies; /* the number of elements differs between windows: end - first, else it is `kernel`
                  */
};

struct pool_schedule {
    struct expr e;
    struct kir_module *m; /* s->module */
    struct anchor anchor;
    struct space_map root; /* map of the result */
    enum pool_fold fold;
    uint32_t dtype, rank; /* of the operand */
    uint32_t y, x;        /* the result and the operand */
    uint32_t n_windows;
    struct window windows[SPATIAL];
    bool exclude_pad;
    int64_t padding[SPATIAL];
    uint32_t node;   /* an element of the operand */
    uint32_t number; /* coordinate: the element's row-major index over the spatial dims */
    uint32_t first[SPATIAL], end[SPATIAL]; /* coordinates: window bounds, where `varies` */
    uint32_t result, index;                /* nodes; BLOCK_NONE: not used */
    struct partition partition;
    int64_t count; /* of points */
    /* During emission: */
    uint32_t dims[SPACE_DIMS], extents[SPACE_DIMS],
        n_dims;                   /* the window's dims and, as parameters, their extents */
    uint32_t counted[SPATIAL][2]; /* values: range of coordinates that a mean counts */
    uint32_t n_states;
    uint32_t state[STATES]; /* the sum; or the maximum and its index */
};

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
    return rank >= 2 && rank <= 2 + SPATIAL;
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
static void slide(struct pool_schedule *p, uint32_t i, const struct space_expr *at, int64_t kernel,
                  int64_t stride, int64_t padding)
{
    struct window *w = &p->windows[i];

    w->kernel = kernel;
    w->first = scaled(at, stride, -padding);
    w->end = scaled(&w->first, 1, kernel);
    p->padding[i] = padding;
}

/* An adaptive window: floor(i n / size) .. ceil((i + 1) n / size). */
static void adapt(struct pool_schedule *p, uint32_t i, const struct space_expr *at, int64_t n,
                  int64_t size)
{
    struct window *w = &p->windows[i];
    struct space_expr from = scaled(at, n, 0), to = scaled(at, n, n + size - 1);

    if (n % size == 0) {
        slide(p, i, at, n / size, n / size, 0);
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

        p->windows[i].dilation = 1;
        if (op->id == FRIT_OP_avg_pool) {
            slide(p, i, at, avg->kernel[i], avg->stride[i], avg->padding[i]);
            p->exclude_pad = avg->exclude_pad != 0;
        } else if (op->id == FRIT_OP_max_pool) {
            slide(p, i, at, max->kernel[i], max->stride[i], max->padding[i]);
            p->windows[i].dilation = max->dilation[i];
        } else {
            adapt(p, i, at, x[2 + i], y[2 + i] ? y[2 + i] : 1); /* 0: the result is empty */
        }
        if (p->windows[i].kernel < 1 || p->windows[i].dilation < 1)
            return false;
    }
    return true;
}

/* Plans window bounds where the number of elements of a mean differs from the kernel's. */
static void plan_counts(struct pool_schedule *p, const int64_t *x)
{
    for (uint32_t i = 0; i < p->n_windows; i++) {
        struct window *w = &p->windows[i];
        int64_t low, high, least, most, padding = p->exclude_pad ? 0 : p->padding[i];

        space_range(&p->e.space, &w->first, &low, &high);
        space_range(&p->e.space, &w->end, &least, &most);
        if (!w->varies && low >= -padding && most <= x[2 + i] + padding)
            continue;
        w->varies = true;
        p->first[i] = expr_coord(&p->e, &w->first);
        p->end[i] = expr_coord(&p->e, &w->end);
    }
}

static void plan_element(struct pool_schedule *p, const int64_t *x)
{
    struct space_map map = p->root, spatial = {.rank = p->n_windows};
    struct expr_within more[SPATIAL];
    struct expr_fill fill = {BLOCK_NONE, p->fold == POOL_MAX ? -(double)INFINITY : 0};
    struct space_expr number;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_windows; i++) {
        const struct window *w = &p->windows[i];
        struct space_expr tap = space_dim(&p->e.space, w->kernel, POOL_WINDOW);

        map.at[2 + i] = scaled(&tap, w->dilation, 0);
        space_add(&map.at[2 + i], &w->first, 1);
        spatial.at[i] = map.at[2 + i];
        if (!w->varies)
            continue;
        more[n] = (struct expr_within){w->end, x[2 + i] + 1};
        space_add(&more[n].at, &map.at[2 + i], -1);
        more[n++].at.c--;
    }
    p->node = expr_guard_where(&p->e, p->x, &map, fill, more, n);
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
        plan_counts(p, x);
    anchor_stores(&p->anchor, &p->e, &p->root);
    p->result = op->out[0] != BLOCK_NONE ? anchor_result(&p->anchor, &p->e, 0) : BLOCK_NONE;
    p->index = op->n_out > 1 && op->out[1] != BLOCK_NONE ? anchor_result(&p->anchor, &p->e, 1)
                                                         : BLOCK_NONE;
    expr_settle(&p->e);
}

/* ---- emitting ---- */

static void states_init(struct pool_schedule *p)
{
    struct kir_module *m = p->m;

    p->n_states = p->index == BLOCK_NONE ? 1 : 2;
    p->state[0] = lower_const(m, p->dtype, p->fold == POOL_MAX ? -(double)INFINITY : 0);
    p->state[1] = kir_index(p->m, -1);
}

/* Keeps the first maximum, or the first NaN if there is one, and its index.  Padding is not an
 * element.
 */
static void accumulate_indexed(struct pool_schedule *p, uint32_t value)
{
    struct kir_module *m = p->m;
    uint32_t best = p->state[0], at = p->state[1], inside = expr_inside(&p->e, p->node);
    uint32_t takes = kir_unary(m, KIR_not, kir_binary(p->m, KIR_le, value, best));

    takes = kir_binary(p->m, KIR_and, takes, kir_binary(p->m, KIR_eq, best, best));
    takes = kir_binary(p->m, KIR_or, takes, kir_binary(p->m, KIR_lt, at, kir_index(p->m, 0)));
    if (inside != KIR_NONE)
        takes = kir_binary(p->m, KIR_and, takes, inside);
    p->state[0] = kir_select(m, takes, value, best);
    p->state[1] = kir_select(m, takes, expr_coord_value(&p->e, p->number), at);
}

/* Adds the element to the state.  A maximum keeps the first of equal elements, also of -0 and +0,
 * whether or not its index is requested. */
static void accumulate(struct pool_schedule *p)
{
    uint32_t value = expr_value(&p->e, p->node);

    if (p->index != BLOCK_NONE)
        accumulate_indexed(p, value);
    else if (p->fold == POOL_MAX)
        p->state[0] = lower_max(p->m, p->dtype, value, p->state[0]);
    else
        p->state[0] = kir_binary(p->m, KIR_add, p->state[0], value);
}

/* Opens a loop that carries the states. */
static uint32_t open_loop(struct pool_schedule *p, uint32_t from, uint32_t to, uint32_t step)
{
    uint32_t counter = kir_for(p->m, from, to, step);

    for (uint32_t i = 0; i < p->n_states; i++)
        p->state[i] = kir_phi(p->m, p->state[i]);
    return counter;
}

/* Closes the loop; its results are the phis `was`. */
static void close_loop(struct pool_schedule *p, const uint32_t *was)
{
    kir_next(p->m, p->state, p->n_states);
    memcpy(p->state, was, p->n_states * sizeof(*was));
}

static void emit_window(struct pool_schedule *p, uint32_t dim);

static void emit_taps(struct pool_schedule *p, uint32_t dim, uint32_t from, uint32_t to)
{
    uint32_t counter = open_loop(p, from, to, 1), was[STATES], mark = expr_mark(&p->e);

    memcpy(was, p->state, sizeof(was));
    expr_set(&p->e, p->dims[dim], counter);
    if (dim + 1 < p->n_dims)
        expr_hoist(&p->e);
    emit_window(p, dim + 1);
    expr_release(&p->e, mark);
    close_loop(p, was);
}

/* Sums a line or a block by itself and adds it to the state. */
static void emit_partial_sum(struct pool_schedule *p, uint32_t dim, uint32_t from, uint32_t to)
{
    uint32_t sum = p->state[0];

    states_init(p);
    emit_taps(p, dim, from, to);
    p->state[0] = kir_binary(p->m, KIR_add, sum, p->state[0]);
}

/* Emits the loops over the window's dims from `dim` on. */
static void emit_window(struct pool_schedule *p, uint32_t dim)
{
    uint32_t zero, counter, was[STATES], end;

    if (dim == p->n_dims) {
        accumulate(p);
        return;
    }
    zero = kir_index(p->m, 0);
    if (p->fold == POOL_MAX || dim + 1 < p->n_dims) {
        emit_taps(p, dim, zero, p->extents[dim]);
        return;
    }
    if (p->e.space.extent[p->dims[dim]] <= SUM_BLOCK_POOL) {
        emit_partial_sum(p, dim, zero, p->extents[dim]);
        return;
    }
    counter = open_loop(p, zero, p->extents[dim], SUM_BLOCK_POOL);
    memcpy(was, p->state, sizeof(was));
    end = kir_binary(p->m, KIR_smin,
                     kir_binary(p->m, KIR_add, counter, kir_index(p->m, SUM_BLOCK_POOL)),
                     p->extents[dim]);
    emit_partial_sum(p, dim, counter, end);
    close_loop(p, was);
}

/* A parameter of the mean's type. */
static uint32_t real_param(const struct pool_schedule *p, double real)
{
    const float narrow = (float)real;
    uint64_t bits = 0;

    if (kir_type_of(p->dtype) == KIR_F64)
        memcpy(&bits, &real, sizeof(real));
    else
        memcpy(&bits, &narrow, sizeof(narrow));
    return sched_add_param(p->e.s, kir_type_of(p->dtype), bits);
}

/* The number of elements of the mean, in its type. */
static uint32_t count_of(struct pool_schedule *p)
{
    struct kir_module *m = p->m;
    enum kir_type type = kir_type_of(p->dtype);
    uint32_t count = KIR_NONE;
    int64_t known = 1;

    for (uint32_t i = 0; i < p->n_windows; i++) {
        uint32_t first, end;

        if (!p->windows[i].varies) {
            known *= p->windows[i].kernel;
            continue;
        }
        first = expr_coord_value(&p->e, p->first[i]);
        end = expr_coord_value(&p->e, p->end[i]);
        if (p->exclude_pad)
            first = kir_binary(p->m, KIR_smax, first, p->counted[i][0]);
        end = kir_binary(p->m, KIR_sub, kir_binary(p->m, KIR_smin, end, p->counted[i][1]), first);
        count = count == KIR_NONE ? end : kir_binary(p->m, KIR_mul, count, end);
    }
    if (count == KIR_NONE)
        return real_param(p, (double)known);
    count = kir_unary(m, type == KIR_F64 ? KIR_f64 : KIR_f32, count);
    return known == 1 ? count : kir_binary(p->m, KIR_mul, count, real_param(p, (double)known));
}

static void bind_results(struct pool_schedule *p)
{
    struct kir_module *m = p->m;
    uint32_t value = p->state[0], at = p->state[1];

    if (p->fold == POOL_MEAN)
        value = lower_fit(m, p->dtype, kir_binary(p->m, KIR_div, value, count_of(p)));
    if (p->result != BLOCK_NONE)
        expr_bind(&p->e, p->result, value);
    if (p->index != BLOCK_NONE)
        expr_bind(&p->e, p->index, m->wide ? at : kir_unary(m, KIR_i64, at));
}

static void emit_parameters(struct pool_schedule *p)
{
    int64_t x[FRIT_MAX_RANK];

    partition_phase(&p->partition, &p->e);
    expr_dims(&p->e, p->x, x);
    for (uint32_t d = 0; d < p->e.space.n_dims; d++)
        if (p->e.space.tag[d] == POOL_WINDOW) {
            p->extents[p->n_dims] = sched_add_index(p->e.s, p->e.space.extent[d]);
            p->dims[p->n_dims++] = d;
        }
    for (uint32_t i = 0; i < p->n_windows && p->fold == POOL_MEAN; i++)
        if (p->windows[i].varies) {
            p->counted[i][0] = kir_index(p->m, 0);
            p->counted[i][1] =
                sched_add_index(p->e.s, x[2 + i] + (p->exclude_pad ? 0 : p->padding[i]));
        }
}

static void emit(struct pool_schedule *p)
{
    struct expr *e = &p->e;
    struct kir_module *m = e->s->module;
    struct span span;
    uint32_t group;

    kir_phase(m, p->partition.lanes);
    expr_phase(e);
    emit_parameters(p);
    group = sched_wide(e->s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    span = partition_span(&p->partition, e, group,
                          sched_wide(e->s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    partition_set_uniform(&p->partition, e, &span);
    partition_set_varying(&p->partition, e, &span);
    expr_mask(e, partition_mask(&p->partition, e, &span));
    expr_hoist(e);
    states_init(p);
    emit_window(p, 0);
    bind_results(p);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_value(e, e->stores[i].node);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_emit_store(e, i);
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

/* Whether neighbours along a dim are a few elements apart in all that is loaded. */
static bool steps_along(const struct expr *e, uint32_t dim)
{
    for (uint32_t n = 0; n < e->n_nodes; n++) {
        const struct expr_node *node = &e->nodes[n];

        if (node->kind == EXPR_LOAD && (node->at.k[dim] < -1 || node->at.k[dim] > STEP_MOST))
            return false;
    }
    return true;
}

/* Lanes along the innermost dim, if few of them idle and loads are of vectors. */
static void choose_lanes(struct pool_schedule *p)
{
    struct partition *partition = &p->partition;
    const uint32_t lanes = p->e.s->target->lanes;
    struct delinearizer points;

    delinearize_init(&points, &p->e, POOL_OUT);
    p->count = points.count;
    partition_init_lines(partition, &p->e, &points, lanes, sched_tuning(p->e.s).pool_line);
    if (partition->inner == BLOCK_NONE)
        return;
    if (partition->blocks * partition->lanes - partition->n <= partition->n / IDLE_PART &&
        steps_along(&p->e, partition->inner))
        p->e.const_factor = STEP_MOST;
    else
        partition_init_lines(partition, &p->e, &points, lanes, INT64_MAX);
}

static frit_status build(struct pool_schedule *p, frit_err *err)
{
    struct sched *s = p->e.s;
    int64_t taps = 1;

    plan(p);
    TRY(expr_status(&p->e, err));
    expr_args(s);
    if (is_empty(p)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&p->e, err);
    }
    choose_lanes(p);
    if (p->partition.groups > INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    for (uint32_t i = 0; i < p->n_windows; i++)
        taps *= p->windows[i].kernel;
    TRY(sched_check_rounds(s, 2 * taps, err)); /* twice: includes the outer loops */
    emit(p);
    memcpy(s->numbers->grid[0], (const uint32_t[3]){(uint32_t)p->partition.groups, 1, 1},
           sizeof(s->numbers->grid[0]));
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        s->numbers->alias[i] = expr_alias(&p->e, i);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(p->count * (taps + s->block->n_ops));
    return expr_status(&p->e, err);
}

static frit_status pool_build(struct sched *s, frit_err *err)
{
    struct pool_schedule p = {0};
    frit_status status;

    expr_init(&p.e, s);
    p.m = s->module;
    p.e.separate_tags = 1u << POOL_WINDOW;
    if (anchor_init(&p.anchor, s->block, takes)) {
        status = p.anchor.found && p.anchor.n_ops == s->block->n_ops
                     ? build(&p, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the pool schedule",
                            s->module->name);
        anchor_fini(&p.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(*p.anchor.lineage));
    }
    expr_fini(&p.e);
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
