/* SPDX-License-Identifier: Apache-2.0 */
/* The fft schedule: rfft and irfft by their definition, with views before and elementwise ops and
 * views after.
 *
 * The first phase writes the cosines and sines of all multiples of 2 pi / n to the workspace.  In
 * the second each lane computes one element of the result in a loop over the line, which costs as
 * many steps per element as a line has elements: it is meant for lines of up to some thousands.
 * Angles are exact: multiples are reduced to an octant in integers.  Sums are in F64 if the target
 * has it, else in F32 in blocks, so that rounding errors grow slowly; their order depends only on
 * sizes. */
#include <string.h>

#include "base/fail.h"
#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"
#include "lower/rows/lower_cast.h"
#include "lower/rows/rows.h"
#include "lower/sum_blocks.h"
#include "math/math.h"

enum {
    QUALITY = 900,
    MAX_LINE = 1 << 27, /* so that 9 n fits an I32 */
    PARTS = 2,          /* the real and the imaginary one */
    STATES = PARTS + 1
};

enum { FFT_OUT, FFT_LINE }; /* tags of dims */

struct fft {
    struct expr e;
    struct kir_module *m; /* s->module */
    struct anchor anchor;
    struct space_map root; /* map of the results */
    bool inverse;
    uint32_t dtype, sum_dtype; /* of elements, of sums */
    int64_t n, n_used;         /* length of the signal; elements of a line that are used */
    uint32_t node[PARTS];      /* elements of the operand, or of both parts */
    uint32_t at;               /* coordinate: the result's index in its line */
    uint32_t result[PARTS];    /* nodes; BLOCK_NONE: not used */
    struct delinearizer outer, inner;
    uint32_t lanes;
    /* During emission: */
    uint32_t table;    /* the workspace's argument number */
    uint32_t mask;     /* KIR_B: the lane has an element; KIR_NONE: every lane has one */
    uint32_t n_param;  /* parameter: n */
    uint32_t multiple; /* step of the multiple from an element to the next */
    uint32_t sums[PARTS], n_sums;
    uint32_t state[STATES]; /* the sums, then the multiple of the next element */
};

/* ---- matching ---- */

static bool takes(const struct block *block, uint32_t number)
{
    const struct block_op *op = &block->ops[number];
    int64_t axis;

    if ((op->id != FRIT_OP_rfft && op->id != FRIT_OP_irfft) || !anchor_reads_args(block, number))
        return false;
    axis = ((const frit_attrs_fft *)op->attrs)->axis;
    return axis >= 0 && axis < block->values[op->in[0].value].rank;
}

static bool fft_match(struct matcher *m, const struct block *block)
{
    return anchor_match(m, block, takes);
}

/* ---- planning ---- */

static const struct block_op *op_of(const struct fft *f)
{
    return &f->e.s->block->ops[f->anchor.op];
}

static void result_dims(const struct fft *f, int64_t *dims)
{
    const struct block_op *op = op_of(f);

    expr_dims(&f->e, op->out[0] != BLOCK_NONE ? op->out[0] : op->out[1], dims);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void plan(struct fft *f)
{
    const struct block *block = f->e.s->block;
    const struct block_op *op = op_of(f);
    const frit_attrs_fft *attrs = op->attrs;
    int64_t axis = attrs->axis, x[FRIT_MAX_RANK], y[FRIT_MAX_RANK];
    struct space_map map;

    f->inverse = op->id == FRIT_OP_irfft;
    f->dtype = block->values[op->in[0].value].dtype;
    f->sum_dtype =
        f->dtype == FRIT_F64 || (f->e.s->target->f64 && f->e.s->target->i64) ? FRIT_F64 : FRIT_F32;
    f->root.rank = block->values[op->in[0].value].rank;
    expr_dims(&f->e, op->in[0].value, x);
    result_dims(f, y);
    f->n = f->inverse ? y[axis] : attrs->n;
    if (f->n < 1 || f->n > MAX_LINE || (!f->inverse && y[axis] != f->n / 2 + 1)) {
        expr_fail(&f->e, FRIT_UNSUPPORTED);
        return;
    }
    f->n_used = smaller(x[axis], f->inverse ? f->n / 2 + 1 : f->n);
    for (uint32_t d = 0; d < f->root.rank; d++)
        f->root.at[d] = space_dim(&f->e.space, y[d] ? y[d] : 1, FFT_OUT);
    map = f->root;
    map.at[axis] = space_dim(&f->e.space, f->n_used ? f->n_used : 1, FFT_LINE);
    for (uint32_t i = 0; i < op->n_in; i++)
        f->node[i] = expr_node(&f->e, op->in[i].value, &map);
    f->at = expr_coord(&f->e, &f->root.at[axis]);
    anchor_stores(&f->anchor, &f->e, &f->root);
    for (uint32_t i = 0; i < PARTS; i++)
        f->result[i] = i < op->n_out && op->out[i] != BLOCK_NONE
                           ? anchor_result(&f->anchor, &f->e, i)
                           : BLOCK_NONE;
    expr_settle(&f->e);
}

/* ---- emitting ---- */

static uint32_t real_const(const struct fft *f, double value)
{
    return kir_const_f(f->m, kir_type_of(f->sum_dtype), value);
}

static uint32_t real_param(const struct fft *f, double real)
{
    const float narrow = (float)real;
    uint64_t bits = 0;

    if (f->sum_dtype == FRIT_F64)
        memcpy(&bits, &real, sizeof(real));
    else
        memcpy(&bits, &narrow, sizeof(narrow));
    return sched_add_param(f->e.s, kir_type_of(f->sum_dtype), bits);
}

/* KIR_B: the bit of an index is 1. */
static uint32_t has_bit(const struct fft *f, uint32_t value, int64_t bit)
{
    return kir_binary(f->m, KIR_ne, kir_binary(f->m, KIR_and, value, kir_index(f->m, bit)),
                      kir_index(f->m, 0));
}

/* Begins a phase with a lane per point; returns the lane's point. */
static uint32_t begin_phase(struct fft *f, uint32_t phase, int64_t count)
{
    struct sched *s = f->e.s;
    uint32_t point;

    kir_phase(s->module, f->lanes);
    memcpy(s->numbers->grid[phase],
           (const uint32_t[3]){(uint32_t)((count + f->lanes - 1) / f->lanes), 1, 1},
           sizeof(s->numbers->grid[phase]));
    point = sched_wide(s, kir_emit_imm(s->module, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    point = kir_binary(f->m, KIR_mul, point, kir_index(f->m, f->lanes));
    point = kir_binary(f->m, KIR_add, point, sched_wide(s, kir_unary(f->m, KIR_lane, KIR_NONE)));
    f->mask =
        count % f->lanes ? kir_binary(f->m, KIR_lt, point, sched_add_index(s, count)) : KIR_NONE;
    return point;
}

static void table_store(const struct fft *f, uint32_t at, uint32_t value)
{
    kir_emit_imm(f->m, f->mask == KIR_NONE ? KIR_store : KIR_store_if, f->table, at, value,
                 f->mask);
}

static uint32_t table_load(const struct fft *f, uint32_t at)
{
    bool all = f->mask == KIR_NONE;

    return kir_emit_as(f->m, all ? KIR_load : KIR_load_if, kir_type_of(f->sum_dtype), f->table, at,
                       f->mask, all ? KIR_NONE : real_const(f, 0));
}

/* Multiple j of 2 pi / n is q quarters of a turn plus r / n eighths of a turn:
 *
 *     8 j = 2 n q + r,  -n <= r < n
 *
 * The table has n cosines, then n sines. */
static void emit_table(struct fft *f)
{
    struct kir_module *m = f->m;
    uint32_t j = begin_phase(f, 0, f->n), n = sched_add_index(f->e.s, f->n);
    uint32_t eighths = kir_binary(f->m, KIR_mul, j, kir_index(f->m, 8)), q, angle, cosine, sine,
             odd, back;
    struct sched_divisor divisor = sched_add_divisor(f->e.s, 2 * f->n);

    q = sched_divide(f->e.s, &divisor, kir_binary(f->m, KIR_add, eighths, n));
    angle = kir_binary(f->m, KIR_sub, eighths,
                       kir_binary(f->m, KIR_mul, q, kir_binary(f->m, KIR_add, n, n)));
    angle = kir_unary(f->m, f->sum_dtype == FRIT_F64 ? KIR_f64 : KIR_f32, angle);
    angle = kir_binary(f->m, KIR_mul, angle, real_param(f, 0.785398163397448309616 / (double)f->n));
    cosine = math_cos(m, f->e.s->target, angle);
    sine = math_sin(m, f->e.s->target, angle);
    odd = has_bit(f, q, 1);
    back = has_bit(f, q, 2);
    angle = kir_select(f->m, odd, kir_unary(f->m, KIR_neg, sine), cosine);
    sine = kir_select(f->m, odd, cosine, sine);
    table_store(f, j, kir_select(f->m, back, kir_unary(f->m, KIR_neg, angle), angle));
    table_store(f, kir_binary(f->m, KIR_add, j, n),
                kir_select(f->m, back, kir_unary(f->m, KIR_neg, sine), sine));
}

static uint32_t element(struct fft *f, uint32_t part)
{
    return lower_convert(f->m, f->dtype, f->sum_dtype, expr_value(&f->e, f->node[part]));
}

/* Adds x e^(-i angle) to the requested sums. */
static void add_forward(struct fft *f, uint32_t cosine, uint32_t sine)
{
    const uint32_t factor[PARTS] = {cosine, sine};
    uint32_t x = element(f, 0);

    for (uint32_t i = 0; i < f->n_sums; i++)
        f->state[i] = kir_binary(f->m, f->sums[i] ? KIR_sub : KIR_add, f->state[i],
                                 kir_binary(f->m, KIR_mul, x, factor[f->sums[i]]));
}

/* Values beyond the middle are conjugates of those before it, so all values count twice except the
 * first and, for even n, the middle one, whose imaginary parts are ignored. */
static void add_inverse(struct fft *f, uint32_t k, uint32_t cosine, uint32_t sine)
{
    uint32_t re = kir_binary(f->m, KIR_mul, element(f, 0), cosine);
    uint32_t im = kir_binary(f->m, KIR_mul, element(f, 1), sine),
             both = kir_binary(f->m, KIR_sub, re, im);
    uint32_t alone =
        kir_binary(f->m, KIR_or, kir_binary(f->m, KIR_eq, k, kir_index(f->m, 0)),
                   kir_binary(f->m, KIR_eq, kir_binary(f->m, KIR_add, k, k), f->n_param));

    f->state[0] = kir_binary(f->m, KIR_add, f->state[0],
                             kir_select(f->m, alone, re, kir_binary(f->m, KIR_add, both, both)));
}

/* Adds element `k` of the line and advances the multiple. */
static void emit_element(struct fft *f, uint32_t k)
{
    uint32_t *multiple = &f->state[f->n_sums], mark = expr_mark(&f->e), cosine, sine, over;

    delinearize_set(&f->inner, &f->e, k);
    cosine = table_load(f, *multiple);
    sine = table_load(f, kir_binary(f->m, KIR_add, *multiple, f->n_param));
    if (f->inverse)
        add_inverse(f, k, cosine, sine);
    else
        add_forward(f, cosine, sine);
    *multiple = kir_binary(f->m, KIR_add, *multiple, f->multiple);
    over = kir_binary(f->m, KIR_sub, *multiple, f->n_param);
    *multiple =
        kir_select(f->m, kir_binary(f->m, KIR_le, kir_index(f->m, 0), over), over, *multiple);
    expr_release(&f->e, mark);
}

/* Opens a loop that carries the states. */
static uint32_t open_loop(struct fft *f, uint32_t from, uint32_t to, uint32_t step, uint32_t *phis)
{
    uint32_t counter = kir_for(f->m, from, to, step);

    for (uint32_t i = 0; i <= f->n_sums; i++)
        phis[i] = f->state[i] = kir_phi(f->m, f->state[i]);
    return counter;
}

/* Closes the loop; its results are its phis. */
static void close_loop(struct fft *f, const uint32_t *phis)
{
    kir_next(f->m, f->state, f->n_sums + 1);
    memcpy(f->state, phis, (f->n_sums + 1) * sizeof(*phis));
}

static void clear_sums(struct fft *f)
{
    for (uint32_t i = 0; i < f->n_sums; i++)
        f->state[i] = real_const(f, 0);
}

static void emit_block(struct fft *f, uint32_t from, uint32_t to)
{
    uint32_t phis[STATES] = {0};

    emit_element(f, open_loop(f, from, to, 1, phis));
    close_loop(f, phis);
}

static void emit_line(struct fft *f)
{
    uint32_t zero = kir_index(f->m, 0), end = sched_add_index(f->e.s, f->n_used), from, to;
    uint32_t phis[STATES] = {0};

    clear_sums(f);
    f->state[f->n_sums] = zero;
    if (f->n_used <= SUM_BLOCK_FFT) {
        emit_block(f, zero, end);
        return;
    }
    from = open_loop(f, zero, end, SUM_BLOCK_FFT, phis);
    to = kir_binary(f->m, KIR_smin, kir_binary(f->m, KIR_add, from, kir_index(f->m, SUM_BLOCK_FFT)),
                    end);
    clear_sums(f);
    emit_block(f, from, to);
    for (uint32_t i = 0; i < f->n_sums; i++)
        f->state[i] = kir_binary(f->m, KIR_add, phis[i], f->state[i]);
    close_loop(f, phis);
}

static void bind_results(struct fft *f)
{
    for (uint32_t i = 0; i < f->n_sums; i++) {
        uint32_t value = f->state[i];

        if (f->inverse)
            value = kir_binary(f->m, KIR_div, value, real_param(f, (double)f->n));
        expr_bind(&f->e, f->result[f->sums[i]], lower_convert(f->m, f->sum_dtype, f->dtype, value));
    }
}

static void emit(struct fft *f)
{
    struct expr *e = &f->e;
    uint32_t point;

    f->table = kir_arg(e->s->module, f->sum_dtype, KIR_READ | KIR_WRITE);
    e->s->numbers->workspace_bytes = frit_storage_bytes(f->sum_dtype, 2 * f->n);
    emit_table(f);
    point = begin_phase(f, 1, f->outer.count);
    expr_phase(e);
    delinearize_phase(&f->outer, e);
    delinearize_phase(&f->inner, e);
    f->n_param = sched_add_index(e->s, f->n);
    delinearize_set(&f->outer, e, point);
    expr_mask(e, f->mask);
    expr_hoist(e);
    f->multiple = expr_coord_value(e, f->at);
    for (uint32_t i = 0; i < PARTS; i++)
        if (f->result[i] != BLOCK_NONE)
            f->sums[f->n_sums++] = i;
    emit_line(f);
    bind_results(f);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_value(e, e->stores[i].node);
    for (uint32_t i = 0; i < e->n_stores; i++)
        expr_emit_store(e, i);
}

/* ---- building ---- */

static bool is_empty(const struct fft *f)
{
    int64_t dims[FRIT_MAX_RANK];

    result_dims(f, dims);
    for (uint32_t d = 0; d < f->root.rank; d++)
        if (dims[d] == 0)
            return true;
    return false;
}

static frit_status build(struct fft *f, frit_err *err)
{
    struct sched *s = f->e.s;

    plan(f);
    TRY(expr_status(&f->e, err));
    expr_args(s);
    if (is_empty(f)) {
        kir_phase(s->module, s->target->lanes);
        return expr_status(&f->e, err);
    }
    delinearize_init(&f->outer, &f->e, FFT_OUT);
    delinearize_init(&f->inner, &f->e, FFT_LINE);
    f->lanes = sched_lanes(s->target->lanes, f->outer.count);
    if (f->outer.count / f->lanes >= INT32_MAX)
        return fail(err, FRIT_UNSUPPORTED, "kernels: %s needs too many groups", s->module->name);
    TRY(sched_check_rounds(s, f->n_used + f->n_used / SUM_BLOCK_FFT + 1, err));
    emit(f);
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        s->numbers->alias[i] = expr_alias(&f->e, i);
    s->numbers->bytes = sched_bytes(s);
    s->numbers->flops = (uint64_t)(f->outer.count * (4 * f->n_used + s->block->n_ops));
    return expr_status(&f->e, err);
}

static frit_status fft_build(struct sched *s, frit_err *err)
{
    struct fft f = {0};
    frit_status status;

    expr_init(&f.e, s);
    f.m = s->module;
    f.e.separate_tags = 1u << FFT_LINE;
    if (anchor_init(&f.anchor, s->block, takes)) {
        status = f.anchor.found && f.anchor.n_ops == s->block->n_ops
                     ? build(&f, err)
                     : fail(err, FRIT_UNSUPPORTED, "kernels: %s does not fit the fft schedule",
                            s->module->name);
        anchor_fini(&f.anchor);
    } else {
        status = fail_memory(err, s->block->n_values * sizeof(*f.anchor.lineage));
    }
    expr_fini(&f.e);
    return status;
}

const struct schedule sched_fft = {
    .name = "fft",
    .quality = QUALITY,
    .state_bytes = sizeof(struct anchor),
    .value_bytes = sizeof(uint32_t),
    .match = fft_match,
    .fits = anchor_fits,
    .build = fft_build,
};
