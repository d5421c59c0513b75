/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting: ops of the group end a stretch, and so do the begins and ends of loops and branches that
 * have such ops inside.  Exchanges within a chunk cut nothing, nor does what all lanes have alike.
 */
#include "emit/llvm/cut.h"

#include <stdlib.h>

#include "base/fail.h"

struct cutter {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct facts *facts;
    uint32_t chunk;
    struct cut *cut;
};

static bool is_uniform(const struct cutter *c, uint32_t value)
{
    return c->facts->of[value].kind == FACT_UNIFORM;
}

static bool op_cuts(const struct cutter *c, const struct kir_inst *inst)
{
    if (c->phase->lanes <= c->chunk)
        return false;
    switch (inst->op) {
    case KIR_barrier:
        return true;
    case KIR_exchange:
        return inst->imm >= c->chunk && !is_uniform(c, inst->a[0]);
    case KIR_shift:
    case KIR_first:
        return !is_uniform(c, inst->a[0]);
    default:
        return false;
    }
}

static void mark_cuts(struct cutter *c)
{
    for (uint32_t at = 0; at < c->phase->n; at++)
        c->cut->cuts[at] = op_cuts(c, &c->phase->inst[at]);
    for (uint32_t at = 0; at < c->phase->n; at++) {
        const struct kir_inst *inst = &c->phase->inst[at];

        if (inst->op != KIR_for && inst->op != KIR_if)
            continue;
        for (uint32_t i = at + 1; i < inst->pair; i++)
            c->cut->cuts[at] |= op_cuts(c, &c->phase->inst[i]);
        c->cut->cuts[inst->pair] = c->cut->cuts[at];
    }
}

static void number_stretches(struct cutter *c)
{
    uint32_t stretch = 0, depth = 0; /* of control inside a stretch */

    for (uint32_t at = 0; at < c->phase->n; at++) {
        const struct kir_inst *inst = &c->phase->inst[at];
        bool cuts = c->cut->cuts[at];

        depth -= (inst->op == KIR_next || inst->op == KIR_end) && !cuts;
        c->cut->stretch[at] = stretch;
        c->cut->inside[at] = depth > 0;
        depth += (inst->op == KIR_for || inst->op == KIR_if) && !cuts;
        stretch += cuts;
    }
}

/* ---- homes ---- */

static bool is_pure(const struct kir_inst *inst)
{
    enum kir_imm imm = kir_op_info(inst->op)->imm;

    return inst->type != KIR_VOID && imm != KIR_IMM_ARG && imm != KIR_IMM_TILE &&
           inst->op != KIR_phi && inst->op != KIR_for && inst->op != KIR_lane;
}

static uint8_t first_home(const struct cutter *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];
    uint8_t least = CUT_ENTRY;

    if (c->cut->cuts[at])
        return inst->op == KIR_first || inst->op == KIR_for        ? CUT_GROUP
               : inst->op == KIR_exchange || inst->op == KIR_shift ? CUT_HELD
                                                                   : CUT_LOCAL;
    if (inst->op == KIR_phi)
        return c->cut->cuts[at - 1 - (uint32_t)inst->imm] ? CUT_HELD : CUT_LOCAL;
    if (!is_pure(inst) || !is_uniform(c, at))
        return CUT_LOCAL;
    for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++) {
        if (c->cut->home[inst->a[k]] < least)
            least = c->cut->home[inst->a[k]];
        if (inst->op == KIR_first && !is_uniform(c, inst->a[k]))
            return CUT_LOCAL;
    }
    return least == CUT_ENTRY                          ? CUT_ENTRY
           : least == CUT_GROUP && !c->cut->inside[at] ? CUT_GROUP
                                                       : CUT_LOCAL;
}

/* The lane's number is known everywhere. */
static void use(struct cutter *c, uint32_t value, uint32_t at, bool by_group)
{
    bool away = c->cut->stretch[value] != c->cut->stretch[at];

    if (c->cut->home[value] == CUT_LOCAL && (by_group || away) &&
        c->phase->inst[value].op != KIR_lane)
        c->cut->home[value] = CUT_HELD;
}

static void uses_of(struct cutter *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];

    if (inst->op == KIR_for || inst->op == KIR_next) {
        for (uint32_t i = 0; i < inst->a[1]; i++)
            use(c, c->module->links[inst->a[0] + i], at, inst->op == KIR_for && c->cut->cuts[at]);
    } else if (inst->op == KIR_phi) {
        use(c, inst->a[0], at - 1 - (uint32_t)inst->imm, false);
    } else {
        for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
            use(c, inst->a[k], at, c->cut->cuts[at]);
    }
}

/* Operands of what varies, but for offsets. */
static void mark_spread(struct cutter *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];
    const struct kir_op_info *info = kir_op_info(inst->op);
    bool memory = info->imm == KIR_IMM_ARG || info->imm == KIR_IMM_TILE;

    if (inst->op == KIR_for || inst->op == KIR_next || inst->op == KIR_if || inst->op == KIR_phi)
        return;
    if (inst->type != KIR_VOID && c->facts->of[at].kind != FACT_VARYING)
        return;
    for (uint32_t k = memory; k < info->n; k++)
        c->cut->spread[inst->a[k]] = true;
}

frit_status cut_init(struct cut *out, const struct kir_module *module, uint32_t phase,
                     const struct facts *facts, uint32_t chunk, frit_err *err)
{
    struct cutter c = {module, &module->phases[phase], facts, chunk, out};
    size_t n = (size_t)c.phase->n + 1;

    out->home = calloc(n, sizeof(*out->home));
    out->cuts = calloc(n, sizeof(*out->cuts));
    out->inside = calloc(n, sizeof(*out->inside));
    out->spread = calloc(n, sizeof(*out->spread));
    out->stretch = calloc(n, sizeof(*out->stretch));
    if (!out->home || !out->cuts || !out->inside || !out->spread || !out->stretch) {
        cut_fini(out);
        return fail_memory(err, n * sizeof(*out->stretch));
    }
    mark_cuts(&c);
    number_stretches(&c);
    for (uint32_t at = 0; at < c.phase->n; at++)
        out->home[at] = first_home(&c, at);
    for (uint32_t at = 0; at < c.phase->n; at++) {
        uses_of(&c, at);
        mark_spread(&c, at);
    }
    return FRIT_OK;
}

void cut_fini(struct cut *cut)
{
    free(cut->home);
    free(cut->cuts);
    free(cut->inside);
    free(cut->spread);
    free(cut->stretch);
    *cut = (struct cut){0};
}
