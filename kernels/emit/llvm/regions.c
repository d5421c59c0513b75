/* SPDX-License-Identifier: Apache-2.0 */
/* Regions end at instructions of the whole group, and at the begins and ends of loops and branches
 * that contain such instructions.  An exchange within a chunk, or of a uniform value, is none. */
#include "emit/llvm/regions.h"

#include <stdlib.h>

#include "base/fail.h"

struct region_finder {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct facts *facts;
    uint32_t chunk;
    struct regions *regions;
};

static bool is_uniform(const struct region_finder *c, uint32_t value)
{
    return c->facts->of[value].kind == FACT_UNIFORM;
}

static bool is_bound(const struct region_finder *c, const struct kir_inst *inst)
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

static void mark_bounds(struct region_finder *c)
{
    for (uint32_t at = 0; at < c->phase->n; at++)
        c->regions->bounds_region[at] = is_bound(c, &c->phase->inst[at]);
    for (uint32_t at = 0; at < c->phase->n; at++) {
        const struct kir_inst *inst = &c->phase->inst[at];

        if (inst->op != KIR_for && inst->op != KIR_if)
            continue;
        for (uint32_t i = at + 1; i < inst->pair; i++)
            c->regions->bounds_region[at] |= is_bound(c, &c->phase->inst[i]);
        c->regions->bounds_region[inst->pair] = c->regions->bounds_region[at];
    }
}

static void number_regions(struct region_finder *c)
{
    uint32_t region = 0, depth = 0; /* of control inside a region */

    for (uint32_t at = 0; at < c->phase->n; at++) {
        const struct kir_inst *inst = &c->phase->inst[at];
        bool bounds_region = c->regions->bounds_region[at];

        depth -= (inst->op == KIR_next || inst->op == KIR_end) && !bounds_region;
        c->regions->region[at] = region;
        c->regions->inside[at] = depth > 0;
        depth += (inst->op == KIR_for || inst->op == KIR_if) && !bounds_region;
        region += bounds_region;
    }
}

/* ---- homes ---- */

static bool is_pure(const struct kir_inst *inst)
{
    enum kir_imm imm = kir_op_info(inst->op)->imm;

    return inst->type != KIR_VOID && imm != KIR_IMM_ARG && imm != KIR_IMM_TILE &&
           inst->op != KIR_phi && inst->op != KIR_for && inst->op != KIR_lane;
}

static uint8_t first_home(const struct region_finder *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];
    uint8_t least = REGION_ENTRY;

    if (c->regions->bounds_region[at])
        return inst->op == KIR_first || inst->op == KIR_for        ? REGION_GROUP
               : inst->op == KIR_exchange || inst->op == KIR_shift ? REGION_HELD
                                                                   : REGION_LOCAL;
    if (inst->op == KIR_phi)
        return c->regions->bounds_region[at - 1 - (uint32_t)inst->imm] ? REGION_HELD : REGION_LOCAL;
    if (!is_pure(inst) || !is_uniform(c, at))
        return REGION_LOCAL;
    for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++) {
        if (c->regions->home[inst->a[k]] < least)
            least = c->regions->home[inst->a[k]];
        if (inst->op == KIR_first && !is_uniform(c, inst->a[k]))
            return REGION_LOCAL;
    }
    return least == REGION_ENTRY                              ? REGION_ENTRY
           : least == REGION_GROUP && !c->regions->inside[at] ? REGION_GROUP
                                                              : REGION_LOCAL;
}

/* The lane's number is known everywhere. */
static void use(struct region_finder *c, uint32_t value, uint32_t at, bool by_group)
{
    bool away = c->regions->region[value] != c->regions->region[at];

    if (c->regions->home[value] == REGION_LOCAL && (by_group || away) &&
        c->phase->inst[value].op != KIR_lane)
        c->regions->home[value] = REGION_HELD;
}

static void uses_of(struct region_finder *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];

    if (inst->op == KIR_for || inst->op == KIR_next) {
        for (uint32_t i = 0; i < inst->a[1]; i++)
            use(c, c->module->links[inst->a[0] + i], at,
                inst->op == KIR_for && c->regions->bounds_region[at]);
    } else if (inst->op == KIR_phi) {
        use(c, inst->a[0], at - 1 - (uint32_t)inst->imm, false);
    } else {
        for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
            use(c, inst->a[k], at, c->regions->bounds_region[at]);
    }
}

/* Operands of what varies, but for offsets. */
static void mark_spread(struct region_finder *c, uint32_t at)
{
    const struct kir_inst *inst = &c->phase->inst[at];
    const struct kir_op_info *info = kir_op_info(inst->op);
    bool memory = info->imm == KIR_IMM_ARG || info->imm == KIR_IMM_TILE;

    if (inst->op == KIR_for || inst->op == KIR_next || inst->op == KIR_if || inst->op == KIR_phi)
        return;
    if (inst->type != KIR_VOID && c->facts->of[at].kind != FACT_VARYING)
        return;
    for (uint32_t k = memory; k < info->n; k++)
        c->regions->spread[inst->a[k]] = true;
}

frit_status regions_init(struct regions *out, const struct kir_module *module, uint32_t phase,
                         const struct facts *facts, uint32_t chunk, frit_err *err)
{
    struct region_finder c = {module, &module->phases[phase], facts, chunk, out};
    size_t n = (size_t)c.phase->n + 1;

    out->home = calloc(n, sizeof(*out->home));
    out->bounds_region = calloc(n, sizeof(*out->bounds_region));
    out->inside = calloc(n, sizeof(*out->inside));
    out->spread = calloc(n, sizeof(*out->spread));
    out->region = calloc(n, sizeof(*out->region));
    if (!out->home || !out->bounds_region || !out->inside || !out->spread || !out->region) {
        regions_fini(out);
        return fail_memory(err, n * sizeof(*out->region));
    }
    mark_bounds(&c);
    number_regions(&c);
    for (uint32_t at = 0; at < c.phase->n; at++)
        out->home[at] = first_home(&c, at);
    for (uint32_t at = 0; at < c.phase->n; at++) {
        uses_of(&c, at);
        mark_spread(&c, at);
    }
    return FRIT_OK;
}

void regions_fini(struct regions *regions)
{
    free(regions->home);
    free(regions->bounds_region);
    free(regions->inside);
    free(regions->spread);
    free(regions->region);
    *regions = (struct regions){0};
}
