/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: the elements of the side that lanes lie along, with what was done to them before, in the
 * order in which the sums read them: [both][panel][lane / width][k][lane % width], a panel for each
 * group's width, of which `width` lanes compute together; 0 in lanes beyond the end. */
#include "lower/contract/contract_pack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lower/contract/contract_emit.h"
#include "lower/contract/contract_pairs.h"

enum {
    DEPTH = 32, /* of k, of a group */
    TAG = 2     /* of this order; raised when it changes */
};

/* The lane's first element in its panel. */
static uint32_t lane_first(const struct contract_emitter *w)
{
    uint32_t width = w->c->pack.width, shift = (uint32_t)__builtin_ctz(width), part;

    if (width == w->c->lanes)
        return w->lane;
    part = op2(w, KIR_shr, w->lane, index_const(w, shift));
    part = op2(w, KIR_mul, part, sched_add_index(w->e->s, pairs_depth(w->c) * width));
    return op2(w, KIR_add, part, op2(w, KIR_and, w->lane, index_const(w, width - 1)));
}

uint32_t pack_first(const struct contract_emitter *w, uint32_t panel)
{
    uint32_t each = sched_add_index(w->e->s, pairs_depth(w->c) * w->c->lanes), first;

    first = op2(w, KIR_add, op2(w, KIR_mul, panel, each), lane_first(w));
    return w->c->pack.first ? op2(w, KIR_add, first, sched_add_index(w->e->s, w->c->pack.first))
                            : first;
}

static uint32_t place_of(const struct contract_emitter *w, uint32_t k)
{
    return op2(w, KIR_add, op2(w, KIR_mul, k, index_const(w, w->c->pack.width)), w->panel);
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

    if (w->c->in_pairs) {
        value = pairs_element(w, k);
    } else {
        delinearize_set(&w->c->k, w->e, k);
        value = expr_value(w->e, w->c->across->node);
    }
    if (w->mask != KIR_NONE)
        value = kir_emit(w->m, KIR_select, value, zero(w), w->mask);
    kir_emit_imm(w->m, KIR_store, w->c->pack.arg, place_of(w, k), value, KIR_NONE);
    kir_next(w->m, NULL, 0);
}

/* The operand, if the side is its elements without anything done to them; NULL: it is not. */
static const struct expr_node *operand_of(const struct contract *c,
                                          const struct contract_side *side)
{
    const struct expr_node *node = &c->e.nodes[side->node];

    if (node->kind != EXPR_LOAD || c->e.s->block->values[node->value].maker != BLOCK_NONE)
        return NULL;
    for (uint32_t i = 0; i < SPACE_LEAVES; i++)
        if (node->at.k[SPACE_DIMS + i])
            return NULL;
    return node;
}

bool pack_can_keep(const struct contract *c, const struct contract_side *side)
{
    return c->e.s->target->keeps_derived && side == c->weights && operand_of(c, side) != NULL;
}

/* Identifies the order of the copy among all those of operands with equal dims and strides. */
static uint64_t tag_of(const struct contract *c, const struct expr_node *operand)
{
    const struct space *space = &c->e.space;
    int64_t numbers[5 + 3 * SPACE_DIMS] = {
        TAG, c->lanes, c->pack.width, c->in_pairs ? KIR_TYPES : contract_type(c), operand->at.c};
    uint32_t n = 5;

    for (uint32_t d = 0; d < space->n_dims; d++) {
        if (space->tag[d] != CONTRACT_BOTH && space->tag[d] != CONTRACT_K &&
            space->tag[d] != c->across->tag)
            continue;
        numbers[n++] = space->tag[d] == c->across->tag ? CONTRACT_TAGS : space->tag[d];
        numbers[n++] = space->extent[d];
        numbers[n++] = operand->at.k[d];
    }
    return XXH3_64bits(numbers, n * sizeof(*numbers));
}

static int64_t count_of(const struct contract *c)
{
    return c->both.count * tiles_of(c->across->points.count, c->lanes) * pairs_depth(c) * c->lanes;
}

void pack_keep(struct contract *c)
{
    const struct expr_node *operand;

    if (!c->pack.used || !pack_can_keep(c, c->across))
        return;
    operand = operand_of(c, c->across);
    c->pack.is_kept = true;
    c->pack.arg = kir_arg(c->e.s->module, contract_dtype(c), KIR_READ | KIR_WRITE);
    c->e.s->numbers->derived = (struct sched_derived){
        .bytes = frit_storage_bytes(contract_dtype(c), count_of(c)),
        .tag = tag_of(c, operand),
        .input = c->e.s->block->values[operand->value].input,
        .phase = 0,
    };
}

void pack_reserve(struct contract *c)
{
    if (c->pack.used && !c->pack.is_kept)
        c->pack.first = contract_reserve(c, count_of(c), &c->pack.arg);
}

void pack_emit(struct contract *c)
{
    struct contract_emitter w = {
        .c = c, .e = &c->e, .m = c->e.s->module, .type = contract_type(c), .mask = KIR_NONE};
    const struct delinearizer *line = &c->across->points;
    int64_t panels = tiles_of(line->count, c->lanes), depths = tiles_of(pairs_depth(c), DEPTH);
    uint32_t group, begin, end, panel, place;

    contract_set_grid(c, c->both.count * panels * depths);
    group = work_begin(&w, c->lanes);
    delinearize_phase(&c->k, w.e);
    begin = work_part(&w, &group, depths);
    begin = op2(&w, KIR_mul, begin, index_const(&w, DEPTH));
    end = op2(&w, KIR_add, begin, index_const(&w, DEPTH));
    end = op2(&w, KIR_smin, end, sched_add_index(c->e.s, pairs_depth(c)));
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
