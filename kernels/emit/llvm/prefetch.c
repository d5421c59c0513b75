/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches: the lines that a load needs next are requested while the current ones are computed
 * on.
 *
 * A group leaves memory idle where it loads again what an earlier loop brought into a cache, or
 * where it computes much.  Such loads prefetch what the same load needs in the next group of the
 * grid, which the same thread is likely to run next.
 *
 * Rounds of products read an element for all lanes after the other, neighbours in one round and far
 * from those in the next one: the last one prefetches what lies behind them for the next group that
 * reads another.
 *
 * In a loop whose rounds run chunk by chunk, all lanes together, one round reads so much that the
 * hardware prefetcher does not predict the addresses of the next round.  There each load prefetches
 * for its own next round.
 *
 * The address is that of the load plus the distance by which the index grows from group to group,
 * or from round to round.  An index without such a constant distance gets no prefetch; a wrong
 * distance costs time and nothing else. */
#include "emit/llvm/prefetch.h"

#include "emit/llvm/emit.h"
#include "emit/llvm/rate.h"
#include "emit/llvm/rows.h"
#include "emit/llvm/value.h"

enum {
    BUSY = 3,              /* instructions for a load */
    SHARERS = 8,           /* groups that prefetch together */
    MAX_DEPTH = 24,        /* of an index */
    MAX_BYTES = 128 * 1024 /* of a group's loop: second caches hold this one's and the next's */
};

/* ---- what is loaded again ---- */

static bool is_run_load(const struct ll *l, uint32_t at, uint64_t arg)
{
    const struct kir_inst *inst = ll_inst(l, at);
    const struct fact *fact;

    if (inst->op != KIR_load || inst->imm != arg)
        return false;
    fact = &l->facts.of[inst->a[0]];
    return fact->kind == FACT_LINEAR && fact->stride == 1;
}

struct ll_around ll_loops_around(const struct ll *l, uint32_t at)
{
    struct ll_around around = {KIR_NONE, KIR_NONE};

    for (uint32_t i = 0; i < at; i++) {
        if (ll_inst(l, i)->op != KIR_for || ll_inst(l, i)->pair < at)
            continue;
        if (around.outer == KIR_NONE)
            around.outer = i;
        around.inner = i;
    }
    return around;
}

/* Whether a loop of those from one place on, before another, loads from the argument. */
static bool is_loaded_in(const struct ll *l, uint32_t from, uint32_t end, uint64_t arg)
{
    for (uint32_t i = from; i < end; i++)
        if (is_run_load(l, i, arg) && ll_loops_around(l, i).outer != KIR_NONE)
            return true;
    return false;
}

uint32_t ll_work(const struct ll *l, uint32_t from, uint32_t end)
{
    uint32_t work = 0;

    for (uint32_t i = from; i < end; i++) {
        uint32_t op = ll_inst(l, i)->op;

        if (ll_has_row(op) && ll_is(l, i, FACT_VARYING))
            work += op == KIR_fmax || op == KIR_fmin ? 3 : 1; /* NaN is looked for */
    }
    return work;
}

/* Whether so much is computed that a processor sees few of the loads at once. */
static bool is_busy(const struct ll *l, uint32_t from, uint32_t end)
{
    uint32_t loads = 0;

    for (uint32_t i = from; i < end; i++)
        loads += ll_inst(l, i)->op == KIR_load;
    return ll_work(l, from, end) >= BUSY * loads;
}

/* The last loop that loads from the argument, if one before it did, or it is busy: one that does
 * little but load keeps memory at work by itself. */
static bool is_worth(const struct ll *l, uint32_t loop, uint64_t arg)
{
    return !is_loaded_in(l, ll_inst(l, loop)->pair, l->phase->n, arg) &&
           (is_loaded_in(l, 0, loop, arg) || is_busy(l, loop, ll_inst(l, loop)->pair));
}

/* ---- prefetching ---- */

/* The rate, but 0 where the loop goes over more than caches hold. */
static ll_value bounded(struct ll *l, uint32_t loop, ll_value rate, uint32_t bytes)
{
    const uint32_t *bounds = l->module->links + ll_inst(l, loop)->a[0];
    ll_type type = l->types.of[ll_inst(l, loop)->type], i64 = l->types.i64;
    ll_value count = BUILD(l, Sub, l->scalar[bounds[1]], l->scalar[bounds[0]]);
    ll_value fits = BUILD(l, ICmp, LL_ULE, count, ll_int(l, type, MAX_BYTES / bytes));

    return BUILD(l, Select, fits, rate, ll_int(l, i64, 0));
}

ll_value ll_next_distance(struct ll *l, uint32_t at, uint32_t bytes)
{
    const struct kir_inst *load = ll_inst(l, at);
    const struct ll_around around = ll_loops_around(l, at);
    bool loops = around.outer != KIR_NONE;
    ll_value next;

    if (!is_run_load(l, at, load->imm))
        return NULL;
    if (loops && l->regions.bounds_region[around.outer])
        return ll_distance(&(struct ll_steps){l, around.inner, LL_QUOTIENTS_STAY}, load);
    if (loops ? !is_worth(l, around.outer, load->imm) : !is_busy(l, 0, l->phase->n))
        return NULL;
    next = ll_distance(&(struct ll_steps){l, KIR_NONE, LL_QUOTIENTS_STAY}, load);
    return loops && next ? bounded(l, around.outer, next, bytes) : next;
}

/* The number of the group; NULL: it is not used. */
static ll_value group_of(const struct ll *l)
{
    for (uint32_t i = 0; i < l->phase->n; i++)
        if (ll_inst(l, i)->op == KIR_group && ll_inst(l, i)->imm == 0)
            return l->scalar[i];
    return NULL;
}

/* An index of a loop's rounds at their begin; NULL: it is of other instructions too. */
static ll_value at_begin(struct ll *l, uint32_t loop, uint32_t value, uint32_t depth)
{
    const struct kir_inst *inst = ll_inst(l, value);
    ll_value a, b;

    if (value == loop)
        return l->scalar[l->module->links[inst->a[0]]];
    if (value < loop || inst->op == KIR_const || inst->op == KIR_param)
        return l->scalar[value];
    if (depth == MAX_DEPTH || (inst->op != KIR_add && inst->op != KIR_mul))
        return NULL;
    a = at_begin(l, loop, inst->a[0], depth + 1);
    b = at_begin(l, loop, inst->a[1], depth + 1);
    if (!a || !b)
        return NULL;
    return inst->op == KIR_add ? BUILD(l, Add, a, b) : BUILD(l, Mul, a, b);
}

static ll_value wide_index(struct ll *l, uint32_t like, ll_value value)
{
    return ll_inst(l, like)->type == KIR_I32 ? BUILD(l, SExt, value, l->types.i64) : value;
}

ll_value ll_shared_begin(struct ll *l, uint32_t loop, uint32_t at, ll_value *each)
{
    const struct ll_steps quotients = {l, KIR_NONE, LL_QUOTIENTS_GROW};
    const struct ll_steps rounds = {l, loop, LL_NO_QUOTIENTS};
    const struct kir_inst *load = ll_inst(l, at);
    const uint32_t *bounds = l->module->links + ll_inst(l, loop)->a[0];
    ll_value sharers = ll_int(l, l->types.of[KIR_I32], SHARERS - 1), number = group_of(l);
    ll_value first, next, all;

    if (!number || !is_run_load(l, at, load->imm))
        return NULL;
    first = at_begin(l, loop, load->a[0], 0);
    next = first ? ll_distance(&quotients, load) : NULL;
    *each = next ? ll_distance(&rounds, load) : NULL;
    if (!*each)
        return NULL;
    *each = BUILD(l, SDiv, *each, ll_int(l, l->types.i64, SHARERS));
    all = BUILD(l, Sub, l->scalar[bounds[1]], l->scalar[bounds[0]]);
    all = BUILD(l, Mul, wide_index(l, loop, all), *each);
    number = BUILD(l, ZExt, BUILD(l, And, number, sharers), l->types.i64);
    first = BUILD(l, Add, wide_index(l, load->a[0], first), next);
    first = BUILD(l, Add, first, BUILD(l, Mul, all, number));
    return BUILD(l, Sub, first, BUILD(l, Mul, wide_index(l, loop, l->scalar[bounds[0]]), *each));
}

/* Whether rounds of products load from the argument once more, after this load. */
static bool is_loaded_again(const struct ll *l, uint32_t at)
{
    for (uint32_t i = at + 1; i < ll_inst(l, l->rounds.loop)->pair; i++)
        if (ll_inst(l, i)->op == KIR_load && ll_inst(l, i)->imm == ll_inst(l, at)->imm)
            return true;
    return false;
}

ll_value ll_same_distance(struct ll *l, uint32_t at)
{
    const struct ll_steps groups = {l, KIR_NONE, LL_QUOTIENTS_STAY};
    const struct ll_steps quotients = {l, KIR_NONE, LL_QUOTIENTS_GROW};
    ll_value next;

    if (l->rounds.loop == KIR_NONE || ll_inst(l, at)->op != KIR_load || is_loaded_again(l, at))
        return NULL;
    next = ll_distance(&groups, ll_inst(l, at));
    return next ? next : ll_distance(&quotients, ll_inst(l, at));
}

void ll_prefetch(struct ll *l, ll_value place, bool shared)
{
    ll_type i32 = l->types.of[KIR_I32], type = l->types.ptr;
    ll_value args[4] = {place, ll_int(l, i32, 0), ll_int(l, i32, shared ? 2 : 1),
                        ll_int(l, i32, 1)};

    (void)ll_call(l, "llvm.prefetch", &type, 1, args, 4);
}
