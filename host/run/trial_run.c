/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of a trial, and how long they take. */
#include "run/trial.h"

#include "base/clock.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/profile.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/batch.h"
#include "run/frame_batch.h"
#include "run/launch.h"
#include "run/parts.h"
#include "run/transfer.h"
#include "run/trial_run.h"
#include "run/trial_sets.h"
#include "tensor/failure.h"

enum { EVEN = 0x3f };

/* ---- elements ---- */

/* Bytes that make ordinary numbers of every type. */
static frit_status fill_evenly(struct launch_trial *t, struct buffer *buffer, frit_err *err)
{
    struct batch *batch = &t->scratch->batch;
    uint64_t point;
    frit_status st = batch_fill(batch, buffer, 0, EVEN, err);

    if (!st)
        st = batch_submit(batch, t->device, 0, &point, err);
    batch_reset(batch);
    return st;
}

frit_status trial_fill(struct launch_trial *t, frit_err *err)
{
    for (uint32_t m = 0; m < t->n_memories && !t->is_filled; m++)
        if (t->memories[m].own->handle)
            TRY(t->memories[m].data
                    ? transfer_fill(t->device, t->memories[m].own, t->memories[m].data, err)
                    : fill_evenly(t, t->memories[m].own, err));
    t->is_filled = true;
    return FRIT_OK;
}

/* ---- frames ---- */

struct frame trial_begin(struct launch_trial *t, bool last)
{
    for (uint32_t v = 0; v < t->graph.n_values; v++)
        t->values[v] =
            t->graph.values[v].kind == GRAPH_INPUT
                ? (struct run_value){.external = true, .last = last, .value = t->given[v]}
                : (struct run_value){.value.type = t->graph.values[v].type};
    for (uint32_t k = 0; k < t->n_out; k++)
        if (t->out[k] != GRAPH_NO_VALUE)
            t->values[t->out[k]].wanted = true;
    t->step = (struct plan_step){.program = t->program,
                                 .label = t->label,
                                 .n_ops = t->graph.n_ops,
                                 .n_in = t->n_in,
                                 .n_out = t->n_out,
                                 .ops = t->numbers,
                                 .in = t->in,
                                 .out = t->out};
    t->plan.steps = &t->step;
    t->plan.n_steps = 1;
    return (struct frame){.device = t->device,
                          .scratch = t->scratch,
                          .plan = &t->plan,
                          .graph = &t->graph,
                          .values = t->values,
                          .ops = t->extra,
                          .last_step = t->at_once,
                          .n_steps = 1,
                          .n_values = t->graph.n_values,
                          .stream = DEVICE_NO_STREAM,
                          .is_trial = true};
}

void trial_end(struct launch_trial *t, struct frame *frame)
{
    for (uint32_t v = 0; v < t->graph.n_values; v++) {
        if (t->values[v].external)
            continue;
        buffer_disown(t->values[v].value.buffer);
        failure_unref(t->values[v].failure);
        t->values[v].value.buffer = NULL;
        t->values[v].failure = NULL;
    }
    for (uint32_t i = 0; i < frame->n_zones; i++)
        buffer_disown(frame->zones[i]);
    frame->n_zones = 0;
    failure_unref(frame->first);
    frame->first = NULL;
}

frit_status trial_read(struct launch_trial *t, const struct value *value, void *to, frit_err *err)
{
    struct transfer_read read;

    buffer_pin(value->buffer);
    return transfer_finish(&read, transfer_start(t->device, value, to, &read, err), err);
}

frit_status trial_read_results(struct launch_trial *t, void **out, frit_err *err)
{
    for (uint32_t k = 0; k < t->n_out; k++) {
        const struct value *value;
        uint64_t bytes;

        if (t->out[k] == GRAPH_NO_VALUE)
            continue;
        value = &t->values[t->out[k]].value;
        bytes = frit_storage_bytes(value->type.dtype, op_elements(&value->type));
        out[k] = arena_alloc(&t->arena, bytes + sizeof(uint64_t));
        if (!out[k])
            return fail_memory(err, bytes);
        TRY(trial_read(t, value, out[k], err));
    }
    return FRIT_OK;
}

/* ---- launches ---- */

frit_status trial_add(struct launch_trial *t, struct frame *frame, uint32_t candidate,
                      frit_err *err)
{
    const struct launch_call call = {.frame = frame,
                                     .program = t->program,
                                     .cache = t->cache,
                                     .label = t->label,
                                     .block = t->block,
                                     .ops = t->numbers,
                                     .n_ops = t->graph.n_ops,
                                     .n_in = t->n_in,
                                     .n_out = t->n_out,
                                     .in = t->in,
                                     .out = t->out,
                                     .strides = t->strides,
                                     .only = &candidate};

    if (trial_is_in_parts(candidate))
        return parts_add(frame, err);
    return launch_add(&call, err);
}

static void forget(struct frame *frame)
{
    frame_undo(frame, &(struct frame_mark){0});
    batch_reset(&frame->scratch->batch);
}

/* Why what reached this point failed, a reference; NULL: it did not. */
static struct failure *failure_of(struct launch_trial *t, uint64_t point)
{
    struct lineage *lineage = t->device->lineage;
    struct failure *failure = NULL;

    if (t->device->info->caps & FRIT_CAP_INLINE_QUEUE)
        return lineage_knows(lineage, point) ? lineage_failure_at(lineage, point) : NULL;
    for (uint32_t k = 0; k < t->n_out && !failure; k++)
        if (t->out[k] != GRAPH_NO_VALUE)
            failure = lineage_failure_of(lineage, t->values[t->out[k]].value.buffer);
    return failure;
}

frit_status trial_finish(struct launch_trial *t, struct frame *frame, bool *failed, frit_err *err)
{
    struct batch *batch = &t->scratch->batch;
    struct failure *failure;
    uint64_t point = 0;
    frit_status st;

    *failed = false;
    st = batch_submit(batch, t->device, queue_of_stream(t->device, frame->stream), &point, err);
    if (st) {
        forget(frame);
        return st;
    }
    frame_commit(frame);
    batch_reset(batch);
    TRY(device_wait(t->device, point, err));
    failure = failure_of(t, point);
    if (failure) {
        *failed = true;
        st = fail(err, failure->status, "%s", failure->text);
        failure_unref(failure);
    }
    return st;
}

/* ---- timing ---- */

/* The next launch may take the memory of what this one has made: it runs after it. */
static frit_status bury_results(struct launch_trial *t, struct frame *frame, frit_err *err)
{
    TRY(frame_reserve(frame, t->graph.n_values, err));
    for (uint32_t v = 0; v < t->graph.n_values; v++)
        if (!t->values[v].external && t->values[v].value.buffer)
            frame_bury(frame, v);
    frame->n_log = frame->scratch->n_log;
    return FRIT_OK;
}

static frit_status add_launches(struct launch_trial *t, struct frame *frame, uint32_t candidate,
                                uint32_t n, frit_err *err)
{
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < n && !st; i++) {
        if (i)
            st = bury_results(t, frame, err);
        trial_next_set(t);
        if (!st)
            st = trial_add(t, frame, candidate, err);
    }
    if (st)
        forget(frame);
    return st;
}

frit_status trial_time(struct launch_trial *trial, uint32_t candidate, uint32_t n,
                       struct trial_time *out, frit_err *err)
{
    struct profile *profile = trial->device->profile;
    frit_device_time time = {.struct_size = sizeof(time)};
    struct frame frame;
    uint64_t begun;
    bool failed, measured;
    frit_status st;

    if (candidate == TRIAL_DECOMPOSED && trial->decomposed)
        return trial_time(trial->decomposed, candidate, n, out, err);
    TRY(trial_fill(trial, err));
    trial_rotate(trial);
    frame = trial_begin(trial, false);
    TRY(add_launches(trial, &frame, candidate, n, err));
    TRY(device_wait_all(trial->device, err));
    measured = profile && !profile_start(profile, NULL);
    begun = clock_ns();
    st = trial_finish(trial, &frame, &failed, err);
    out->ns = (clock_ns() - begun) / n;
    out->from_device =
        measured && !profile_stop(profile, &time, NULL) && !time.lost && time.commands;
    if (out->from_device)
        out->ns = time.busy_ns / n;
    trial_end(trial, &frame);
    return st;
}
