/* SPDX-License-Identifier: Apache-2.0 */
/* A phase as a function: how wide its chunks are, where its values lie, what is known at the
 * entry. */
#include "emit/llvm/phase.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#include "emit/llvm/blob.h"
#include "emit/llvm/control.h"
#include "emit/llvm/deferred.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/rows.h"
#include "emit/llvm/value.h"

/* ---- where values lie ---- */

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

/* ---- how many lanes a chunk has ---- */

enum {
    ONCE = 4,        /* instructions beside loops, for one in them */
    FEW_CARRIED = 2, /* values, of which many vectors fit the registers */
    OPERANDS = 4     /* vectors that products need beside what loops carry */
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
        if (ll_inst(l, at)->op == KIR_for && ll_phis_of(l, at) > most)
            most = ll_phis_of(l, at);
    return most;
}

/* Whether a loop loads, and goes on by 1: its lanes' neighbours in memory are other lanes, not its
 * next rounds. */
static bool reads_lines(const struct ll *l)
{
    for (uint32_t at = 0; at < l->phase->n; at++)
        if (ll_inst(l, at)->op == KIR_for && ll_inst(l, at)->imm == 1 && ll_phis_of(l, at))
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
    while (l->units > 1 && l->units * max_carried(l) > registers[l->cpu.isa] - OPERANDS)
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

/* ---- the function ---- */

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
    ll_go_to(l, ll_new_block(l));
    l->words = l->api->GetParam(l->function, 0);
    l->group = l->api->GetParam(l->function, 2);
    l->scratch = l->api->GetParam(l->function, 3);
    l->streams = BUILD(l, ICmp, LL_NE, ll_group_word(l, 3), ll_int(l, l->types.of[KIR_I32], 0));
    for (uint32_t i = 0; i < l->module->n_args; i++) {
        ll_value index = ll_int(l, l->types.i64, i), list = l->api->GetParam(l->function, 1);

        l->args[i] = BUILD(l, Load2, l->types.ptr, BUILD(l, GEP2, l->types.ptr, list, &index, 1));
    }
}

/* ---- what is known of values ---- */

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
        ll_emit_body(l);
    }
    clean(l);
    return status;
}
