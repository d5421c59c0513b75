/* SPDX-License-Identifier: Apache-2.0 */
/* Padding: a copy of a side's operand, with what was done to it before, in which all elements that
 * are multiplied lie, zeros around them too.  So sums neither test places nor mask loads: where a
 * processor's vectors are lanes, a mask costs as much as the product.  Elements that strides step
 * over are left out where no other place needs them: what is read together lies together then.
 * Dims are in any order, so that what one sum reads one after the other may lie together.
 *
 * The copy has a space of its own.  A group copies a matrix, the last two dims, line by line.
 * Behind the copy there is memory for the lanes of a line that reach beyond its end. */
#include "lower/contract/contract_pad.h"

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_turn.h"

enum {
    ALIGN = 16,     /* lanes of full vectors, at least */
    PITCH_PART = 4, /* of a line may be added */
    STEP_MOST = 3,  /* from element to element of a line, that is a constant of the module */
    FAR_ROW = 256   /* elements: of rows as long, a power of two, a few are in one set of a cache */
};

enum { MATRIX = CONTRACT_BOTH, ROW = CONTRACT_M, COLUMN = CONTRACT_N };

/* Elements from matrix to matrix, or from row to row of channels: whole lines of a cache, an odd
 * number, so that the same place in many of them is in many sets of it. */
static int64_t odd_lines(int64_t elements)
{
    int64_t lines = tiles_of(elements, ALIGN);

    return elements % ALIGN ? elements : ALIGN * (lines | 1);
}

void pad_plan(struct contract *c, uint32_t value, const struct pad_dim *dims,
              const struct space_map *at)
{
    struct contract_pad *pad = &c->pad;
    struct space_map from = {.rank = at->rank};
    struct space_expr offset = {0};
    int64_t stride = 1;
    bool channels_last = dims[at->rank - 1].of + 1 < at->rank;

    expr_init(&pad->e, c->e.s);
    pad->used = true;
    if (dims[at->rank - 1].step <= STEP_MOST)
        pad->e.const_factor = dims[at->rank - 1].step;
    for (uint32_t i = 0; i < at->rank; i++) {
        uint32_t last = at->rank - 1 - i, d = dims[i].of;
        struct space_expr place = space_dim(&pad->e.space, dims[i].extent,
                                            last > 1 ? MATRIX
                                            : last   ? ROW
                                                     : COLUMN);

        space_add(&from.at[d], &place, dims[i].step);
        from.at[d].c -= dims[i].before;
    }
    for (uint32_t i = at->rank; i-- > 0; stride *= dims[i].extent) {
        if (i + 2 == at->rank)
            stride = pad->row = stride >= FAR_ROW && channels_last ? odd_lines(stride) : stride;
        if (i + 3 == at->rank)
            stride = pad->matrix = odd_lines(stride);
        space_add(&offset, &at->at[dims[i].of], stride);
    }
    pad->count = stride;
    pad->node = expr_guard(&pad->e, value, &from, (struct expr_fill){.scalar = BLOCK_NONE});
    pad->at = expr_coord(&c->e, &offset);
}

void pad_settle(struct contract *c)
{
    if (!c->pad.used)
        return;
    expr_settle(&c->pad.e);
    if (c->pad.e.status)
        expr_fail(&c->e, c->pad.e.status);
}

void pad_fini(struct contract *c)
{
    if (c->pad.used)
        expr_fini(&c->pad.e);
}

int64_t pad_pitch(int64_t width)
{
    int64_t pitch = tiles_of(width, ALIGN) * ALIGN;

    return pitch - width <= width / PITCH_PART ? pitch : width;
}

/* ---- emitting ---- */

int64_t pad_apart(const struct contract *c, uint32_t dim)
{
    int64_t k = c->e.coords[c->pad.at].k[dim];

    return k < 2 ? k >= -1 : k;
}

/* Lanes along the innermost dim may go on past the end of their line. */
static bool reads_beyond(const struct contract *c)
{
    return c->form == CONTRACT_LINES && c->across == &c->b && c->b.points.n == 1;
}

uint32_t pad_element(const struct contract_emitter *w, uint32_t mask)
{
    uint32_t at = expr_coord_value(w->e, w->c->pad.at), arg = w->c->pad.arg;

    if (mask == KIR_NONE || reads_beyond(w->c))
        return kir_emit_as(w->m, KIR_load, w->type, arg, at, KIR_NONE, KIR_NONE);
    return kir_emit_as(w->m, KIR_load_if, w->type, arg, at, mask, zero(w));
}

void pad_reserve(struct contract *c)
{
    int64_t beyond = 0;

    if (!c->pad.used)
        return;
    if (!c->winograd.used && reads_beyond(c))
        beyond = c->lanes * c->e.coords[c->pad.at].k[c->b.points.dim[0]];
    contract_reserve(c, c->pad.count + (beyond < 0 ? 0 : beyond), &c->pad.arg);
}

/* A matrix of the copy: the group's columns. */
struct pad_matrix {
    struct delinearizer rows, columns;
    uint32_t begin; /* the group's first column */
    uint32_t first; /* the lane's first element */
    uint32_t width; /* columns of all groups */
    uint32_t pitch; /* elements from row to row */
};

static void store(const struct contract_emitter *w, uint32_t at, uint32_t value, uint32_t mask)
{
    kir_emit_imm(w->m, mask == KIR_NONE ? KIR_store : KIR_store_if, w->c->pad.arg, at, value, mask);
}

/* Row by row: the lane's column is set. */
static void copy_rows(const struct contract_emitter *w, const struct pad_matrix *to)
{
    uint32_t end = sched_add_index(w->e->s, to->rows.count), row, at;

    row = kir_for(w->m, index_const(w, 0), end, 1);
    delinearize_set(&to->rows, w->e, row);
    at = op2(w, KIR_add, to->first, op2(w, KIR_mul, row, to->pitch));
    store(w, at, expr_value(w->e, w->c->pad.node), w->mask);
    kir_next(w->m, NULL, 0);
}

/* Whether neighbours of the value lie along a column of the copy. */
static bool is_turned(const struct expr *e, const struct pad_matrix *to)
{
    if (to->rows.n != 1 || to->columns.n != 1)
        return false;
    for (uint32_t n = 0; n < e->n_nodes; n++) {
        const int64_t *k = e->nodes[n].at.k;

        if (e->nodes[n].kind == EXPR_LOAD && (k[to->rows.dim[0]] != 1 || k[to->columns.dim[0]] < 2))
            return false;
    }
    return true;
}

/* The element at a row and a column, both of the lane. */
static uint32_t element_at(const struct contract_emitter *w, const struct pad_matrix *to,
                           uint32_t column, uint32_t has_row)
{
    uint32_t mark = expr_mark(w->e), mask = has_row, value;

    if (w->mask != KIR_NONE)
        mask = mask_both(w, mask, op2(w, KIR_lt, column, to->width));
    expr_set(w->e, to->columns.dim[0], column);
    expr_mask(w->e, mask);
    value = expr_value(w->e, w->c->pad.node);
    expr_release(w->e, mark);
    return value;
}

/* TURN_SIDE rows at a time: runs of as many lanes have a column's elements in them, which are
 * transposed. */
static void copy_turned(const struct contract_emitter *w, const struct pad_matrix *to)
{
    uint32_t low = op2(w, KIR_and, w->lane, index_const(w, TURN_SIDE - 1)), values[TURN_SIDE];
    uint32_t high = op2(w, KIR_add, to->begin, turn_first_lane(w));
    uint32_t end = sched_add_index(w->e->s, to->rows.count), mark = expr_mark(w->e);
    uint32_t row = kir_for(w->m, index_const(w, 0), end, TURN_SIDE), own, ok = KIR_NONE;
    bool ends = to->rows.count % TURN_SIDE != 0;

    own = op2(w, KIR_add, row, low);
    if (ends)
        ok = op2(w, KIR_lt, own, end);
    expr_set(w->e, to->rows.dim[0], own);
    for (uint32_t i = 0; i < TURN_SIDE; i++)
        values[i] = element_at(w, to, op2(w, KIR_add, high, index_const(w, i)), ok);
    turn_transpose(w, values);
    for (uint32_t i = 0; i < TURN_SIDE; i++) {
        uint32_t at = op2(w, KIR_add, row, index_const(w, i));

        if (ends)
            kir_if(w->m, op2(w, KIR_lt, at, end));
        at = op2(w, KIR_add, to->first, op2(w, KIR_mul, at, to->pitch));
        store(w, at, values[i], w->mask);
        if (ends)
            kir_end(w->m);
    }
    kir_next(w->m, NULL, 0);
    expr_release(w->e, mark);
}

void pad_emit(struct contract *c)
{
    struct contract_emitter w = {
        .c = c, .e = &c->pad.e, .m = c->e.s->module, .type = contract_type(c), .mask = KIR_NONE};
    struct sched *s = c->e.s;
    struct delinearizer matrices;
    struct pad_matrix to;
    uint32_t lanes, group, column;
    int64_t tiles;

    delinearize_init(&matrices, w.e, MATRIX);
    delinearize_init(&to.rows, w.e, ROW);
    delinearize_init(&to.columns, w.e, COLUMN);
    lanes = sched_lanes(s->target->lanes, to.columns.count);
    while (lanes > ALIGN && to.columns.count % lanes && to.columns.count % ALIGN == 0)
        lanes /= 2;
    tiles = tiles_of(to.columns.count, lanes);
    contract_set_grid(c, matrices.count * tiles);
    kir_phase(w.m, lanes);
    expr_phase(w.e);
    delinearize_phase(&matrices, w.e);
    w.lane = sched_wide(s, kir_emit(w.m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    group = sched_wide(s, kir_emit_imm(w.m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    to.begin = op2(&w, KIR_mul, work_part(&w, &group, tiles), index_const(&w, lanes));
    column = op2(&w, KIR_add, to.begin, w.lane);
    to.width = sched_add_index(s, to.columns.count);
    if (to.columns.count % lanes)
        w.mask = op2(&w, KIR_lt, column, to.width);
    delinearize_set(&matrices, w.e, group);
    to.first = op2(&w, KIR_mul, group, sched_add_index(s, c->pad.matrix));
    to.first = op2(&w, KIR_add, to.first, column);
    to.pitch = c->pad.row == to.columns.count ? to.width : sched_add_index(s, c->pad.row);
    if (is_turned(w.e, &to)) {
        expr_hoist(w.e);
        copy_turned(&w, &to);
        return;
    }
    delinearize_set(&to.columns, w.e, column);
    expr_mask(w.e, w.mask);
    expr_hoist(w.e);
    copy_rows(&w, &to);
}
