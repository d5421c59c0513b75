/* SPDX-License-Identifier: Apache-2.0 */
/* A value is needed until its last use; a use inside a loop that the value comes from outside of
 * counts at that loop's end.  A phi is needed until its loop's end at least.
 *
 * A phi that begins with one of the loop around it, and is what that one gets for its next round,
 * can have its register if nothing else in there uses that one any more.
 *
 * What `next` gives a phi can be made in the phi's register when it is made right in the loop and
 * nothing in the loop uses the phi when it is overwritten. */
#include "emit/tile/live.h"

#include <stdlib.h>

#include "base/fail.h"

struct live_walk {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct live *live;
};

/* Where a use at `at` of a value made at `made` counts. */
static uint32_t counted(const struct live_walk *w, uint32_t made, uint32_t at)
{
    uint32_t loop = w->live->loop[at];

    while (loop != KIR_NONE && loop > made) {
        at = w->phase->inst[loop].pair;
        loop = w->live->loop[loop];
    }
    return at;
}

static void use(const struct live_walk *w, uint32_t value, uint32_t at)
{
    uint32_t where;

    if (value == KIR_NONE)
        return;
    where = counted(w, value, at);
    if (w->live->last[value] < where)
        w->live->last[value] = where;
}

static void uses_of(const struct live_walk *w, uint32_t at)
{
    const struct kir_inst *inst = &w->phase->inst[at];

    if (inst->op == KIR_for || inst->op == KIR_next) {
        for (uint32_t i = 0; i < inst->a[1]; i++)
            use(w, w->module->links[inst->a[0] + i], at);
    } else if (inst->op == KIR_phi) {
        use(w, inst->a[0], w->live->loop[at]);
        use(w, at, w->phase->inst[w->live->loop[at]].pair);
    } else {
        for (uint32_t i = 0; i < 3; i++)
            use(w, inst->a[i], at);
    }
}

static bool is_elementwise(uint32_t op)
{
    enum kir_imm imm = kir_op_info(op)->imm;

    return imm == KIR_IMM_NONE || imm == KIR_IMM_NARROW;
}

/* Whether anything in phi's loop uses it when its register is that of `made`: after it, or, where
 * that reads other lanes than it writes, by it. */
static bool used_after(const struct live_walk *w, uint32_t phi, uint32_t made)
{
    uint32_t from = made + is_elementwise(w->phase->inst[made].op);
    const struct kir_phase *phase = w->phase;
    const struct kir_inst *next = &phase->inst[phase->inst[w->live->loop[phi]].pair];

    for (uint32_t i = 0; i < next->a[1]; i++) {
        if (w->module->links[next->a[0] + i] == phi)
            return true;
    }
    for (uint32_t at = from; &phase->inst[at] < next; at++) {
        const struct kir_inst *inst = &phase->inst[at];

        if (inst->op == KIR_for || inst->op == KIR_next) {
            for (uint32_t i = 0; i < inst->a[1]; i++) {
                if (w->module->links[inst->a[0] + i] == phi)
                    return true;
            }
        } else if (inst->a[0] == phi || inst->a[1] == phi || inst->a[2] == phi) {
            return true;
        }
    }
    return false;
}

static bool uses_operand(const struct live_walk *w, uint32_t at, uint32_t value)
{
    const struct kir_inst *inst = &w->phase->inst[at];

    if (inst->op != KIR_for && inst->op != KIR_next)
        return inst->a[0] == value || inst->a[1] == value || inst->a[2] == value;
    for (uint32_t i = 0; i < inst->a[1]; i++)
        if (w->module->links[inst->a[0] + i] == value)
            return true;
    return false;
}

/* Whether `inner`, a phi of a loop right inside that of `phi`, carries its value on. */
static bool carries_on(const struct live_walk *w, uint32_t phi, uint32_t inner)
{
    uint32_t loop = w->live->loop[inner], outer = w->live->loop[phi];

    if (w->phase->inst[inner].op != KIR_phi || loop == outer || w->live->loop[loop] != outer ||
        w->phase->inst[inner].a[0] != phi)
        return false;
    for (uint32_t at = loop; at <= w->phase->inst[outer].pair; at++)
        if (at != inner && uses_operand(w, at, phi))
            return false;
    return true;
}

static void place_in_phis(const struct live_walk *w, uint32_t loop)
{
    const struct kir_inst *next = &w->phase->inst[w->phase->inst[loop].pair];
    const uint32_t *links = w->module->links + next->a[0];

    for (uint32_t i = 0; i < next->a[1]; i++) {
        uint32_t value = links[i], phi = loop + 1 + i;

        if (value > loop + next->a[1] && w->live->loop[value] == loop &&
            w->phase->inst[value].op != KIR_phi && !used_after(w, phi, value))
            w->live->place[value] = phi;
        else if (value != KIR_NONE && value > loop + next->a[1] && carries_on(w, phi, value))
            w->live->place[value] = phi;
    }
}

frit_status live_init(struct live *out, const struct kir_module *module, uint32_t phase,
                      frit_err *err)
{
    const struct live_walk w = {module, &module->phases[phase], out};
    uint32_t n = w.phase->n, loop = KIR_NONE;
    size_t bytes = ((size_t)n + 1) * sizeof(*out->loop);

    *out = (struct live){malloc(bytes), malloc(bytes), malloc(bytes)};
    if (!out->loop || !out->last || !out->place) {
        live_fini(out);
        return fail_memory(err, bytes);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (w.phase->inst[i].op == KIR_next)
            loop = out->loop[w.phase->inst[i].pair];
        out->loop[i] = loop;
        out->last[i] = i;
        out->place[i] = KIR_NONE;
        if (w.phase->inst[i].op == KIR_for)
            loop = i;
    }
    for (uint32_t i = 0; i < n; i++)
        uses_of(&w, i);
    for (uint32_t i = 0; i < n; i++) {
        if (w.phase->inst[i].op == KIR_for)
            place_in_phis(&w, i);
    }
    return FRIT_OK;
}

void live_fini(struct live *live)
{
    free(live->loop);
    free(live->last);
    free(live->place);
    *live = (struct live){0};
}
