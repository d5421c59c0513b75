/* SPDX-License-Identifier: Apache-2.0 */
/* One op of a frame as a frame of its own: the core ops that it stands for, or the op itself on
 * another device.  The batch of the outer frame is empty while this runs. */
#include "run/inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "device/effects.h"
#include "device/wait.h"
#include "graph/decompose/decompose.h"
#include "memory/buffer.h"
#include "record/context.h"
#include "run/frame.h"
#include "run/mirror.h"
#include "run/run_frame.h"
#include "tensor/failure.h"

struct inner {
    struct frame *outer;
    const struct graph_op *op;
    struct run_op extra; /* of the op */
    struct frame frame;
    struct graph graph; /* inputs: the op's tensor operands; outputs: its wanted outputs */
    struct arena arena;
};

/* ---- what to run ---- */

static frit_status decomposed_graph(struct inner *n, frit_err *err)
{
    TRY(decompose_op(n->outer->graph, n->op, &n->graph, err));
    atomic_fetch_add(&n->outer->device->count.decomposed, 1);
    return FRIT_OK;
}

static frit_status same_graph(struct inner *n, frit_err *err)
{
    struct graph_operand *in = arena_array(&n->arena, n->op->n_in + 1, sizeof(*in));
    struct graph_call call = {
        .op = n->op->op, .n_in = n->op->n_in, .in = in, .attrs = n->op->attrs};
    uint32_t out[FRIT_OP_MAX_OUT];

    if (!in)
        return fail_memory(err, n->op->n_in * sizeof(*in));
    for (uint32_t i = 0; i < n->op->n_in; i++) {
        in[i] = n->op->in[i];
        if (in[i].kind == FRIT_OPERAND_TENSOR)
            TRY(graph_input(&n->graph, GRAPH_INPUT, NULL,
                            &n->outer->graph->values[n->op->in[i].value].type, &in[i].value, err));
    }
    for (uint32_t k = 0; k < n->op->n_out; k++)
        call.wanted |= (uint32_t)(n->op->out[k] != GRAPH_NO_VALUE) << k;
    TRY(graph_append(&n->graph, &call, out, err));
    for (uint32_t k = 0; k < n->op->n_out; k++) {
        if (n->op->out[k] != GRAPH_NO_VALUE)
            TRY(graph_output(&n->graph, out[k], err));
    }
    return FRIT_OK;
}

/* ---- values in and out ---- */

static const struct value *operand(const struct inner *n, uint32_t index)
{
    return &n->outer->values[n->op->in[index].value].value;
}

/* The number of the next input of the graph. */
static uint32_t next_input(const struct inner *n, uint32_t from)
{
    while (n->graph.values[from].kind != GRAPH_INPUT)
        from++;
    return from;
}

static void share_inputs(struct inner *n)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < n->op->n_in; i++) {
        if (n->op->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        next = next_input(n, next);
        n->frame.values[next].value = *operand(n, i);
        buffer_own(operand(n, i)->buffer);
        next++;
    }
}

/* All are read before the first is waited for, and the last is waited for first. */
static frit_status carry_inputs(struct inner *n, frit_err *err)
{
    struct mirror_read *reads = arena_array(&n->arena, n->op->n_in + 1, sizeof(*reads));
    uint32_t *values = arena_array(&n->arena, n->op->n_in + 1, sizeof(*values)), count = 0;
    frit_status st = FRIT_OK;

    if (!reads || !values)
        return fail_memory(err, n->op->n_in * sizeof(*reads));
    for (uint32_t i = 0; i < n->op->n_in; i++) {
        if (n->op->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        values[count] = next_input(n, count ? values[count - 1] + 1 : 0);
        mirror_start(n->outer->device, operand(n, i), &reads[count++]);
    }
    while (count-- > 0) {
        struct value *to = &n->frame.values[values[count]].value;
        frit_err own = ERR_INIT;
        frit_status one = mirror_finish(&reads[count], to, &own);

        if (one && err)
            *err = own;
        st = one ? one : st;
    }
    return st;
}

/* Each input holds an owner; what was carried so far is in the values also on failure. */
static frit_status bind_inputs(struct inner *n, frit_err *err)
{
    for (uint32_t v = 0; v < n->graph.n_values; v++)
        n->frame.values[v].external = n->graph.values[v].kind != GRAPH_RESULT;
    if (n->frame.device != n->outer->device)
        return carry_inputs(n, err);
    share_inputs(n);
    return FRIT_OK;
}

static frit_status give_output(struct inner *n, const struct value *from, struct value *out,
                               frit_err *err)
{
    if (n->frame.device != n->outer->device)
        return mirror_adopt(n->outer->device, from, n->extra.context & CONTEXT_PERSISTENT, out,
                            err);
    *out = *from;
    buffer_own(out->buffer);
    return FRIT_OK;
}

static frit_status give_outputs(struct inner *n, frit_err *err)
{
    uint32_t next = 0;

    for (uint32_t k = 0; k < n->op->n_out; k++) {
        const struct run_value *from;
        struct value out;

        if (n->op->out[k] == GRAPH_NO_VALUE)
            continue;
        from = &n->frame.values[n->graph.outputs[next++]];
        if (from->failure)
            return fail(err, from->failure->status, "%s", from->failure->text);
        TRY(frame_reserve(n->outer, 1, err));
        TRY(give_output(n, &from->value, &out, err));
        frame_add_made(n->outer, n->op->out[k], out.buffer, NO_CHANGE);
        n->outer->values[n->op->out[k]].value = out;
    }
    return FRIT_OK;
}

static bool has_effects(const struct graph_op *op)
{
    return op_row(op->op)->traits & FRIT_OP_ORDERED;
}

/* Waits for an effect before the next one begins.  It has no results that could carry its failure.
 */
static frit_status end_effect(struct inner *n, frit_err *err)
{
    const struct failure *first = n->frame.first;

    if (!has_effects(n->op))
        return FRIT_OK;
    if (first)
        return fail(err, first->status, "%s", first->text);
    if (n->frame.device == n->outer->device)
        return FRIT_OK;
    return device_wait_all(n->frame.device, err);
}

/* Those that the graph is for are wanted, and persistent where the op's are. */
static frit_status init(struct inner *n, frit_err *err)
{
    struct run_op *extra = arena_array(&n->arena, n->graph.n_ops, sizeof(*extra));

    n->frame.values = arena_array(&n->arena, n->graph.n_values, sizeof(*n->frame.values));
    if (!extra || !n->frame.values)
        return fail_memory(err, n->graph.n_values * sizeof(*n->frame.values));
    for (uint32_t i = 0; i < n->graph.n_outputs; i++)
        n->frame.values[n->graph.outputs[i]].wanted = true;
    for (uint32_t i = 0; i < n->graph.n_ops; i++) {
        const struct graph_op *op = &n->graph.ops[i];

        extra[i] = n->extra;
        extra[i].context &= ~(uint32_t)CONTEXT_PERSISTENT;
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k] != GRAPH_NO_VALUE && n->frame.values[op->out[k]].wanted)
                extra[i].context = n->extra.context;
        }
    }
    n->frame.graph = &n->graph;
    n->frame.ops = extra;
    return run_without_plan(&n->frame, &n->arena, err);
}

static void fini(struct inner *n)
{
    for (uint32_t v = 0; n->frame.values && v < n->graph.n_values; v++) {
        buffer_disown(n->frame.values[v].value.buffer);
        failure_unref(n->frame.values[v].failure);
    }
    failure_unref(n->frame.first);
    graph_fini(&n->graph);
    arena_fini(&n->arena);
}

static frit_status run(struct frame *outer, uint32_t op, frit_device *device,
                       struct run_scratch *scratch,
                       frit_status (*make)(struct inner *n, frit_err *err), frit_err *err)
{
    struct inner n = {
        .outer = outer,
        .op = &outer->graph->ops[op],
        .extra = outer->ops[op],
        .frame = {.device = device,
                  .scratch = scratch,
                  .stream = device == outer->device ? outer->stream : DEVICE_NO_STREAM,
                  .ranks = outer->ranks,
                  .note = frame_note(outer),
                  .borrowed = outer->borrowed || device != outer->device}};
    frit_status st = make(&n, err);

    if (!st)
        st = decompose_fits(&n.graph, outer->graph, n.op, err);
    if (!st)
        st = init(&n, err);
    if (!st)
        st = bind_inputs(&n, err);
    if (!st) {
        run_frame(&n.frame);
        st = give_outputs(&n, err);
    }
    if (!st)
        st = end_effect(&n, err);
    fini(&n);
    return st;
}

frit_status inner_run_decomposed(struct frame *frame, uint32_t op, frit_err *err)
{
    return run(frame, op, frame->device, frame->scratch, decomposed_graph, err);
}

/* Effects there come after those that were submitted here, and none is submitted here meanwhile. */
static frit_status run_effect(struct frame *frame, uint32_t op, frit_device *device,
                              struct run_scratch *scratch, frit_err *err)
{
    struct points before = {0};
    frit_status st;

    effects_begin(&frame->device->effects, &before);
    st = device_wait_points(frame->device, &before, err);
    if (!st)
        st = run(frame, op, device, scratch, same_graph, err);
    effects_end(&frame->device->effects, 0);
    return st;
}

frit_status inner_elsewhere(struct frame *frame, uint32_t op, frit_err *err)
{
    frit_device *device = frame->device->fallback;
    struct run_scratch *scratch;
    frit_status st;

    TRY(run_scratch_create(&scratch, err));
    if (has_effects(&frame->graph->ops[op]))
        st = run_effect(frame, op, device, scratch, err);
    else
        st = run(frame, op, device, scratch, same_graph, err);
    run_scratch_destroy(scratch);
    return st ? fail_context(err, "on %s", device->name) : FRIT_OK;
}
