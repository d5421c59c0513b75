/* SPDX-License-Identifier: Apache-2.0 */
/* Padding: a copy of a side's operand, with what was done to it before, in which all elements that
 * are multiplied lie, zeros around them too.  So sums neither test places nor mask loads: where a
 * processor's vectors are lanes, a mask costs as much as the product.  Elements that strides step
 * over are left out where no other place needs them: what is read together lies together then.
 *
 * The copy has a space of its own.  A group copies a matrix, the last two dims, line by line.
 * Behind the copy there is memory for the lanes of a line that reach beyond its end. */
#include "lower/contract/contract_pad.h"

#include "lower/contract/contract_emit.h"

enum {
    ALIGN = 16 /* lanes of full vectors, at least */,
    PITCH_PART = 4 /* of a line may be added */
};

enum { MATRIX = CONTRACT_BOTH, ROW = CONTRACT_M, COLUMN = CONTRACT_N };

/* Elements from matrix to matrix: whole lines of a cache, an odd number, so that the same place in
 * many matrices is in many sets of it. */
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

    expr_init(&pad->e, c->e.s);
    pad->used = true;
    for (uint32_t d = 0; d < at->rank; d++) {
        uint32_t last = at->rank - 1 - d;
        struct space_expr place = space_dim(&pad->e.space, dims[d].extent,
                                            last > 1 ? MATRIX
                                            : last   ? ROW
                                                     : COLUMN);

        space_add(&from.at[d], &place, dims[d].step);
        from.at[d].c -= dims[d].before;
    }
    for (uint32_t d = at->rank; d-- > 0; stride *= dims[d].extent) {
        if (d + 3 == at->rank)
            stride = pad->matrix = odd_lines(stride);
        space_add(&offset, &at->at[d], stride);
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
    if (reads_beyond(c))
        beyond = c->lanes * c->e.coords[c->pad.at].k[c->b.points.dim[0]];
    contract_reserve(c, c->pad.count + (beyond < 0 ? 0 : beyond), &c->pad.arg);
}

/* The lines of a matrix from number `first` of the copy on. */
static void copy_lines(const struct contract_emitter *w, const struct delinearizer *rows,
                       uint32_t first, uint32_t width)
{
    uint32_t end = sched_add_index(w->e->s, rows->count), row, at;

    row = kir_for(w->m, index_const(w, 0), end, 1);
    delinearize_set(rows, w->e, row);
    at = op2(w, KIR_add, first, op2(w, KIR_mul, row, width));
    kir_emit_imm(w->m, w->mask == KIR_NONE ? KIR_store : KIR_store_if, w->c->pad.arg, at,
                 expr_value(w->e, w->c->pad.node), w->mask);
    kir_next(w->m, NULL, 0);
}

void pad_emit(struct contract *c)
{
    struct contract_emitter w = {
        .c = c, .e = &c->pad.e, .m = c->e.s->module, .type = contract_type(c), .mask = KIR_NONE};
    struct sched *s = c->e.s;
    struct delinearizer matrices, rows, columns;
    uint32_t lanes, group, column, width, first;
    int64_t tiles;

    delinearize_init(&matrices, w.e, MATRIX);
    delinearize_init(&rows, w.e, ROW);
    delinearize_init(&columns, w.e, COLUMN);
    lanes = sched_lanes(s->target->lanes, columns.count);
    while (lanes > ALIGN && columns.count % lanes && columns.count % ALIGN == 0)
        lanes /= 2;
    tiles = tiles_of(columns.count, lanes);
    contract_set_grid(c, matrices.count * tiles);
    kir_phase(w.m, lanes);
    expr_phase(w.e);
    delinearize_phase(&matrices, w.e);
    w.lane = sched_wide(s, kir_emit(w.m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE));
    group = sched_wide(s, kir_emit_imm(w.m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    column = op2(&w, KIR_mul, work_part(&w, &group, tiles), index_const(&w, lanes));
    column = op2(&w, KIR_add, column, w.lane);
    width = sched_add_index(s, columns.count);
    if (columns.count % lanes)
        w.mask = op2(&w, KIR_lt, column, width);
    delinearize_set(&columns, w.e, column);
    delinearize_set(&matrices, w.e, group);
    expr_mask(w.e, w.mask);
    expr_hoist(w.e);
    first = op2(&w, KIR_mul, group, sched_add_index(s, c->pad.matrix));
    copy_lines(&w, &rows, op2(&w, KIR_add, first, column), width);
}
