/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans.  Everything is allocated in the plan's arena: ops are copied with each death moved
 * to the value's last use, steps are made from blocks, and inputs and outputs of a step follow from
 * its ops and their deaths. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "base/str.h"
#include "base/text.h"
#include "graph/op.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "plan/verify.h"

enum { LABEL_OPS = 12 }; /* ops that a label names */

static atomic_uint_fast64_t last_serial;

static const char *const end_names[PLAN_ENDS] = {
    [PLAN_END_ALL] = "all",       [PLAN_END_CLOSED] = "closed", [PLAN_END_SPLIT] = "split",
    [PLAN_END_BLOCKS] = "blocks", [PLAN_END_SHORT] = "short",   [PLAN_END_SINGLE] = "single",
};

const char *plan_end_name(enum plan_end end)
{
    return (uint32_t)end < PLAN_ENDS ? end_names[end] : "?";
}

/* ---- life ---- */

struct plan *plan_ref(struct plan *plan)
{
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
    return plan;
}

bool plan_is_unshared(const struct plan *plan)
{
    return atomic_load_explicit(&((struct plan *)plan)->refs, memory_order_acquire) == 1;
}

void plan_unref(struct plan *plan)
{
    if (!plan || atomic_fetch_sub_explicit(&plan->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        program_unref(plan->steps[i].program);
    arena_fini(&plan->arena);
    free(plan);
}

/* ---- building ---- */

struct builder {
    struct plan *plan;
    struct arena scratch;
    uint32_t *maker; /* per value: 1 + the op that makes it */
    uint32_t *mark;  /* per value: the last round that marked it */
    uint32_t round;
    uint32_t *list; /* capacity of n_values */
};

static void *allocate(struct plan *plan, size_t count, size_t item)
{
    plan->bytes += count * item;
    return arena_array(&plan->arena, count ? count : 1, item);
}

static void *allocate_copy(struct plan *plan, const void *from, size_t count, size_t item)
{
    void *copy = allocate(plan, count, item);

    if (copy && count)
        memcpy(copy, from, count * item);
    return copy;
}

/* Validates an op, which may come from a file. */
static frit_status check_op(const struct relative *relative, uint32_t i, frit_err *err)
{
    const frit_op_desc *op = &relative->ops[i];
    const frit_op_info *row = op_row(op->id);

    if (!row && op->id < FRIT_OP_CUSTOM)
        return fail(err, FRIT_INTERNAL, "plan: no op has the number %u of op %u", op->id, i);
    if (row && row->cls == FRIT_CLASS_VIEW &&
        (op->n_in != 1 || op->n_out != 1 || op->in[0].kind != FRIT_OPERAND_TENSOR ||
         op->out[0].kind != FRIT_OPERAND_TENSOR))
        return fail(err, FRIT_INTERNAL, "plan: %s, op %u, is not a view", row->name, i);
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

        if (operand->kind == FRIT_OPERAND_TENSOR && operand->value >= relative->n_values)
            return fail(err, FRIT_INTERNAL, "plan: op %u has value %u, the segment %u values", i,
                        operand->value, relative->n_values);
    }
    return FRIT_OK;
}

static frit_status copy_op(struct plan *plan, const frit_op_desc *from, const uint32_t *dead,
                           uint32_t n_dead, frit_op_desc *to, frit_err *err)
{
    uint64_t size;

    memcpy(&size, from->attrs, sizeof(size));
    *to = *from;
    to->n_dead = n_dead;
    to->in = allocate_copy(plan, from->in, from->n_in, sizeof(*from->in));
    to->out = allocate_copy(plan, from->out, from->n_out, sizeof(*from->out));
    to->attrs = allocate_copy(plan, from->attrs, 1, size);
    to->dead = allocate_copy(plan, dead, n_dead, sizeof(*dead));
    if (!to->in || !to->out || !to->attrs || !to->dead)
        return fail_memory(err, size);
    return FRIT_OK;
}

static frit_status copy_ops(struct builder *builder, const struct relative *relative, frit_err *err)
{
    struct plan *plan = builder->plan;
    struct relative_deaths deaths;

    for (uint32_t i = 0; i < relative->n_ops; i++)
        TRY(check_op(relative, i, err));
    TRY(relative_last_uses(relative, &builder->scratch, &deaths, err));
    plan->ops = allocate(plan, plan->n_ops, sizeof(*plan->ops));
    if (!plan->ops)
        return fail_memory(err, plan->n_ops * sizeof(*plan->ops));
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        TRY(copy_op(plan, &relative->ops[i], deaths.values + deaths.first[i],
                    deaths.first[i + 1] - deaths.first[i], &plan->ops[i], err));
        for (uint32_t k = 0; k < plan->ops[i].n_out; k++) {
            if (plan->ops[i].out[k].kind == FRIT_OPERAND_TENSOR)
                builder->maker[plan->ops[i].out[k].value] = i + 1;
        }
    }
    return FRIT_OK;
}

static const char *op_name(const frit_op_desc *op)
{
    const frit_op_info *row = op_row(op->id);

    return row ? row->name : "custom";
}

static frit_status label_step(struct plan *plan, struct plan_step *step, frit_err *err)
{
    frit_program_info info = {.struct_size = sizeof(info)};
    frit_err ignored = ERR_INIT;
    struct str text = {0};
    char name[64];
    frit_program *program = step->program ? &step->program->program : NULL;

    if (program && program->table->describe(program->self, &info, &ignored) == FRIT_OK &&
        info.name.ptr && info.name.len < sizeof(name)) {
        text_clean(info.name.ptr, (size_t)info.name.len, name, sizeof(name));
        str_addf(&text, "%s: ", name);
    } else if (program) {
        str_addf(&text, "fused: ");
    }
    for (uint32_t i = 0; i < step->n_ops && i < LABEL_OPS; i++)
        str_addf(&text, i ? " %s" : "%s", op_name(&plan->ops[step->ops[i]]));
    if (step->n_ops > LABEL_OPS)
        str_addf(&text, " and %u more", step->n_ops - LABEL_OPS);
    if (!text.failed)
        step->label = allocate_copy(plan, text.text ? text.text : "", 1, text.length + 1);
    str_fini(&text);
    return step->label ? FRIT_OK : fail_memory(err, LABEL_OPS);
}

static bool mark_new(struct builder *builder, uint32_t value)
{
    if (builder->mark[value] == builder->round)
        return false;
    builder->mark[value] = builder->round;
    return true;
}

/* The inputs of a step: of a program, values that its ops use and none of them makes, without
 * repetitions; of a single op, all operands. */
static frit_status step_inputs(struct builder *builder, struct plan_step *step, frit_err *err)
{
    const struct plan *plan = builder->plan;
    uint32_t capacity = 0, n = 0;
    uint32_t *list;

    builder->round++;
    for (uint32_t i = 0; i < step->n_ops; i++) {
        const frit_op_desc *op = &plan->ops[step->ops[i]];

        capacity += op->n_in;
        for (uint32_t k = 0; step->program && k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR)
                builder->mark[op->out[k].value] = builder->round;
        }
    }
    list = arena_array(&builder->scratch, (size_t)capacity + 1, sizeof(*list));
    if (!list)
        return fail_memory(err, capacity * sizeof(*list));
    for (uint32_t i = 0; i < step->n_ops; i++) {
        const frit_op_desc *op = &plan->ops[step->ops[i]];

        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR &&
                (!step->program || mark_new(builder, op->in[k].value)))
                list[n++] = op->in[k].value;
        }
    }
    step->n_in = n;
    step->in = allocate_copy(builder->plan, list, n, sizeof(*list));
    return step->in ? FRIT_OK : fail_memory(err, n * sizeof(*list));
}

/* The outputs of a step: of a program, values that its ops make and that do not die in it; of a
 * single op, all. */
static frit_status step_outputs(struct builder *builder, struct plan_step *step, frit_err *err)
{
    const struct plan *plan = builder->plan;
    uint32_t n = 0;

    builder->round++;
    for (uint32_t i = 0; i < step->n_ops && step->program; i++) {
        const frit_op_desc *op = &plan->ops[step->ops[i]];

        for (uint32_t k = 0; k < op->n_dead; k++)
            builder->mark[op->dead[k]] = builder->round;
    }
    for (uint32_t i = 0; i < step->n_ops; i++) {
        const frit_op_desc *op = &plan->ops[step->ops[i]];

        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k].kind == FRIT_OPERAND_TENSOR && mark_new(builder, op->out[k].value))
                builder->list[n++] = op->out[k].value;
        }
    }
    step->n_out = n;
    step->out = allocate_copy(builder->plan, builder->list, n, sizeof(*builder->list));
    return step->out ? FRIT_OK : fail_memory(err, n * sizeof(*builder->list));
}

static frit_status make_step(struct builder *builder, const struct plan_block *block,
                             const uint32_t *ops, uint32_t n_ops, frit_err *err)
{
    struct plan *plan = builder->plan;
    struct plan_step *step = &plan->steps[plan->n_steps];

    *step = (struct plan_step){
        .program = block->program, .score = block->score, .end = block->end, .n_ops = n_ops};
    step->ops = allocate_copy(plan, ops, n_ops, sizeof(*ops));
    if (!step->ops)
        return fail_memory(err, n_ops * sizeof(*ops));
    TRY(step_inputs(builder, step, err));
    TRY(step_outputs(builder, step, err));
    TRY(label_step(plan, step, err));
    if (step->program)
        program_ref(step->program);
    plan->n_steps++;
    return FRIT_OK;
}

static frit_status make_steps(struct builder *builder, const struct plan_block *blocks,
                              uint32_t n_blocks, frit_err *err)
{
    struct plan *plan = builder->plan;

    plan->steps = allocate(plan, plan->n_ops, sizeof(*plan->steps));
    if (!plan->steps)
        return fail_memory(err, plan->n_ops * sizeof(*plan->steps));
    for (uint32_t b = 0; b < n_blocks; b++) {
        const struct plan_block *block = &blocks[b];
        uint32_t width = block->program ? block->n_ops : 1;

        for (uint32_t i = 0; i < block->n_ops; i += width)
            TRY(make_step(builder, block, block->ops + i, width, err));
    }
    return FRIT_OK;
}

/* Extends the life of bases to that of their views.  Bases precede their views, so one pass
 * backwards suffices. */
static void keep_bases(struct plan *plan)
{
    for (uint32_t i = plan->n_ops; i-- > 0;) {
        const frit_op_desc *op = &plan->ops[i];
        const frit_op_info *row = op_row(op->id);
        uint32_t *base;

        if (!row || row->cls != FRIT_CLASS_VIEW)
            continue;
        base = &plan->last_step[op->in[0].value];
        if (*base < plan->last_step[op->out[0].value])
            *base = plan->last_step[op->out[0].value];
    }
}

static void find_last_steps(struct plan *plan)
{
    for (uint32_t v = 0; v < plan->n_values; v++)
        plan->last_step[v] = PLAN_NO_STEP;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const struct plan_step *step = &plan->steps[s];

        for (uint32_t i = 0; i < step->n_ops; i++) {
            const frit_op_desc *op = &plan->ops[step->ops[i]];

            for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
                const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

                if (operand->kind == FRIT_OPERAND_TENSOR)
                    plan->last_step[operand->value] = s;
            }
        }
    }
    keep_bases(plan);
}

static frit_status list_deaths(struct builder *builder, frit_err *err)
{
    struct plan *plan = builder->plan;
    uint32_t *count = arena_array(&builder->scratch, plan->n_steps, sizeof(*count));

    plan->last_step = allocate(plan, plan->n_values, sizeof(*plan->last_step));
    if (!plan->last_step || !count)
        return fail_memory(err, plan->n_values * sizeof(*plan->last_step));
    find_last_steps(plan);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < plan->n_ops; i++) {
            for (uint32_t k = 0; k < plan->ops[i].n_dead; k++) {
                uint32_t value = plan->ops[i].dead[k];
                struct plan_step *step = &plan->steps[plan->last_step[value]];

                if (builder->maker[value] && pass == 0)
                    count[step - plan->steps]++;
                else if (builder->maker[value])
                    step->dead[step->n_dead++] = value;
            }
        }
        for (uint32_t s = 0; s < plan->n_steps && pass == 0; s++) {
            plan->steps[s].dead = allocate(plan, count[s], sizeof(uint32_t));
            if (!plan->steps[s].dead)
                return fail_memory(err, count[s] * sizeof(uint32_t));
        }
    }
    return FRIT_OK;
}

/* Checks that the blocks contain each of the first ops once, and no other op. */
static frit_status check_blocks(struct builder *builder, const struct relative *relative,
                                const struct plan_block *blocks, uint32_t n_blocks, frit_err *err)
{
    uint64_t n_ops = 0;
    bool *seen;

    for (uint32_t b = 0; b < n_blocks; b++)
        n_ops += blocks[b].n_ops;
    if (!n_ops || n_ops > relative->n_ops)
        return fail(err, FRIT_INTERNAL, "plan: the blocks hold %llu ops, the segment %u",
                    (unsigned long long)n_ops, relative->n_ops);
    seen = arena_array(&builder->scratch, n_ops, sizeof(*seen));
    if (!seen)
        return fail_memory(err, n_ops);
    for (uint32_t b = 0; b < n_blocks; b++) {
        for (uint32_t i = 0; i < blocks[b].n_ops; i++) {
            uint32_t op = blocks[b].ops[i];

            if (op >= n_ops || seen[op])
                return fail(err, FRIT_INTERNAL, "plan: op %u of %llu is %s", op,
                            (unsigned long long)n_ops, op >= n_ops ? "beyond" : "there twice");
            seen[op] = true;
        }
    }
    builder->plan->n_ops = (uint32_t)n_ops;
    return FRIT_OK;
}

static frit_status build(struct builder *builder, const struct relative *relative,
                         const struct plan_block *blocks, uint32_t n_blocks, frit_err *err)
{
    size_t n = (size_t)relative->n_values + 1;

    builder->plan->n_values = relative->n_values;
    builder->maker = arena_array(&builder->scratch, n, sizeof(*builder->maker));
    builder->mark = arena_array(&builder->scratch, n, sizeof(*builder->mark));
    builder->list = arena_array(&builder->scratch, n, sizeof(*builder->list));
    if (!builder->maker || !builder->mark || !builder->list)
        return fail_memory(err, n * sizeof(*builder->list));
    TRY(check_blocks(builder, relative, blocks, n_blocks, err));
    TRY(copy_ops(builder, relative, err));
    TRY(make_steps(builder, blocks, n_blocks, err));
    TRY(list_deaths(builder, err));
    return plan_verify(builder->plan, err);
}

static struct plan *plan_alloc(uint32_t n_calls)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return NULL;
    atomic_init(&plan->refs, 1);
    plan->n_calls = n_calls;
    plan->bytes = sizeof(*plan);
    plan->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
    return plan;
}

frit_status plan_create(const struct relative *relative, uint32_t n_calls,
                        const struct plan_block *blocks, uint32_t n_blocks, struct plan **out,
                        frit_err *err)
{
    struct plan *plan = plan_alloc(n_calls);
    struct builder builder = {.plan = plan};
    frit_status st;

    *out = NULL;
    if (!plan)
        return fail_memory(err, sizeof(*plan));
    st = build(&builder, relative, blocks, n_blocks, err);
    arena_fini(&builder.scratch);
    if (st)
        plan_unref(plan);
    else
        *out = plan;
    return st;
}

frit_status plan_create_saved(uint32_t n_calls, const void *bytes, size_t n_bytes,
                              struct plan **out, frit_err *err)
{
    struct plan *plan = plan_alloc(n_calls);

    *out = NULL;
    if (plan)
        plan->saved = allocate_copy(plan, bytes, n_bytes, 1);
    if (!plan || !plan->saved) {
        plan_unref(plan);
        return fail_memory(err, n_bytes);
    }
    plan->n_saved = n_bytes;
    *out = plan;
    return FRIT_OK;
}

frit_status plan_create_unfused(const struct relative *relative, uint32_t n_calls,
                                struct plan **out, frit_err *err)
{
    uint32_t *ops = calloc((size_t)relative->n_ops + 1, sizeof(*ops));
    struct plan_block block = {.n_ops = relative->n_ops, .ops = ops, .end = PLAN_END_SINGLE};
    frit_status st;

    *out = NULL;
    if (!ops)
        return fail_memory(err, relative->n_ops * sizeof(*ops));
    for (uint32_t i = 0; i < relative->n_ops; i++)
        ops[i] = i;
    st = plan_create(relative, n_calls, &block, 1, out, err);
    free(ops);
    return st;
}

/* ---- text ---- */

static void print_values(const char *word, const uint32_t *values, uint32_t count, struct str *out)
{
    if (count)
        str_addf(out, " | %s", word);
    for (uint32_t i = 0; i < count; i++)
        str_addf(out, " %%%u", values[i]);
}

void plan_print(const struct plan *plan, struct str *out)
{
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const struct plan_step *step = &plan->steps[s];

        str_addf(out, "%u: %s | ops", s, step->label);
        for (uint32_t i = 0; i < step->n_ops; i++)
            str_addf(out, " %u", step->ops[i]);
        print_values("in", step->in, step->n_in, out);
        print_values("out", step->out, step->n_out, out);
        print_values("dead", step->dead, step->n_dead, out);
        if (step->program)
            str_addf(out, " | score %u", step->score);
        str_addf(out, " | %s\n", plan_end_name(step->end));
    }
}
