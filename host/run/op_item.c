/* SPDX-License-Identifier: Apache-2.0 */
#include "run/op_item.h"

#include "base/fail.h"
#include "base/log.h"
#include "device/device.h"
#include "device/programs.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/batch.h"
#include "run/bound_plan.h"
#include "run/frame_batch.h"
#include "run/launch.h"

/* ---- views ---- */

bool op_item_is_view(const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);

    return row->cls == FRIT_CLASS_VIEW && row->level == FRIT_LEVEL_CORE;
}

frit_status op_item_view(struct frame *frame, const struct graph_op *op, bool *copied,
                         frit_err *err)
{
    const struct value *in = &frame->values[op->in[0].value].value;
    struct value *out = &frame->values[op->out[0]].value;
    struct value dense;

    atomic_fetch_add(&frame->device->count.views, 1);
    TRY(frame_reserve(frame, 1, err));
    out->type = frame->graph->values[op->out[0]].type;
    *copied = !layout_view(op->op, op->attrs, &in->type, &in->layout, &out->type, &out->layout);
    if (*copied) {
        TRY(launch_copy(frame, op->in[0].value, NULL, &dense, err));
        TRY(frame_reserve(frame, 1, err));
        layout_view(op->op, op->attrs, &dense.type, &dense.layout, &out->type, &out->layout);
        in = &dense;
    }
    buffer_own(in->buffer);
    frame_add_made(frame, op->out[0], in->buffer, NO_CHANGE);
    bound_plan_add_made(frame->bound, op->out[0], in->buffer, op->in[0].value);
    return FRIT_OK;
}

/* ---- outputs without elements ---- */

bool op_item_is_empty(const struct frame *frame, const uint32_t *out, uint32_t n_out)
{
    for (uint32_t k = 0; k < n_out; k++) {
        if (out[k] != GRAPH_NO_VALUE && op_elements(&frame->graph->values[out[k]].type) > 0)
            return false;
    }
    return n_out > 0;
}

frit_status op_item_empty(struct frame *frame, const uint32_t *out, uint32_t n_out, frit_err *err)
{
    for (uint32_t k = 0; k < n_out; k++) {
        struct buffer *buffer;
        uint32_t reused;

        if (out[k] == GRAPH_NO_VALUE)
            continue;
        TRY(frame_reserve(frame, 1, err));
        TRY(frame_claim(frame, 0, false, &buffer, &reused, err));
        frame_add_made(frame, out[k], buffer, reused);
        bound_plan_add_made(frame->bound, out[k], buffer, GRAPH_NO_VALUE);
        frame->values[out[k]].value.type = frame->graph->values[out[k]].type;
        layout_dense(&frame->values[out[k]].value.type, &frame->values[out[k]].value.layout);
    }
    return FRIT_OK;
}

/* ---- programs ---- */

static frit_status get_program(frit_device *device, const struct graph *graph,
                               const struct graph_op *op, struct program **out, frit_err *err)
{
    struct op_type types[FRIT_OP_MAX_OUT];
    struct arena arena = {0};
    struct op_input *inputs = arena_array(&arena, op->n_in + 1u, sizeof(*inputs));
    struct program_call call;
    frit_status st;

    if (!inputs)
        return fail_memory(err, op->n_in * sizeof(*inputs));
    call = program_call_of(graph, op, inputs, types);
    st = programs_get(device, &call, out, err);
    arena_fini(&arena);
    return st;
}

frit_status op_item_call(struct frame *frame, const uint32_t *number, uint32_t *in,
                         struct launch_call *out, frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[*number];

    *out = (struct launch_call){.frame = frame,
                                .label = op_row(op->op)->name,
                                .ops = number,
                                .n_ops = 1,
                                .n_in = op->n_in,
                                .n_out = op->n_out,
                                .in = in,
                                .out = op->out,
                                .strides = frame->strides};
    for (uint32_t i = 0; i < op->n_in; i++)
        in[i] = op->in[i].kind == FRIT_OPERAND_TENSOR ? op->in[i].value : GRAPH_NO_VALUE;
    TRY(get_program(frame->device, frame->graph, op, &out->program, err));
    if (!out->program)
        return fail(err, FRIT_UNSUPPORTED, "the driver of %s has no such op for these types",
                    frame->device->name);
    return programs_prepared_cache(frame->device, out->program, &out->cache, err);
}

/* ---- ends of values ---- */

void op_item_bury_value(struct frame *frame, uint32_t value)
{
    const struct run_value *v = &frame->values[value];
    frit_err err = ERR_INIT;

    if (v->external || !v->value.buffer || !frame_dies(frame, value) ||
        frame_reserve(frame, 1, &err))
        return;
    if (frame->device->config.poison && frame_is_sole_owner(frame, value) &&
        batch_fill(&frame->scratch->batch, v->value.buffer, 0, 0xff, &err))
        log_write(FRIT_LOG_WARN, "stream", "memory is not poisoned: %s", err.text);
    frame_bury(frame, value);
}

void op_item_bury(struct frame *frame, const struct graph_op *op)
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            op_item_bury_value(frame, op->in[i].value);
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k] != GRAPH_NO_VALUE)
            op_item_bury_value(frame, op->out[k]);
    }
}
