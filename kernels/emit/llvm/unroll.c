/* SPDX-License-Identifier: Apache-2.0 */
/* Unrolling: several rounds of a loop of products are emitted one after another, each with a test
 * whether it is to run.  Offsets are found once for all of these rounds: a load in a later one adds
 * the distance by which its index has grown since, which is a part of the address where it is a
 * constant.
 *
 * What is loaded in these rounds is in bounds: differences of offsets are those of numbers without
 * a sign, whatever wraps in between. */
#include "emit/llvm/unroll.h"

#include <string.h>

#include "emit/llvm/control.h"
#include "emit/llvm/divide.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/nibble.h"
#include "emit/llvm/prefetch.h"
#include "emit/llvm/rate.h"
#include "emit/llvm/rows.h"
#include "emit/llvm/value.h"

/* ---- which loops, and where their loads are ---- */

enum {
    LEAST_PRODUCTS = 6, /* vectors in a round, which pay for the code */
    MOST_PRODUCTS = 32  /* likewise, that are enough to hide what a round needs beside them */
};

static bool stays_in_round(const struct ll *l, uint32_t loop, uint32_t value)
{
    const struct kir_inst *next = ll_inst(l, ll_inst(l, loop)->pair);

    return value > loop + next->a[1] && value < ll_inst(l, loop)->pair;
}

/* Whether an instruction may be emitted several times, one after another. */
static bool repeats(const struct ll *l, uint32_t at)
{
    uint32_t op = ll_inst(l, at)->op;

    if (l->regions.home[at] == REGION_HELD || ll_is_nibble(l, at))
        return false;
    if (ll_has_row(op))
        return !ll_shares_divisor(l, at);
    return op == KIR_load || op == KIR_const || op == KIR_param;
}

uint32_t ll_rounds_together(const struct ll *l, uint32_t loop)
{
    const struct kir_inst *next = ll_inst(l, ll_inst(l, loop)->pair);
    uint32_t n = next->a[1], products = 0;

    if (l->regions.bounds_region[loop] || l->deferred.loop == loop || !n ||
        n * l->units > LL_MAX_CARRIED)
        return 1;
    for (uint32_t i = 0; i < n; i++)
        if (!ll_is(l, loop + 1 + i, FACT_VARYING) ||
            !stays_in_round(l, loop, l->module->links[next->a[0] + i]))
            return 1;
    for (uint32_t at = loop + 1 + n; at < ll_inst(l, loop)->pair; at++) {
        if (!repeats(l, at))
            return 1;
        if (ll_inst(l, at)->op == KIR_fma && ll_is(l, at, FACT_VARYING))
            products += l->units;
    }
    return products >= LEAST_PRODUCTS && products <= MOST_PRODUCTS ? LL_TOGETHER : 1;
}

ll_value ll_offset_in_round(struct ll *l, uint32_t load, ll_value offset)
{
    const struct ll_steps steps = {l, l->rounds.loop, LL_NO_QUOTIENTS};
    ll_value by;

    if (!l->rounds.number)
        return l->rounds.first[load] = offset;
    by = ll_distance(&steps, ll_inst(l, load));
    if (!by)
        return offset;
    by = BUILD(l, Mul, by, ll_int(l, l->types.i64, l->rounds.number));
    return BUILD(l, Add, l->rounds.first[load], by);
}

/* ---- the rounds ---- */

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
    ll_go_to(l, round);
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

void ll_rounds(struct ll *l, uint32_t at, uint32_t n)
{
    struct leaving leaving = {.n = ll_phis_of(l, at) * l->units,
                              .carried = l->vector + (size_t)(at + 1) * l->units};
    ll_value counter;

    for (uint32_t i = at + 1; i < ll_inst(l, at)->pair; i++)
        l->rounds.ahead[i] = ll_shared_begin(l, at, i, &l->rounds.each[i]);
    ll_for(l, at);
    counter = l->scalar[at];
    may_leave(&leaving, l->block[at]);
    l->rounds.loop = at;
    for (l->rounds.number = 0; l->rounds.number < n; l->rounds.number++) {
        if (l->rounds.number)
            go_on(l, at, counter, &leaving);
        for (uint32_t i = at + 1 + ll_phis_of(l, at); i < ll_inst(l, at)->pair; i++)
            if (l->regions.home[i] < REGION_GROUP)
                ll_emit(l, i);
    }
    l->rounds.loop = KIR_NONE;
    ll_set(l, at, counter);
    memcpy(leaving.carried, leaving.with[0], leaving.n * sizeof(ll_value));
    ll_repeat(l, ll_inst(l, at)->pair, n);
    join_ways(l, at, &leaving);
    ll_leave(l, ll_inst(l, at)->pair);
}
