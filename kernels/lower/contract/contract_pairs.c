/* SPDX-License-Identifier: Apache-2.0 */
/* Products of BF16 by dot2: a step of k is a pair of neighbours, number 0 the even one.  Side
 * `across` is packed in pairs; on side `down` neighbours along k lie next to each other in memory,
 * where two are an element of an F32's size.  Blocks of a sum are the same as those of single
 * products; within a step the odd product comes first. */
#include "lower/contract/contract_pairs.h"

#include "lower/contract/contract_emit.h"

/* The operand of BF16 that is a side's elements as they are; NULL: there is none such. */
static const struct expr_node *operand_of(const struct contract *c,
                                          const struct contract_side *side)
{
    const struct expr_node *node = &c->e.nodes[side->node];
    const struct block_value *value = &c->e.s->block->values[node->value];

    return node->kind == EXPR_LOAD && value->maker == BLOCK_NONE && value->dtype == FRIT_BF16
               ? node
               : NULL;
}

/* Whether pairs along k are whole elements of twice the size. */
static bool has_pairs(const struct contract *c, const struct expr_node *node, uint32_t k)
{
    if (node->at.k[k] != 1 || node->at.c % 2 || c->n_k % 2)
        return false;
    for (uint32_t i = 0; i < SPACE_VARS; i++)
        if (i != k && node->at.k[i] % 2)
            return false;
    return true;
}

/* Whether the operand is read for nothing else. */
static bool is_read_once(const struct contract *c, const struct expr_node *node)
{
    const struct block_value *values = c->e.s->block->values;
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->e.n_nodes; i++)
        n += c->e.nodes[i].kind == EXPR_LOAD &&
             values[c->e.nodes[i].value].input == values[node->value].input;
    return n == 1;
}

void pairs_choose(struct contract *c)
{
    uint32_t k = contract_last_dim(&c->e.space, CONTRACT_K);
    const struct expr_node *down;

    if (!c->e.s->target->dot2 || !c->pack.used || c->pad.used || contract_type(c) != KIR_F32 ||
        c->e.space.extent[k] != c->n_k || !operand_of(c, c->across))
        return;
    down = operand_of(c, c->down);
    if (!down || !has_pairs(c, down, k) || !is_read_once(c, down))
        return;
    c->in_pairs = true;
    c->e.s->module->args[c->e.s->block->values[down->value].input].dtype = FRIT_F32;
}

int64_t pairs_depth(const struct contract *c)
{
    return c->in_pairs ? c->n_k / 2 : c->n_k;
}

void pairs_begin(struct contract_emitter *w)
{
    for (uint32_t i = 0; i < w->n_places[DOWN]; i++) {
        uint32_t mark = expr_mark(w->e), first;

        work_set_place(w, DOWN, w->place[DOWN][i]);
        expr_set(w->e, w->c->k.dim[0], index_const(w, 0));
        first = expr_load_at(w->e, w->c->down->node);
        w->pair[i] = op2(w, KIR_sar, first, index_const(w, 1));
        expr_release(w->e, mark);
    }
}

void pairs_add(const struct contract_emitter *w, uint32_t k, uint32_t across, uint32_t *sums)
{
    const struct contract *c = w->c;
    uint32_t input = c->e.s->block->values[c->e.nodes[c->down->node].value].input;

    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t down = kir_emit_as(w->m, KIR_load, KIR_F32, input, op2(w, KIR_add, w->pair[i], k),
                                    KIR_NONE, KIR_NONE);

        sums[i] = kir_emit(w->m, KIR_dot2, down, across, sums[i]);
    }
}

/* The bits of an element at k, in the upper half. */
static uint32_t bits_at(const struct contract_emitter *w, uint32_t k)
{
    uint32_t mark = expr_mark(w->e), value;

    delinearize_set(&w->c->k, w->e, k);
    value = expr_value(w->e, w->c->across->node);
    expr_release(w->e, mark);
    return kir_emit_as(w->m, KIR_bits, KIR_I32, 0, value, KIR_NONE, KIR_NONE);
}

uint32_t pairs_element(const struct contract_emitter *w, uint32_t k)
{
    uint32_t even = op2(w, KIR_mul, k, index_const(w, 2)), low, high;

    low = op2(w, KIR_shr, bits_at(w, even), kir_const_i(w->m, KIR_I32, 16));
    high = bits_at(w, op2(w, KIR_add, even, index_const(w, 1)));
    return kir_emit_as(w->m, KIR_bits, KIR_F32, 0, op2(w, KIR_or, high, low), KIR_NONE, KIR_NONE);
}
