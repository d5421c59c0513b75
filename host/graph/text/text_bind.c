/* SPDX-License-Identifier: Apache-2.0 */
/* A script and the types of its inputs to a graph.  First the named dims get their extents, from
 * the known types in order; then every input gets its type; then the steps run in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/dtype.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

enum { UNKNOWN_EXTENT = 2 };

/* What is known of a named dim. */
struct bound_dim {
    const struct script_input *from; /* NULL: nothing yet */
    uint32_t axis;
    int64_t extent;
};

struct text_binding {
    const struct script *script;
    const struct op_type *types;
    struct bound_dim *dims;
    int64_t *extents;               /* of the named dims, once all are known */
    struct graph_operand *operands; /* room for the longest step */
    struct graph *graph;
    frit_err *err;
};

/* ---- inputs ---- */

/* "f32[n, 8, ?]" as declared; `text` is cut if it does not fit. */
static const char *declared_text(const struct script_input *input, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s[", dtype_name(input->dtype));

    for (uint32_t i = 0; i < input->rank && used < size; i++) {
        const char *comma = i ? ", " : "";

        if (input->dim_names[i])
            used += (size_t)snprintf(text + used, size - used, "%s%s", comma, input->dim_names[i]);
        else if (input->dims[i] < 0)
            used += (size_t)snprintf(text + used, size - used, "%s?", comma);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%lld", comma,
                                     (long long)input->dims[i]);
    }
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

static frit_status fail_type(const struct text_binding *b, const struct script_input *input,
                             const struct op_type *type)
{
    char declared[160], given[160];

    return script_fail(b->script, input->line, input->column, b->err,
                       "%s is declared %s, its value is %s", input->name,
                       declared_text(input, declared, sizeof(declared)),
                       op_type_text(type, given, sizeof(given)));
}

static frit_status bind_dim(const struct text_binding *b, const struct script_input *input,
                            uint32_t axis, int64_t extent)
{
    struct bound_dim *dim = &b->dims[input->dims[axis]];

    if (!dim->from)
        *dim = (struct bound_dim){input, axis, extent};
    if (dim->extent == extent)
        return FRIT_OK;
    return script_fail(b->script, input->line, input->dim_columns[axis], b->err,
                       "dim %s is %lld in %s, but %lld in %s (%u:%u)", input->dim_names[axis],
                       (long long)extent, input->name, (long long)dim->extent, dim->from->name,
                       dim->from->line, dim->from->dim_columns[dim->axis]);
}

/* Compares a known type with the declaration and learns the named dims. */
static frit_status bind_known(const struct text_binding *b, const struct script_input *input,
                              const struct op_type *type)
{
    if (input->dtype != FRIT_NO_DTYPE && type->dtype != input->dtype)
        return fail_type(b, input, type);
    if (input->data && !op_type_equal(type, &input->data_type))
        return fail_type(b, input, type);
    if (!input->has_dims)
        return FRIT_OK;
    if (type->rank != input->rank)
        return fail_type(b, input, type);
    for (uint32_t i = 0; i < input->rank; i++) {
        if (input->dim_names[i])
            TRY(bind_dim(b, input, i, type->dims[i]));
        else if (input->dims[i] >= 0 && input->dims[i] != type->dims[i])
            return fail_type(b, input, type);
    }
    return FRIT_OK;
}

/* The declaration with what is known of its dims. */
static void guess_type(const struct text_binding *b, const struct script_input *input,
                       struct op_type *type)
{
    *type = (struct op_type){.dtype = input->dtype, .rank = input->rank};
    for (uint32_t i = 0; i < input->rank; i++) {
        if (input->dim_names[i])
            type->dims[i] = b->dims[input->dims[i]].extent;
        else
            type->dims[i] = input->dims[i] < 0 ? UNKNOWN_EXTENT : input->dims[i];
    }
}

/* What is known of an input's type before named dims are: the caller's, else that of its elements.
 */
static const struct op_type *known_type(const struct text_binding *b, uint32_t index)
{
    const struct script_input *input = &b->script->inputs[index];

    if (b->types[index].dtype != FRIT_NO_DTYPE)
        return &b->types[index];
    return input->data ? &input->data_type : NULL;
}

/* The graph's copy of the file's name or of the elements. */
static frit_status copy_source(const struct text_binding *b, const struct script_input *input,
                               struct graph_value *value)
{
    struct arena *arena = &b->graph->arena;

    if (input->file) {
        value->file = arena_text(arena, input->file, strlen(input->file));
        return value->file ? FRIT_OK : fail_memory(b->err, strlen(input->file));
    }
    if (input->data) {
        size_t bytes = (size_t)frit_storage_bytes(input->dtype, op_elements(&input->data_type));
        void *copy = arena_alloc(arena, bytes + 1);

        if (!copy)
            return fail_memory(b->err, bytes);
        memcpy(copy, input->data, bytes);
        value->data = copy;
    }
    return FRIT_OK;
}

static frit_status add_input(const struct text_binding *b, uint32_t index)
{
    const struct script_input *input = &b->script->inputs[index];
    const struct op_type *known = known_type(b, index);
    struct op_type type = known ? *known : (struct op_type){0};
    uint32_t value;
    frit_status st;

    if (type.dtype == FRIT_NO_DTYPE) {
        if (!input->has_dims)
            return script_fail(b->script, input->line, input->column, b->err,
                               "%s has no declared type, and its file was not read", input->name);
        guess_type(b, input, &type);
    }
    st = graph_input(b->graph, input->is_const ? GRAPH_CONST : GRAPH_INPUT, input->name, &type,
                     &value, b->err);
    if (st) {
        fail_context(b->err, "%s:%u:%u", b->script->name, input->line, input->column);
        return st;
    }
    return copy_source(b, input, &b->graph->values[value]);
}

static frit_status bind_inputs(const struct text_binding *b)
{
    const struct script *s = b->script;

    for (uint32_t i = 0; i < s->n_inputs; i++) {
        const struct op_type *known = known_type(b, i);

        if (known)
            TRY(bind_known(b, &s->inputs[i], known));
    }
    for (uint32_t i = 0; i < s->n_dims; i++) {
        if (!b->dims[i].from)
            b->dims[i].extent = UNKNOWN_EXTENT;
        b->extents[i] = b->dims[i].extent;
    }
    for (uint32_t i = 0; i < s->n_inputs; i++)
        TRY(add_input(b, i));
    return FRIT_OK;
}

/* ---- steps ---- */

/* Number of a script's value in the graph. */
static uint32_t graph_number(const struct script *s, uint32_t value)
{
    return s->values[value].result ? s->n_inputs + s->values[value].number
                                   : s->values[value].number;
}

static frit_status name_results(const struct text_binding *b, const struct script_step *step)
{
    for (uint32_t i = 0; i < step->n_values; i++) {
        const char *name = b->script->values[step->value + i].name;
        const char *copy = arena_text(&b->graph->arena, name, strlen(name));

        if (!copy)
            return fail_memory(b->err, strlen(name));
        b->graph->values[graph_number(b->script, step->value + i)].name = copy;
    }
    return FRIT_OK;
}

/* Computes the attributes that depend on named dims. */
static frit_status patch_attrs(const struct text_binding *b, const struct script_step *step,
                               union attrs *attrs)
{
    const struct script *s = b->script;

    for (uint32_t i = 0; i < step->n_patches; i++) {
        const struct script_patch *patch = &s->patches[step->patch + i];
        int64_t value = 0;
        const char *why = extent_value(s, &patch->extent, b->extents, &value);

        if (why)
            return script_fail(s, patch->line, patch->column, b->err, "this extent %s", why);
        memcpy((char *)attrs + patch->offset, &value, sizeof(value));
    }
    return FRIT_OK;
}

static frit_status bind_op(const struct text_binding *b, const struct script_step *step)
{
    const struct script *s = b->script;
    struct graph_call call = {.op = step->op,
                              .n_in = step->n_in,
                              .wanted = step->wanted,
                              .line = step->line,
                              .in = b->operands};
    union attrs attrs;
    uint32_t out[FRIT_OP_MAX_OUT];
    frit_status st;

    for (uint32_t i = 0; i < step->n_in; i++) {
        b->operands[i] = s->operands[step->operand + i];
        if (b->operands[i].kind == FRIT_OPERAND_TENSOR)
            b->operands[i].value = graph_number(s, b->operands[i].value);
    }
    if (step->attrs) {
        memcpy(&attrs, step->attrs, op_record(op_row(step->op))->size);
        TRY(patch_attrs(b, step, &attrs));
        call.attrs = &attrs;
    }
    st = graph_append(b->graph, &call, out, b->err);
    if (st) {
        fail_context(b->err, "%s:%u:%u", s->name, step->line, step->column);
        return st;
    }
    return name_results(b, step);
}

static frit_status bind_all(const struct text_binding *b)
{
    const struct script *s = b->script;

    TRY(bind_inputs(b));
    for (uint32_t i = 0; i < s->n_steps; i++) {
        const struct script_step *step = &s->steps[i];

        if (step->kind == STEP_OP)
            TRY(bind_op(b, step));
        else
            TRY(graph_output_named(b->graph, graph_number(s, step->value), step->name, b->err));
    }
    return FRIT_OK;
}

frit_status script_bind(const struct script *script, const struct op_type *types, struct graph *out,
                        frit_err *err)
{
    struct text_binding b = {.script = script, .types = types, .graph = out, .err = err};
    uint32_t most = 1;
    frit_status st;

    for (uint32_t i = 0; i < script->n_steps; i++)
        most = script->steps[i].n_in > most ? script->steps[i].n_in : most;
    b.dims = calloc((size_t)script->n_dims + 1, sizeof(*b.dims));
    b.extents = calloc((size_t)script->n_dims + 1, sizeof(*b.extents));
    b.operands = calloc(most, sizeof(*b.operands));
    st = b.dims && b.extents && b.operands ? bind_all(&b)
                                           : fail_memory(err, most * sizeof(*b.operands));
    free(b.dims);
    free(b.extents);
    free(b.operands);
    return st;
}
