/* SPDX-License-Identifier: Apache-2.0 */
/* Unrolling: several rounds of a loop of products are emitted one after another, each with a test
 * whether it is to run.  Offsets are found once for all of these rounds: a load in a later one adds
 * the distance by which its index has grown since, which is a part of the address where it is a
 * constant.
 *
 * What is loaded in these rounds is in bounds: differences of offsets are those of numbers without
 * a sign, whatever wraps in between. */
#include "emit/llvm/unroll.h"

#include "emit/llvm/divide.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/nibble.h"
#include "emit/llvm/prefetch.h"
#include "emit/llvm/rate.h"
#include "emit/llvm/rows.h"
#include "emit/llvm/value.h"

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
