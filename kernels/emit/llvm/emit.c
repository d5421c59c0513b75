/* SPDX-License-Identifier: Apache-2.0 */
/* A phase: what is known at the entry, then region after region, each a loop over chunks of
 * lanes, with the ops that cut between them. */
#include "emit/llvm/emit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#include "emit/llvm/blob.h"
#include "emit/llvm/deferred.h"
#include "emit/llvm/divide.h"
#include "emit/llvm/group.h"
#include "emit/llvm/memory.h"
#include "emit/llvm/nibble.h"
#include "emit/llvm/prefetch.h"
#include "emit/llvm/rows.h"
#include "emit/llvm/unroll.h"
#include "emit/llvm/value.h"

/* ---- helpers of all files ---- */

ll_block ll_new_block(struct ll *l)
{
    return l->api->AppendBasicBlockInContext(l->context, l->function, "");
}

ll_value ll_call(struct ll *l, const char *intrinsic, ll_type *types, uint32_t n_types,
                 ll_value *args, uint32_t n)
{
    unsigned id = l->api->LookupIntrinsicID(intrinsic, strlen(intrinsic));
    ll_type type = l->api->IntrinsicGetType(l->context, id, types, n_types);
    ll_value function = l->api->GetIntrinsicDeclaration(l->code, id, types, n_types);

    return BUILD(l, Call2, type, function, args, n);
}

ll_value ll_call_bits(struct ll *l, const char *intrinsic, const ll_value *given, uint32_t n)
{
    unsigned id = l->api->LookupIntrinsicID(intrinsic, strlen(intrinsic));
    ll_type type = l->api->IntrinsicGetType(l->context, id, NULL, 0), of[3];
    ll_value args[3];

    assert(n <= 3);
    l->api->GetParamTypes(type, of);
    for (uint32_t i = 0; i < n; i++)
        args[i] = BUILD(l, BitCast, given[i], of[i]);
    return BUILD(l, Call2, type, l->api->GetIntrinsicDeclaration(l->code, id, NULL, 0), args, n);
}

bool ll_has_dot2(const struct ll *l)
{
    return l->cpu.dot2 && l->cpu.isa == LLVM_AVX512;
}

static void go_to(struct ll *l, ll_block block)
{
    l->api->PositionBuilderAtEnd(l->builder, block);
}

static uint32_t phis_of(const struct ll *l, uint32_t opener)
{
    return ll_inst(l, ll_inst(l, opener)->pair)->a[1];
}

/* ---- leaves and rows ---- */

static ll_value constant(struct ll *l, const struct kir_inst *inst)
{
    ll_type type = l->types.of[inst->type];

    if (inst->type == KIR_F32)
        return l->api->ConstBitCast(ll_int(l, l->types.of[KIR_I32], (uint32_t)inst->imm), type);
    if (inst->type == KIR_F64)
        return l->api->ConstBitCast(ll_int(l, l->types.i64, inst->imm), type);
    return ll_int(l, type,
                  inst->type == KIR_I32 ? (uint32_t)inst->imm
                  : inst->type == KIR_B ? inst->imm & 1
                                        : inst->imm);
}

static ll_value word_of(struct ll *l, const struct kir_inst *inst)
{
    ll_type type = l->types.of[inst->type];
    ll_value index = ll_int(l, l->types.i64, inst->imm), from;

    from = BUILD(l, GEP2, l->types.i64, l->words, &index, 1);
    if (inst->type == KIR_B)
        return BUILD(l, Trunc, BUILD(l, Load2, l->types.i64, from), type);
    return BUILD(l, Load2, type, from);
}

static ll_value group_word(struct ll *l, uint64_t number)
{
    ll_value index = ll_int(l, l->types.i64, number);
    ll_type i32 = l->types.of[KIR_I32];

    return BUILD(l, Load2, i32, BUILD(l, GEP2, i32, l->group, &index, 1));
}

/* The low bits of the lane that are the same in all chunks. */
static bool is_low_bits(const struct ll *l, uint32_t at)
{
    const struct fact *fact = &l->facts.of[at];

    return ll_inst(l, at)->op == KIR_and && fact->run_stride == 1 && fact->run > 1 &&
           fact->run <= l->chunk;
}

/* Constants: so are conditions made of them, and selects by these are shuffles. */
static void emit_low_bits(struct ll *l, uint32_t at)
{
    uint64_t numbers[LL_MAX_WIDTH];

    for (uint32_t u = 0; u < l->units; u++) {
        for (uint32_t i = 0; i < l->width; i++)
            numbers[i] = (u * l->width + i) % l->facts.of[at].run;
        l->vector[(size_t)at * l->units + u] =
            ll_lanes(l, l->types.of[ll_inst(l, at)->type], numbers);
    }
}

static void emit_row(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    uint32_t n = kir_op_info(inst->op)->n;
    ll_value a[3] = {NULL, NULL, NULL};

    if (!ll_is(l, at, FACT_VARYING)) {
        for (uint32_t k = 0; k < n; k++)
            a[k] = l->scalar[inst->a[k]];
        l->wide = false;
        ll_set(l, at, ll_row(l, inst, a));
        return;
    }
    if (ll_is_nibble(l, at)) {
        ll_nibble(l, at);
        return;
    }
    if (is_low_bits(l, at)) {
        emit_low_bits(l, at);
        return;
    }
    if (ll_shares_divisor(l, at)) {
        ll_divide(l, at);
        return;
    }
    for (uint32_t u = 0; u < l->units; u++) {
        for (uint32_t k = 0; k < n; k++)
            a[k] = ll_at(l, inst->a[k], u);
        l->wide = true;
        l->vector[(size_t)at * l->units + u] = ll_row(l, inst, a);
    }
}

/* ---- control inside of a region ---- */

static ll_value phi_of(struct ll *l, ll_type type, ll_value first, ll_block from)
{
    ll_value phi = BUILD(l, Phi, type);

    l->api->AddIncoming(phi, &first, &from, 1);
    return phi;
}

/* First values as vectors are made before the head. */
static void begin_phis(struct ll *l, uint32_t at, ll_block before, ll_block head)
{
    uint32_t n = phis_of(l, at);
    ll_value first[LL_MAX_UNITS];

    for (uint32_t i = at + 1; i <= at + n; i++) {
        uint32_t from = ll_inst(l, i)->a[0];
        ll_type type = l->types.of[ll_inst(l, i)->type];

        if (!ll_is(l, i, FACT_VARYING)) {
            go_to(l, head);
            l->scalar[i] = phi_of(l, type, l->scalar[from], before);
            continue;
        }
        go_to(l, before);
        for (uint32_t u = 0; u < l->units; u++)
            first[u] = ll_at(l, from, u);
        go_to(l, head);
        for (uint32_t u = 0; u < l->units; u++)
            l->vector[(size_t)i * l->units + u] =
                phi_of(l, ll_vector_of(l, type), first[u], before);
    }
}

static void emit_for(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const uint32_t *bounds = l->module->links + inst->a[0];
    ll_block before = l->api->GetInsertBlock(l->builder), head = ll_new_block(l);
    ll_block body = ll_new_block(l), after = ll_new_block(l);
    ll_value counter;
    uint32_t n = phis_of(l, at);

    if (l->deferred.loop == at)
        ll_take_held(l);
    go_to(l, head);
    counter = phi_of(l, l->types.of[inst->type], l->scalar[bounds[0]], before);
    begin_phis(l, at, before, head);
    go_to(l, before);
    l->api->BuildBr(l->builder, head);
    go_to(l, head);
    ll_set(l, at, counter);
    for (uint32_t i = at + 1; i <= at + n; i++)
        if (!ll_is(l, i, FACT_VARYING))
            ll_set(l, i, l->scalar[i]);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_SLT, counter, l->scalar[bounds[1]]), body,
                        after);
    go_to(l, body);
    l->block[at] = head;
    l->block[inst->pair] = after;
}

/* After so many rounds the loop begins again. */
static void repeat_loop(struct ll *l, uint32_t at, uint32_t rounds)
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
    go_to(l, l->block[at]);
}

static void leave_loop(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    uint32_t phi = inst->pair + 1;

    for (uint32_t i = 0; i < inst->a[1]; i++)
        if (l->regions.home[phi + i] == REGION_HELD)
            ll_hold(l, phi + i);
}

static void emit_next(struct ll *l, uint32_t at)
{
    repeat_loop(l, at, 1);
    leave_loop(l, at);
}

static void emit_if(struct ll *l, uint32_t at)
{
    ll_block yes = ll_new_block(l), after = ll_new_block(l);

    l->api->BuildCondBr(l->builder, l->scalar[ll_inst(l, at)->a[0]], yes, after);
    go_to(l, yes);
    l->block[ll_inst(l, at)->pair] = after;
}

static void emit_end(struct ll *l, uint32_t at)
{
    l->api->BuildBr(l->builder, l->block[at]);
    go_to(l, l->block[at]);
}

/* ---- instructions ---- */

static void emit_const(struct ll *l, uint32_t at)
{
    ll_set(l, at, constant(l, ll_inst(l, at)));
}

static void emit_param(struct ll *l, uint32_t at)
{
    ll_set(l, at, word_of(l, ll_inst(l, at)));
}

static void emit_group(struct ll *l, uint32_t at)
{
    ll_set(l, at, group_word(l, ll_inst(l, at)->imm));
}

/* The chunk's beginning and the loop's head have set them; one thread needs no barrier. */
static void emit_nothing(struct ll *l, uint32_t at)
{
    (void)l;
    (void)at;
}

typedef void (*inst_fn)(struct ll *l, uint32_t at);

static const inst_fn steps[KIR_OPS] = {
    [KIR_const] = emit_const,     [KIR_param] = emit_param,     [KIR_lane] = emit_nothing,
    [KIR_group] = emit_group,     [KIR_load] = ll_access,       [KIR_load_if] = ll_access,
    [KIR_store] = ll_access,      [KIR_store_if] = ll_access,   [KIR_tload] = ll_access,
    [KIR_tstore] = ll_access,     [KIR_tstore_if] = ll_access,  [KIR_atomic_add] = ll_atomic_add,
    [KIR_barrier] = emit_nothing, [KIR_exchange] = ll_exchange, [KIR_shift] = ll_shift,
    [KIR_first] = ll_first,       [KIR_for] = emit_for,         [KIR_phi] = emit_nothing,
    [KIR_next] = emit_next,       [KIR_if] = emit_if,           [KIR_end] = emit_end,
};

static void emit_inst(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);

    if (ll_has_row(inst->op)) {
        emit_row(l, at);
    } else {
        assert(steps[inst->op]);
        steps[inst->op](l, at);
    }
    if (l->regions.home[at] == REGION_HELD && inst->op != KIR_phi)
        ll_hold(l, at);
}

/* ---- rounds that are emitted together ---- */

/* What a loop carries, as `carried` holds it, where it ends before one of them. */
struct leaving {
    uint32_t n; /* vectors */
    ll_value *carried;
    uint32_t n_ways;
    ll_block from[LL_TOGETHER];
    ll_value with[LL_TOGETHER][LL_MAX_CARRIED];
};

static void may_leave(struct leaving *leaving, ll_block from)
{
    leaving->from[leaving->n_ways] = from;
    memcpy(leaving->with[leaving->n_ways++], leaving->carried, leaving->n * sizeof(ll_value));
}

/* Goes on to the next round, in a block of its own, so that its loads do not come before the
 * products of this one, which would take more registers than there are. */
static void go_on(struct ll *l, uint32_t at, ll_value counter, struct leaving *leaving)
{
    const struct kir_inst *inst = ll_inst(l, at), *next = ll_inst(l, inst->pair);
    const uint32_t *bounds = l->module->links + inst->a[0];
    uint64_t by = l->rounds.number * inst->imm;
    ll_block round = ll_new_block(l);

    for (uint32_t i = 0; i < next->a[1]; i++)
        for (uint32_t u = 0; u < l->units; u++)
            leaving->carried[i * l->units + u] = ll_at(l, l->module->links[next->a[0] + i], u);
    may_leave(leaving, l->api->GetInsertBlock(l->builder));
    counter = BUILD(l, Add, counter, ll_int(l, l->types.of[inst->type], by));
    ll_set(l, at, counter);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_SLT, counter, l->scalar[bounds[1]]), round,
                        l->block[inst->pair]);
    go_to(l, round);
}

/* After the loop: what it carried, whichever round was the last one. */
static void join_ways(struct ll *l, uint32_t at, struct leaving *leaving)
{
    for (uint32_t i = 0; i < leaving->n; i++) {
        ll_type type = l->types.of[ll_inst(l, at + 1 + i / l->units)->type];
        ll_value phi = BUILD(l, Phi, ll_vector_of(l, type));

        for (uint32_t k = 0; k < leaving->n_ways; k++)
            l->api->AddIncoming(phi, &leaving->with[k][i], &leaving->from[k], 1);
        leaving->carried[i] = phi;
    }
}

static void emit_rounds(struct ll *l, uint32_t at, uint32_t n)
{
    struct leaving leaving = {.n = phis_of(l, at) * l->units,
                              .carried = l->vector + (size_t)(at + 1) * l->units};
    ll_value counter;

    for (uint32_t i = at + 1; i < ll_inst(l, at)->pair; i++)
        l->rounds.ahead[i] = ll_shared_begin(l, at, i, &l->rounds.each[i]);
    emit_for(l, at);
    counter = l->scalar[at];
    may_leave(&leaving, l->block[at]);
    l->rounds.loop = at;
    for (l->rounds.number = 0; l->rounds.number < n; l->rounds.number++) {
        if (l->rounds.number)
            go_on(l, at, counter, &leaving);
        for (uint32_t i = at + 1 + phis_of(l, at); i < ll_inst(l, at)->pair; i++)
            if (l->regions.home[i] < REGION_GROUP)
                emit_inst(l, i);
    }
    l->rounds.loop = KIR_NONE;
    ll_set(l, at, counter);
    memcpy(leaving.carried, leaving.with[0], leaving.n * sizeof(ll_value));
    repeat_loop(l, ll_inst(l, at)->pair, n);
    join_ways(l, at, &leaving);
    leave_loop(l, ll_inst(l, at)->pair);
}

/* ---- regions ---- */

static void begin_chunks(struct ll *l)
{
    ll_type i32 = l->types.of[KIR_I32];

    l->lane0 = ll_int(l, i32, 0);
    if (l->chunk < l->phase->lanes) {
        l->chunk_before = l->api->GetInsertBlock(l->builder);
        l->chunk_begin = ll_new_block(l);
        l->api->BuildBr(l->builder, l->chunk_begin);
        go_to(l, l->chunk_begin);
        l->lane0 = phi_of(l, i32, l->lane0, l->chunk_before);
    }
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (ll_inst(l, at)->op == KIR_lane)
            ll_set(l, at, l->lane0);
}

static void end_chunks(struct ll *l)
{
    ll_type i32 = l->types.of[KIR_I32];
    ll_block here = l->api->GetInsertBlock(l->builder), after;
    ll_value more;

    if (l->chunk >= l->phase->lanes)
        return;
    after = ll_new_block(l);
    more = BUILD(l, Add, l->lane0, ll_int(l, i32, l->chunk));
    l->api->AddIncoming(l->lane0, &more, &here, 1);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_ULT, more, ll_int(l, i32, l->phase->lanes)),
                        l->chunk_begin, after);
    go_to(l, after);
}

/* Of another region, or what the ops between them left. */
static void need(struct ll *l, uint32_t value)
{
    const struct kir_inst *inst = ll_inst(l, value);
    bool here = l->regions.region[value] == l->region && inst->op != KIR_phi &&
                !(l->regions.bounds_region[value]);

    if (inst->op == KIR_phi && l->regions.region[value] == l->region)
        here = !l->regions.bounds_region[value - 1 - (uint32_t)inst->imm];
    if (here || l->regions.home[value] != REGION_HELD || l->loaded[value] == l->region + 1)
        return;
    l->loaded[value] = l->region + 1;
    ll_fetch(l, value);
}

static void need_operands(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);

    if (inst->op == KIR_for || inst->op == KIR_next) {
        for (uint32_t i = 0; i < inst->a[1]; i++)
            need(l, l->module->links[inst->a[0] + i]);
    } else if (inst->op != KIR_phi || !l->regions.bounds_region[at - 1 - (uint32_t)inst->imm]) {
        for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
            need(l, inst->a[k]);
    }
}

/* What a loop between regions carries, into the slots of its phis; all is read before one is
 * written. */
static void carry(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    bool enters = inst->op == KIR_for;
    uint32_t phi = (enters ? at : inst->pair) + 1, n = phis_of(l, phi - 1);

    for (uint32_t i = 0; i < n; i++)
        ll_carry(l, enters ? ll_inst(l, phi + i)->a[0] : l->module->links[inst->a[0] + i], phi + i);
}

static bool carries(const struct ll *l, uint32_t at)
{
    uint32_t op = at < l->phase->n ? ll_inst(l, at)->op : KIR_barrier;

    return (op == KIR_for && phis_of(l, at)) || (op == KIR_next && ll_inst(l, at)->a[1]);
}

static bool is_idle(const struct ll *l, uint32_t from, uint32_t end)
{
    for (uint32_t at = from; at < end; at++)
        if (l->regions.home[at] < REGION_GROUP && steps[ll_inst(l, at)->op] != emit_nothing)
            return false;
    return !carries(l, end);
}

static void emit_stretch(struct ll *l, uint32_t from, uint32_t end)
{
    uint32_t opener;

    for (uint32_t at = from; at < end; at++)
        if (l->regions.home[at] == REGION_GROUP)
            emit_inst(l, at);
    if (is_idle(l, from, end))
        return;
    begin_chunks(l);
    for (uint32_t at = from; at < end; at++)
        need_operands(l, at);
    if (carries(l, end)) {
        bool enters = ll_inst(l, end)->op == KIR_for;

        for (uint32_t i = 0; enters && i < phis_of(l, end); i++)
            need(l, ll_inst(l, end + 1 + i)->a[0]);
        if (!enters)
            need_operands(l, end);
    }
    for (uint32_t at = from; at < end; at++) {
        uint32_t n = ll_inst(l, at)->op == KIR_for ? ll_rounds_together(l, at) : 1;

        if (n > 1) {
            emit_rounds(l, at, n);
            at = ll_inst(l, at)->pair;
        } else if (l->regions.home[at] < REGION_GROUP) {
            emit_inst(l, at);
        }
    }
    if (!carries(l, end)) {
        end_chunks(l);
        return;
    }
    carry(l, end);
    end_chunks(l);
    opener = ll_inst(l, end)->op == KIR_for ? end : ll_inst(l, end)->pair;
    for (uint32_t i = 0; i < phis_of(l, opener); i++)
        ll_carried(l, opener + 1 + i);
}

/* ---- between regions ---- */

static void group_for(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const uint32_t *bounds = l->module->links + inst->a[0];
    ll_value begin = ll_fetch_group(l, bounds[0]), end = ll_fetch_group(l, bounds[1]);
    ll_block before = l->api->GetInsertBlock(l->builder), head = ll_new_block(l);
    ll_block body = ll_new_block(l), after = ll_new_block(l);
    ll_value counter;

    l->api->BuildBr(l->builder, head);
    go_to(l, head);
    counter = phi_of(l, l->types.of[inst->type], begin, before);
    ll_set(l, at, counter);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_SLT, counter, end), body, after);
    go_to(l, body);
    l->block[at] = head;
    l->block[inst->pair] = after;
}

static void group_next(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at), *loop = ll_inst(l, inst->pair);
    ll_block here = l->api->GetInsertBlock(l->builder);
    ll_value counter = l->scalar[inst->pair], more;

    more = BUILD(l, Add, counter, ll_int(l, l->types.of[loop->type], loop->imm));
    l->api->AddIncoming(counter, &more, &here, 1);
    l->api->BuildBr(l->builder, l->block[inst->pair]);
    go_to(l, l->block[at]);
}

static void group_if(struct ll *l, uint32_t at)
{
    ll_block yes, after;
    ll_value condition = ll_fetch_group(l, ll_inst(l, at)->a[0]);

    yes = ll_new_block(l);
    after = ll_new_block(l);
    l->api->BuildCondBr(l->builder, condition, yes, after);
    go_to(l, yes);
    l->block[ll_inst(l, at)->pair] = after;
}

static void group_first(struct ll *l, uint32_t at)
{
    ll_set(l, at, ll_fetch_group(l, ll_inst(l, at)->a[0]));
}

static void group_cross(struct ll *l, uint32_t at)
{
    begin_chunks(l);
    ll_cross(l, at);
    end_chunks(l);
}

static const inst_fn between[KIR_OPS] = {
    [KIR_for] = group_for,        [KIR_next] = group_next,      [KIR_if] = group_if,
    [KIR_end] = emit_end,         [KIR_barrier] = emit_nothing, [KIR_first] = group_first,
    [KIR_exchange] = group_cross, [KIR_shift] = group_cross,
};

static void emit_body(struct ll *l)
{
    uint32_t from = 0;

    for (uint32_t at = 0; at < l->phase->n; at++)
        if (l->regions.home[at] == REGION_ENTRY)
            emit_inst(l, at);
    for (uint32_t at = 0; at <= l->phase->n; at++) {
        if (at < l->phase->n && !l->regions.bounds_region[at])
            continue;
        l->region = from < l->phase->n ? l->regions.region[from] : 0;
        emit_stretch(l, from, at);
        if (at < l->phase->n)
            between[ll_inst(l, at)->op](l, at);
        from = at + 1;
    }
    l->api->BuildRetVoid(l->builder);
}

/* ---- the phase ---- */

static uint64_t make_room(struct ll *l, uint64_t bytes)
{
    uint64_t at = l->scratch_bytes;

    l->scratch_bytes += (bytes + 63) / 64 * 64;
    return at;
}

static void place(struct ll *l)
{
    uint64_t lanes = l->phase->lanes;

    l->scratch_bytes = 0;
    for (uint32_t i = 0; i < l->phase->n_tiles; i++) {
        const struct kir_tile *tile = &l->phase->tiles[i];

        l->tile[i] =
            make_room(l, 8 * (uint64_t)tile->count * (tile->space == KIR_LANE ? lanes : 1));
    }
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (l->regions.home[at] == REGION_HELD)
            l->slot[at] = make_room(l, ll_is(l, at, FACT_VARYING) ? 8 * lanes : 8);
    ll_plan_deferred(l);
    l->deferred.at = BLOB_NOWHERE;
    if (l->deferred.bytes)
        l->deferred.at = make_room(l, sizeof(struct blob_deferred) + BLOB_HELD);
}

enum {
    ONCE = 4,       /* instructions beside loops, for one in them */
    FEW_CARRIED = 2 /* values, of which many vectors fit the registers */
};

/* How long the code is, by where it spends its time. */
static uint32_t body_of(const struct ll *l)
{
    uint32_t inside = 0, n = l->phase->n;

    for (uint32_t at = 0; at < n; at++)
        if (ll_inst(l, at)->op == KIR_for) {
            inside += ll_inst(l, at)->pair - at;
            at = ll_inst(l, at)->pair;
        }
    return !inside ? n : inside > n / ONCE ? inside : n / ONCE;
}

/* Values that a loop carries, at most. */
static uint32_t max_carried(const struct ll *l)
{
    uint32_t most = 0;

    for (uint32_t at = 0; at < l->phase->n; at++)
        if (ll_inst(l, at)->op == KIR_for && phis_of(l, at) > most)
            most = phis_of(l, at);
    return most;
}

/* Whether a loop loads, and goes on by 1: its lanes' neighbours in memory are other lanes, not its
 * next rounds. */
static bool reads_lines(const struct ll *l)
{
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (ll_inst(l, at)->op == KIR_for && ll_inst(l, at)->imm == 1 && phis_of(l, at))
            for (uint32_t i = at; i < ll_inst(l, at)->pair; i++)
                if (ll_inst(l, i)->op == KIR_load)
                    return true;
    return false;
}

/* Long bodies fill the registers with few vectors; short ones wait for memory anyway, the less the
 * longer the runs are that they read. */
static void choose_units(struct ll *l)
{
    static const uint32_t widths[LLVM_ISAS] = {4, 8, 16}, registers[LLVM_ISAS] = {16, 16, 32};
    uint32_t lanes = l->phase->lanes, width = widths[l->cpu.isa], most, body = body_of(l);
    bool across = false;

    l->width = lanes < width ? lanes : width;
    most = lanes / l->width;
    l->units = body < 100 ? reads_lines(l) ? LL_MAX_UNITS : 4 : body < 400 ? 2 : 1;
    while (l->units > 1 && l->units * max_carried(l) > registers[l->cpu.isa] / 4 * 3)
        l->units /= 2;
    for (uint32_t at = 0; at < l->phase->n; at++)
        across |= ll_inst(l, at)->op == KIR_shift ||
                  (ll_inst(l, at)->op == KIR_barrier && max_carried(l) <= FEW_CARRIED) ||
                  (ll_inst(l, at)->op == KIR_exchange &&
                   ll_inst(l, at)->imm >= (uint64_t)l->width * l->units);
    if (across && most <= LL_MAX_UNITS && l->phase->n < 200)
        l->units = LL_MAX_UNITS;
    if (l->units > most)
        l->units = most;
    l->chunk = l->width * l->units;
}

static void attribute(struct ll *l, const char *key, const char *value)
{
    l->api->AddAttributeAtIndex(l->function, LL_FUNCTION,
                                l->api->CreateStringAttribute(l->context, key,
                                                              (unsigned)strlen(key), value,
                                                              (unsigned)strlen(value)));
}

/* Vectors that do not fit the registers are to lie in one line of memory each, which costs a
 * register for addresses.  Sums of products are planned to fit, and need all of those. */
static bool may_spill(const struct ll *l)
{
    for (uint32_t at = 0; at < l->phase->n; at++) {
        uint32_t op = ll_inst(l, at)->op, type = ll_inst(l, at)->type;
        bool real = ll_is(l, at, FACT_VARYING) && (type == KIR_F32 || type == KIR_F64);

        if (op == KIR_exchange || op == KIR_shift)
            return true;
        if (real && ll_has_row(op) && op != KIR_add && op != KIR_mul && op != KIR_fma &&
            op != KIR_dot2)
            return true;
    }
    return false;
}

static bool has_op(const struct ll *l, uint32_t op)
{
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (ll_inst(l, at)->op == op)
            return true;
    return false;
}

static void begin_function(struct ll *l, const char *name)
{
    static const char *const bits[LLVM_ISAS] = {"128", "256", "512"};
    ll_type args[4] = {l->types.ptr, l->types.ptr, l->types.ptr, l->types.ptr};
    ll_type type = l->api->FunctionType(l->api->VoidTypeInContext(l->context), args, 4, 0);
    unsigned nounwind = l->api->GetEnumAttributeKindForName("nounwind", strlen("nounwind"));

    l->function = l->api->AddFunction(l->code, name, type);
    l->api->AddAttributeAtIndex(l->function, LL_FUNCTION,
                                l->api->CreateEnumAttribute(l->context, nounwind, 0));
    attribute(l, "prefer-vector-width", bits[l->cpu.isa]);
    attribute(l, "min-legal-vector-width", bits[l->cpu.isa]);
    if (ll_has_dot2(l) && has_op(l, KIR_dot2))
        attribute(l, "target-features", "+avx512bf16");
    if (may_spill(l))
        attribute(l, "stackrealign", "");
    go_to(l, ll_new_block(l));
    l->words = l->api->GetParam(l->function, 0);
    l->group = l->api->GetParam(l->function, 2);
    l->scratch = l->api->GetParam(l->function, 3);
    l->streams = BUILD(l, ICmp, LL_NE, group_word(l, 3), ll_int(l, l->types.of[KIR_I32], 0));
    for (uint32_t i = 0; i < l->module->n_args; i++) {
        ll_value index = ll_int(l, l->types.i64, i), list = l->api->GetParam(l->function, 1);

        l->args[i] = BUILD(l, Load2, l->types.ptr, BUILD(l, GEP2, l->types.ptr, list, &index, 1));
    }
}

/* Whether an integer is linear in each chunk, and can be computed from what is. */
static bool is_linear_in_chunk(const struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const struct fact *fact = &l->facts.of[at];

    if (fact->kind != FACT_VARYING || fact->run < l->chunk || !ll_has_row(inst->op) ||
        (inst->type != KIR_I32 && inst->type != KIR_I64))
        return false;
    for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
        if (ll_is(l, inst->a[k], FACT_VARYING))
            return false;
    return true;
}

/* In a phase of one region each chunk runs from begin to end, so that a value has to be linear in
 * chunks alone; the stride may be 0. */
static void find_linear_chunks(struct ll *l)
{
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (l->regions.bounds_region[at])
            return;
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (is_linear_in_chunk(l, at)) {
            l->facts.of[at].kind = FACT_LINEAR;
            l->facts.of[at].stride = l->facts.of[at].run_stride;
        }
}

static frit_status prepare(struct ll *l, uint32_t phase, frit_err *err)
{
    size_t n = (size_t)l->phase->n + 1;

    TRY(facts_init(&l->facts, l->module, phase, err));
    TRY(regions_init(&l->regions, l->module, phase, &l->facts, l->chunk, err));
    find_linear_chunks(l);
    l->args = calloc((size_t)l->module->n_args + 1, sizeof(*l->args));
    l->scalar = calloc(n, sizeof(*l->scalar));
    l->vector = calloc(n * l->units, sizeof(*l->vector));
    l->loaded = calloc(n, sizeof(*l->loaded));
    l->slot = calloc(n, sizeof(*l->slot));
    l->tile = calloc((size_t)l->phase->n_tiles + 1, sizeof(*l->tile));
    l->block = calloc(n, sizeof(*l->block));
    l->rounds.loop = KIR_NONE;
    l->rounds.first = calloc(n, sizeof(*l->rounds.first));
    l->rounds.ahead = calloc(n, sizeof(*l->rounds.ahead));
    l->rounds.each = calloc(n, sizeof(*l->rounds.each));
    if (!l->rounds.first || !l->rounds.ahead || !l->rounds.each || !l->args || !l->scalar ||
        !l->vector || !l->loaded || !l->slot || !l->tile || !l->block)
        return fail_memory(err, n * sizeof(*l->vector) * l->units);
    return FRIT_OK;
}

static void clean(struct ll *l)
{
    facts_fini(&l->facts);
    regions_fini(&l->regions);
    free(l->args);
    free(l->scalar);
    free(l->vector);
    free(l->loaded);
    free(l->slot);
    free(l->tile);
    free(l->block);
    free(l->rounds.first);
    free(l->rounds.ahead);
    free(l->rounds.each);
}

frit_status ll_phase(struct ll *l, uint32_t phase, const char *name, frit_err *err)
{
    frit_status status;

    l->phase = &l->module->phases[phase];
    l->args = NULL;
    l->scalar = l->vector = NULL;
    l->loaded = NULL;
    l->slot = l->tile = NULL;
    l->block = NULL;
    l->rounds.first = l->rounds.ahead = l->rounds.each = NULL;
    choose_units(l);
    status = prepare(l, phase, err);
    if (!status) {
        place(l);
        begin_function(l, name);
        emit_body(l);
    }
    clean(l);
    return status;
}
