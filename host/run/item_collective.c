/* SPDX-License-Identifier: Apache-2.0 */
#include "run/item_collective.h"

#include "base/fail.h"
#include "device/device.h"
#include "device/pending.h"
#include "graph/graph.h"
#include "memory/memory.h"
#include "record/context.h"
#include "run/batch.h"
#include "run/bound_plan.h"
#include "run/bucket.h"
#include "run/collective.h"
#include "run/frame_batch.h"
#include "run/run_frame.h"
#include "tensor/failure.h"

/* ---- waiting ---- */

/* The wait is part of a bound plan, whose buffers serve other values after it. */
static void wait_for(struct frame *frame, uint32_t number)
{
    const struct frame_pending pending = frame->pending[number];
    const struct collective_call call = {.device = frame->device,
                                         .out = {.buffer = (struct buffer *)pending.into}};
    frit_err err = ERR_INIT;

    frame->pending[number] = frame->pending[--frame->n_pending];
    bound_plan_add_collective(frame->bound, &call, &pending.value, 1);
    (void)collective_begin(&call, &err);
}

bool item_await(struct frame *frame, uint32_t value)
{
    const struct buffer *buffer = frame->values[value].value.buffer;

    if (!frame->n_pending || !buffer)
        return true;
    buffer = buffer_whole(buffer);
    for (uint32_t i = frame->n_pending; i-- > 0;) {
        if (frame->pending[i].from != buffer && frame->pending[i].into != buffer)
            continue;
        if (!run_settle(frame))
            return false;
        wait_for(frame, i);
    }
    return true;
}

/* Whether the operand's memory serves other values of the frame after this item. */
static bool leaves_memory(const struct frame *frame, uint32_t value, const struct buffer *buffer)
{
    const struct run_value *v = &frame->values[value];

    return !v->external && buffer_whole(v->value.buffer) == buffer && frame_dies(frame, value);
}

/* Nothing is in the batch.  What ends with this item would leave its memory to others. */
static void note_pending(struct frame *frame, const struct graph_op *op,
                         const struct collective_call *call)
{
    const struct buffer *into = buffer_whole(call->out.buffer);
    const struct buffer *from =
        call->op == FRIT_OP_all_reduce_coalesced ? into : buffer_whole(call->in[0].buffer);

    if (frame->n_pending == FRAME_PENDING)
        wait_for(frame, 0);
    frame->pending[frame->n_pending++] = (struct frame_pending){from, into, op->out[0]};
    if (frame_dies(frame, op->out[0]) ||
        (from != into && leaves_memory(frame, op->in[0].value, from)))
        wait_for(frame, frame->n_pending - 1);
}

/* ---- beginning ---- */

/* The result takes the memory of an operand that ends here. */
static bool take_operand(struct frame *frame, uint32_t in, uint32_t out, struct value *result)
{
    const struct run_value *v = &frame->values[in];
    const struct buffer *buffer = v->value.buffer;
    uint32_t reused;

    if (v->external || !buffer->handle || buffer->whole || buffer_is_persistent(buffer) ||
        !layout_is_dense(&v->value.type, &v->value.layout) || !frame_dies(frame, in) ||
        !frame_is_sole_owner(frame, in))
        return false;
    result->layout = v->value.layout;
    result->buffer = frame_inherit(frame, in, &reused);
    frame_add_made(frame, out, result->buffer, reused);
    bound_plan_add_made(frame->bound, out, result->buffer, in);
    return true;
}

static bool may_be_in_place(uint32_t op)
{
    return op == FRIT_OP_all_reduce || op == FRIT_OP_broadcast_from;
}

/* What the result is written into. */
static frit_status make_result(struct frame *frame, uint32_t number, struct collective_call *call,
                               frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[number];
    const bool persistent = frame->ops[number].context & CONTEXT_PERSISTENT;
    struct run_value *out = &frame->values[op->out[0]];

    if (!out->value.buffer) {
        call->out = (struct value){.type = frame->graph->values[op->out[0]].type};
        TRY(frame_reserve(frame, 2, err));
        if (persistent || !may_be_in_place(op->op) ||
            !take_operand(frame, op->in[0].value, op->out[0], &call->out))
            TRY(bucket_claim(frame, op->out[0], persistent, &call->out, err));
        out->value = call->out;
    }
    call->out = out->value;
    return FRIT_OK;
}

/* Operands, in the arena. */
static frit_status list_operands(struct frame *frame, const struct graph_op *op,
                                 struct collective_call *call, frit_err *err)
{
    call->n_in = op->n_in;
    call->in = arena_array(&frame->scratch->batch.arena, op->n_in, sizeof(*call->in));
    if (!call->in)
        return fail_memory(err, op->n_in * sizeof(*call->in));
    for (uint32_t i = 0; i < op->n_in; i++)
        call->in[i] = frame->values[op->in[i].value].value;
    return FRIT_OK;
}

/* For replays: the values of the operands, then that of the result. */
static void record_call(struct frame *frame, const struct graph_op *op,
                        const struct collective_call *call)
{
    uint32_t *values = arena_array(&frame->scratch->batch.arena, op->n_in + 1u, sizeof(*values));

    if (!values) {
        bound_plan_spoil(frame->bound);
        return;
    }
    for (uint32_t i = 0; i < op->n_in; i++)
        values[i] = op->in[i].value;
    values[op->n_in] = op->out[0];
    bound_plan_add_collective(frame->bound, call, values, op->n_in + 1u);
}

static frit_status begin(struct frame *frame, uint32_t number, struct collective_call *call,
                         frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[number];
    frit_status st = list_operands(frame, op, call, err);

    if (!st)
        st = make_result(frame, number, call, err);
    if (st) {
        collective_give_up(call->ranks, call->op, call->attrs.group, err->status, err->text);
        return st;
    }
    TRY(collective_begin(call, err));
    record_call(frame, op, call);
    note_pending(frame, op, call);
    return FRIT_OK;
}

frit_status item_collective(struct frame *frame, uint32_t number, bool *went_back, frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[number];
    struct collective_call call = {.device = frame->device,
                                   .ranks = frame->ranks,
                                   .op = op->op,
                                   .attrs = collective_attrs_of(op->op, op->attrs)};
    frit_status st;

    *went_back = !run_settle(frame);
    if (*went_back)
        return FRIT_OK;
    if (op->n_out) {
        st = begin(frame, number, &call, err);
    } else {
        st = collective_begin(&call, err);
        if (!st)
            bound_plan_add_collective(frame->bound, &call, NULL, 0);
        frame->n_pending = 0;
    }
    if (st)
        bound_plan_spoil(frame->bound);
    return st;
}

void item_give_up_collective(struct frame *frame, uint32_t number, const struct failure *why)
{
    const struct graph_op *op = &frame->graph->ops[number];

    if (collective_is_awaited(op->op))
        collective_give_up(frame->ranks, op->op, collective_attrs_of(op->op, op->attrs).group,
                           why->status, why->text);
}
