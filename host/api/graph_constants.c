/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of models on the devices where they run. */
#include <stdlib.h>
#include <string.h>

#include "api/graph.h"
#include "base/fail.h"
#include "onnx/fold.h"
#include "onnx/onnx.h"

/* On one device. */
struct held_constants {
    struct held_constants *next;
    frit_device *device;
    uint32_t n_values;
    frit_tensor *tensors[]; /* by value, NULL: no constant of the graph's own */
};

/* Up to this size elements may lie in the graph, which does not outlive them; beyond they lie in
 * the model (onnx/fold.h). */
enum { COPIED_BYTES = FOLD_MAX_ELEMENTS * 8 };

static void release_model(void *model)
{
    onnx_unref(model);
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
        return frit_keep(frit_from_host(device, value->type.dtype, dims, value->data, bytes));
    onnx_ref(graph->model);
    return frit_keep(frit_wrap_host(device, value->type.dtype, dims, value->data, bytes,
                                    release_model, graph->model));
}

static struct held_constants *make_held(const frit_graph *graph, frit_device *device)
{
    const struct graph *g = &graph->graph;
    struct held_constants *held =
        calloc(1, sizeof(*held) + (size_t)g->n_values * sizeof(frit_tensor *));

    if (!held)
        return NULL;
    held->device = device;
    held->n_values = g->n_values;
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind == GRAPH_CONST && g->values[i].data)
            held->tensors[i] = make_tensor(graph, device, &g->values[i]);
    }
    return held;
}

frit_status graph_constants(const frit_graph *graph, frit_device *device, frit_tensor **tensors,
                            frit_err *err)
{
    frit_graph *owner = (frit_graph *)(uintptr_t)graph; /* what it holds is no part of its value */
    struct held_constants *held;

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
    return FRIT_OK;
}

void graph_constants_drop(frit_graph *graph)
{
    while (graph->held) {
        struct held_constants *held = graph->held;

        graph->held = held->next;
        for (uint32_t i = 0; i < held->n_values; i++)
            frit_release(held->tensors[i]);
        free(held);
    }
}
