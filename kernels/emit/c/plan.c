/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a phase: ops of the group end a region, and so do the ends of loops and branches that
 * have such ops inside.  What is made of nothing but values of the group, without memory, is a
 * value of the group itself.  Other values are local where all their uses are in their region,
 * else held.  Values that nothing needs are left out; among them are loads from arguments that may
 * have no memory. */
#include "emit/c/plan.h"

#include <stdlib.h>

#include "base/fail.h"

struct statement_region {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const bool *crosses; /* per instruction: an op of the group */
    struct plan *plan;
};

/* ---- regions ---- */

static void mark_control(struct statement_region *c)
{
    for (uint32_t at = 0; at < c->phase->n; at++) {
        const struct kir_inst *inst = &c->phase->inst[at];

        for (uint32_t i = at; (inst->op == KIR_for || inst->op == KIR_if) && i < inst->pair; i++)
            c->plan->of_group[at] |= c->crosses[i];
    }
}

static void number_regions(struct statement_region *c)
{
    uint32_t region = 0, depth = 0; /* of control inside a region */

    for (uint32_t at = 0; at < c->phase->n; at++) {
        const struct kir_inst *inst = &c->phase->inst[at];
        bool opens = kir_opens(inst->op), closes = kir_closes(inst->op);
        bool cuts = opens    ? c->plan->of_group[at]
                    : closes ? c->plan->of_group[inst->pair]
                             : c->crosses[at];

        depth -= closes && !cuts;
        c->plan->region[at] = region;
        c->plan->inside[at] = depth > 0;
        depth += opens && !cuts;
        region += cuts;
    }
}

/* ---- unused values ---- */

/* A phi or a counter is part of its loop, and what crosses threads part of a region's end. */
static bool may_be_unused(const struct statement_region *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];

    return inst->type != KIR_VOID && inst->op != KIR_phi && inst->op != KIR_for &&
           inst->op != KIR_each && !c->crosses[at];
}

static void use_operands(struct statement_region *c, const struct kir_inst *inst)
{
    const bool has_links = inst->op == KIR_for || inst->op == KIR_next;
    const uint32_t *values = has_links ? c->module->links + inst->a[0] : inst->a;
    const uint32_t n = has_links ? inst->a[1] : kir_op_info(inst->op)->n;

    for (uint32_t i = 0; i < n; i++)
        c->plan->home[values[i]] = PLAN_LOCAL;
}

/* Uses come after their values, except those by `next`, which is used in any case. */
static void find_unused(struct statement_region *c)
{
    for (uint32_t at = c->phase->n; at-- > 0;) {
        if (c->plan->home[at] == PLAN_UNUSED && may_be_unused(c, at))
            continue;
        c->plan->home[at] = PLAN_LOCAL;
        use_operands(c, &c->phase->inst[at]);
    }
}

/* ---- homes ---- */

static bool is_pure(const struct kir_inst *inst)
{
    enum kir_imm imm = kir_op_info(inst->op)->imm;

    return inst->type != KIR_VOID && imm != KIR_IMM_ARG && imm != KIR_IMM_TILE &&
           imm != KIR_IMM_FRAGMENT && inst->op != KIR_lane && inst->op != KIR_phi &&
           inst->op != KIR_for;
}

static uint8_t first_home(const struct statement_region *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];

    if (inst->op == KIR_for && c->plan->of_group[at])
        return PLAN_GROUP;
    if (inst->op == KIR_first && c->crosses[at])
        return PLAN_GROUP;
    if (inst->op == KIR_phi)
        return c->plan->of_group[at - 1 - (uint32_t)inst->imm] ? PLAN_HELD : PLAN_LOCAL;
    if (!is_pure(inst) || c->plan->inside[at])
        return PLAN_LOCAL;
    for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++) {
        if (c->plan->home[inst->a[k]] != PLAN_GROUP)
            return c->crosses[at] ? PLAN_HELD : PLAN_LOCAL;
    }
    return PLAN_GROUP;
}

/* The lane's number is known everywhere, it is held only for what the group does with it. */
static void use(struct statement_region *c, uint32_t value, uint32_t at, bool by_group)
{
    bool away =
        c->plan->region[value] != c->plan->region[at] && c->phase->inst[value].op != KIR_lane;

    if (c->plan->home[value] == PLAN_LOCAL && (by_group || away))
        c->plan->home[value] = PLAN_HELD;
}

static void uses_of(struct statement_region *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];

    if (inst->op == KIR_for || inst->op == KIR_next) {
        for (uint32_t i = 0; i < inst->a[1]; i++)
            use(c, c->module->links[inst->a[0] + i], at,
                inst->op == KIR_for && c->plan->of_group[at]);
    } else if (inst->op == KIR_phi) {
        use(c, inst->a[0], at - 1 - (uint32_t)inst->imm, false);
    } else {
        for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
            use(c, inst->a[k], at, c->crosses[at] || (inst->op == KIR_if && c->plan->of_group[at]));
    }
}

frit_status plan_init(struct plan *out, const struct kir_module *module, uint32_t phase,
                      const bool *crosses, frit_err *err)
{
    struct statement_region c = {module, &module->phases[phase], crosses, out};
    size_t n = (size_t)c.phase->n + 1;

    out->home = calloc(n, sizeof(*out->home));
    out->of_group = calloc(n, sizeof(*out->of_group));
    out->inside = calloc(n, sizeof(*out->inside));
    out->region = calloc(n, sizeof(*out->region));
    if (!out->home || !out->of_group || !out->inside || !out->region) {
        plan_fini(out);
        return fail_memory(err, n * sizeof(*out->region));
    }
    mark_control(&c);
    number_regions(&c);
    find_unused(&c);
    for (uint32_t at = 0; at < c.phase->n; at++) {
        if (out->home[at] != PLAN_UNUSED)
            out->home[at] = first_home(&c, at);
    }
    for (uint32_t at = 0; at < c.phase->n; at++) {
        if (out->home[at] != PLAN_UNUSED)
            uses_of(&c, at);
    }
    return FRIT_OK;
}

void plan_fini(struct plan *plan)
{
    free(plan->home);
    free(plan->of_group);
    free(plan->inside);
    free(plan->region);
    *plan = (struct plan){0};
}
