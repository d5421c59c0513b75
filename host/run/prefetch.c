/* SPDX-License-Identifier: Apache-2.0 */
#include "run/prefetch.h"

#include <string.h>

#include "device/device.h"
#include "device/programs.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "run/batch.h"
#include "run/frame.h"
#include "run/frame_batch.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/prepare.h"
#include "run/run.h"
#include "tensor/layout.h"
#include "tensor/value.h"

/* A launch to come, of a frame whose values are predicted. */
struct coming {
    struct frame frame;
    struct launch_call call;
    struct launch launch;
    uint32_t in[FRIT_OP_MAX_IN];
    bool in_parts; /* of a block: its ops are launched instead */
};

static bool is_view(const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);

    return row->cls == FRIT_CLASS_VIEW && row->level == FRIT_LEVEL_CORE;
}

/* Whether the host runs the op without a program. */
static bool is_of_host(const struct graph_op *op)
{
    return is_view(op) || op_row(op->op)->cls == FRIT_CLASS_COLLECTIVE;
}

static void predict_view(const struct graph_op *op, struct run_value *values)
{
    const struct value *in = &values[op->in[0].value].value;
    struct value *out = &values[op->out[0]].value;

    if (!layout_view(op->op, op->attrs, &in->type, &in->layout, &out->type, &out->layout))
        layout_dense(&out->type, &out->layout);
}

/* Operands as they are, made values densely, views over what they are views of.  NULL if out of
 * memory. */
static struct run_value *predict_values(const struct frame *frame)
{
    const struct graph *graph = frame->graph;
    struct run_value *values =
        arena_array(&frame->scratch->arena, (size_t)frame->n_values + 1, sizeof(*values));

    for (uint32_t v = 0; values && v < frame->n_values && v < graph->n_values; v++) {
        values[v] = (struct run_value){.external = frame->values[v].external};
        if (frame->values[v].external && frame->values[v].value.buffer) {
            values[v].value = frame->values[v].value;
        } else {
            values[v].value.type = graph->values[v].type;
            layout_dense(&values[v].value.type, &values[v].value.layout);
        }
    }
    for (uint32_t i = 0; values && i < graph->n_ops; i++) {
        if (is_view(&graph->ops[i]) && graph->ops[i].out[0] < frame->n_values)
            predict_view(&graph->ops[i], values);
    }
    return values;
}

static void coming_init(struct coming *c, const struct frame *frame)
{
    c->in_parts = false;
    c->frame = *frame;
    c->call = (struct launch_call){0};
    c->frame.values = frame->predicted;
    c->frame.bound = NULL;
    c->frame.notes = NULL;
    c->frame.note = NULL;
    c->launch =
        (struct launch){.call = &c->call, .frame = &c->frame, .batch = &frame->scratch->batch};
}

/* The launch of an op by itself.  False: the driver has no program for it. */
static bool coming_op(struct coming *c, const struct frame *frame, const uint32_t *number)
{
    const struct graph_op *op = &frame->graph->ops[*number];
    struct op_input inputs[FRIT_OP_MAX_IN];
    struct op_type out[FRIT_OP_MAX_OUT];
    struct program_call call;

    coming_init(c, frame);
    if (op->n_in > FRIT_OP_MAX_IN)
        return false;
    call = program_call_of(frame->graph, op, inputs, out);
    for (uint32_t i = 0; i < op->n_in; i++)
        c->in[i] = op->in[i].kind == FRIT_OPERAND_TENSOR ? op->in[i].value : GRAPH_NO_VALUE;
    c->call = (struct launch_call){.frame = &c->frame,
                                   .label = op_row(op->op)->name,
                                   .ops = number,
                                   .n_ops = 1,
                                   .n_in = op->n_in,
                                   .n_out = op->n_out,
                                   .in = c->in,
                                   .out = op->out};
    return !programs_get(frame->device, &call, &c->call.program, NULL) && c->call.program &&
           !programs_prepared_cache(frame->device, c->call.program, &c->call.cache, NULL);
}

static bool coming_block(struct coming *c, const struct frame *frame, const struct frame_step *step)
{
    coming_init(c, frame);
    c->call = launch_call_of_block(&c->frame, step);
    c->call.in_parts = &c->in_parts;
    program_ref(step->program);
    return !atomic_load(&step->program->disabled) &&
           !programs_prepared_cache(frame->device, step->program, &c->call.cache, NULL);
}

/* Prepares the launch if it was found, then drops the reference to its program. */
static frit_status coming_prepare(struct coming *c, bool found, bool queue)
{
    frit_status st = found ? launch_prepare_ahead(&c->launch, queue) : FRIT_UNSUPPORTED;

    program_unref(c->call.program);
    return st;
}

static void prefetch_op(const struct frame *frame, const uint32_t *number)
{
    struct coming c;

    if (!is_of_host(&frame->graph->ops[*number]))
        coming_prepare(&c, coming_op(&c, frame, number), true);
    batch_reset(&frame->scratch->batch);
}

static void prefetch_block(const struct frame *frame, const struct frame_step *step)
{
    struct coming c;

    coming_prepare(&c, coming_block(&c, frame, step), true);
    batch_reset(&frame->scratch->batch);
    for (uint32_t i = 0; i < step->n_ops && c.in_parts; i++)
        prefetch_op(frame, &step->ops[i]);
}

static void prefetch_steps(const struct frame *frame, bool blocks)
{
    for (uint32_t s = 0; s < frame->plan->n_steps; s++) {
        struct frame_step step;

        frame_step_at(frame, s, &step);
        if (frame->idle && frame->idle[s])
            continue;
        if (step.program && blocks)
            prefetch_block(frame, &step);
        else if (!step.program && !blocks && step.n_ops == 1)
            prefetch_op(frame, step.ops);
    }
}

/* Ops by themselves come first: nothing runs in their place meanwhile. */
void prefetch_programs(struct frame *frame)
{
    if (!frame->device->compiler)
        return;
    frame->predicted = predict_values(frame);
    if (!frame->predicted)
        return;
    prefetch_steps(frame, false);
    prefetch_steps(frame, true);
}

bool prefetch_ops_are_ready(const struct launch *l)
{
    struct coming c;

    for (uint32_t i = 0; l->frame->predicted && i < l->call->n_ops; i++) {
        if (is_of_host(&l->frame->graph->ops[l->call->ops[i]]))
            continue;
        if (coming_prepare(&c, coming_op(&c, l->frame, &l->call->ops[i]), false) == FRIT_BUSY)
            return false;
    }
    return true;
}
