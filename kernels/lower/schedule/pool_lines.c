/* SPDX-License-Identifier: Apache-2.0 */
/* Pools by lines: the lanes of a group are neighbours along the innermost dim of the result, in
 * blocks that a loop goes through, so that all else is the same in them.
 *
 * Lines are divided into segments of a few blocks, and a group has the same segment of some lines.
 * The last block of a line that is no multiple of lanes begins earlier: what it computes again is
 * not stored.  So loads have masks only in blocks whose windows cross an end of the operand's line,
 * which have code of their own. */
#include "lower/schedule/pool.h"

#include "base/fail.h"
#include "lower/rows/rows.h"

enum {
    LANES = 16,    /* two vectors or one */
    IDLE_PART = 3, /* of a line may be computed twice */
    POINTS = 2048, /* of a group, about, where there are many */
    SHARE = 8      /* groups for each that runs at a time, at least, where points suffice */
};

struct lines {
    struct delinearizer points;   /* the dims that are uniform */
    uint32_t inner;               /* the dim along which lanes lie */
    int64_t n, count;             /* points of a line, lines */
    int64_t blocks, segments;     /* of a line */
    int64_t of_group, of_segment; /* lines of a group, blocks of a segment */
    /* parameters of the phase */
    uint32_t line_end, block_end, n_segments, lines, size, last;
    struct sched_divisor by_segments;
};

static const struct pool_window *inner_window(const struct pool_schedule *p)
{
    return &p->windows[p->n_windows - 1];
}

/* ---- whether ---- */

/* Whether neighbours along a dim are a few elements apart in all that is loaded. */
static bool steps_along(const struct expr *e, uint32_t dim)
{
    for (uint32_t n = 0; n < e->n_nodes; n++) {
        const struct expr_node *node = &e->nodes[n];

        if (node->kind == EXPR_LOAD && (node->at.k[dim] < -1 || node->at.k[dim] > POOL_STEP))
            return false;
    }
    return true;
}

/* Whether each dim of the window is one of the space. */
static bool keeps_windows(const struct pool_schedule *p)
{
    const struct space *space = &p->e.space;
    uint32_t i = 0;

    for (uint32_t d = 0; d < space->n_dims; d++) {
        if (space->tag[d] != POOL_WINDOW)
            continue;
        while (i < p->n_windows && p->windows[i].kernel == 1)
            i++;
        if (i == p->n_windows || p->windows[i++].kernel != space->extent[d])
            return false;
    }
    while (i < p->n_windows && p->windows[i].kernel == 1)
        i++;
    return i == p->n_windows;
}

static void find_lines(struct lines *lines, const struct pool_schedule *p)
{
    *lines = (struct lines){.inner = BLOCK_NONE};
    delinearize_init(&lines->points, &p->e, POOL_OUT);
    if (!lines->points.n)
        return;
    lines->inner = lines->points.dim[--lines->points.n];
    lines->n = p->e.space.extent[lines->inner];
    lines->count = lines->points.count / lines->n;
    lines->blocks = (lines->n + LANES - 1) / LANES;
}

bool pool_has_lines(const struct pool_schedule *p)
{
    struct lines lines;

    find_lines(&lines, p);
    return lines.inner != BLOCK_NONE && lines.n >= LANES &&
           lines.n >= sched_tuning(p->e.s).pool_line &&
           lines.blocks * LANES - lines.n <= lines.n / IDLE_PART && inner_window(p)->stride &&
           steps_along(&p->e, lines.inner) && keeps_windows(p);
}

/* ---- groups ---- */

static int64_t at_least_1(int64_t n)
{
    return n > 1 ? n : 1;
}

static void divide(struct lines *lines, const struct pool_schedule *p)
{
    int64_t enough = (int64_t)p->e.s->target->units * SHARE;
    int64_t most = at_least_1(lines->n * lines->count / enough); /* points of a group */

    most = most < POINTS ? most : POINTS;
    lines->of_group = at_least_1(most / lines->n);
    lines->of_segment = at_least_1(most / LANES);
    if (lines->of_segment > lines->blocks)
        lines->of_segment = lines->blocks;
    lines->segments = (lines->blocks + lines->of_segment - 1) / lines->of_segment;
}

static void emit_parameters(struct lines *lines, struct pool_schedule *p)
{
    struct sched *s = p->e.s;

    delinearize_phase(&lines->points, &p->e);
    lines->line_end = sched_add_index(s, lines->count);
    lines->lines = sched_add_index(s, lines->of_group);
    lines->block_end = sched_add_index(s, lines->blocks);
    if (lines->segments > 1) {
        lines->n_segments = sched_add_index(s, lines->segments);
        lines->by_segments = sched_add_divisor(s, lines->segments);
        lines->size = sched_add_index(s, lines->of_segment);
    }
    if (lines->n % LANES)
        lines->last = sched_add_index(s, lines->n - LANES);
}

/* The part of 0 .. end - 1 that is number `number` of those of `size`. */
static void part_of(struct kir_module *m, uint32_t number, uint32_t size, uint32_t end,
                    uint32_t *from, uint32_t *to)
{
    *from = kir_binary(m, KIR_mul, number, size);
    *to = kir_binary(m, KIR_smin, kir_binary(m, KIR_add, *from, size), end);
}

/* ---- windows ---- */

/* ceil(x / dilation), of a negative x 0. */
static uint32_t steps_to(struct pool_schedule *p, const struct pool_window *w, uint32_t x)
{
    struct kir_module *m = p->m;
    struct sched_divisor by;

    x = kir_binary(m, KIR_smax, x, kir_index(m, 0));
    if (w->dilation == 1)
        return x;
    by = sched_add_divisor(p->e.s, w->dilation);
    return sched_divide(p->e.s, &by,
                        kir_binary(m, KIR_add, x, sched_add_index(p->e.s, w->dilation - 1)));
}

/* Sets the elements of the windows that are inside of the operand, along all dims but the
 * innermost, at a line. */
static void set_inside(struct pool_schedule *p)
{
    struct kir_module *m = p->m;
    uint32_t dim = 0;

    for (uint32_t i = 0; i + 1 < p->n_windows; i++) {
        const struct pool_window *w = &p->windows[i];
        uint32_t first, end;

        if (w->kernel == 1)
            continue;
        if (pool_any_crosses(w) || !w->stride) {
            first = expr_coord_value(&p->e, w->first_at);
            end =
                w->stride ? sched_add_index(p->e.s, w->extent) : expr_coord_value(&p->e, w->end_at);
            p->to[dim] = kir_binary(m, KIR_smin, sched_add_index(p->e.s, w->kernel),
                                    steps_to(p, w, kir_binary(m, KIR_sub, end, first)));
            if (w->stride)
                p->from[dim] = steps_to(p, w, kir_unary(m, KIR_neg, first));
        }
        dim++;
    }
}

/* KIR_B: no window of the block from `first` on crosses an end of the operand's line. */
static uint32_t are_inside(struct pool_schedule *p, uint32_t first)
{
    const struct pool_window *w = inner_window(p);
    struct sched *s = p->e.s;
    uint32_t low = kir_binary(p->m, KIR_mul, first, kir_index(p->m, w->stride)), high;
    int64_t more = (LANES - 1) * w->stride + (w->kernel - 1) * w->dilation;

    low = kir_binary(p->m, KIR_sub, low, sched_add_index(s, w->padding));
    high = kir_binary(p->m, KIR_add, low, sched_add_index(s, more));
    return kir_binary(p->m, KIR_and, kir_binary(p->m, KIR_le, kir_index(p->m, 0), low),
                      kir_binary(p->m, KIR_lt, high, p->columns));
}

/* ---- loops ---- */

static void emit_windows(struct pool_schedule *p, bool masks, uint32_t mask)
{
    uint32_t mark = expr_mark(&p->e);

    p->masks = masks;
    pool_emit_window(p);
    expr_mask(&p->e, mask);
    pool_emit_stores(p);
    expr_release(&p->e, mark);
}

static void emit_block(struct pool_schedule *p, const struct lines *lines, uint32_t block)
{
    struct kir_module *m = p->m;
    uint32_t own = kir_binary(m, KIR_mul, block, kir_index(m, LANES)), first = own, element;
    uint32_t lane = sched_wide(p->e.s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    uint32_t mask = KIR_NONE, is_inside;

    if (lines->n % LANES)
        first = kir_binary(m, KIR_smin, own, lines->last);
    element = kir_binary(m, KIR_add, first, lane);
    if (lines->n % LANES)
        mask = kir_binary(m, KIR_le, own, element);
    expr_set(&p->e, lines->inner, element);
    expr_hoist(&p->e);
    if (!pool_any_crosses(inner_window(p))) {
        emit_windows(p, false, mask);
        return;
    }
    is_inside = are_inside(p, first);
    kir_if(m, is_inside);
    emit_windows(p, false, mask);
    kir_end(m);
    kir_if(m, kir_unary(m, KIR_not, is_inside));
    emit_windows(p, true, mask);
    kir_end(m);
}

static void emit_line(struct pool_schedule *p, const struct lines *lines, uint32_t from,
                      uint32_t to)
{
    uint32_t mark = expr_mark(&p->e), block;

    expr_hoist(&p->e);
    set_inside(p);
    block = kir_for(p->m, from, to, 1);
    emit_block(p, lines, block);
    kir_next(p->m, NULL, 0);
    expr_release(&p->e, mark);
}

frit_status pool_emit_lines(struct pool_schedule *p, frit_err *err)
{
    struct expr *e = &p->e;
    struct kir_module *m = p->m;
    struct lines lines;
    uint32_t group, from, to, first_block, end_block, line;

    find_lines(&lines, p);
    divide(&lines, p);
    p->groups = (lines.count + lines.of_group - 1) / lines.of_group * lines.segments;
    TRY(sched_check_rounds(e->s, lines.of_group * lines.of_segment * p->rounds, err));
    kir_phase(m, LANES);
    expr_phase(e);
    emit_parameters(&lines, p);
    pool_parameters(p);
    p->columns = sched_add_index(e->s, inner_window(p)->extent);
    group = sched_wide(e->s, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    first_block = kir_index(m, 0);
    end_block = lines.block_end;
    if (lines.segments > 1) {
        uint32_t lot = sched_divide(e->s, &lines.by_segments, group);
        uint32_t rest = kir_binary(m, KIR_mul, lot, lines.n_segments);

        part_of(m, kir_binary(m, KIR_sub, group, rest), lines.size, lines.block_end, &first_block,
                &end_block);
        group = lot;
    }
    part_of(m, group, lines.lines, lines.line_end, &from, &to);
    line = kir_for(m, from, to, 1);
    delinearize_set(&lines.points, e, line);
    emit_line(p, &lines, first_block, end_block);
    kir_next(m, NULL, 0);
    return FRIT_OK;
}
