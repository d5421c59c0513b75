/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a phase: what is known at the entry, then region after region, each a loop over
 * chunks of lanes, with the ops that cut between them. */
#include "emit/llvm/emit.h"

#include <assert.h>
#include <string.h>

#include "emit/llvm/control.h"
#include "emit/llvm/divide.h"
#include "emit/llvm/group.h"
#include "emit/llvm/memory.h"
#include "emit/llvm/nibble.h"
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

ll_value ll_group_word(struct ll *l, uint64_t number)
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

/* The float that an instruction tests for NaN; KIR_NONE: it is no such test. */
static uint32_t tested_for_nan(const struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    uint32_t type = inst->op == KIR_ne ? ll_inst(l, inst->a[0])->type : KIR_VOID;

    return inst->op == KIR_ne && inst->a[0] == inst->a[1] && (type == KIR_F32 || type == KIR_F64)
               ? inst->a[0]
               : KIR_NONE;
}

/* Emits "a or b is NaN" as one comparison of both.  Tests in other regions are left alone: `a` and
 * `b` may not be available here. */
static bool emit_nan_test(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = ll_inst(l, at);
    uint32_t a, b;

    if (inst->op != KIR_or || inst->type != KIR_B)
        return false;
    a = tested_for_nan(l, inst->a[0]);
    b = tested_for_nan(l, inst->a[1]);
    if (a == KIR_NONE || b == KIR_NONE || ll_inst(l, a)->type != ll_inst(l, b)->type ||
        l->regions.region[inst->a[0]] != l->region || l->regions.region[inst->a[1]] != l->region)
        return false;
    for (uint32_t u = 0; u < l->units; u++) {
        ll_value first = ll_at(l, a, u), second = ll_at(l, b, u);

        l->wide = true;
        l->vector[(size_t)at * l->units + u] = BUILD(l, FCmp, LL_UNO, first, second);
    }
    return true;
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
    if (emit_nan_test(l, at))
        return;
    for (uint32_t u = 0; u < l->units; u++) {
        for (uint32_t k = 0; k < n; k++)
            a[k] = ll_at(l, inst->a[k], u);
        l->wide = true;
        l->vector[(size_t)at * l->units + u] = ll_row(l, inst, a);
    }
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
    ll_set(l, at, ll_group_word(l, ll_inst(l, at)->imm));
}

/* The chunk's beginning and the loop's head have set them; one thread needs no barrier. */
static void emit_nothing(struct ll *l, uint32_t at)
{
    (void)l;
    (void)at;
}

typedef void (*inst_fn)(struct ll *l, uint32_t at);

static const inst_fn steps[KIR_OPS] = {
    [KIR_const] = emit_const,     [KIR_param] = emit_param,
    [KIR_lane] = emit_nothing,    [KIR_group] = emit_group,
    [KIR_load] = ll_access,       [KIR_load_if] = ll_access,
    [KIR_store] = ll_access,      [KIR_store_if] = ll_access,
    [KIR_tload] = ll_access,      [KIR_tstore] = ll_access,
    [KIR_tstore_if] = ll_access,  [KIR_atomic_add] = ll_atomic_add,
    [KIR_barrier] = emit_nothing, [KIR_exchange] = ll_exchange,
    [KIR_shift] = ll_shift,       [KIR_first] = ll_first,
    [KIR_for] = ll_for,           [KIR_phi] = emit_nothing,
    [KIR_next] = ll_next,         [KIR_if] = ll_if,
    [KIR_end] = ll_end,
};

void ll_emit(struct ll *l, uint32_t at)
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

/* ---- regions ---- */

static void begin_chunks(struct ll *l)
{
    ll_type i32 = l->types.of[KIR_I32];

    l->lane0 = ll_int(l, i32, 0);
    if (l->chunk < l->phase->lanes) {
        l->chunk_before = l->api->GetInsertBlock(l->builder);
        l->chunk_begin = ll_new_block(l);
        l->api->BuildBr(l->builder, l->chunk_begin);
        ll_go_to(l, l->chunk_begin);
        l->lane0 = ll_phi(l, i32, l->lane0, l->chunk_before);
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
    ll_go_to(l, after);
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
    uint32_t phi = (enters ? at : inst->pair) + 1, n = ll_phis_of(l, phi - 1);

    for (uint32_t i = 0; i < n; i++)
        ll_carry(l, enters ? ll_inst(l, phi + i)->a[0] : l->module->links[inst->a[0] + i], phi + i);
}

static bool carries(const struct ll *l, uint32_t at)
{
    uint32_t op = at < l->phase->n ? ll_inst(l, at)->op : KIR_barrier;

    return (op == KIR_for && ll_phis_of(l, at)) || (op == KIR_next && ll_inst(l, at)->a[1]);
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
            ll_emit(l, at);
    if (is_idle(l, from, end))
        return;
    begin_chunks(l);
    for (uint32_t at = from; at < end; at++)
        need_operands(l, at);
    if (carries(l, end)) {
        bool enters = ll_inst(l, end)->op == KIR_for;

        for (uint32_t i = 0; enters && i < ll_phis_of(l, end); i++)
            need(l, ll_inst(l, end + 1 + i)->a[0]);
        if (!enters)
            need_operands(l, end);
    }
    for (uint32_t at = from; at < end; at++) {
        uint32_t n = ll_inst(l, at)->op == KIR_for ? ll_rounds_together(l, at) : 1;

        if (n > 1) {
            ll_rounds(l, at, n);
            at = ll_inst(l, at)->pair;
        } else if (l->regions.home[at] < REGION_GROUP) {
            ll_emit(l, at);
        }
    }
    if (!carries(l, end)) {
        end_chunks(l);
        return;
    }
    carry(l, end);
    end_chunks(l);
    opener = ll_inst(l, end)->op == KIR_for ? end : ll_inst(l, end)->pair;
    for (uint32_t i = 0; i < ll_phis_of(l, opener); i++)
        ll_carried(l, opener + 1 + i);
}

/* ---- between regions ---- */

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
    [KIR_for] = ll_group_for,     [KIR_next] = ll_group_next,   [KIR_if] = ll_group_if,
    [KIR_end] = ll_end,           [KIR_barrier] = emit_nothing, [KIR_first] = group_first,
    [KIR_exchange] = group_cross, [KIR_shift] = group_cross,
};

void ll_emit_body(struct ll *l)
{
    uint32_t from = 0;

    for (uint32_t at = 0; at < l->phase->n; at++)
        if (l->regions.home[at] == REGION_ENTRY)
            ll_emit(l, at);
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
