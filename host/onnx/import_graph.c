/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, nodes and functions, in the order of the file. */
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "graph/text/text_lex.h"
#include "onnx/attr.h"
#include "onnx/emit.h"
#include "onnx/model.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"

enum { MAX_DEPTH = 64 };

/* ---- nodes ---- */

static const char *domain_of(const Onnx__NodeProto *proto)
{
    const char *domain = proto->domain ? proto->domain : "";

    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static const Onnx__FunctionProto *find_function(const struct onnx_import *import,
                                                const char *domain, const char *name)
{
    const Onnx__ModelProto *proto = import->model->proto;

    for (size_t i = 0; i < proto->n_functions; i++) {
        const Onnx__FunctionProto *function = proto->functions[i];
        const char *of = function->domain ? function->domain : "";

        if (function->name && strcmp(function->name, name) == 0 && strcmp(of, domain) == 0)
            return function;
    }
    return NULL;
}

static void unknown_op(struct import_node *node, const char *domain, bool known)
{
    const char *name = node->proto->op_type;

    if (known)
        problem_node(node, "Frit does not have %s of opset %lld, but of opset %lld", name,
                     (long long)node->opset, (long long)rows_nearest(domain, name, node->opset));
    else if (domain[0])
        problem_node(node, "Frit does not have the op %.60s of the domain %.60s", name, domain);
    else
        problem_node(node, "Frit does not have the op %.60s", name);
}

/* Reads the operands; false: one of them has failed before. */
static bool read_operands(struct import_node *node)
{
    bool whole = true;

    node->n_in = (uint32_t)node->proto->n_input;
    node->in = import_alloc(node->import, (node->n_in + 1) * sizeof(val *));
    for (uint32_t i = 0; node->in && i < node->n_in; i++) {
        const char *name = node->proto->input[i];

        if (!name[0])
            continue;
        node->in[i] = import_find(node->scope, name);
        if (!node->in[i])
            problem_node(node,
                         "operand '%.100s' is no input, no initializer and given by no node before "
                         "this one: nodes are missing, out of order or a cycle",
                         name);
        else if (node->in[i]->kind == VALUE_FAILED)
            whole = false;
    }
    return node->in && whole && !node->failed;
}

/* The name of a result in the text form. */
static void name_value(struct onnx_import *import, val *value, const char *name)
{
    struct graph_value *placed;

    value->name = name;
    if (value->number == GRAPH_NO_VALUE)
        return;
    placed = &import->graph->values[value->number];
    if (!placed->name)
        placed->name = arena_text(&import->graph->arena, name, strlen(name));
}

static void define_results(struct import_node *node)
{
    struct onnx_import *import = node->import;

    for (uint32_t i = 0; i < node->n_out; i++) {
        const char *name = node->proto->output[i];
        val *value = node->failed ? NULL : node->out[i];

        if (!name[0])
            continue;
        if (!value && !node->failed && node->row)
            problem_node(node, "result %u is not computed by Frit", i);
        if (!value || node->failed) {
            value = import_alloc(import, sizeof(*value));
            if (!value)
                return;
            *value = (val){.kind = VALUE_FAILED};
        } else if (!node->scope->depth && !value->name && lex_is_text(str_of(name))) {
            name_value(import, value, name);
        }
        import_define(import, node->scope, name, value);
    }
}

/* Operands beyond those that the op has; absent ones at the end do not count. */
static void check_count(struct import_node *node, const Onnx__FunctionProto *function)
{
    uint32_t most = node->row ? node->row->most : UINT32_MAX, given = node->n_in;

    if (function)
        most = (uint32_t)function->n_input;
    while (given && !node->proto->input[given - 1][0])
        given--;
    if (given > most)
        problem_node(node, "%u operands; the op has at most %u", given, most);
}

static void translate(struct onnx_import *import, struct import_scope *scope,
                      const Onnx__NodeProto *proto, size_t index)
{
    struct import_node node = {
        .import = import, .scope = scope, .proto = proto, .index = index, .opset = scope->opset};
    const char *domain = domain_of(proto);
    const Onnx__FunctionProto *function;
    bool known, whole;

    if (!proto->op_type || proto->n_output > NODE_MAX_OUT) {
        problem_add(import, "node %zu has %s", index,
                    proto->op_type ? "too many results" : "no op");
        return;
    }
    node.n_out = (uint32_t)proto->n_output;
    function = find_function(import, domain, proto->op_type);
    node.row = function ? NULL : rows_find(domain, proto->op_type, scope->opset, &known);
    whole = read_operands(&node);
    if (!function && !node.row)
        unknown_op(&node, domain, known);
    check_count(&node, function);
    if (!whole)
        node.failed = true;
    if (!node.failed && function)
        import_function(&node, function);
    else if (!node.failed)
        node.row->translate(&node, node.row->arg);
    define_results(&node);
}

void import_nodes(struct onnx_import *import, struct import_scope *scope,
                  Onnx__NodeProto *const *nodes, size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes && import_step(import); i++)
        translate(import, scope, nodes[i], i);
}

/* ---- graphs ---- */

/* NULL: it has none in the text form. */
static const char *initializer_name(const struct import_scope *scope,
                                    const Onnx__TensorProto *tensor)
{
    return !scope->depth && tensor->name && lex_is_text(str_of(tensor->name)) ? tensor->name : NULL;
}

static void define_initializers(struct onnx_import *import, struct import_scope *scope,
                                const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer && !import->status; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        frit_err err = ERR_INIT;
        struct op_type type = {0};
        const void *data = NULL;
        val *value;

        if (tensor_read(import->model, tensor, &type, &data, &err))
            problem_add(import, "initializer '%.100s': %s", tensor->name ? tensor->name : "",
                        err.text);
        value = import_constant(import, &type, data, initializer_name(scope, tensor));
        if (!value)
            return;
        value->narrow = tensor_bits(tensor->data_type) ? tensor->data_type : 0;
        if (err.status)
            value->kind = VALUE_FAILED;
        import_define(import, scope, tensor->name ? tensor->name : "", value);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        problem_add(import, "sparse initializers are not supported");
}

static bool enter(struct import_node *node, struct import_scope *scope)
{
    if (node->scope->depth == MAX_DEPTH) {
        problem_node(node, "graphs or functions are nested more than %d deep", MAX_DEPTH);
        return false;
    }
    scope->node = node;
    scope->depth = node->scope->depth + 1;
    scope->opset = node->scope->opset;
    return true;
}

bool import_subgraph(struct import_node *node, const Onnx__GraphProto *graph, val *const *inputs,
                     uint32_t n_inputs, val **outputs, uint32_t n_outputs)
{
    struct onnx_import *import = node->import;
    struct import_scope scope = {.outer = node->scope};

    if (!graph || !import_step(import) || !enter(node, &scope))
        return false;
    if (graph->n_input != n_inputs || graph->n_output != n_outputs) {
        problem_node(node, "its graph has %zu inputs and %zu outputs, %u and %u are wanted",
                     graph->n_input, graph->n_output, n_inputs, n_outputs);
        return false;
    }
    for (uint32_t i = 0; i < n_inputs; i++) {
        if (graph->input[i]->name)
            import_define(import, &scope, graph->input[i]->name, inputs[i]);
    }
    define_initializers(import, &scope, graph);
    import_nodes(import, &scope, graph->node, graph->n_node);
    for (uint32_t i = 0; i < n_outputs; i++) {
        outputs[i] = graph->output[i]->name ? import_find(&scope, graph->output[i]->name) : NULL;
        if (!outputs[i])
            problem_node(node, "output %u of its graph is not defined", i);
        else if (outputs[i]->kind == VALUE_FAILED)
            node->failed = true;
    }
    map_fini(&scope.values, NULL);
    return !node->failed && !import->status;
}

static int64_t opset_of(Onnx__OperatorSetIdProto *const *imports, size_t count, int64_t otherwise)
{
    for (size_t i = 0; i < count; i++) {
        const char *domain = imports[i]->domain ? imports[i]->domain : "";

        if (!domain[0] || strcmp(domain, "ai.onnx") == 0)
            return imports[i]->version;
    }
    return otherwise;
}

bool import_function(struct import_node *node, const Onnx__FunctionProto *function)
{
    struct onnx_import *import = node->import;
    struct import_scope scope = {.call = node->proto, .caller = node->scope};

    if (!enter(node, &scope))
        return false;
    scope.opset = opset_of(function->opset_import, function->n_opset_import, scope.opset);
    for (size_t i = 0; i < function->n_input; i++) {
        val *value = i < node->n_in && node->in[i] ? node->in[i] : NULL;

        if (value)
            import_define(import, &scope, function->input[i], value);
    }
    import_nodes(import, &scope, function->node, function->n_node);
    for (uint32_t i = 0; i < node->n_out && i < function->n_output; i++) {
        node->out[i] = import_find(&scope, function->output[i]);
        if (!node->out[i])
            problem_node(node, "result %u of the function is not defined", i);
        else if (node->out[i]->kind == VALUE_FAILED)
            node->failed = true;
    }
    map_fini(&scope.values, NULL);
    return !node->failed;
}

/* ---- the main graph ---- */

static void add_output(struct onnx_import *import, const struct import_scope *scope,
                       const char *name)
{
    val *value = import_find(scope, name);
    const char *have;

    if (!value)
        problem_add(import, "output '%.100s' is given by no node", name);
    if (!value || value->kind != VALUE_TENSOR || import->n_problems)
        return;
    import->status = import_place(import, value);
    if (import->status)
        return;
    have = import->graph->values[value->number].name;
    import->status = graph_output_named(import->graph, value->number,
                                        have && strcmp(have, name) == 0 ? NULL : name, import->err);
}

void import_main(struct onnx_import *import, val *const *inputs)
{
    const struct onnx_model *model = import->model;
    const Onnx__GraphProto *graph = model->graph;
    struct import_scope scope = {0};

    scope.opset =
        opset_of(model->proto->opset_import, model->proto->n_opset_import, ONNX_NEWEST_OPSET);
    if (scope.opset < 1 || scope.opset > ONNX_NEWEST_OPSET)
        problem_add(import, "the model is of opset %lld; Frit reads %d to %d",
                    (long long)scope.opset, ONNX_OLDEST_OPSET, ONNX_NEWEST_OPSET);
    scope.opset = scope.opset < ONNX_NEWEST_OPSET ? scope.opset : ONNX_NEWEST_OPSET;
    for (uint32_t i = 0; i < model->n_inputs; i++)
        import_define(import, &scope, model->inputs[i].name, inputs[i]);
    define_initializers(import, &scope, graph);
    import_nodes(import, &scope, graph->node, graph->n_node);
    for (size_t i = 0; i < graph->n_output && !import->status; i++)
        add_output(import, &scope, graph->output[i]->name ? graph->output[i]->name : "");
    if (!graph->n_output)
        problem_add(import, "the graph has no outputs");
    map_fini(&scope.values, NULL);
}
