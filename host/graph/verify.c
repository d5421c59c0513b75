/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a graph from the first op to the last: each op again by op_check, on copies, which must
 * leave them as they are; values one after another, as append numbers them. */
#include "graph/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "graph/attrs.h"
#include "graph/graph.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_script.h"

struct verify {
    const struct graph *graph;
    unsigned char *made; /* per value: a producer was seen */
    struct op_input *in; /* room for the longest op */
    struct map names;
    frit_err *err;
};

static frit_status verify_name(struct verify *v, uint32_t value, const char *name)
{
    if (!name)
        return FRIT_OK;
    if (!lex_is_text(str_of(name)))
        return fail(v->err, FRIT_INVALID, "value %u: '%s' is not a name", value, name);
    if (map_get(&v->names, name, strlen(name)))
        return fail(v->err, FRIT_INVALID, "value %u: the name '%s' is taken", value, name);
    if (!map_add(&v->names, name, strlen(name), v))
        return fail_memory(v->err, strlen(name));
    return FRIT_OK;
}

static frit_status verify_sources(struct verify *v)
{
    for (uint32_t i = 0; i < v->graph->n_values; i++) {
        TRY(verify_name(v, i, v->graph->values[i].name));
        if (v->graph->values[i].kind == GRAPH_RESULT)
            continue;
        TRY(op_type_check(&v->graph->values[i].type, v->err));
        v->made[i] = 1;
    }
    return FRIT_OK;
}

static frit_status verify_operands(const struct verify *v, const struct graph_op *op,
                                   const char *name)
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        uint32_t value = op->in[i].value;

        if (op->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        if (value >= v->graph->n_values)
            return fail(v->err, FRIT_INVALID, "%s: operand %u is not a value", name, i);
        if (!v->made[value])
            return fail(v->err, FRIT_INVALID, "%s: operand %u is used before it is made", name, i);
    }
    return FRIT_OK;
}

static frit_status verify_results(struct verify *v, const struct graph_op *op, const char *name,
                                  const struct op_type *types)
{
    for (uint32_t i = 0; i < op->n_out; i++) {
        uint32_t value = op->out[i];
        bool wanted = types[i].dtype != FRIT_NO_DTYPE;

        if (wanted != (value != GRAPH_NO_VALUE))
            return fail(v->err, FRIT_INVALID, "%s: output %u is %s", name, i,
                        wanted ? "missing" : "not wanted");
        if (!wanted)
            continue;
        if (value >= v->graph->n_values || v->graph->values[value].kind != GRAPH_RESULT)
            return fail(v->err, FRIT_INVALID, "%s: output %u is not a result", name, i);
        if (v->made[value])
            return fail(v->err, FRIT_INVALID, "%s: output %u has two producers", name, i);
        if (!op_type_equal(&types[i], &v->graph->values[value].type))
            return fail(v->err, FRIT_INVALID, "%s: output %u is not of the type it has", name, i);
        v->made[value] = 1;
    }
    return FRIT_OK;
}

/* An XOUT output that has a value is wanted. */
static uint32_t wanted_of(const struct graph_op *op)
{
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < op->n_out; i++)
        wanted |= (op->out[i] != GRAPH_NO_VALUE ? 1u : 0u) << i;
    return wanted;
}

static frit_status verify_op(struct verify *v, const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);
    struct op_call call = {.op = op->op, .n_in = op->n_in, .wanted = wanted_of(op), .in = v->in};
    struct op_type types[FRIT_OP_MAX_OUT];
    union attrs attrs;
    size_t size;

    if (!row)
        return fail(v->err, FRIT_INVALID, "no op has the number %u", op->op);
    if (op->n_out != op_n_out(row))
        return fail(v->err, FRIT_INVALID, "%s: %u outputs", row->name, op->n_out);
    TRY(verify_operands(v, op, row->name));
    graph_operands(v->graph, op->in, op->n_in, v->in);
    size = op_record(row)->n_fields ? op_record(row)->size : 0;
    if (size) {
        if (!op->attrs)
            return fail(v->err, FRIT_INVALID, "%s: no attributes", row->name);
        memcpy(&attrs, op->attrs, size);
        call.attrs = &attrs;
    }
    TRY(op_check(&call, types, v->err));
    if (size && memcmp(&attrs, op->attrs, size) != 0)
        return fail(v->err, FRIT_INVALID, "%s: attributes that op_check would change", row->name);
    return verify_results(v, op, row->name, types);
}

static frit_status verify_all(struct verify *v)
{
    const struct graph *graph = v->graph;

    TRY(verify_sources(v));
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        frit_status st = verify_op(v, &graph->ops[i]);

        if (st) {
            fail_context(v->err, "op %u", i);
            return st;
        }
    }
    for (uint32_t i = 0; i < graph->n_values; i++) {
        if (!v->made[i])
            return fail(v->err, FRIT_INVALID, "value %u has no producer", i);
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        if (graph->outputs[i] >= graph->n_values)
            return fail(v->err, FRIT_INVALID, "output %u is not a value", i);
        TRY(verify_name(v, graph->outputs[i], graph->output_names[i]));
    }
    return FRIT_OK;
}

frit_status graph_verify(const struct graph *graph, frit_err *err)
{
    struct verify v = {.graph = graph, .err = err};
    frit_status st;
    uint32_t most = 1;

    for (uint32_t i = 0; i < graph->n_ops; i++)
        most = graph->ops[i].n_in > most ? graph->ops[i].n_in : most;
    v.made = calloc((size_t)graph->n_values + 1, 1);
    v.in = calloc(most, sizeof(*v.in));
    st = v.made && v.in ? verify_all(&v) : fail_memory(err, most * sizeof(*v.in));
    free(v.made);
    free(v.in);
    map_fini(&v.names, NULL);
    return st;
}
