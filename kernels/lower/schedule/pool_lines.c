/* SPDX-License-Identifier: Apache-2.0 */
/* Pools by lines: the lanes of a group are neighbours along the innermost dim of the result, in
 * blocks that a loop goes through, so that all else is the same in them.
 *
 * Lines are divided into segments of a few blocks, and a group has the same segment of some lines,
 * or of some strips of lines where windows roll from one to the next (pool_roll.c).  The last block
 * of a line that is no multiple of lanes begins earlier: what it computes again is not stored.  So
 * loads have masks only in blocks whose windows cross an end of the operand's line, which have code
 * of their own. */
#include "lower/schedule/pool.h"

#include "base/fail.h"

enum {
    LANES = 16,    /* two vectors or one */
    FEW_LANES = 8, /* where lines have fewer points */
    POINTS = 2048, /* of a group, about, where there are many */
    SHARE = 8      /* groups for each that runs at a time, at least, where points suffice */
};

/* Lines of the result, or strips of neighbouring ones where windows roll from line to line, and
 * their blocks of lanes.  A group has the same segment of some of them. */
struct lines {
    struct delinearizer points; /* the dims that are uniform */
    uint32_t inner;             /* the dim along which lanes lie */
    uint32_t lanes;
    int64_t n, count;             /* points of a line, lines or strips */
    int64_t rows, strips;         /* that roll, and strips of them; 1: they do not */
    int64_t blocks, segments;     /* of a line */
    int64_t of_group, of_segment; /* lines or strips of a group, blocks of a segment */
    int64_t of_strip;             /* rows */
    /* parameters of the phase */
    uint32_t line_end, block_end, row_end, n_segments, n_strips, lines, size, height, last;
    struct sched_divisor by_segments, by_strips;
};

static const struct pool_window *inner_window(const struct pool_schedule *p)
{
    return &p->windows[p->n_windows - 1];
}

/* ---- choice ---- */

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

/* Finds the dims that lines and strips are of: the last two of the result, if they are dims of the
 * space.  Settling may have merged or split them, and those of one element are none: then the
 * extents differ. */
static void find_lines(struct lines *lines, const struct pool_schedule *p)
{
    const struct space *space = &p->e.space;
    int64_t y[FRIT_MAX_RANK];

    *lines = (struct lines){.inner = BLOCK_NONE, .rows = 1};
    delinearize_init(&lines->points, &p->e, POOL_OUT);
    expr_dims(&p->e, p->y, y);
    if (!lines->points.n || space->extent[lines->points.dim[lines->points.n - 1]] != y[p->rank - 1])
        return;
    lines->inner = lines->points.dim[--lines->points.n];
    lines->n = space->extent[lines->inner];
    lines->count = lines->points.count / lines->n;
    lines->lanes = lines->n < LANES ? FEW_LANES : LANES;
    lines->blocks = (lines->n + lines->lanes - 1) / lines->lanes;
    if (!lines->points.n || !pool_rolls(p) ||
        space->extent[lines->points.dim[lines->points.n - 1]] != y[p->rank - 2])
        return;
    lines->rows = y[p->rank - 2];
    lines->count /= lines->rows;
    lines->points.n--;
}

bool pool_has_lines(const struct pool_schedule *p)
{
    struct lines lines;

    if (!p->n_windows)
        return false;
    find_lines(&lines, p);
    return lines.inner != BLOCK_NONE && lines.n >= lines.lanes &&
           lines.n >= sched_tuning(p->e.s).pool_line && inner_window(p)->stride &&
           steps_along(&p->e, lines.inner) && keeps_windows(p);
}

/* ---- groups ---- */

static int64_t at_least_1(int64_t n)
{
    return n > 1 ? n : 1;
}

/* `n` in parts of the same size, which is `most` or less. */
static int64_t even_part(int64_t n, int64_t most)
{
    int64_t parts = (n + most - 1) / most;

    return (n + parts - 1) / parts;
}

static void divide(struct lines *lines, const struct pool_schedule *p)
{
    int64_t enough = (int64_t)p->e.s->target->units * SHARE;
    int64_t most = at_least_1(lines->n * lines->rows * lines->count / enough); /* of a group */

    most = most < POINTS ? most : POINTS;
    lines->of_strip = even_part(lines->rows, at_least_1(most / lines->n));
    lines->strips = (lines->rows + lines->of_strip - 1) / lines->of_strip;
    lines->count *= lines->strips;
    lines->of_group = at_least_1(most / (lines->n * lines->of_strip));
    lines->of_segment = even_part(lines->blocks, at_least_1(most / lines->lanes));
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
    if (lines->rows > 1)
        lines->row_end = sched_add_index(s, lines->rows);
    if (lines->strips > 1) {
        lines->n_strips = sched_add_index(s, lines->strips);
        lines->by_strips = sched_add_divisor(s, lines->strips);
        lines->height = sched_add_index(s, lines->of_strip);
    }
    if (lines->n % lines->lanes)
        lines->last = sched_add_index(s, lines->n - lines->lanes);
}

/* The quotient; *number becomes the remainder. */
static uint32_t split(struct sched *s, uint32_t *number, const struct sched_divisor *by,
                      uint32_t divisor)
{
    uint32_t quotient = sched_divide(s, by, *number);

    *number =
        kir_binary(s->module, KIR_sub, *number, kir_binary(s->module, KIR_mul, quotient, divisor));
    return quotient;
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
static uint32_t are_inside(struct pool_schedule *p, const struct lines *lines, uint32_t first)
{
    const struct pool_window *w = inner_window(p);
    struct sched *s = p->e.s;
    uint32_t low = kir_binary(p->m, KIR_mul, first, kir_index(p->m, w->stride)), high;
    int64_t more = (lines->lanes - 1) * w->stride + (w->kernel - 1) * w->dilation;

    low = kir_binary(p->m, KIR_sub, low, sched_add_index(s, w->padding));
    high = kir_binary(p->m, KIR_add, low, sched_add_index(s, more));
    return kir_binary(p->m, KIR_and, kir_binary(p->m, KIR_le, kir_index(p->m, 0), low),
                      kir_binary(p->m, KIR_lt, high, p->columns));
}

/* ---- loops ---- */

/* Values of the part of the lines that is emitted. */
struct range {
    uint32_t from, to; /* lines or strips */
    uint32_t first_block, end_block;
    uint32_t first_row, end_row; /* of a strip */
};

static void emit_windows(struct pool_schedule *p, const struct range *range, bool masks,
                         uint32_t mask)
{
    uint32_t mark = expr_mark(&p->e);

    p->masks = masks;
    if (p->row_dim != BLOCK_NONE) {
        pool_emit_rows(p, range->first_row, range->end_row, mask);
    } else {
        pool_fold(p, 0);
        pool_emit_results(p, mask);
    }
    expr_release(&p->e, mark);
}

static void emit_block(struct pool_schedule *p, const struct lines *lines,
                       const struct range *range, uint32_t block)
{
    struct kir_module *m = p->m;
    uint32_t own = kir_binary(m, KIR_mul, block, kir_index(m, lines->lanes)), first = own, element;
    uint32_t lane = sched_wide(p->e.s, kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    uint32_t mask = KIR_NONE, is_inside;

    if (lines->n % lines->lanes)
        first = kir_binary(m, KIR_smin, own, lines->last);
    element = kir_binary(m, KIR_add, first, lane);
    if (lines->n % lines->lanes)
        mask = kir_binary(m, KIR_le, own, element);
    expr_set(&p->e, lines->inner, element);
    expr_hoist(&p->e);
    if (!pool_any_crosses(inner_window(p))) {
        emit_windows(p, range, false, mask);
        return;
    }
    is_inside = are_inside(p, lines, first);
    kir_if(m, is_inside);
    emit_windows(p, range, false, mask);
    kir_end(m);
    kir_if(m, kir_unary(m, KIR_not, is_inside));
    emit_windows(p, range, true, mask);
    kir_end(m);
}

static void emit_line(struct pool_schedule *p, const struct lines *lines, struct range *range,
                      uint32_t line)
{
    uint32_t mark = expr_mark(&p->e), block, strip = line;

    range->first_row = kir_index(p->m, 0);
    range->end_row = lines->row_end;
    if (lines->strips > 1) {
        line = split(p->e.s, &strip, &lines->by_strips, lines->n_strips);
        part_of(p->m, strip, lines->height, lines->row_end, &range->first_row, &range->end_row);
    }
    delinearize_set(&lines->points, &p->e, line);
    expr_hoist(&p->e);
    if (lines->rows == 1)
        set_inside(p);
    block = kir_for(p->m, range->first_block, range->end_block, 1);
    emit_block(p, lines, range, block);
    kir_next(p->m, NULL, 0);
    expr_release(&p->e, mark);
}

static void emit_group(struct pool_schedule *p, const struct lines *lines, uint32_t group)
{
    struct kir_module *m = p->m;
    struct range range = {.first_block = kir_index(m, 0), .end_block = lines->block_end};
    uint32_t segment = group;

    if (lines->segments > 1) {
        group = split(p->e.s, &segment, &lines->by_segments, lines->n_segments);
        part_of(m, segment, lines->size, lines->block_end, &range.first_block, &range.end_block);
    }
    part_of(m, group, lines->lines, lines->line_end, &range.from, &range.to);
    emit_line(p, lines, &range, kir_for(m, range.from, range.to, 1));
    kir_next(m, NULL, 0);
}

frit_status pool_emit_lines(struct pool_schedule *p, frit_err *err)
{
    struct expr *e = &p->e;
    struct lines lines;

    find_lines(&lines, p);
    p->row_dim = lines.rows > 1 ? lines.points.dim[lines.points.n] : BLOCK_NONE;
    divide(&lines, p);
    p->groups = (lines.count + lines.of_group - 1) / lines.of_group * lines.segments;
    TRY(sched_check_rounds(e->s, lines.of_group * lines.of_strip * lines.of_segment * p->rounds,
                           err));
    kir_phase(p->m, lines.lanes);
    expr_phase(e);
    emit_parameters(&lines, p);
    pool_parameters(p);
    p->columns = sched_add_index(e->s, inner_window(p)->extent);
    emit_group(p, &lines,
               sched_wide(e->s, kir_emit_imm(p->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE)));
    return FRIT_OK;
}
