/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred stores: non-temporal stores of one group that the next group carries out.
 *
 * A loop that mainly stores is bound by memory, above all where its stores bypass the caches, and
 * the processor computes nothing meanwhile.  If an earlier loop of the phase has the same counters
 * and computes much, the storing loop writes its values to scratch memory instead.
 *
 * When the thread runs its next group, each round of the computing loop stores a part of these
 * values.  Their address is kept in scratch memory too, so that groups may run in any order. Values
 * that do not fit into scratch memory are stored at once. */
#include "emit/llvm/deferred.h"

#include "emit/llvm/convert.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/memory.h"
#include "emit/llvm/prefetch.h"
#include "emit/llvm/value.h"

#include <stddef.h>

#include "emit/llvm/blob.h"

enum { BUSY = 12 /* instructions of a round for a vector */ };

static const uint32_t *bounds_of(const struct ll *l, uint32_t loop)
{
    return l->module->links + ll_inst(l, loop)->a[0];
}

static uint32_t round_work(const struct ll *l, uint32_t loop)
{
    return ll_work(l, loop, ll_inst(l, loop)->pair);
}

/* ---- which ---- */

/* Whether a value at the entry is the same for all groups. */
static bool is_fixed(const struct ll *l, uint32_t value)
{
    const struct kir_inst *inst = ll_inst(l, value);
    bool fixed = l->regions.home[value] == REGION_ENTRY && inst->op != KIR_group;

    for (uint32_t k = 0; fixed && k < kir_op_info(inst->op)->n; k++)
        fixed = is_fixed(l, inst->a[k]);
    return fixed;
}

/* Whether no other instruction of the phase loads from the store's argument or stores to it: then
 * the store may be delayed.  False for rows with a tail, since a second instruction stores the
 * tail. */
static bool is_alone(const struct ll *l, uint32_t store)
{
    for (uint32_t i = 0; i < l->phase->n; i++)
        if (i != store && kir_op_info(ll_inst(l, i)->op)->imm == KIR_IMM_ARG &&
            ll_inst(l, i)->imm == ll_inst(l, store)->imm)
            return false;
    return true;
}

/* Whether the loop has no other inside and its rounds, of one chunk each, go over neighbours from a
 * first one that is fixed. */
static bool is_sweep(const struct ll *l, uint32_t loop)
{
    if (ll_inst(l, loop)->imm != l->chunk || !is_fixed(l, bounds_of(l, loop)[0]) ||
        !is_fixed(l, bounds_of(l, loop)[1]))
        return false;
    for (uint32_t i = loop + 1; i < ll_inst(l, loop)->pair; i++)
        if (ll_inst(l, i)->op == KIR_for || ll_inst(l, i)->op == KIR_if)
            return false;
    return true;
}

static bool is_candidate(const struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const struct fact *fact;
    uint32_t loop;

    if (inst->op != KIR_store || !is_alone(l, at))
        return false;
    fact = &l->facts.of[inst->a[0]];
    loop = ll_loops_around(l, at).outer;
    return fact->kind == FACT_LINEAR && fact->stride == 1 && loop != KIR_NONE &&
           is_sweep(l, loop) && round_work(l, loop) < BUSY;
}

static bool is_same(const struct ll *l, uint32_t a, uint32_t b)
{
    const struct kir_inst *x = ll_inst(l, a), *y = ll_inst(l, b);

    return a == b || (x->op == KIR_const && y->op == KIR_const && x->imm == y->imm);
}

static bool have_same_rounds(const struct ll *l, uint32_t a, uint32_t b)
{
    return is_same(l, bounds_of(l, a)[0], bounds_of(l, b)[0]) &&
           is_same(l, bounds_of(l, a)[1], bounds_of(l, b)[1]);
}

/* A busy loop before another that has the same rounds, by itself, so that groups run it: one that
 * does not stores at once.  KIR_NONE: there is none. */
static uint32_t busy_before(const struct ll *l, uint32_t loop)
{
    for (uint32_t i = 0; i < loop; i++) {
        if (ll_inst(l, i)->op != KIR_for || ll_inst(l, i)->pair > loop)
            continue;
        if (have_same_rounds(l, i, loop) && !l->regions.inside[i] && is_sweep(l, i) &&
            round_work(l, i) >= BUSY)
            return i;
    }
    return KIR_NONE;
}

static uint32_t dtype_of(const struct ll *l)
{
    return l->module->args[ll_inst(l, l->deferred.store)->imm].dtype;
}

void ll_plan_deferred(struct ll *l)
{
    l->deferred = (struct ll_deferred){.store = KIR_NONE, .loop = KIR_NONE};
    if (l->width == 1 || l->chunk < l->phase->lanes || !ll_may_stream(l))
        return;
    for (uint32_t at = 0; at < l->phase->n && l->deferred.loop == KIR_NONE; at++) {
        if (!is_candidate(l, at))
            continue;
        l->deferred.loop = busy_before(l, ll_loops_around(l, at).outer);
        l->deferred.store = at;
    }
    if (l->deferred.loop == KIR_NONE)
        l->deferred.store = KIR_NONE;
    else
        l->deferred.bytes = (uint32_t)frit_storage_bytes(dtype_of(l), l->chunk);
}

/* ---- what is held ---- */

static ll_value byte_at(struct ll *l, ll_value base, ll_value offset)
{
    return BUILD(l, GEP2, l->types.i8, base, &offset, 1);
}

static ll_value field(struct ll *l, size_t offset)
{
    return byte_at(l, l->scratch, ll_int(l, l->types.i64, l->deferred.at + offset));
}

/* Of the round that a loop is in, in bytes from the first one's. */
static ll_value offset_in(struct ll *l, uint32_t loop)
{
    ll_type i64 = l->types.i64;
    ll_value rounds = BUILD(l, Sub, l->scalar[loop], l->scalar[bounds_of(l, loop)[0]]);

    if (ll_inst(l, loop)->type == KIR_I32)
        rounds = BUILD(l, ZExt, rounds, i64);
    return BUILD(l, Mul, rounds, ll_int(l, i64, l->deferred.bytes / l->chunk));
}

static ll_value unit_at(struct ll *l, ll_value base, ll_value offset, uint32_t unit)
{
    uint64_t bytes = (uint64_t)unit * (l->deferred.bytes / l->units);

    return byte_at(l, base, BUILD(l, Add, offset, ll_int(l, l->types.i64, bytes)));
}

void ll_take_held(struct ll *l)
{
    ll_type i64 = l->types.i64;
    ll_value none = ll_int(l, i64, 0), bytes;

    l->deferred.to = BUILD(l, Load2, l->types.ptr, field(l, offsetof(struct blob_deferred, to)));
    bytes = BUILD(l, Load2, i64, field(l, offsetof(struct blob_deferred, bytes)));
    l->deferred.left = BUILD(l, Select, l->streams, bytes, none);
    l->api->BuildStore(l->builder, none, field(l, offsetof(struct blob_deferred, bytes)));
}

void ll_store_held(struct ll *l)
{
    ll_block yes = ll_new_block(l), after = ll_new_block(l);
    ll_type type = ll_vector_of(l, ll_memory_type(l, dtype_of(l)));
    ll_value offset = offset_in(l, l->deferred.loop);
    uint32_t align = ll_stream_align(l, l->deferred.bytes / l->chunk);

    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_ULT, offset, l->deferred.left), yes, after);
    l->api->PositionBuilderAtEnd(l->builder, yes);
    for (uint32_t u = 0; u < l->units; u++) {
        ll_value from = unit_at(l, field(l, sizeof(struct blob_deferred)), offset, u);
        ll_value raw = BUILD(l, Load2, type, from);

        l->api->SetAlignment(raw, 1);
        ll_stream(l, raw, unit_at(l, l->deferred.to, offset, u), align);
    }
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, after);
}

/* What is held is one piece from the first round on. */
void ll_hold_back(struct ll *l, const ll_value *raw, ll_value to, ll_block full, ll_block after)
{
    ll_type i64 = l->types.i64;
    ll_block keep = ll_new_block(l);
    ll_value offset = offset_in(l, ll_loops_around(l, l->deferred.store).outer);
    ll_value end = BUILD(l, Add, offset, ll_int(l, i64, l->deferred.bytes));
    ll_value bytes = field(l, offsetof(struct blob_deferred, bytes)), place, same, next, fits;
    ll_value first = field(l, offsetof(struct blob_deferred, to));

    place = byte_at(l, to, BUILD(l, Sub, ll_int(l, i64, 0), offset));
    same = BUILD(l, ICmp, LL_EQ, place, BUILD(l, Load2, l->types.ptr, first));
    same = BUILD(l, Or, same, BUILD(l, ICmp, LL_EQ, offset, ll_int(l, i64, 0)));
    next = BUILD(l, ICmp, LL_EQ, offset, BUILD(l, Load2, i64, bytes));
    fits = BUILD(l, ICmp, LL_ULE, end, ll_int(l, i64, BLOB_HELD));
    fits = BUILD(l, And, fits, BUILD(l, And, same, next));
    l->api->BuildCondBr(l->builder, fits, keep, full);
    l->api->PositionBuilderAtEnd(l->builder, keep);
    for (uint32_t u = 0; u < l->units; u++)
        l->api->SetAlignment(
            l->api->BuildStore(l->builder, raw[u],
                               unit_at(l, field(l, sizeof(struct blob_deferred)), offset, u)),
            1);
    l->api->BuildStore(l->builder, place, first);
    l->api->BuildStore(l->builder, end, bytes);
    l->api->BuildBr(l->builder, after);
}
