/* SPDX-License-Identifier: Apache-2.0 */
/* Emits scatters; scatter.c describes the forms. */
#include <string.h>

#include "lower/rows/rows.h"
#include "lower/schedule/scatter.h"

enum { MIN_LANES = 16 };

/* State of emission. */
struct scatter_emitter {
    struct scatter *sc;
    struct expr *e; /* of the phase */
    struct kir_module *m;
    uint32_t number;                /* number of the lane's point */
    uint32_t mask;                  /* KIR_B: the lane has a point; KIR_NONE: every lane has one */
    uint32_t target;                /* number of the argument that is updated */
    int64_t strides[FRIT_MAX_RANK]; /* of that argument */
};

static uint32_t and_mask(const struct scatter_emitter *w, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : kir_binary(w->m, KIR_and, a, b);
}

static enum kir_type acc_type(const struct scatter_emitter *w)
{
    return kir_type_of(w->sc->fold.dtype);
}

/* Converts an element to the accumulated type, and a result back. */
static uint32_t widen(const struct scatter_emitter *w, uint32_t value)
{
    bool same = acc_type(w) == kir_type_of(w->sc->dtype);

    return same ? value : kir_unary(w->m, KIR_f64, value);
}

static uint32_t narrow(const struct scatter_emitter *w, uint32_t value)
{
    if (acc_type(w) != kir_type_of(w->sc->dtype))
        value = kir_unary(w->m, KIR_f32, value);
    return lower_fit(w->m, w->sc->dtype, value);
}

static uint32_t combine(const struct scatter_emitter *w, uint32_t element, uint32_t value)
{
    const struct fold *fold = &w->sc->fold;
    const struct fold_state a = {{element, KIR_NONE}}, b = {{value, KIR_NONE}};

    return fold->kind ? fold->kind->combine(fold, &a, &b).part[0] : value;
}

/* ---- phases ---- */

/* Begins a phase with a lane per point and sets its grid. */
static void begin_phase(struct scatter_emitter *w, struct expr *e, int64_t n)
{
    const struct kir_target *target = w->sc->s->target;
    uint32_t lanes = target->lanes, group;

    while (lanes > MIN_LANES && (lanes / 2 >= n || n / lanes < target->units))
        lanes /= 2;
    memcpy(w->sc->s->numbers->grid[w->m->n_phases],
           (const uint32_t[3]){(uint32_t)((n + lanes - 1) / lanes), 1, 1}, 3 * sizeof(uint32_t));
    w->e = e;
    kir_phase(w->m, lanes);
    expr_phase(e);
    group = sched_wide(e->s, kir_emit_imm(w->m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE));
    w->number =
        kir_binary(w->m, KIR_add, kir_binary(w->m, KIR_mul, group, kir_index(w->m, lanes)),
                   sched_wide(e->s, kir_emit(w->m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE)));
    w->mask = n % lanes ? kir_binary(w->m, KIR_lt, w->number, sched_add_index(e->s, n)) : KIR_NONE;
    expr_mask(e, w->mask);
}

/* Begins a phase over all elements of y. */
static void begin_points(struct scatter_emitter *w, struct expr *e, struct delinearizer *points)
{
    begin_phase(w, e, w->sc->n_y);
    delinearize_phase(points, e);
    delinearize_set(points, e, w->number);
    expr_hoist(e);
}

/* Sets the coordinates of the lane's point along the dims of y over which lanes are numbered; at[d]
 * is KIR_NONE if dim d is not one of them. */
static void set_coordinates(const struct scatter_emitter *w, uint32_t *at)
{
    struct scatter_updates *u = &w->sc->updates;
    uint32_t number = w->number;
    int64_t left = 1;

    for (uint32_t d = 0; d < w->sc->rank; d++)
        left *= u->at[d].count;
    for (uint32_t d = w->sc->rank; d-- > 0;) {
        struct sched_divisor by;
        uint32_t outer;

        at[d] = KIR_NONE;
        if (u->at[d].count == 1)
            continue;
        at[d] = number;
        left /= u->at[d].count;
        if (left > 1) {
            by = sched_add_divisor(w->e->s, u->at[d].count);
            outer = sched_divide(w->e->s, &by, number);
            at[d] = kir_binary(
                w->m, KIR_sub, number,
                kir_binary(w->m, KIR_mul, outer, sched_add_index(w->e->s, u->at[d].count)));
            number = outer;
        }
        delinearize_phase(&u->at[d], w->e);
        delinearize_set(&u->at[d], w->e, at[d]);
    }
    delinearize_phase(&u->seq, w->e);
    expr_hoist(w->e);
}

/* Computes all values before the first store, since an output may overwrite another output's
 * operand. */
static void emit_stores(const struct scatter_emitter *w)
{
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_value(w->e, w->e->stores[i].node);
    for (uint32_t i = 0; i < w->e->n_stores; i++)
        expr_emit_store(w->e, i);
}

static void emit_write(const struct scatter_emitter *w, uint32_t at, uint32_t value, uint32_t mask)
{
    kir_emit_imm(w->m, mask == KIR_NONE ? KIR_store : KIR_store_if, w->target, at, value, mask);
}

static uint32_t emit_read(const struct scatter_emitter *w, uint32_t at, uint32_t mask)
{
    uint32_t zero = lower_const(w->m, w->sc->fold.dtype, 0);

    if (mask == KIR_NONE)
        return kir_emit_as(w->m, KIR_load, acc_type(w), w->target, at, KIR_NONE, KIR_NONE);
    return kir_emit_as(w->m, KIR_load_if, acc_type(w), w->target, at, mask, zero);
}

/* ---- LINES ---- */

/* An index in the type of offsets. */
static uint32_t to_index(const struct scatter_emitter *w, uint32_t value)
{
    enum kir_type type = kir_type_at(w->m, value), wanted = kir_index_type(w->m);

    if (type == wanted)
        return value;
    return kir_unary(w->m, wanted == KIR_I64 ? KIR_i64 : KIR_i32, value);
}

static uint32_t add_term(const struct scatter_emitter *w, uint32_t sum, uint32_t d,
                         uint32_t coordinate)
{
    if (w->strides[d] != 1)
        coordinate = kir_binary(w->m, KIR_mul, coordinate, sched_add_index(w->e->s, w->strides[d]));
    return sum == KIR_NONE ? coordinate : kir_binary(w->m, KIR_add, sum, coordinate);
}

/* KIR_B: 0 <= index < extent, as one unsigned comparison. */
static uint32_t is_inside(const struct scatter_emitter *w, uint32_t value, int64_t extent)
{
    enum kir_type type = kir_type_at(w->m, value);

    if (type == KIR_I32 && extent > INT32_MAX)
        extent = 1ll << 31;
    return kir_binary(w->m, KIR_ult, value, sched_add_param(w->e->s, type, (uint64_t)extent));
}

/* Applies one step of the sequence to each line. */
static void emit_step(const struct scatter_emitter *w, uint32_t line)
{
    const struct scatter *sc = w->sc;
    uint32_t mask = w->mask, at = line, value;

    for (uint32_t i = 0; i < sc->n_indexed; i++) {
        uint32_t index = expr_value(w->e, sc->updates.index[i]), d = sc->first_indexed + i;

        mask = and_mask(w, mask, is_inside(w, index, sc->dims[d]));
        at = add_term(w, at, d, to_index(w, index));
    }
    expr_mask(w->e, mask);
    value = widen(w, expr_value(w->e, sc->updates.value));
    if (sc->fold.kind)
        value = combine(w, emit_read(w, at, mask), value);
    emit_write(w, at, value, mask);
}

static void emit_updates(struct scatter_emitter *w)
{
    struct scatter *sc = w->sc;
    uint32_t at[FRIT_MAX_RANK], line = KIR_NONE, step, mark;

    begin_phase(w, &sc->update, sc->n_lines);
    set_coordinates(w, at);
    for (uint32_t d = 0; d < sc->rank; d++)
        if (at[d] != KIR_NONE)
            line = add_term(w, line, d, at[d]);
    step = kir_for(w->m, kir_index(w->m, 0), sched_add_index(w->e->s, sc->n_steps), 1);
    mark = expr_mark(w->e);
    delinearize_set(&sc->updates.seq, w->e, step);
    emit_step(w, line);
    expr_release(w->e, mark);
    kir_next(w->m, NULL, 0);
}

/* Fills y with x and computes the other outputs; y will be updated in place. */
static void emit_in_place(struct scatter_emitter *w)
{
    const struct block *block = w->sc->s->block;
    uint32_t output = block->values[w->sc->op->out[0]].output;
    const frit_arg_sig *arg = expr_arg(&w->sc->fill, block->n_inputs + output);

    w->target = block->n_inputs + output;
    memcpy(w->strides, arg->strides, sizeof(w->strides));
    if (w->m->n_args > w->target)
        w->m->args[w->target].access |= KIR_READ;
    begin_points(w, &w->sc->fill, &w->sc->fill_at);
    expr_bind(w->e, w->sc->result, expr_value(w->e, w->sc->x));
    emit_stores(w);
}

static void emit_fill(struct scatter_emitter *w)
{
    struct scatter *sc = w->sc;
    int64_t stride = 1;

    w->target = kir_arg(w->m, sc->fold.dtype, KIR_READ | KIR_WRITE);
    sc->s->numbers->workspace_bytes = frit_storage_bytes(sc->fold.dtype, sc->n_y);
    for (uint32_t d = sc->rank; d-- > 0; stride *= sc->dims[d])
        w->strides[d] = stride;
    begin_points(w, &sc->fill, &sc->fill_at);
    emit_write(w, w->number, widen(w, expr_value(w->e, sc->x)), w->mask);
}

static void emit_finish(struct scatter_emitter *w)
{
    begin_points(w, &w->sc->finish, &w->sc->finish_at);
    expr_bind(w->e, w->sc->result, narrow(w, emit_read(w, w->number, w->mask)));
    emit_stores(w);
}

/* ---- OWNER ---- */

static uint32_t to_i64(const struct scatter_emitter *w, uint32_t value)
{
    if (kir_type_at(w->m, value) == KIR_I64)
        return value;
    return kir_unary(w->m, KIR_i64, value);
}

/* The element after one more step. */
static uint32_t emit_candidate(const struct scatter_emitter *w, const uint32_t *at,
                               uint32_t element)
{
    const struct scatter *sc = w->sc;
    uint32_t hit = w->mask;

    for (uint32_t i = 0; i < sc->n_indexed; i++) {
        uint32_t index = expr_value(w->e, sc->updates.index[i]), own = at[sc->first_indexed + i];

        if (own == KIR_NONE)
            own = kir_index(w->m, 0);
        if (kir_type_at(w->m, own) != kir_type_at(w->m, index)) {
            own = to_i64(w, own);
            index = to_i64(w, index);
        }
        hit = and_mask(w, hit, kir_binary(w->m, KIR_eq, index, own));
    }
    expr_mask(w->e, hit);
    return kir_select(w->m, hit, combine(w, element, widen(w, expr_value(w->e, sc->updates.value))),
                      element);
}

static void emit_owner(struct scatter_emitter *w)
{
    struct scatter *sc = w->sc;
    uint32_t at[FRIT_MAX_RANK], element, step, next, mark;

    begin_phase(w, &sc->finish, sc->n_y);
    set_coordinates(w, at);
    element = widen(w, expr_value(w->e, sc->x));
    if (sc->n_steps) {
        step = kir_for(w->m, kir_index(w->m, 0), sched_add_index(w->e->s, sc->n_steps), 1);
        element = kir_phi(w->m, element);
        mark = expr_mark(w->e);
        delinearize_set(&sc->updates.seq, w->e, step);
        next = emit_candidate(w, at, element);
        expr_release(w->e, mark);
        kir_next(w->m, &next, 1);
    }
    expr_bind(w->e, sc->result, narrow(w, element));
    emit_stores(w);
}

void scatter_emit(struct scatter *scatter)
{
    struct scatter_emitter emitter = {.sc = scatter, .m = scatter->s->module};
    bool any = scatter->n_lines && scatter->n_steps;

    if (scatter->form == SCATTER_OWNER) {
        emit_owner(&emitter);
        return;
    }
    if (scatter->in_place)
        emit_in_place(&emitter);
    else
        emit_fill(&emitter);
    if (any)
        emit_updates(&emitter);
    if (!scatter->in_place)
        emit_finish(&emitter);
}
