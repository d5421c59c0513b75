/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of models on the devices where they run, and what follows from them alone.
 *
 * An op all of whose operands are constants, or results of such ops, is settled: it runs once,
 * before the first run of the graph on a device, and its results stay beside the constants.  What
 * only settled ops use is released.  Ops that draw random numbers or have effects are not settled,
 * nor are those whose results are larger than their operands, which would trade reading few bytes
 * and computing for reading many: expanded and dequantised weights. */
#include <stdlib.h>
#include <string.h>

#include "api/graph.h"
#include "api/record_op.h"
#include "base/fail.h"
#include "graph/dtype.h"
#include "onnx/fold.h"
#include "onnx/onnx.h"

/* On one device. */
struct held_constants {
    struct held_constants *next;
    frit_device *device;
    uint32_t n_values;
    bool *settled;          /* by op; NULL: none is */
    frit_tensor *tensors[]; /* by value, NULL: neither a constant of the graph's own nor settled */
};

/* Up to this size elements may lie in the graph, which does not outlive them; beyond they lie in
 * the model (onnx/fold.h). */
enum { COPIED_BYTES = FOLD_MAX_ELEMENTS * 8 };

/* Results of this size are settled whatever they are made of. */
enum { SMALL_BYTES = 64 << 10 };

static void release_model(void *model)
{
    onnx_unref(model);
}

/* Moves a tensor out of all scopes of the calling thread. */
static frit_tensor *keep(frit_tensor *tensor, uint64_t depth)
{
    while (depth-- > 0)
        (void)frit_keep(tensor);
    return tensor;
}

/* Few elements may lie in the graph, which may end before the tensors do, and are copied.  Many lie
 * in the model and stay in place where the device can read them. */
static frit_tensor *make_tensor(const frit_graph *graph, frit_device *device,
                                const struct graph_value *value)
{
    const uint64_t bytes = frit_storage_bytes(value->type.dtype, op_elements(&value->type));
    frit_dims dims = {.rank = value->type.rank};

    memcpy(dims.dim, value->type.dims, sizeof(dims.dim));
    if (bytes <= FOLD_MAX_BYTES)
        return frit_from_host(device, value->type.dtype, dims, value->data, bytes);
    onnx_ref(graph->model);
    return frit_wrap_host(device, value->type.dtype, dims, value->data, bytes, release_model,
                          graph->model);
}

/* `depth`: of the scopes that are open. */
static void make_constants(const frit_graph *graph, struct held_constants *held, uint64_t depth)
{
    const struct graph *g = &graph->graph;

    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind == GRAPH_CONST && g->values[i].data)
            held->tensors[i] = keep(make_tensor(graph, held->device, &g->values[i]), depth);
    }
}

/* ---- settled ops ---- */

static uint64_t bytes_of(const struct graph_value *value)
{
    return frit_storage_bytes(value->type.dtype, op_elements(&value->type));
}

/* `known`, `outputs`: by value.  Outputs of the graph are made by each run: they are the caller's.
 */
static bool can_settle(const struct graph *g, const struct graph_op *op, const bool *known,
                       const bool *outputs)
{
    const frit_op_info *row = op_row(op->op);
    uint64_t in = SMALL_BYTES, out = 0;

    if (row->traits & (FRIT_OP_SEEDED | FRIT_OP_ORDERED) || row->cls == FRIT_CLASS_RANDOM)
        return false;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        if (!known[op->in[i].value] ||
            dtype_class(g->values[op->in[i].value].type.dtype) == FRIT_DTYPE_PACKED)
            return false;
        in += bytes_of(&g->values[op->in[i].value]);
    }
    for (uint32_t i = 0; i < op->n_out; i++) {
        if (op->out[i] == GRAPH_NO_VALUE)
            continue;
        if (outputs[op->out[i]])
            return false;
        out += bytes_of(&g->values[op->out[i]]);
    }
    return out <= in;
}

/* Which ops are settled; `known` becomes their results too.  False: none. */
static bool find_settled(const struct graph *g, bool *known, const bool *outputs, bool *settled)
{
    bool any = false;

    for (uint32_t i = 0; i < g->n_ops; i++) {
        const struct graph_op *op = &g->ops[i];

        settled[i] = can_settle(g, op, known, outputs);
        any |= settled[i];
        for (uint32_t k = 0; k < op->n_out && settled[i]; k++) {
            if (op->out[k] != GRAPH_NO_VALUE)
                known[op->out[k]] = true;
        }
    }
    return any;
}

/* Adds the values that the graph's runs use to its outputs. */
static void find_used(const struct graph *g, const bool *settled, bool *used)
{
    for (uint32_t i = 0; i < g->n_ops; i++) {
        for (uint32_t k = 0; k < g->ops[i].n_in && !settled[i]; k++) {
            if (g->ops[i].in[k].kind == FRIT_OPERAND_TENSOR)
                used[g->ops[i].in[k].value] = true;
        }
    }
}

/* Records the settled ops, in a scope that releases the results that runs do not use.  They are
 * exact, since runs of every numeric class use them. */
static bool record_settled(const struct graph *g, struct held_constants *held, uint64_t depth,
                           frit_input *in, const bool *used)
{
    if (frit_numeric_begin(FRIT_NUMERIC_EXACT, NULL))
        return false;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (held->settled[i])
            record_op(held->device, &g->ops[i], in, held->tensors);
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind == GRAPH_RESULT && held->tensors[i])
            held->tensors[i] = used[i] ? keep(held->tensors[i], depth) : NULL;
    }
    return frit_numeric_end(NULL) == FRIT_OK;
}

/* After they ran. */
static bool have_no_error(const struct graph *g, const struct held_constants *held)
{
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind == GRAPH_RESULT && held->tensors[i] &&
            frit_tensor_status(held->tensors[i]))
            return false;
    }
    return true;
}

/* Releases the constants that nothing uses, or the results if there are no settled ops. */
static void drop_unused(const struct graph *g, struct held_constants *held, const bool *used)
{
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (held->settled ? used[i] : g->values[i].kind != GRAPH_RESULT)
            continue;
        frit_release(held->tensors[i]);
        held->tensors[i] = NULL;
    }
}

/* Ends the scope, in which the constants were made.  Without memory for it, or where an op fails,
 * the graph's runs do all ops themselves. */
static void settle(const struct graph *g, struct held_constants *held, frit_scope scope)
{
    bool *known = calloc((size_t)g->n_values + 1, sizeof(*known));
    bool *used = calloc((size_t)g->n_values + 1, sizeof(*used));
    frit_input *in = calloc((size_t)graph_max_operands(g) + 1, sizeof(*in));
    bool any = false, fine = false;

    held->settled = calloc((size_t)g->n_ops + 1, sizeof(*held->settled));
    if (known && used && in && held->settled) {
        for (uint32_t i = 0; i < g->n_values; i++)
            known[i] = held->tensors[i] && frit_tensor_status(held->tensors[i]) == FRIT_OK;
        for (uint32_t i = 0; i < g->n_outputs; i++)
            used[g->outputs[i]] = true;
        any = find_settled(g, known, used, held->settled);
    }
    if (any) {
        find_used(g, held->settled, used);
        fine = record_settled(g, held, scope.depth, in, used);
    }
    frit_scope_end(scope);
    if (!fine || !have_no_error(g, held)) {
        free(held->settled);
        held->settled = NULL;
    }
    if (any)
        drop_unused(g, held, used);
    free(known);
    free(used);
    free(in);
}

/* ---- for runs ---- */

static struct held_constants *make_held(const frit_graph *graph, frit_device *device)
{
    const struct graph *g = &graph->graph;
    struct held_constants *held =
        calloc(1, sizeof(*held) + (size_t)g->n_values * sizeof(frit_tensor *));
    frit_scope scope = frit_scope_begin(device);

    if (!held || !scope.depth) {
        if (scope.depth)
            frit_scope_end(scope);
        free(held);
        return NULL;
    }
    held->device = device;
    held->n_values = g->n_values;
    make_constants(graph, held, scope.depth);
    settle(g, held, scope);
    return held;
}

frit_status graph_constants(const frit_graph *graph, frit_device *device, frit_tensor **tensors,
                            const bool **settled, frit_err *err)
{
    frit_graph *owner = (frit_graph *)(uintptr_t)graph; /* what it holds is no part of its value */
    struct held_constants *held;

    *settled = NULL;
    if (!graph->model)
        return FRIT_OK;
    pthread_mutex_lock(&owner->lock);
    held = owner->held;
    while (held && held->device != device)
        held = held->next;
    if (!held) {
        held = make_held(graph, device);
        if (held) {
            held->next = owner->held;
            owner->held = held;
        }
    }
    pthread_mutex_unlock(&owner->lock);
    if (!held)
        return fail_memory(err, graph->graph.n_values * sizeof(frit_tensor *));
    for (uint32_t i = 0; i < held->n_values; i++)
        tensors[i] = held->tensors[i] ? held->tensors[i] : tensors[i];
    *settled = held->settled;
    return FRIT_OK;
}

void graph_constants_drop(frit_graph *graph)
{
    while (graph->held) {
        struct held_constants *held = graph->held;

        graph->held = held->next;
        for (uint32_t i = 0; i < held->n_values; i++)
            frit_release(held->tensors[i]);
        free(held->settled);
        free(held);
    }
}
