/* SPDX-License-Identifier: Apache-2.0 */
#include "run/item.h"

#include "base/fail.h"
#include "base/log.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/programs.h"
#include "graph/decompose/decompose.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "run/batch.h"
#include "run/bound_plan.h"
#include "run/collective.h"
#include "run/fallback.h"
#include "run/frame_batch.h"
#include "run/inner.h"
#include "run/item_collective.h"
#include "run/launch.h"
#include "run/mirror.h"
#include "run/op_item.h"
#include "run/parts.h"
#include "run/route.h"
#include "run/run_frame.h"
#include "tensor/failure.h"

static const struct graph_op *op_at(const struct frame *frame, const struct cursor *at)
{
    struct frame_step step;

    frame_step_at(frame, at->step, &step);
    return &frame->graph->ops[step.ops[at->op]];
}

static bool is_block(const struct frame *frame, const struct cursor *at)
{
    return frame->plan && frame->plan->steps[at->step].program && !at->by_ops;
}

/* ---- failures ---- */

static struct failure *value_failure(const struct frame *frame, uint32_t value)
{
    const struct run_value *v = &frame->values[value];

    if (v->failure)
        return failure_ref(v->failure);
    if (!v->value.buffer)
        return NULL;
    if (buffer_is_away(v->value.buffer))
        return mirror_failure(frame->device, v->value.buffer);
    return lineage_failure_of(frame->device->lineage, v->value.buffer);
}

static bool is_behind(const struct frame *frame, const struct cursor *at)
{
    return at->step >= frame->n_steps;
}

struct failure *item_input_failure(const struct frame *frame, const struct cursor *at)
{
    struct failure *failure = NULL;

    if (is_behind(frame, at))
        return value_failure(frame, frame->assigned[at->step - frame->n_steps]);
    if (is_block(frame, at)) {
        const struct plan_step *step = &frame->plan->steps[at->step];

        for (uint32_t i = 0; i < step->n_in && !failure; i++)
            failure = value_failure(frame, step->in[i]);
    } else {
        const struct graph_op *op = op_at(frame, at);

        for (uint32_t i = 0; i < op->n_in && !failure; i++) {
            if (op->in[i].kind == FRIT_OPERAND_TENSOR)
                failure = value_failure(frame, op->in[i].value);
        }
    }
    return failure;
}

static void fail_value(struct frame *frame, uint32_t value, struct failure *failure)
{
    bound_plan_spoil(frame->bound);
    if (value == GRAPH_NO_VALUE)
        return;
    frame_fail(frame, value, failure);
    buffer_disown(frame->values[value].value.buffer);
    frame->values[value].value.buffer = NULL;
}

static void fail_values(struct frame *frame, const uint32_t *values, uint32_t n,
                        struct failure *failure)
{
    /* What makes nothing fails as well. */
    if (n == 0 && !frame->first)
        frame->first = failure_ref(failure);
    for (uint32_t k = 0; k < n; k++)
        fail_value(frame, values[k], failure);
}

void item_fail(struct frame *frame, const struct cursor *at, struct failure *failure)
{
    if (is_behind(frame, at)) {
        fail_value(frame, frame->assigned[at->step - frame->n_steps], failure);
    } else if (is_block(frame, at)) {
        const struct plan_step *step = &frame->plan->steps[at->step];

        fail_values(frame, step->out, step->n_out, failure);
    } else {
        const struct graph_op *op = op_at(frame, at);

        fail_values(frame, op->out, op->n_out, failure);
    }
}

/* ---- launches ---- */

/* Remembers the item for when its submit turns out to have failed. */
static frit_status note_item(struct frame *frame, const struct frame_mark *mark, frit_err *err)
{
    if (frame_note_item(frame))
        return FRIT_OK;
    frame_undo(frame, mark);
    return fail_memory(err, sizeof(struct cursor));
}

static bool parts_were_refused(const struct frame *frame)
{
    return frame->refused && frame->refused_at.in_parts && frame->refused_at.step == frame->at.step;
}

/* The block of the step at the cursor in parts.  False: everything is as before. */
static bool run_in_parts(struct frame *frame)
{
    const struct frame_mark mark = frame_mark(frame);
    frit_err err = ERR_INIT;

    if (parts_add(frame, &err))
        return false;
    frame->at.in_parts = true;
    if (note_item(frame, &mark, &err)) {
        frame->at.in_parts = false;
        return false;
    }
    atomic_fetch_add(&frame->device->count.in_parts, 1);
    bound_plan_add_parts(frame->bound);
    return true;
}

/* Of a block that was to run in parts and cannot. */
static void forget_parts(struct frame *frame)
{
    struct run_note *note = frame_note(frame);

    if (note)
        *note->candidate = '\0';
}

static frit_status launch_item(const struct launch_call *call, frit_err *err)
{
    struct frame *frame = call->frame;
    const struct frame_mark mark = frame_mark(frame);
    const bool refused = parts_were_refused(frame);
    struct launch_call own = *call;
    bool in_parts = false;
    frit_status st;

    if (refused)
        forget_parts(frame);
    own.in_parts = call->block && !refused ? &in_parts : NULL;
    st = launch_add(&own, err);
    if (in_parts && run_in_parts(frame))
        return FRIT_OK;
    if (in_parts) {
        forget_parts(frame);
        own.in_parts = NULL;
        st = launch_add(&own, err);
    }
    return st ? st : note_item(frame, &mark, err);
}

/* Once more without what the batch holds, if that may help.  False: the frame went back. */
static bool launch_or_settle(const struct launch_call *call, frit_status *status, frit_err *err)
{
    *status = launch_item(call, err);
    if (*status != FRIT_NO_DEVICE_MEMORY || call->frame->scratch->batch.n_cmds == 0)
        return true;
    if (!run_settle(call->frame))
        return false;
    *status = launch_item(call, err);
    return true;
}

/* ---- blocks ---- */

static void disable(struct frame *frame, const struct frame_step *step, const char *why)
{
    if (!atomic_exchange(&step->program->disabled, true))
        device_note_disabled(frame->device, step->label, why);
}

/* What the item makes, as far as it has a place. */
static struct failure *output_failure(const struct frame *frame, const struct cursor *at)
{
    struct failure *failure = NULL;
    const uint32_t *out;
    uint32_t n_out;

    if (is_behind(frame, at)) {
        out = &frame->assigned[at->step - frame->n_steps];
        n_out = 1;
    } else if (is_block(frame, at)) {
        out = frame->plan->steps[at->step].out;
        n_out = frame->plan->steps[at->step].n_out;
    } else {
        out = op_at(frame, at)->out;
        n_out = op_at(frame, at)->n_out;
    }
    for (uint32_t k = 0; k < n_out && !failure; k++) {
        if (out[k] != GRAPH_NO_VALUE)
            failure = value_failure(frame, out[k]);
    }
    return failure;
}

void item_look_back(struct frame *frame, const struct cursor *at, struct failure *inside)
{
    struct failure *failure = inside ? failure_ref(inside) : output_failure(frame, at);
    struct frame_step step;

    if (!failure)
        return;
    if (inside && !is_behind(frame, at) && is_block(frame, at) && !at->in_parts) {
        frame_step_at(frame, at->step, &step);
        disable(frame, &step, "a command of it failed");
    }
    item_fail(frame, at, failure);
    failure_unref(failure);
}

bool item_was_refused(const struct frame *frame)
{
    const struct cursor *a = &frame->at, *b = &frame->refused_at;

    return frame->refused && a->step == b->step && a->op == b->op && a->by_ops == b->by_ops &&
           a->in_parts == b->in_parts;
}

static bool is_usable(struct frame *frame, const struct frame_step *step, frit_err *err)
{
    if (item_was_refused(frame)) {
        *err = frame->refusal;
        if (!launch_lacked_memory(frame->refusal.status))
            disable(frame, step, frame->refusal.text);
        return false;
    }
    if (!atomic_load_explicit(&step->program->disabled, memory_order_relaxed))
        return true;
    fail(err, FRIT_UNSUPPORTED, "its program failed before");
    return false;
}

/* True: the block is in the batch.  False: its ops run by themselves, or the frame went back; then
 * the cursor says so. */
static bool run_block(struct frame *frame, const struct frame_step *step)
{
    struct launch_call call = launch_call_of_block(frame, step);
    struct failure *failure = item_input_failure(frame, &frame->at);
    frit_err err = ERR_INIT;
    frit_status st = FRIT_UNSUPPORTED;

    if (failure) {
        fallback_note(frame, FALLBACK_OPS, failure->text);
        failure_unref(failure);
        frame->at.by_ops = true;
        return false;
    }
    if (op_item_is_empty(frame, step->out, step->n_out)) {
        st = op_item_empty(frame, step->out, step->n_out, &err);
    } else if (is_usable(frame, step, &err)) {
        st = programs_prepared_cache(frame->device, step->program, &call.cache, &err);
        if (!st && !launch_or_settle(&call, &st, &err))
            return false;
    }
    if (!st)
        return true;
    fallback_report(frame, step->label, FALLBACK_OPS, &err);
    frame->at.by_ops = true;
    return false;
}

/* ---- single ops ---- */

static frit_status run_view(struct frame *frame, const struct graph_op *op, frit_err *err)
{
    bool copied = false;

    TRY(op_item_view(frame, op, &copied, err));
    return copied && !frame_note_item(frame) ? fail_memory(err, sizeof(struct cursor)) : FRIT_OK;
}

/* What one attempt at an op came to. */
struct attempt {
    frit_status status;
    bool claimed;   /* the driver has a program */
    bool went_back; /* the cursor is elsewhere now */
};

static void run_native(struct frame *frame, const uint32_t *number, struct attempt *attempt,
                       frit_err *err)
{
    struct arena arena = {0};
    uint32_t *in = arena_array(&arena, frame->graph->ops[*number].n_in + 1u, sizeof(*in));
    struct launch_call call = {0};

    attempt->status =
        in ? op_item_call(frame, number, in, &call, err) : fail_memory(err, sizeof(*in));
    attempt->claimed = !attempt->status;
    if (attempt->claimed)
        attempt->went_back = !launch_or_settle(&call, &attempt->status, err);
    program_unref(call.program);
    arena_fini(&arena);
}

/* The fallbacks when a program cannot be used, in order.  `attempt` has the reason. */
static void run_instead(struct frame *frame, uint32_t number, struct attempt *attempt,
                        frit_err *err)
{
    uint32_t op = frame->graph->ops[number].op;
    const char *name = op_row(op)->name;
    bool composite = decompose_has(op, frame->graph->ops[number].n_in);
    frit_device *fallback = frame->device->fallback;

    bound_plan_spoil(frame->bound);
    if (launch_lacked_memory(attempt->status))
        return;
    if (!composite && (!fallback || frame->borrowed))
        return;
    attempt->went_back = !run_settle(frame);
    if (attempt->went_back)
        return;
    if (composite) {
        if (attempt->claimed)
            fallback_report(frame, name, FALLBACK_DECOMPOSED, err);
        attempt->status = inner_run_decomposed(frame, number, err);
    }
    if (attempt->status && !launch_lacked_memory(attempt->status) && fallback && !frame->borrowed) {
        fallback_report(frame, name, FALLBACK_DEVICE, err);
        attempt->status = inner_elsewhere(frame, number, err);
    }
}

/* A view whose strides can say it moves nothing, wherever its operand is. */
static bool moves_bytes(const struct frame *frame, const struct graph_op *op)
{
    struct value out = {.type = frame->graph->values[op->out[0]].type};
    const struct value *in;

    if (!op_item_is_view(op))
        return true;
    in = &frame->values[op->in[0].value].value;
    return !layout_view(op->op, op->attrs, &in->type, &in->layout, &out.type, &out.layout);
}

/* Runs an op on the fallback device where its neighbours do.  False: it runs at home. */
static bool run_there(struct frame *frame, uint32_t number, struct attempt *attempt)
{
    const struct graph_op *op = &frame->graph->ops[number];
    frit_err err = ERR_INIT;

    if (item_was_refused(frame) || op_item_is_empty(frame, op->out, op->n_out) ||
        !route_is_there(frame) || !moves_bytes(frame, op))
        return false;
    bound_plan_spoil(frame->bound);
    attempt->went_back = !run_settle(frame);
    if (attempt->went_back)
        return true;
    attempt->status = inner_elsewhere(frame, number, &err);
    if (attempt->status)
        route_stay_home(frame);
    else
        fallback_note(frame, FALLBACK_DEVICE, "ops before and after it run there");
    return !attempt->status;
}

/* ---- an op ---- */

static void run_op(struct frame *frame, const uint32_t *number, struct attempt *attempt,
                   frit_err *err)
{
    const struct graph_op *op = &frame->graph->ops[*number];
    const frit_op_info *row = op_row(op->op);

    *attempt = (struct attempt){.status = FRIT_UNSUPPORTED};
    if (collective_is(op->op)) {
        attempt->status = item_collective(frame, *number, &attempt->went_back, err);
        return;
    }
    if (run_there(frame, *number, attempt))
        return;
    attempt->status = FRIT_UNSUPPORTED;
    if (item_was_refused(frame)) {
        *err = frame->refusal;
        attempt->status = frame->refusal.status;
        attempt->claimed = true;
    } else if (op_item_is_view(op)) {
        attempt->status = run_view(frame, op, err);
        if (attempt->status != FRIT_UNSUPPORTED)
            return;
    } else if (op_item_is_empty(frame, op->out, op->n_out)) {
        attempt->status = op_item_empty(frame, op->out, op->n_out, err);
        return;
    } else if (row->cls != FRIT_CLASS_VIEW &&
               !(frame->device->config.decompose && decompose_has(op->op, op->n_in))) {
        run_native(frame, number, attempt, err);
    }
    if (attempt->status == FRIT_INTERNAL && !attempt->went_back)
        fallback_fault(frame->device, row->name, err);
    if (attempt->status && !attempt->went_back)
        run_instead(frame, *number, attempt, err);
}

/* True: it is done, well or not. */
static bool run_single(struct frame *frame, const struct frame_step *step)
{
    const uint32_t *number = &step->ops[frame->at.op];
    struct failure *failure = item_input_failure(frame, &frame->at);
    struct attempt attempt = {0};
    frit_err err = ERR_INIT;

    if (!failure) {
        run_op(frame, number, &attempt, &err);
        if (attempt.went_back)
            return false;
        if (attempt.status) {
            device_explain_loss(frame->device, &err);
            fail_context(&err, "%s", op_row(frame->graph->ops[*number].op)->name);
            failure = failure_create(&err);
        }
    }
    if (failure && !attempt.status)
        item_give_up_collective(frame, *number, failure);
    if (failure)
        item_fail(frame, &frame->at, failure);
    failure_unref(failure);
    return true;
}

/* ---- the end of an item ---- */

/* What died with the step; a value may live longer than its last use where a view of it does. */
static void end_step(struct frame *frame)
{
    if (frame->plan) {
        const struct plan_step *step = &frame->plan->steps[frame->at.step];

        for (uint32_t i = 0; i < step->n_dead; i++)
            op_item_bury_value(frame, step->dead[i]);
    } else {
        op_item_bury(frame, &frame->graph->ops[frame->at.step]);
    }
    frame->at = (struct cursor){.step = frame->at.step + 1};
}

/* For people who look at the run. */
static void note_chosen(struct frame *frame, const struct frame_step *step)
{
    for (uint32_t i = 0; frame->notes && i < step->n_ops; i++)
        if (frame->ops[step->ops[i]].chosen)
            frame_note_mark(frame, RUN_DECOMPOSED);
}

/* Whether a value lies in the memory of this one and has uses after the item, or is the caller's.
 */
static bool memory_lives_on(const struct frame *frame, uint32_t value)
{
    const struct buffer *buffer = frame->values[value].value.buffer;

    for (uint32_t v = 0; v < frame->n_values; v++) {
        const struct buffer *other = frame->values[v].value.buffer;

        if (other && buffer_whole(other) == buffer_whole(buffer) &&
            (frame->values[v].external || !frame_dies(frame, v)))
            return true;
    }
    return false;
}

/* What ends with an item that does not use its elements: other values may get its memory then. */
static bool await_if_it_ends(struct frame *frame, uint32_t value)
{
    return !frame->values[value].value.buffer || memory_lives_on(frame, value) ||
           item_await(frame, value);
}

static bool await_all(struct frame *frame, const uint32_t *values, uint32_t n,
                      bool (*await)(struct frame *frame, uint32_t value))
{
    for (uint32_t i = 0; i < n; i++) {
        if (!await(frame, values[i]))
            return false;
    }
    return true;
}

/* Operands of the item that collective operations use.  False: the frame went back. */
static bool await_operands(struct frame *frame, const struct frame_step *step)
{
    const struct graph_op *op;

    if (frame->idle && frame->idle[frame->at.step])
        return await_all(frame, frame->plan->steps[frame->at.step].dead,
                         frame->plan->steps[frame->at.step].n_dead, await_if_it_ends);
    if (is_block(frame, &frame->at))
        return await_all(frame, step->in, step->n_in, item_await);
    op = op_at(frame, &frame->at);
    if (!moves_bytes(frame, op))
        return !frame_dies(frame, op->out[0]) || await_if_it_ends(frame, op->in[0].value);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_TENSOR && !item_await(frame, op->in[i].value))
            return false;
    }
    return true;
}

void item_run(struct frame *frame)
{
    struct frame_step step;

    frame_step_at(frame, frame->at.step, &step);
    if (frame->n_pending && !await_operands(frame, &step))
        return;
    note_chosen(frame, &step);
    if (frame->idle && frame->idle[frame->at.step]) {
        atomic_fetch_add(&frame->device->count.skipped, 1);
        frame_note_mark(frame, RUN_SKIPPED);
        end_step(frame);
        return;
    }
    if (is_block(frame, &frame->at) && route_is_there(frame))
        frame->at.by_ops = true;
    if (is_block(frame, &frame->at)) {
        if (run_block(frame, &step))
            end_step(frame);
        return;
    }
    if (!run_single(frame, &step))
        return;
    if (frame->at.op + 1 == step.n_ops) {
        end_step(frame);
        return;
    }
    op_item_bury(frame, &frame->graph->ops[step.ops[frame->at.op]]);
    frame->at.op++;
}
