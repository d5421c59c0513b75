/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts as text: one line per action, thread and phase first. */
#include <stdio.h>

#include <frit/op_table.h>

#include "script.h"

static void print_type(const struct script *script, uint32_t variant, uint16_t v)
{
    const struct var *var = &script->vars[v];
    frit_dims dims = shape_dims(&var->shape, variant);

    printf("v%u %s[", v, frit_dtype_name(var->dtype));
    for (int64_t d = 0; d < dims.rank; d++)
        printf("%s%lld", d ? ", " : "", (long long)dims.dim[d]);
    printf("]");
}

static void print_operands(const struct action *action)
{
    for (uint32_t i = 0; i < action->n_in; i++) {
        const struct operand *in = &action->in[i];

        printf("%s", i ? ", " : "");
        if (in->var == NO_VAR)
            printf(action_has_scalars(action) ? "scalar" : "none");
        else
            printf("%sv%u", in->take ? "take " : "", in->var);
    }
}

static void print_attrs(const struct action *action)
{
    enum attr_form form = (enum attr_form)action->attrs;

    if (form == ATTR_AXIS || form == ATTR_UNFOLD || form == ATTR_SORT || form == ATTR_TOPK ||
        form == ATTR_SCATTER || form == ATTR_FFT)
        printf(", axis %u", action->axis);
    if (form == ATTR_SWAP)
        printf(", axes %u %u", action->axis, action->other_axis);
    for (uint32_t k = 0; k < action->n_axes; k++)
        printf("%s%u", k ? " " : form == ATTR_SLICE ? ", forms " : ", axes ", action->axes[k]);
    if (form == ATTR_REDUCE && action->keep)
        printf(", keep");
    if (form == ATTR_SORT && action->choice)
        printf(", descending");
    if (form == ATTR_SCATTER)
        printf(", update %u", action->choice);
    if (form == ATTR_QUANTIZE)
        printf(", %s%s", action->keep ? "by lines" : "one scale",
               action->choice ? ", symmetric" : "");
}

static void print_action(const struct script *script, uint32_t variant, uint32_t index)
{
    static const char *const names[ACT_KINDS] = {
        "from_host", "op",   "broken",      "take_read", "read", "write",    "release",
        "ref",       "keep", "scope_begin", "scope_end", "sync", "sync_all", "flush"};
    const struct action *action = &script->actions[index];

    printf("%4u  ", index);
    if (action->thread == SCRIPT_THREADS)
        printf("main  ");
    else
        printf("t%u.%u  ", action->thread, action->phase);
    for (uint32_t k = 0; k < action->n_out; k++) {
        printf("%s", k ? ", " : "");
        print_type(script, variant, action->out[k]);
    }
    printf("%s%s(", action->n_out ? " = " : "",
           action->kind == ACT_OP ? frit_op_info_at(action->op)->name : names[action->kind]);
    print_operands(action);
    print_attrs(action);
    if (action->kind == ACT_REF || action->kind == ACT_SCOPE_BEGIN || action->kind == ACT_SCOPE_END)
        printf("%s%u", action->n_in ? " for t" : "", action->number);
    printf(")\n");
}

void script_print(const struct script *script, uint32_t variant)
{
    printf("seed %llu, %u threads, %u phases\n", (unsigned long long)script->seed,
           script->n_threads, script->n_phases);
    for (uint32_t i = 0; i < script->n_actions; i++)
        if (!script->actions[i].off)
            print_action(script, variant, i);
}
