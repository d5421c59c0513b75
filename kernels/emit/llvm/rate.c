/* SPDX-License-Identifier: Apache-2.0 */
/* By how much an index grows from step to step: from its instructions, back to the counter of a
 * loop or the number of the group. */
#include "emit/llvm/rate.h"

#include <stdbool.h>

#include "emit/llvm/emit.h"
#include "emit/llvm/value.h"

enum { MAX_DEPTH = 24 /* of an index */ };

/* By how much a value is larger a step later: `grows` false, by nothing. */
struct rate {
    bool known, grows;
    ll_value value;
};

static struct rate rate_of(const struct ll_steps *s, uint32_t value, uint32_t depth);

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

static struct rate rate_of_two(const struct ll_steps *s, uint32_t value, uint32_t depth)
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

static struct rate rate_of_quotient(const struct ll_steps *s, const struct kir_inst *inst,
                                    uint32_t depth)
{
    struct rate rate = rate_of(s, inst->a[0], depth);

    rate.known = rate.known && !(rate.grows && s->quotients == LL_NO_QUOTIENTS);
    rate.grows = rate.grows && s->quotients == LL_QUOTIENTS_GROW;
    rate.value = rate.grows ? ll_int(s->l, s->l->types.of[inst->type], 1) : NULL;
    return rate;
}

static struct rate rate_of(const struct ll_steps *s, uint32_t value, uint32_t depth)
{
    const struct kir_inst *inst = ll_inst(s->l, value);
    struct ll *l = s->l;
    ll_type type = l->types.of[inst->type];
    struct rate rate = {.known = true};

    if (s->loop != KIR_NONE && value < s->loop) /* nothing before the loop depends on its rounds */
        return rate;
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
    case KIR_mulhi:
    case KIR_shr:
        return rate_of_quotient(s, inst, depth + 1);
    case KIR_and: /* of the lane's number */
        rate = rate_of(s, inst->a[0], depth + 1);
        rate.known = rate.known && !rate.grows;
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

ll_value ll_distance(const struct ll_steps *s, const struct kir_inst *load)
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
