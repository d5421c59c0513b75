/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: the elements of the side that lanes lie along, with what was done to them before, in the
 * order in which the sums read them: [both][panel][k][lane], a panel for each group's width; 0 in
 * lanes beyond the end. */
#include "lower/schedule/contract_pack.h"

#include "lower/schedule/contract_emit.h"

enum { DEPTH = 32 /* of k, of a group */ };

uint32_t pack_first(const struct contract_emitter *w, uint32_t panel)
{
    uint32_t each = sched_add_index(w->e->s, w->c->n_k * w->c->lanes), first;

    first = op2(w, KIR_add, op2(w, KIR_mul, panel, each), w->lane);
    return w->c->pack.first ? op2(w, KIR_add, first, sched_add_index(w->e->s, w->c->pack.first))
                            : first;
}

static uint32_t place_of(const struct contract_emitter *w, uint32_t k)
{
    return op2(w, KIR_add, op2(w, KIR_mul, k, index_const(w, w->c->lanes)), w->panel);
}

uint32_t pack_element(const struct contract_emitter *w, uint32_t k)
{
    uint32_t number = w->c->pack.is_numbered ? expr_coord_value(w->e, w->c->pack.number) : k;

    return kir_emit_as(w->m, KIR_load, w->type, w->c->pack.arg, place_of(w, number), KIR_NONE,
                       KIR_NONE);
}

static void emit_depth(const struct contract_emitter *w, uint32_t begin, uint32_t end)
{
    uint32_t k = kir_for(w->m, begin, end, 1), value;

    delinearize_set(&w->c->k, w->e, k);
    value = expr_value(w->e, w->c->across->node);
    if (w->mask != KIR_NONE)
        value = kir_emit(w->m, KIR_select, value, zero(w), w->mask);
    kir_emit_imm(w->m, KIR_store, w->c->pack.arg, place_of(w, k), value, KIR_NONE);
    kir_next(w->m, NULL, 0);
}

void pack_reserve(struct contract *c)
{
    int64_t panels = tiles_of(c->across->points.count, c->lanes);

    if (c->pack.used)
        c->pack.first =
            contract_reserve(c, c->both.count * panels * c->n_k * c->lanes, &c->pack.arg);
}

void pack_emit(struct contract *c)
{
    struct contract_emitter w = {
        .c = c, .e = &c->e, .m = c->e.s->module, .type = contract_type(c), .mask = KIR_NONE};
    const struct delinearizer *line = &c->across->points;
    int64_t panels = tiles_of(line->count, c->lanes), depths = tiles_of(c->n_k, DEPTH);
    uint32_t group, begin, end, panel, place;

    contract_set_grid(c, c->both.count * panels * depths);
    group = work_begin(&w, c->lanes);
    delinearize_phase(&c->k, w.e);
    begin = work_part(&w, &group, depths);
    begin = op2(&w, KIR_mul, begin, index_const(&w, DEPTH));
    end = op2(&w, KIR_add, begin, index_const(&w, DEPTH));
    end = op2(&w, KIR_smin, end, sched_add_index(c->e.s, c->n_k));
    w.panel = pack_first(&w, group);
    panel = work_part(&w, &group, panels);
    delinearize_set(&c->both, w.e, group);
    place = op2(&w, KIR_add, op2(&w, KIR_mul, panel, index_const(&w, c->lanes)), w.lane);
    if (line->count % c->lanes)
        w.mask = op2(&w, KIR_lt, place, sched_add_index(c->e.s, line->count));
    delinearize_set(line, w.e, place);
    expr_mask(w.e, w.mask);
    expr_hoist(w.e);
    emit_depth(&w, begin, end);
}
