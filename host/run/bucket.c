/* SPDX-License-Identifier: Apache-2.0 */
#include "run/bucket.h"

#include "base/fail.h"
#include "graph/graph.h"
#include "memory/memory.h"
#include "plan/plan.h"
#include "record/context.h"
#include "run/bound_plan.h"
#include "run/frame.h"
#include "run/op_item.h"

static uint64_t bytes_of(const struct op_type *type)
{
    return frit_storage_bytes(type->dtype, op_elements(type));
}

frit_status bucket_claim(struct frame *frame, uint32_t value, bool persistent, struct value *out,
                         frit_err *err)
{
    uint32_t reused;

    layout_dense(&out->type, &out->layout);
    TRY(frame_claim(frame, bytes_of(&out->type), persistent, &out->buffer, &reused, err));
    frame_add_made(frame, value, out->buffer, reused);
    bound_plan_add_made(frame->bound, value, out->buffer, GRAPH_NO_VALUE);
    return FRIT_OK;
}

/* Whether a view of the value, or a view of one, is kept after the run. */
static bool has_kept_view(const struct frame *frame, uint32_t value)
{
    for (uint32_t i = 0; i < frame->graph->n_ops; i++) {
        const struct graph_op *op = &frame->graph->ops[i];

        if (!op_item_is_view(op) || op->in[0].value != value)
            continue;
        if (frame->values[op->out[0]].wanted || has_kept_view(frame, op->out[0]))
            return true;
    }
    return false;
}

/* Whether what makes operand `index` may write it into the result. */
static bool may_place(const struct frame *frame, const struct graph_op *op, uint32_t step,
                      uint32_t index)
{
    const uint32_t value = op->in[index].value;
    const struct run_value *v = &frame->values[value];

    return !v->external && !v->wanted && !v->assigned && frame->last_step[value] == step &&
           bytes_of(&frame->graph->values[value].type) > 0 && !has_kept_view(frame, value);
}

static bool has_place(const struct frame *frame, const struct graph_op *op, uint32_t step)
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (may_place(frame, op, step, i))
            return true;
    }
    return false;
}

/* An operand without a part is copied. */
static void assign_parts(struct frame *frame, const struct graph_op *op, uint32_t step,
                         struct buffer *whole)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < op->n_in; i++) {
        struct run_value *v = &frame->values[op->in[i].value];
        const uint64_t bytes = bytes_of(&frame->graph->values[op->in[i].value].type);

        if (may_place(frame, op, step, i) &&
            buffer_part(whole, first, bytes, &v->assigned, NULL) == FRIT_OK)
            v->in_bucket = true;
        first += bytes;
    }
    frame->has_buckets = true;
}

static void place(struct frame *frame, const struct graph_op *op, uint32_t step, bool persistent)
{
    struct value *out = &frame->values[op->out[0]].value;
    struct value made = {.type = frame->graph->values[op->out[0]].type};

    if (!has_place(frame, op, step) || frame_reserve(frame, 1, NULL) ||
        bucket_claim(frame, op->out[0], persistent, &made, NULL))
        return;
    *out = made;
    assign_parts(frame, op, step, made.buffer);
}

void buckets_place(struct frame *frame)
{
    for (uint32_t s = 0; frame->plan && s < frame->n_steps; s++) {
        const struct plan_step *step = &frame->plan->steps[s];
        const struct graph_op *op = &frame->graph->ops[step->ops[0]];

        if (step->n_ops == 1 && op->op == FRIT_OP_all_reduce_coalesced)
            place(frame, op, s, frame->ops[step->ops[0]].context & CONTEXT_PERSISTENT);
    }
}

void buckets_end(struct frame *frame)
{
    for (uint32_t v = 0; frame->has_buckets && v < frame->n_values; v++) {
        struct run_value *value = &frame->values[v];

        if (!value->in_bucket)
            continue;
        buffer_disown(value->assigned);
        value->assigned = NULL;
        value->in_bucket = false;
    }
}
