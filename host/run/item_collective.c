/* SPDX-License-Identifier: Apache-2.0 */
#include "run/item_collective.h"

#include "base/fail.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "record/context.h"
#include "run/bound_plan.h"
#include "run/collective.h"
#include "run/run_frame.h"
#include "tensor/failure.h"

static frit_attrs_collective collective_attrs(const struct graph_op *op)
{
    const frit_attrs_collective none = {.struct_size = sizeof(none)};

    return op->op == FRIT_OP_all_reduce && op->attrs ? *(const frit_attrs_collective *)op->attrs
                                                     : none;
}

/* What the result is written into. */
static frit_status make_result(struct frame *frame, uint32_t number, struct collective_call *call,
                               frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[number];
    struct value *out = &frame->values[op->out[0]].value;
    struct buffer *buffer;
    uint32_t reused;

    out->type = frame->graph->values[op->out[0]].type;
    layout_dense(&out->type, &out->layout);
    TRY(frame_reserve(frame, 1, err));
    TRY(frame_claim(frame, frit_storage_bytes(out->type.dtype, op_elements(&out->type)),
                    frame->ops[number].context & CONTEXT_PERSISTENT, &buffer, &reused, err));
    frame_add_made(frame, op->out[0], buffer, reused);
    bound_plan_add_made(frame->bound, op->out[0], buffer, GRAPH_NO_VALUE);
    call->in = frame->values[op->in[0].value].value;
    call->out = buffer;
    return FRIT_OK;
}

static frit_status reduce_all(struct frame *frame, uint32_t number, struct collective_call *call,
                              frit_err *err)
{
    if (make_result(frame, number, call, err) == FRIT_OK)
        return collective_run(call, err);
    collective_give_up(call->ranks, &call->attrs, err->status, err->text);
    return err->status;
}

frit_status item_collective(struct frame *frame, uint32_t number, bool *went_back, frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[number];
    struct collective_call call = {.device = frame->device,
                                   .ranks = frame->ranks,
                                   .op = op->op,
                                   .attrs = collective_attrs(op)};
    frit_status st;

    *went_back = !run_settle(frame);
    if (*went_back)
        return FRIT_OK;
    st = op->n_out ? reduce_all(frame, number, &call, err) : collective_run(&call, err);
    if (st)
        bound_plan_spoil(frame->bound);
    else
        bound_plan_add_collective(frame->bound, &call, op->n_in ? op->in[0].value : GRAPH_NO_VALUE);
    return st;
}

void item_give_up_collective(struct frame *frame, uint32_t number, const struct failure *why)
{
    const struct graph_op *op = &frame->graph->ops[number];
    const frit_attrs_collective attrs = collective_attrs(op);

    if (op->op == FRIT_OP_all_reduce)
        collective_give_up(frame->ranks, &attrs, why->status, why->text);
}
