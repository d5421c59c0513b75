/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates lifetimes: executes an order of ops on states instead of values. */
#include "plan/verify.h"

#include <stdbool.h>
#include <stdlib.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "graph/op.h"
#include "plan/plan.h"

enum life { EXTERNAL, PENDING, ALIVE, DEAD };

static const char *name_of(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row ? row->name : "custom op";
}

static bool is_ordered(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row && row->traits & FRIT_OP_ORDERED;
}

static frit_status run_op(const frit_op_desc *op, uint32_t number, unsigned char *life,
                          frit_err *err)
{
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        if (life[op->in[k].value] == PENDING || life[op->in[k].value] == DEAD)
            return fail(err, FRIT_INTERNAL, "%s, op %u, uses value %u %s", name_of(op), number,
                        op->in[k].value,
                        life[op->in[k].value] == DEAD ? "after it died" : "before it is made");
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        if (life[op->out[k].value] != PENDING)
            return fail(err, FRIT_INTERNAL, "%s, op %u, makes value %u, which was made already",
                        name_of(op), number, op->out[k].value);
        life[op->out[k].value] = ALIVE;
    }
    for (uint32_t k = 0; k < op->n_dead; k++) {
        if (life[op->dead[k]] == PENDING || life[op->dead[k]] == DEAD)
            return fail(err, FRIT_INTERNAL, "value %u dies in %s, op %u, where it does not exist",
                        op->dead[k], name_of(op), number);
        life[op->dead[k]] = DEAD;
    }
    return FRIT_OK;
}

frit_status plan_simulate(const frit_op_desc *ops, uint32_t n_ops, uint32_t n_values,
                          const uint32_t *order, frit_err *err)
{
    unsigned char *life = calloc((size_t)n_values + n_ops + 1, 1);
    uint32_t last_ordered = 0;
    unsigned char *met;
    frit_status st = FRIT_OK;

    if (!life)
        return fail_memory(err, (size_t)n_values + n_ops);
    met = life + n_values;
    for (uint32_t i = 0; i < n_ops; i++) {
        for (uint32_t k = 0; k < ops[i].n_out; k++) {
            if (ops[i].out[k].kind == FRIT_OPERAND_TENSOR)
                life[ops[i].out[k].value] = PENDING;
        }
    }
    for (uint32_t i = 0; i < n_ops && !st; i++) {
        uint32_t at = order[i];

        if (at >= n_ops || met[at]) {
            st = fail(err, FRIT_INTERNAL, "op %u of %u is not run once", at, n_ops);
            break;
        }
        met[at] = 1;
        if (is_ordered(&ops[at]) && at + 1 < last_ordered)
            st = fail(err, FRIT_INTERNAL, "%s, op %u, runs before one that it comes after",
                      name_of(&ops[at]), last_ordered - 1);
        else if (is_ordered(&ops[at]))
            last_ordered = at + 1;
        if (!st)
            st = run_op(&ops[at], at, life, err);
    }
    free(life);
    return st;
}

/* State of values between steps. */
struct verify_memory {
    uint32_t *base; /* the base of a view; otherwise the value itself */
    bool *made;     /* made by an op of the plan */
    bool *stored;   /* stored by an earlier step */
    bool *gone;     /* in the `dead` list of an earlier step */
};

static void init_memory(const struct plan *plan, struct verify_memory *memory)
{
    for (uint32_t v = 0; v < plan->n_values; v++)
        memory->base[v] = v;
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const frit_op_desc *op = &plan->ops[i];

        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                memory->made[op->out[k].value] = true;
        }
        if (op_is_view(op->id))
            memory->base[op->out[0].value] = op->in[0].value;
    }
}

static bool is_gone(const struct verify_memory *memory, uint32_t value)
{
    while (!memory->gone[value] && memory->base[value] != value)
        value = memory->base[value];
    return memory->gone[value];
}

static frit_status run_step(const struct plan *plan, uint32_t number, struct verify_memory *memory,
                            frit_err *err)
{
    const struct plan_step *step = &plan->steps[number];

    for (uint32_t k = 0; k < step->n_in; k++) {
        uint32_t value = step->in[k];

        if (memory->made[value] && !memory->stored[value])
            return fail(err, FRIT_INTERNAL, "step %u, %s, uses value %u, which no step stores",
                        number, step->label, value);
        if (is_gone(memory, value))
            return fail(err, FRIT_INTERNAL, "step %u, %s, uses value %u, whose memory is gone",
                        number, step->label, value);
    }
    for (uint32_t k = 0; k < step->n_out; k++)
        memory->stored[step->out[k]] = true;
    for (uint32_t k = 0; k < step->n_dead; k++) {
        if (!memory->made[step->dead[k]] || memory->gone[step->dead[k]])
            return fail(err, FRIT_INTERNAL, "value %u, dead after step %u, %s", step->dead[k],
                        number, memory->gone[step->dead[k]] ? "was so before" : "is from outside");
        memory->gone[step->dead[k]] = true;
    }
    return FRIT_OK;
}

static frit_status verify_steps(const struct plan *plan, struct arena *arena, frit_err *err)
{
    size_t n = (size_t)plan->n_values + 1;
    struct verify_memory memory = {.base = arena_array(arena, n, sizeof(*memory.base)),
                                   .made = arena_array(arena, n, sizeof(*memory.made)),
                                   .stored = arena_array(arena, n, sizeof(*memory.stored)),
                                   .gone = arena_array(arena, n, sizeof(*memory.gone))};

    if (!memory.base || !memory.made || !memory.stored || !memory.gone)
        return fail_memory(err, n * sizeof(*memory.base));
    init_memory(plan, &memory);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        TRY(run_step(plan, s, &memory, err));
    return FRIT_OK;
}

static frit_status verify_order(const struct plan *plan, struct arena *arena, frit_err *err)
{
    uint32_t *order = arena_array(arena, (size_t)plan->n_ops + 1, sizeof(*order));
    uint32_t n = 0;

    if (!order)
        return fail_memory(err, plan->n_ops * sizeof(*order));
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const struct plan_step *step = &plan->steps[s];

        if (step->n_ops > plan->n_ops - n)
            return fail(err, FRIT_INTERNAL, "the steps hold more than %u ops", plan->n_ops);
        for (uint32_t i = 0; i < step->n_ops; i++)
            order[n++] = step->ops[i];
    }
    if (n != plan->n_ops)
        return fail(err, FRIT_INTERNAL, "the steps hold %u of %u ops", n, plan->n_ops);
    return plan_simulate(plan->ops, plan->n_ops, plan->n_values, order, err);
}

frit_status plan_verify(const struct plan *plan, frit_err *err)
{
    struct arena arena = {0};
    frit_status st = verify_order(plan, &arena, err);

    if (!st)
        st = verify_steps(plan, &arena, err);
    arena_fini(&arena);
    return st;
}
