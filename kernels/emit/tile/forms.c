/* SPDX-License-Identifier: Apache-2.0 */
/* Forms follow from facts; a comparison of a line with a single element is a range, and so is the
 * `and` of a range with a range or a single element.
 *
 * What needs a value takes some forms as they are, by kind of operand; for all else the value gets
 * lanes. */
#include "emit/tile/forms.h"

#include "emit/tile/make.h"

static bool is_order(uint32_t op)
{
    return op == KIR_eq || op == KIR_lt || op == KIR_le || op == KIR_ult || op == KIR_ule;
}

static bool is_range(const struct make *m, const struct kir_inst *inst)
{
    uint32_t a, b;

    if (!is_order(inst->op) && !(inst->op == KIR_and && inst->type == KIR_B))
        return false;
    a = m->values[inst->a[0]].form;
    b = m->values[inst->a[1]].form;
    if (inst->op == KIR_and)
        return (a == FORM_RANGE && (b == FORM_RANGE || b == FORM_ONE)) ||
               (a == FORM_ONE && b == FORM_RANGE);
    return (a == FORM_LINE && b == FORM_ONE) || (a == FORM_ONE && b == FORM_LINE);
}

static uint8_t form_of(const struct make *m, uint32_t at)
{
    if (m->facts.of[at].kind == FACT_UNIFORM)
        return FORM_ONE;
    if (m->facts.of[at].kind == FACT_LINEAR)
        return FORM_LINE;
    return is_range(m, &m->phase->inst[at]) ? FORM_RANGE : FORM_LANES;
}

/* Whether operand `k` may be a LINE or RANGE. */
static bool takes(const struct make *m, uint32_t at, uint32_t k)
{
    const struct kir_inst *inst = &m->phase->inst[at];
    const char letter = kir_op_info(inst->op)->operands[k];
    enum kir_imm imm = (enum kir_imm)kir_op_info(inst->op)->imm;

    if (imm == KIR_IMM_ARG || imm == KIR_IMM_TILE)
        return letter == 'i' || letter == 'n' ||
               (letter == 'b' && m->values[inst->a[k]].form == FORM_RANGE);
    if (m->values[inst->a[k]].form == FORM_RANGE)
        return m->values[at].form == FORM_RANGE;
    return m->values[at].form != FORM_LANES && inst->type != KIR_VOID;
}

static void need(struct make *m, uint32_t value, bool lanes)
{
    struct value *v = &m->values[value];

    v->needed = true;
    if (lanes && (v->form == FORM_LINE || v->form == FORM_RANGE))
        v->lanes = true;
}

/* Carried values have the phi's form. */
static void need_carried(struct make *m, uint32_t phi, uint32_t value)
{
    need(m, value, m->values[phi].form == FORM_LANES);
}

static void needs_of(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = &m->phase->inst[at];

    if (inst->op == KIR_for || inst->op == KIR_next) {
        for (uint32_t i = 0; i < inst->a[1]; i++) {
            if (inst->op == KIR_for)
                need(m, m->module->links[inst->a[0] + i], false);
            else
                need_carried(m, inst->pair + 1 + i, m->module->links[inst->a[0] + i]);
        }
    } else if (inst->op == KIR_phi) {
        need_carried(m, at, inst->a[0]);
    } else {
        for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
            need(m, inst->a[k], !takes(m, at, k));
    }
}

void make_forms(struct make *m)
{
    for (uint32_t i = 0; i < m->phase->n; i++)
        m->values[i].form = form_of(m, i);
    for (uint32_t i = m->phase->n; i-- > 0;) {
        const struct kir_inst *inst = &m->phase->inst[i];

        if (inst->type == KIR_VOID || inst->op == KIR_for || inst->op == KIR_phi)
            m->values[i].needed = true;
        if (m->values[i].needed)
            needs_of(m, i);
    }
}
