/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over the items of a frame, and what happens at a submit.
 *
 * A refused submit changed nothing on the device, so the frame goes back to where the batch began
 * and submits item by item; the item that is refused alone is the culprit and takes another way. */
#include "run/run.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/label.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "graph/graph.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/plan.h"
#include "run/assign.h"
#include "run/batch.h"
#include "run/bound_plan.h"
#include "run/bucket.h"
#include "run/frame.h"
#include "run/frame_batch.h"
#include "run/item.h"
#include "run/item_collective.h"
#include "run/prefetch.h"
#include "run/run_frame.h"
#include "tensor/failure.h"

enum { MAX_LAUNCHES = 32 }; /* of one submit */

frit_status run_scratch_create(struct run_scratch **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? FRIT_OK : fail_memory(err, sizeof(**out));
}

void run_scratch_destroy(struct run_scratch *scratch)
{
    if (!scratch)
        return;
    batch_fini(&scratch->batch);
    arena_fini(&scratch->arena);
    free(scratch->log);
    free(scratch->items);
    free(scratch);
}

const char *run_label(frit_device *device, uint64_t cookie)
{
    return label_text(device->labels, lineage_label(cookie));
}

/* ---- submitting ---- */

/* What is known to have failed by the time its submit returns: work that ran inside it, and what
 * depends on a failure that was reported meanwhile. */
static void look_back(struct frame *frame, uint64_t point)
{
    frit_device *device = frame->device;
    struct failure *inside = NULL;

    if (device->info->caps & FRIT_CAP_INLINE_QUEUE && lineage_knows(device->lineage, point))
        inside = lineage_failure_at(device->lineage, point);
    if (!inside && !atomic_load(&device->n_spoiled))
        return;
    for (uint32_t i = 0; i < frame->scratch->n_items; i++)
        item_look_back(frame, &frame->scratch->items[i], inside);
    failure_unref(inside);
}

static frit_status submit(struct frame *frame, uint64_t *point, frit_err *err)
{
    frit_device *device = frame->device;
    uint32_t queue = queue_of_stream(device, frame->stream);
    frit_status st = batch_submit(&frame->scratch->batch, device, queue, point, err);

    if (st != FRIT_NO_DEVICE_MEMORY)
        return st;
    memory_trim(device->memory, false);
    return batch_submit(&frame->scratch->batch, device, queue, point, err);
}

bool run_settle(struct frame *frame)
{
    struct run_scratch *s = frame->scratch;
    const struct frame_mark begin = {0};
    frit_err err = ERR_INIT;
    uint64_t point = 0;

    if (s->batch.n_cmds == 0 || !submit(frame, &point, &err)) {
        look_back(frame, point);
        bound_plan_add_submit(frame->bound);
        frame_commit(frame);
        batch_reset(&s->batch);
        return true;
    }
    if (s->n_items == 0) { /* poisoning alone */
        frame_commit(frame);
        batch_reset(&s->batch);
        return true;
    }
    frame->refused = s->n_items == 1;
    frame->refused_at = s->items[0];
    frame->refusal = err;
    frame_undo(frame, &begin);
    batch_reset(&s->batch);
    frame->single_to = frame->at.step + 1;
    frame->at = frame->begun;
    return false;
}

static bool must_settle(const struct frame *frame, uint32_t step)
{
    const struct batch *batch = &frame->scratch->batch;

    return batch->n_cmds && (frame->device->info->caps & FRIT_CAP_INLINE_QUEUE ||
                             batch->n_launches >= MAX_LAUNCHES || step < frame->single_to);
}

/* ---- a frame ---- */

/* Values that nobody wants go, those that are wanted have a buffer or a reason. */
static void finish(struct frame *frame)
{
    buckets_end(frame);
    for (uint32_t v = 0; v < frame->n_values; v++) {
        struct run_value *value = &frame->values[v];

        if (value->assigned && value->value.buffer == value->assigned)
            layout_dense(&value->value.type, &value->value.layout);
        if (value->external || (value->wanted && (value->value.buffer || value->failure)))
            continue;
        if (value->wanted) {
            frame_fail(frame, v, failure_immortal(FRIT_INTERNAL));
            continue;
        }
        buffer_disown(value->value.buffer);
        failure_unref(value->failure);
        value->value.buffer = NULL;
        value->failure = NULL;
    }
    frame_commit(frame);
}

static void run_item(struct frame *frame)
{
    uint64_t begun = timeline_begin();
    struct frame_step step;

    if (frame->at.step >= frame->n_steps) {
        if (!item_await(frame, frame->assigned[frame->at.step - frame->n_steps]))
            return;
        item_run_assigned(frame);
        return;
    }
    frame_step_at(frame, frame->at.step, &step);
    item_run(frame);
    timeline_end(begun, "plan", str_of(step.label));
}

void run_frame(struct frame *frame)
{
    struct run_scratch *s = frame->scratch;

    frame_commit(frame);
    batch_reset(&s->batch);
    buckets_place(frame);
    frame_commit(frame);
    for (;;) {
        uint32_t step = frame->at.step;

        if (s->batch.n_cmds == 0) {
            frame_commit(frame);
            frame->begun = frame->at;
        }
        if (step == frame->n_steps + frame->n_assigned) {
            if (run_settle(frame))
                break;
            continue;
        }
        frame->n_log = s->n_log;
        run_item(frame);
        if (must_settle(frame, step))
            run_settle(frame);
    }
    finish(frame);
}

frit_status run_without_plan(struct frame *frame, struct arena *arena, frit_err *err)
{
    const struct graph *graph = frame->graph;
    uint32_t *last = arena_array(arena, graph->n_values, sizeof(*last));
    uint32_t *order = arena_array(arena, graph->n_ops, sizeof(*order));

    if (!last || !order)
        return fail_memory(err, graph->n_values * sizeof(*last));
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const struct graph_op *op = &graph->ops[i];

        order[i] = i;
        for (uint32_t k = 0; k < op->n_in; k++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR)
                last[op->in[k].value] = i;
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k] != GRAPH_NO_VALUE)
                last[op->out[k]] = i;
        }
    }
    frame->last_step = last;
    frame->order = order;
    frame->n_steps = graph->n_ops;
    frame->n_values = graph->n_values;
    return FRIT_OK;
}

/* ---- a plan ---- */

static bool is_ordered(const struct graph *graph, const struct plan_step *step)
{
    for (uint32_t i = 0; i < step->n_ops; i++) {
        if (op_row(graph->ops[step->ops[i]].op)->traits & FRIT_OP_ORDERED)
            return true;
    }
    return false;
}

/* Marks the steps whose results nobody wants, last first, so that what only they needed goes too.
 */
static frit_status find_idle(struct frame *frame, struct arena *arena, frit_err *err)
{
    const struct plan *plan = frame->plan;
    bool *needed = arena_array(arena, frame->n_values, sizeof(*needed));
    bool *idle = arena_array(arena, plan->n_steps, sizeof(*idle));

    if (!needed || !idle)
        return fail_memory(err, frame->n_values);
    for (uint32_t v = 0; v < frame->n_values; v++)
        needed[v] = frame->values[v].wanted;
    for (uint32_t s = plan->n_steps; s-- > 0;) {
        const struct plan_step *step = &plan->steps[s];

        idle[s] = !is_ordered(frame->graph, step);
        for (uint32_t k = 0; k < step->n_out && idle[s]; k++)
            idle[s] = !needed[step->out[k]];
        for (uint32_t i = 0; i < step->n_in && !idle[s]; i++)
            needed[step->in[i]] = true;
    }
    frame->idle = idle;
    return FRIT_OK;
}

/* Those of the plan, in the order of their making. */
static frit_status list_assigned(struct frame *frame, struct arena *arena, frit_err *err)
{
    uint32_t *list = arena_array(arena, (size_t)frame->n_values + 1, sizeof(*list));

    if (!list)
        return fail_memory(err, frame->n_values * sizeof(*list));
    for (uint32_t v = 0; v < frame->n_values; v++) {
        if (frame->values[v].assigned)
            list[frame->n_assigned++] = v;
    }
    frame->assigned = list;
    return FRIT_OK;
}

static void fail_all(struct run *run, const frit_err *err)
{
    struct failure *failure = failure_create(err);

    for (uint32_t v = 0; v < run->plan->n_values; v++) {
        if (!run->values[v].external && run->values[v].wanted)
            run->values[v].failure = failure_ref(failure);
    }
    run->first = failure;
    run->not_run = true;
}

void run_plan(struct run *run)
{
    struct run_scratch *own = NULL;
    struct frame frame = {.device = run->device,
                          .scratch = run->scratch,
                          .plan = run->plan,
                          .graph = run->graph,
                          .values = run->values,
                          .ops = run->ops,
                          .last_step = run->plan->last_step,
                          .n_steps = run->plan->n_steps,
                          .n_values = run->plan->n_values,
                          .notes = run->notes,
                          .stream = run->stream,
                          .ranks = run->ranks,
                          .bound = run->bound};
    frit_err err = ERR_INIT;
    frit_status st = FRIT_OK;

    run->first = NULL;
    if (!frame.scratch) {
        st = run_scratch_create(&own, &err);
        frame.scratch = own;
    }
    if (!st) {
        arena_reset(&frame.scratch->arena);
        st = find_idle(&frame, &frame.scratch->arena, &err);
        if (!st && run->assigned)
            st = list_assigned(&frame, &frame.scratch->arena, &err);
    }
    if (st) {
        fail_all(run, &err);
    } else {
        prefetch_programs(&frame);
        run_frame(&frame);
        run->first = frame.first;
    }
    run_scratch_destroy(own);
}

/* ---- one copy ---- */

static frit_status copy_graph(const struct op_type *type, struct graph *graph, frit_err *err)
{
    struct graph_operand in = {.kind = FRIT_OPERAND_TENSOR};
    struct graph_call call = {.op = FRIT_OP_copy, .n_in = 1, .in = &in};
    uint32_t out[FRIT_OP_MAX_OUT];

    TRY(graph_input(graph, GRAPH_INPUT, NULL, type, &in.value, err));
    return graph_append(graph, &call, out, err);
}

struct copy_call {
    const struct value *from;
    const int64_t *strides;  /* NULL: dense */
    struct buffer *assigned; /* NULL: any memory */
};

static frit_status copy(frit_device *device, const struct copy_call *copying, struct value *out,
                        frit_err *err)
{
    static const uint32_t result = 1;
    const struct value *value = copying->from;
    struct run_value values[2] = {{.value = *value, .external = true},
                                  {.wanted = true, .assigned = copying->assigned}};
    struct run_op extra = {0};
    struct arena arena = {0};
    struct graph graph = {0};
    struct frame frame = {.device = device,
                          .graph = &graph,
                          .values = values,
                          .ops = &extra,
                          .strides = copying->strides,
                          .assigned = &result,
                          .n_assigned = copying->assigned != NULL};
    frit_status st = run_scratch_create(&frame.scratch, err);

    *out = (struct value){.type = value->type};
    pending_wait(device->pending, value->buffer);
    if (!st)
        st = copy_graph(&value->type, &graph, err);
    if (!st)
        st = run_without_plan(&frame, &arena, err);
    if (!st) {
        run_frame(&frame);
        *out = values[1].value;
        out->type = value->type;
        if (values[1].failure)
            st = fail(err, values[1].failure->status, "%s", values[1].failure->text);
        failure_unref(values[1].failure);
        failure_unref(frame.first);
    }
    run_scratch_destroy(frame.scratch);
    graph_fini(&graph);
    arena_fini(&arena);
    return st;
}

frit_status run_relayout(frit_device *device, const struct value *value, const int64_t *strides,
                         struct value *out, frit_err *err)
{
    return copy(device, &(struct copy_call){.from = value, .strides = strides}, out, err);
}

frit_status run_write_into(frit_device *device, const struct value *value, struct buffer *memory,
                           frit_err *err)
{
    struct value out;

    TRY(copy(device, &(struct copy_call){.from = value, .assigned = memory}, &out, err));
    buffer_disown(out.buffer);
    return FRIT_OK;
}
