/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and branches: inside of a region, where they are a chunk's, and between regions, where they
 * are the group's. */
#include "emit/llvm/control.h"

#include "emit/llvm/deferred.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/group.h"
#include "emit/llvm/value.h"

void ll_go_to(struct ll *l, ll_block block)
{
    l->api->PositionBuilderAtEnd(l->builder, block);
}

uint32_t ll_phis_of(const struct ll *l, uint32_t opener)
{
    return ll_inst(l, ll_inst(l, opener)->pair)->a[1];
}

/* ---- inside of a region ---- */

ll_value ll_phi(struct ll *l, ll_type type, ll_value first, ll_block from)
{
    ll_value phi = BUILD(l, Phi, type);

    l->api->AddIncoming(phi, &first, &from, 1);
    return phi;
}

/* First values as vectors are made before the head. */
static void begin_phis(struct ll *l, uint32_t at, ll_block before, ll_block head)
{
    uint32_t n = ll_phis_of(l, at);
    ll_value first[LL_MAX_UNITS];

    for (uint32_t i = at + 1; i <= at + n; i++) {
        uint32_t from = ll_inst(l, i)->a[0];
        ll_type type = l->types.of[ll_inst(l, i)->type];

        if (!ll_is(l, i, FACT_VARYING)) {
            ll_go_to(l, head);
            l->scalar[i] = ll_phi(l, type, l->scalar[from], before);
            continue;
        }
        ll_go_to(l, before);
        for (uint32_t u = 0; u < l->units; u++)
            first[u] = ll_at(l, from, u);
        ll_go_to(l, head);
        for (uint32_t u = 0; u < l->units; u++)
            l->vector[(size_t)i * l->units + u] =
                ll_phi(l, ll_vector_of(l, type), first[u], before);
    }
}

void ll_for(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const uint32_t *bounds = l->module->links + inst->a[0];
    ll_block before = l->api->GetInsertBlock(l->builder), head = ll_new_block(l);
    ll_block body = ll_new_block(l), after = ll_new_block(l);
    ll_value counter;
    uint32_t n = ll_phis_of(l, at);

    if (l->deferred.loop == at)
        ll_take_held(l);
    ll_go_to(l, head);
    counter = ll_phi(l, l->types.of[inst->type], l->scalar[bounds[0]], before);
    begin_phis(l, at, before, head);
    ll_go_to(l, before);
    l->api->BuildBr(l->builder, head);
    ll_go_to(l, head);
    ll_set(l, at, counter);
    for (uint32_t i = at + 1; i <= at + n; i++)
        if (!ll_is(l, i, FACT_VARYING))
            ll_set(l, i, l->scalar[i]);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_SLT, counter, l->scalar[bounds[1]]), body,
                        after);
    ll_go_to(l, body);
    l->block[at] = head;
    l->block[inst->pair] = after;
}

/* After so many rounds the loop begins again. */
void ll_repeat(struct ll *l, uint32_t at, uint32_t rounds)
{
    const struct kir_inst *inst = ll_inst(l, at), *loop = ll_inst(l, inst->pair);
    uint32_t phi = inst->pair + 1;
    ll_value counter = l->scalar[inst->pair], more;
    ll_block here;

    if (l->deferred.loop == inst->pair)
        ll_store_held(l);
    here = l->api->GetInsertBlock(l->builder);
    more = BUILD(l, Add, counter, ll_int(l, l->types.of[loop->type], rounds * loop->imm));
    l->api->AddIncoming(counter, &more, &here, 1);
    for (uint32_t i = 0; i < inst->a[1]; i++) {
        uint32_t value = l->module->links[inst->a[0] + i];

        if (!ll_is(l, phi + i, FACT_VARYING)) {
            l->api->AddIncoming(l->scalar[phi + i], &l->scalar[value], &here, 1);
            continue;
        }
        for (uint32_t u = 0; u < l->units; u++) {
            ll_value vector = ll_at(l, value, u);

            l->api->AddIncoming(l->vector[(size_t)(phi + i) * l->units + u], &vector, &here, 1);
        }
    }
    l->api->BuildBr(l->builder, l->block[inst->pair]);
    ll_go_to(l, l->block[at]);
}

void ll_leave(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    uint32_t phi = inst->pair + 1;

    for (uint32_t i = 0; i < inst->a[1]; i++)
        if (l->regions.home[phi + i] == REGION_HELD)
            ll_hold(l, phi + i);
}

void ll_next(struct ll *l, uint32_t at)
{
    ll_repeat(l, at, 1);
    ll_leave(l, at);
}

void ll_if(struct ll *l, uint32_t at)
{
    ll_block yes = ll_new_block(l), after = ll_new_block(l);

    l->api->BuildCondBr(l->builder, l->scalar[ll_inst(l, at)->a[0]], yes, after);
    ll_go_to(l, yes);
    l->block[ll_inst(l, at)->pair] = after;
}

void ll_end(struct ll *l, uint32_t at)
{
    l->api->BuildBr(l->builder, l->block[at]);
    ll_go_to(l, l->block[at]);
}

/* ---- between regions ---- */

void ll_group_for(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const uint32_t *bounds = l->module->links + inst->a[0];
    ll_value begin = ll_fetch_group(l, bounds[0]), end = ll_fetch_group(l, bounds[1]);
    ll_block before = l->api->GetInsertBlock(l->builder), head = ll_new_block(l);
    ll_block body = ll_new_block(l), after = ll_new_block(l);
    ll_value counter;

    l->api->BuildBr(l->builder, head);
    ll_go_to(l, head);
    counter = ll_phi(l, l->types.of[inst->type], begin, before);
    ll_set(l, at, counter);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_SLT, counter, end), body, after);
    ll_go_to(l, body);
    l->block[at] = head;
    l->block[inst->pair] = after;
}

void ll_group_next(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at), *loop = ll_inst(l, inst->pair);
    ll_block here = l->api->GetInsertBlock(l->builder);
    ll_value counter = l->scalar[inst->pair], more;

    more = BUILD(l, Add, counter, ll_int(l, l->types.of[loop->type], loop->imm));
    l->api->AddIncoming(counter, &more, &here, 1);
    l->api->BuildBr(l->builder, l->block[inst->pair]);
    ll_go_to(l, l->block[at]);
}

void ll_group_if(struct ll *l, uint32_t at)
{
    ll_block yes, after;
    ll_value condition = ll_fetch_group(l, ll_inst(l, at)->a[0]);

    yes = ll_new_block(l);
    after = ll_new_block(l);
    l->api->BuildCondBr(l->builder, condition, yes, after);
    ll_go_to(l, yes);
    l->block[ll_inst(l, at)->pair] = after;
}
