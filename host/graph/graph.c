/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs.  Arrays grow by doubling; names, operands and records lie in the arena.  Each
 * function takes all memory it needs before it changes a count, so that a failure changes nothing.
 */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "graph/attrs.h"

void graph_fini(struct graph *graph)
{
    free(graph->values);
    free(graph->ops);
    free(graph->outputs);
    free(graph->output_names);
    arena_fini(&graph->arena);
    *graph = (struct graph){0};
}

static frit_status reserve_values(struct graph *graph, uint32_t more, frit_err *err)
{
    if (!array_grow(&graph->values, &graph->values_capacity, graph->n_values, more,
                    sizeof(*graph->values)))
        return fail_memory(err, ((size_t)graph->n_values + more) * sizeof(*graph->values));
    return FRIT_OK;
}

static frit_status reserve_op(struct graph *graph, frit_err *err)
{
    if (!array_grow(&graph->ops, &graph->ops_capacity, graph->n_ops, 1, sizeof(*graph->ops)))
        return fail_memory(err, ((size_t)graph->n_ops + 1) * sizeof(*graph->ops));
    return FRIT_OK;
}

static uint32_t add_value(struct graph *graph, enum graph_kind kind, const struct op_type *type)
{
    graph->values[graph->n_values] = (struct graph_value){.kind = kind, .type = *type};
    return graph->n_values++;
}

frit_status graph_input(struct graph *graph, enum graph_kind kind, const char *name,
                        const struct op_type *type, uint32_t *value, frit_err *err)
{
    const char *copy = NULL;

    TRY(op_type_check(type, err));
    TRY(reserve_values(graph, 1, err));
    if (name) {
        copy = arena_text(&graph->arena, name, strlen(name));
        if (!copy)
            return fail_memory(err, strlen(name));
    }
    *value = add_value(graph, kind, type);
    graph->values[*value].name = copy;
    return FRIT_OK;
}

void graph_operands(const struct graph *graph, const struct graph_operand *in, uint32_t n_in,
                    struct op_input *out)
{
    for (uint32_t i = 0; i < n_in; i++) {
        out[i] = (struct op_input){.kind = in[i].kind};
        if (in[i].kind == FRIT_OPERAND_TENSOR)
            out[i].type = graph->values[in[i].value].type;
        else if (in[i].kind == FRIT_OPERAND_SCALAR)
            out[i].scalar = in[i].scalar;
    }
}

uint32_t graph_max_operands(const struct graph *graph)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < graph->n_ops; i++)
        most = graph->ops[i].n_in > most ? graph->ops[i].n_in : most;
    return most;
}

static frit_status check_values(const struct graph *graph, const struct graph_call *call,
                                frit_err *err)
{
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in[i].kind == FRIT_OPERAND_TENSOR && call->in[i].value >= graph->n_values)
            return fail(err, FRIT_INVALID, "%s: operand %u is value %u, the graph has %u",
                        op_row(call->op)->name, i, call->in[i].value, graph->n_values);
    }
    return FRIT_OK;
}

/* The graph's own copy of the operands, as the check left them. */
static struct graph_operand *copy_operands(struct graph *graph, const struct graph_operand *in,
                                           const struct op_call *checked)
{
    struct graph_operand *copy = arena_array(&graph->arena, checked->n_in, sizeof(*copy));

    for (uint32_t i = 0; copy && i < checked->n_in; i++) {
        copy[i].kind = in[i].kind;
        if (in[i].kind == FRIT_OPERAND_TENSOR) {
            copy[i].value = in[i].value;
        } else if (in[i].kind == FRIT_OPERAND_SCALAR) {
            copy[i].scalar = checked->in[i].scalar;
            copy[i].dtype = checked->in[i].type.dtype;
        }
    }
    return copy;
}

static frit_status check_call(struct graph *graph, const struct graph_call *call,
                              struct graph_op *op, struct op_type *types, frit_err *err)
{
    const frit_op_info *row = op_row(call->op);
    const frit_record_info *record = op_record(row);
    struct op_call checked = {.op = call->op, .n_in = call->n_in, .wanted = call->wanted};
    frit_status st;

    if (record->n_fields) {
        checked.attrs = arena_alloc(&graph->arena, record->size);
        if (!checked.attrs)
            return fail_memory(err, record->size);
        TRY(attrs_copy(row, call->attrs, checked.attrs, err));
    }
    checked.in = calloc((size_t)call->n_in + 1, sizeof(*checked.in));
    if (!checked.in)
        return fail_memory(err, call->n_in * sizeof(*checked.in));
    graph_operands(graph, call->in, call->n_in, checked.in);
    st = op_check(&checked, types, err);
    if (!st) {
        op->attrs = checked.attrs;
        op->in = copy_operands(graph, call->in, &checked);
        if (!op->in)
            st = fail_memory(err, call->n_in * sizeof(*op->in));
    }
    free(checked.in);
    return st;
}

frit_status graph_append(struct graph *graph, const struct graph_call *call,
                         uint32_t out[FRIT_OP_MAX_OUT], frit_err *err)
{
    const frit_op_info *row = op_row(call->op);
    struct graph_op op = {.op = call->op, .n_in = call->n_in, .line = call->line};
    struct op_type types[FRIT_OP_MAX_OUT];

    if (!row)
        return fail(err, FRIT_INVALID, "no op has the number %u", call->op);
    op.n_out = op_n_out(row);
    TRY(check_values(graph, call, err));
    TRY(reserve_op(graph, err));
    TRY(reserve_values(graph, op.n_out, err));
    TRY(check_call(graph, call, &op, types, err));
    for (uint32_t i = 0; i < FRIT_OP_MAX_OUT; i++) {
        bool wanted = i < op.n_out && types[i].dtype != FRIT_NO_DTYPE;

        out[i] = wanted ? add_value(graph, GRAPH_RESULT, &types[i]) : GRAPH_NO_VALUE;
    }
    memcpy(op.out, out, sizeof(op.out));
    graph->ops[graph->n_ops++] = op;
    return FRIT_OK;
}

frit_status graph_add_value(struct graph *graph, enum graph_kind kind, const struct op_type *type,
                            uint32_t *value, frit_err *err)
{
    TRY(reserve_values(graph, 1, err));
    *value = add_value(graph, kind, type);
    return FRIT_OK;
}

frit_status graph_add_op(struct graph *graph, const struct graph_op *op, frit_err *err)
{
    size_t attrs = op->attrs ? op_record(op_row(op->op))->size : 0;
    struct graph_op copy = *op;

    TRY(reserve_op(graph, err));
    copy.in = arena_array(&graph->arena, op->n_in, sizeof(*copy.in));
    copy.attrs = attrs ? arena_alloc(&graph->arena, attrs) : NULL;
    if (!copy.in || (attrs && !copy.attrs))
        return fail_memory(err, op->n_in * sizeof(*copy.in) + attrs);
    if (op->n_in)
        memcpy(copy.in, op->in, op->n_in * sizeof(*copy.in));
    if (attrs)
        memcpy(copy.attrs, op->attrs, attrs);
    graph->ops[graph->n_ops++] = copy;
    return FRIT_OK;
}

void graph_reset(struct graph *graph)
{
    arena_reset(&graph->arena);
    graph->n_values = graph->n_ops = graph->n_outputs = 0;
}

/* ---- pruning ---- */

static bool is_used(const struct graph_op *op, const bool *used)
{
    if (op_row(op->op)->traits & FRIT_OP_ORDERED)
        return true;
    for (uint32_t i = 0; i < op->n_out; i++) {
        if (op->out[i] != GRAPH_NO_VALUE && used[op->out[i]])
            return true;
    }
    return false;
}

/* Drops ops; `used` becomes the values that the others have. */
static void prune_ops(struct graph *graph, bool *used)
{
    uint32_t first = graph->n_ops;

    for (uint32_t i = graph->n_ops; i-- > 0;) {
        const struct graph_op *op = &graph->ops[i];

        if (!is_used(op, used))
            continue;
        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                used[op->in[k].value] = true;
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k] != GRAPH_NO_VALUE)
                used[op->out[k]] = true;
        }
        graph->ops[--first] = *op;
    }
    graph->n_ops -= first;
    if (graph->n_ops > 0)
        memmove(graph->ops, graph->ops + first, graph->n_ops * sizeof(*graph->ops));
}

/* Drops values; `number` becomes the new number of each of the others. */
static void prune_values(struct graph *graph, const bool *used, uint32_t *number)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < graph->n_values; v++) {
        if (graph->values[v].kind != GRAPH_INPUT && !used[v])
            continue;
        graph->values[n] = graph->values[v];
        number[v] = n++;
    }
    graph->n_values = n;
}

static void renumber(struct graph *graph, const uint32_t *number)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        struct graph_op *op = &graph->ops[i];

        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                op->in[k].value = number[op->in[k].value];
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k] != GRAPH_NO_VALUE)
                op->out[k] = number[op->out[k]];
        }
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        graph->outputs[i] = number[graph->outputs[i]];
}

frit_status graph_prune(struct graph *graph, frit_err *err)
{
    const size_t n = (size_t)graph->n_values + 1;
    bool *used = calloc(n, sizeof(*used));
    uint32_t *number = calloc(n, sizeof(*number));
    frit_status st = used && number ? FRIT_OK : fail_memory(err, n * sizeof(*number));

    for (uint32_t i = 0; i < graph->n_outputs && !st; i++)
        used[graph->outputs[i]] = true;
    if (!st) {
        prune_ops(graph, used);
        prune_values(graph, used, number);
        renumber(graph, number);
    }
    free(used);
    free(number);
    return st;
}

frit_status graph_output(struct graph *graph, uint32_t value, frit_err *err)
{
    return graph_output_named(graph, value, NULL, err);
}

frit_status graph_output_named(struct graph *graph, uint32_t value, const char *name, frit_err *err)
{
    const char *copy = name ? arena_text(&graph->arena, name, strlen(name)) : NULL;

    if (value >= graph->n_values)
        return fail(err, FRIT_INVALID, "output is value %u, the graph has %u", value,
                    graph->n_values);
    if ((name && !copy) ||
        !array_grow(&graph->outputs, &graph->outputs_capacity, graph->n_outputs, 1,
                    sizeof(*graph->outputs)) ||
        !array_grow(&graph->output_names, &graph->output_names_capacity, graph->n_outputs, 1,
                    sizeof(char *)))
        return fail_memory(err, ((size_t)graph->n_outputs + 1) * sizeof(*graph->outputs));
    graph->outputs[graph->n_outputs] = value;
    graph->output_names[graph->n_outputs++] = copy;
    return FRIT_OK;
}
