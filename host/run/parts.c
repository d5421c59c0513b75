/* SPDX-License-Identifier: Apache-2.0 */
#include "run/parts.h"

#include <frit/program.h>

#include "base/arena.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/programs.h"
#include "graph/decompose/decompose.h"
#include "plan/program.h"
#include "run/frame_batch.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/op_item.h"

/* ---- whether ---- */

static bool has_program(frit_device *device, const struct graph *graph, const struct graph_op *op)
{
    struct op_input inputs[FRIT_OP_MAX_IN];
    struct op_type out[FRIT_OP_MAX_OUT];
    struct program_call call;
    bool yes = false;

    if (op->n_in > FRIT_OP_MAX_IN)
        return false;
    call = program_call_of(graph, op, inputs, out);
    return !programs_have(device, &call, &yes, NULL) && yes;
}

/* Whether the op can be run by itself here, without any way round. */
static bool is_part(const struct frame *frame, const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);

    if (op_item_is_view(op))
        return true;
    return !(row->traits & FRIT_OP_ORDERED) && row->cls != FRIT_CLASS_VIEW &&
           row->cls != FRIT_CLASS_COLLECTIVE &&
           !(frame->device->config.decompose && decompose_has(op->op, op->n_in)) &&
           has_program(frame->device, frame->graph, op);
}

bool parts_may_run(const struct launch *l, uint32_t numeric_class)
{
    const struct launch_call *call = l->call;

    if (!call->in_parts || call->n_ops < 2 || numeric_class < FRIT_NUMERIC_REORDERED)
        return false;
    for (uint32_t i = 0; i < call->n_ops; i++)
        if (!is_part(l->frame, &l->frame->graph->ops[call->ops[i]]))
            return false;
    return true;
}

/* ---- running ---- */

static frit_status launch_part(struct frame *frame, const uint32_t *number, frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[*number];
    struct arena arena = {0};
    uint32_t *in = arena_array(&arena, op->n_in + 1u, sizeof(*in));
    struct launch_call call = {0};
    frit_status st;

    st = in ? op_item_call(frame, number, in, &call, err) : fail_memory(err, op->n_in);
    if (!st)
        st = launch_add(&call, err);
    program_unref(call.program);
    arena_fini(&arena);
    return st;
}

static frit_status add_part(struct frame *frame, const uint32_t *number, frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[*number];
    bool copied;

    if (op_item_is_view(op))
        return op_item_view(frame, op, &copied, err);
    if (op_item_is_empty(frame, op->out, op->n_out))
        return op_item_empty(frame, op->out, op->n_out, err);
    return launch_part(frame, number, err);
}

frit_status parts_add(struct frame *frame, frit_err *err)
{
    const struct frame_mark mark = frame_mark(frame);
    const struct cursor at = frame->at;
    const uint32_t n_log = frame->n_log;
    struct frame_step step;
    frit_status st = FRIT_OK;

    frame_step_at(frame, at.step, &step);
    frame->at.by_ops = true;
    for (uint32_t i = 0; i < step.n_ops && !st; i++) {
        frame->at.op = i;
        frame->n_log = frame->scratch->n_log;
        st = add_part(frame, &step.ops[i], err);
        if (!st && i + 1 < step.n_ops)
            op_item_bury(frame, &frame->graph->ops[step.ops[i]]);
    }
    frame->at = at;
    frame->n_log = n_log;
    if (st)
        frame_undo(frame, &mark);
    return st;
}
