/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches: the lines that a load needs next are requested while the current ones are computed
 * on.
 *
 * A group leaves memory idle where it loads again what an earlier loop brought into a cache, or
 * where it computes much.  Such loads prefetch what the same load needs in the next group of the
 * grid, which the same thread is likely to run next.
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
#include "emit/llvm/rows.h"
#include "emit/llvm/value.h"

enum {
    BUSY = 3,              /* instructions for a load */
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

/* ---- how fast an index grows ---- */

/* From group to group, or from round to round of a loop. */
struct prefetch_scope {
    struct ll *l;
    uint32_t loop; /* KIR_NONE: groups */
};

/* By how much a value is larger a step later: `grows` false, by nothing. */
struct rate {
    bool known, grows;
    ll_value value;
};

static struct rate rate_of(const struct prefetch_scope *s, uint32_t value, uint32_t depth);

static struct rate rate_of_sum(struct ll *l, const struct kir_inst *inst, struct rate a,
                               struct rate b)
{
    if (!b.grows)
        return a;
    if (inst->op == KIR_add && a.grows)
        a.value = BUILD(l, Add, a.value, b.value);
    else if (inst->op == KIR_add)
        a.value = b.value;
    else if (a.grows)
        a.value = BUILD(l, Sub, a.value, b.value);
    else
        a.known = false;
    a.grows = true;
    return a;
}

/* A product with what is the same in all steps, and for all lanes. */
static struct rate rate_of_product(struct ll *l, const struct kir_inst *inst, struct rate a,
                                   struct rate b)
{
    uint32_t other = inst->a[a.grows];

    a.known = a.grows != b.grows && ll_is(l, other, FACT_UNIFORM);
    if (!a.known)
        return a;
    a.value = BUILD(l, Mul, a.grows ? a.value : b.value, l->scalar[other]);
    a.grows = true;
    return a;
}

static struct rate rate_of_two(const struct prefetch_scope *s, uint32_t value, uint32_t depth)
{
    const struct kir_inst *inst = ll_inst(s->l, value);
    struct rate a = rate_of(s, inst->a[0], depth), b = rate_of(s, inst->a[1], depth);

    if (!a.known || !b.known)
        return (struct rate){.known = false};
    if (!a.grows && !b.grows)
        return a;
    if (inst->op == KIR_add || inst->op == KIR_sub)
        return rate_of_sum(s->l, inst, a, b);
    if (inst->op == KIR_mul)
        return rate_of_product(s->l, inst, a, b);
    return (struct rate){.known = false};
}

static struct rate rate_of(const struct prefetch_scope *s, uint32_t value, uint32_t depth)
{
    const struct kir_inst *inst = ll_inst(s->l, value);
    struct ll *l = s->l;
    ll_type type = l->types.of[inst->type];
    struct rate rate = {.known = true};

    if (depth == MAX_DEPTH || (inst->type != KIR_I32 && inst->type != KIR_I64))
        return (struct rate){.known = false};
    switch (inst->op) {
    case KIR_const:
    case KIR_param:
    case KIR_lane:
        return rate;
    case KIR_group:
        return (struct rate){true, s->loop == KIR_NONE && inst->imm == 0, ll_int(l, type, 1)};
    case KIR_for:
        if (value == s->loop)
            return (struct rate){true, true, ll_int(l, type, inst->imm)};
        return rate_of(s, l->module->links[inst->a[0]], depth + 1);
    case KIR_i64:
        rate = rate_of(s, inst->a[0], depth + 1);
        if (rate.known && rate.grows)
            rate.value = BUILD(l, SExt, rate.value, type);
        return rate;
    case KIR_mulhi: /* quotients stay as they are in most steps */
    case KIR_shr:
        rate = rate_of(s, inst->a[0], depth + 1);
        rate.grows = false;
        return rate;
    case KIR_add:
    case KIR_sub:
    case KIR_mul:
        return rate_of_two(s, value, depth + 1);
    default:
        rate.known = false;
        return rate;
    }
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

/* How far it is to where a load reads a step later; NULL: unknown. */
static ll_value distance_after(const struct prefetch_scope *s, const struct kir_inst *load)
{
    struct ll *l = s->l;
    struct rate rate;

    l->wide = false;
    rate = rate_of(s, load->a[0], 0);
    if (!rate.known || !rate.grows)
        return NULL;
    if (ll_inst(l, load->a[0])->type == KIR_I32)
        rate.value = BUILD(l, SExt, rate.value, l->types.i64);
    return rate.value;
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
        return distance_after(&(struct prefetch_scope){l, around.inner}, load);
    if (loops ? !is_worth(l, around.outer, load->imm) : !is_busy(l, 0, l->phase->n))
        return NULL;
    next = distance_after(&(struct prefetch_scope){l, KIR_NONE}, load);
    return loops && next ? bounded(l, around.outer, next, bytes) : next;
}

void ll_prefetch(struct ll *l, ll_value place)
{
    ll_type i32 = l->types.of[KIR_I32], type = l->types.ptr;
    ll_value args[4] = {place, ll_int(l, i32, 0), ll_int(l, i32, 1), ll_int(l, i32, 1)};

    (void)ll_call(l, "llvm.prefetch", &type, 1, args, 4);
}
