/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trial_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/bind_args.h"
#include "run/frame_batch.h"
#include "run/launch_parts.h"
#include "run/trial_run.h"
#include "tune/sample.h"

static frit_status make_arrays(struct launch_trial *t, frit_err *err)
{
    const uint32_t n_values = t->graph.n_values + 1, n_ops = t->graph.n_ops;

    t->given = arena_array(&t->arena, n_values, sizeof(*t->given));
    t->values = arena_array(&t->arena, n_values, sizeof(*t->values));
    t->at_once = arena_array(&t->arena, n_values, sizeof(*t->at_once));
    t->in = arena_array(&t->arena, n_values, sizeof(*t->in));
    t->memories = arena_array(&t->arena, n_values, sizeof(*t->memories));
    t->extra = arena_array(&t->arena, n_ops, sizeof(*t->extra));
    t->numbers = arena_array(&t->arena, n_ops, sizeof(*t->numbers));
    t->out = arena_array(&t->arena, t->n_out + 1u, sizeof(*t->out));
    t->of_ops = arena_array(&t->arena, t->n_out + 1u, sizeof(*t->of_ops));
    t->of_first = arena_array(&t->arena, t->n_out + 1u, sizeof(*t->of_first));
    if (!t->given || !t->values || !t->at_once || !t->in || !t->memories || !t->extra ||
        !t->numbers || !t->out || !t->of_ops || !t->of_first)
        return fail_memory(err, n_values * sizeof(*t->values));
    return FRIT_OK;
}

static uint64_t bytes_of_all(const struct graph *graph)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < graph->n_values; v++)
        bytes +=
            frit_storage_bytes(graph->values[v].type.dtype, op_elements(&graph->values[v].type));
    return bytes;
}

static frit_status make_operand(struct launch_trial *t, uint32_t v, uint64_t below,
                                uint64_t *random, frit_err *err)
{
    struct memory_pair *pair = &t->memories[t->n_memories++];
    struct value *value = &t->given[v];

    t->in[t->n_in++] = v;
    value->type = t->graph.values[v].type;
    layout_dense(&value->type, &value->layout);
    pair->bytes = pair->high = launch_extent(value).bytes;
    pair->dtype = value->type.dtype;
    pair->data = arena_alloc(&t->arena, pair->bytes + sizeof(uint64_t));
    if (!pair->data)
        return fail_memory(err, pair->bytes);
    sample_fill(pair->data, pair->dtype, op_elements(&value->type), below, random);
    TRY(buffer_create(t->device->memory, pair->bytes, false, &pair->own, err));
    value->buffer = pair->own;
    return FRIT_OK;
}

/* Of the inputs alone, so that what else a graph has makes no difference. */
static uint64_t least_input(const struct graph *graph)
{
    uint64_t least = TRIAL_BELOW;

    for (uint32_t v = 0; v < graph->n_values; v++)
        for (uint32_t d = 0; graph->values[v].kind == GRAPH_INPUT && d < graph->values[v].type.rank;
             d++)
            if ((uint64_t)graph->values[v].type.dims[d] < least)
                least = (uint64_t)graph->values[v].type.dims[d];
    return least ? least : 1;
}

static frit_status init(struct launch_trial *t, const struct trial_graph *from, frit_err *err)
{
    uint64_t random = TRIAL_RANDOM;

    t->label = arena_text(&t->arena, from->label, strlen(from->label));
    if (!t->label)
        return fail_memory(err, strlen(from->label));
    if (bytes_of_all(&t->graph) > TRIAL_BYTES)
        return fail(err, FRIT_UNSUPPORTED, "a trial of %s would need %llu MiB", t->label,
                    (unsigned long long)(bytes_of_all(&t->graph) >> 20));
    TRY(make_arrays(t, err));
    memcpy(t->out, from->out, t->n_out * sizeof(*t->out));
    for (uint32_t i = 0; i < t->graph.n_ops; i++) {
        t->extra[i].context = from->context;
        t->numbers[i] = i;
    }
    for (uint32_t v = 0; v < t->graph.n_values; v++)
        if (t->graph.values[v].kind == GRAPH_INPUT)
            TRY(make_operand(t, v, least_input(&t->graph), &random, err));
    return run_scratch_create(&t->scratch, err);
}

frit_status trial_create_graph(frit_device *device, const struct trial_graph *from,
                               struct launch_trial **out, frit_err *err)
{
    struct launch_trial *t = calloc(1, sizeof(*t));
    frit_status st;

    *out = NULL;
    if (!t) {
        graph_fini(from->graph);
        return fail_memory(err, sizeof(*t));
    }
    t->device = device;
    t->graph = *from->graph;
    *from->graph = (struct graph){0};
    t->n_out = from->n_out;
    st = init(t, from, err);
    if (st)
        trial_destroy(t);
    else
        *out = t;
    return st;
}
