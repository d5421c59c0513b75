/* SPDX-License-Identifier: Apache-2.0 */
#include "run/execution.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/fail.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "device/watch.h"
#include "graph/graph.h"
#include "plan/automaton.h"
#include "plan/plan.h"
#include "record/alias.h"
#include "record/stream.h"
#include "run/bound_cache.h"
#include "run/bound_finish.h"
#include "run/collective.h"
#include "run/explore.h"
#include "run/launch.h"
#include "run/preassign.h"
#include "run/replay.h"
#include "run/replay_lineage.h"
#include "run/replay_match.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

struct executor *executor_of(struct stream *stream)
{
    struct executor *executor = stream->executor;

    if (executor)
        return executor;
    executor = calloc(1, sizeof(*executor));
    if (executor && run_scratch_create(&executor->scratch, NULL)) {
        free(executor);
        executor = NULL;
    }
    if (executor)
        bound_cache_init(&executor->bound, stream->device, &stream->baton);
    return stream->executor = executor;
}

void executor_destroy(struct executor *executor)
{
    if (!executor)
        return;
    explorer_fini(&executor->explorer);
    bound_cache_fini(&executor->bound);
    run_scratch_destroy(executor->scratch);
    free(executor);
}

/* ---- running a plan ---- */

static void bind_made(struct run_value *value, const struct slot *slot)
{
    value->wanted = slot->owners > 0 || slot->holds > 1;
}

static void bind_external(struct run_value *value, const struct seg_value *from)
{
    value->external = true;
    if (from->alias) {
        value->value = from->alias->value;
    } else if (from->slot->state == SLOT_READY) {
        value->value = from->slot->value;
        value->last = from->slot->owners == 0 && from->slot->holds == 1;
    } else {
        value->failure = from->slot->state == SLOT_FAILED ? from->slot->failure
                                                          : failure_immortal(FRIT_INTERNAL);
    }
}

/* Inside the lock: what each value is before the run.  The run knows nothing of values that ops
 * after the plan's make. */
static void bind(struct execution *f)
{
    const struct segment *segment = f->segment;
    const struct explorer *explorer = &f->executor->explorer;

    for (uint32_t i = 0; i < explorer->n_values; i++) {
        const struct seg_value *from = &segment->values[i];
        struct run_value *value = &f->values[explorer->value_of[i]];

        if (from->maker == SEGMENT_EXTERNAL)
            bind_external(value, from);
        else if (from->maker < f->n_calls)
            bind_made(value, from->slot);
    }
    preassign_bind(f->assigned, segment, explorer, f->values);
}

/* Operands, and memory for results, that collective operations of earlier runs use. */
static void await_operands(struct execution *f)
{
    for (uint32_t i = 0; i < f->executor->explorer.graph.n_values; i++) {
        if (f->values[i].external)
            pending_wait(f->stream->device->pending, f->values[i].value.buffer);
    }
    for (const struct assignment *a = f->assigned; a; a = a->next)
        pending_wait(f->stream->device->pending, a->memory);
}

/* Values that are spoiled are failures too; these references are ours. */
static void take_failures(struct execution *f)
{
    frit_device *device = f->stream->device;

    if (!atomic_load(&device->n_spoiled))
        return;
    for (uint32_t i = 0; i < f->executor->explorer.graph.n_values; i++) {
        struct run_value *value = &f->values[i];

        if (value->external && value->value.buffer)
            value->failure = lineage_failure_of(device->lineage, value->value.buffer);
    }
}

static void give_failures_back(struct execution *f)
{
    for (uint32_t i = 0; i < f->executor->explorer.graph.n_values; i++) {
        struct run_value *value = &f->values[i];

        if (value->external && value->value.buffer)
            failure_unref(value->failure);
    }
}

static struct run_value *value_of(const struct execution *f, uint32_t number)
{
    return f->values ? &f->values[f->executor->explorer.value_of[number]] : NULL;
}

/* Inside the lock: slots get what the run made, or the failure. */
static void publish(struct execution *f, struct failure *failure)
{
    const struct segment *segment = f->segment;

    for (uint32_t r = 0; r < f->n_calls; r++) {
        const struct recorded_op *record = segment->ops[r];

        for (uint32_t k = 0; k < record->n_out; k++) {
            struct slot *slot;
            struct run_value *value;

            if (record->out[k] == SEGMENT_EXTERNAL)
                continue;
            slot = segment->values[record->out[k]].slot;
            value = value_of(f, record->out[k]);
            if (value && value->value.buffer)
                slot_set_ready(slot, &value->value);
            else if (value && value->failure)
                slot_set_failed(slot, failure_ref(value->failure));
            else if (failure || value == NULL || value->wanted)
                slot_set_failed(slot,
                                failure ? failure_ref(failure) : failure_immortal(FRIT_INTERNAL));
        }
    }
    if (failure && !f->stream->first_error)
        f->stream->first_error = failure_ref(failure);
}

/* What run_plan gave references to. */
static void drop_failures(struct execution *f)
{
    for (uint32_t i = 0; f->values && i < f->executor->explorer.graph.n_values; i++) {
        if (!f->values[i].external)
            failure_unref(f->values[i].failure);
    }
}

/* A plan may number values of ops after its own. */
static struct run_value *values_alloc(struct executor *executor, const struct plan *plan)
{
    struct graph *graph = &executor->explorer.graph;
    uint32_t n = graph->n_values > plan->n_values ? graph->n_values : plan->n_values;

    return arena_array(&graph->arena, (size_t)n + 1, sizeof(struct run_value));
}

/* Outside of any lock. */
static void reap_plans(frit_device *device)
{
    if (automaton_has_gone(device->automaton))
        automaton_reap(device->automaton);
}

/* The end of an execution, inside the lock, which it leaves: nothing is held any more. */
static void end(struct execution *f)
{
    struct stream *stream = f->stream;
    struct alias *gone;

    segment_release(f->segment);
    /* The op that fills the queue goes the long way, which runs it. */
    segment_rewind(f->segment, (uint64_t)stream->device->config.max_ops - 1);
    gone = alias_take_gone(&stream->aliases);
    home_leave_drop(&stream->home);
    alias_free(gone);
    if (f->executor)
        explorer_reset(&f->executor->explorer);
    reap_plans(stream->device);
}

/* A bound plan for the run to come to record into.  Memory that is filled with NaN, or that lacked,
 * wants to run step by step each time. */
static struct bound_plan *begin_bound_plan(const struct execution *f, const struct plan *plan)
{
    return f->lacked || f->makeshift || f->stream->device->config.poison
               ? NULL
               : bound_plan_create(plan->n_values);
}

/* Keeps it if it can be replayed. */
static void keep_bound_plan(struct execution *f, struct plan *plan)
{
    struct bound_plan *bound = f->run.bound;

    if (!bound)
        return;
    if (f->run.first ||
        !bound_finish(bound, f->values, &f->executor->explorer, f->segment, f->n_calls)) {
        bound_plan_destroy(bound);
        return;
    }
    bound_cache_add(&f->executor->bound, plan, bound);
    f->segment->last_bound_plan = bound;
}

static void execute_plan(struct execution *f, struct plan *plan)
{
    struct stream *stream = f->stream;

    home_enter(&stream->home);
    bind(f);
    home_leave(&stream->home);
    await_operands(f);
    take_failures(f);
    f->run = (struct run){.device = stream->device,
                          .plan = plan,
                          .graph = &f->executor->explorer.graph,
                          .values = f->values,
                          .ops = f->executor->explorer.ops,
                          .stream = f->ordinal,
                          .ranks = stream->ranks,
                          .assigned = f->assigned,
                          .scratch = f->executor->scratch,
                          .bound = begin_bound_plan(f, plan)};
    atomic_fetch_add(&stream->device->count.plan_runs, 1);
    if (watch_is_on(&stream->device->watch))
        f->run.notes = arena_array(&f->segment->arena, plan->n_steps, sizeof(struct run_note));
    run_plan(&f->run);
    if (watch_is_on(&stream->device->watch))
        watch_ran(&stream->device->watch, &f->run);
    keep_bound_plan(f, plan);
    give_failures_back(f);
}

/* None of the ops runs: the other ranks must not wait for collectives among them. */
static void give_up_collectives(const struct execution *f, const struct failure *why)
{
    for (uint32_t r = 0; r < f->n_calls; r++) {
        const struct recorded_op *record = f->segment->ops[r];

        if (collective_is_awaited(record->op))
            collective_give_up(f->stream->ranks, record->op,
                               collective_attrs_of(record->op, record->attrs).group, why->status,
                               why->text);
    }
}

/* Runs the plan over the first ops of a segment that is detached; without a plan they fail.  No
 * lock is held, the baton is. */
static void execute(struct execution *f, struct plan *plan, const frit_err *err)
{
    struct stream *stream = f->stream;
    struct failure *failure = NULL;

    if (!plan) {
        failure = failure_create(err);
    } else {
        f->values = values_alloc(f->executor, plan);
        if (f->values)
            execute_plan(f, plan);
        failure = f->values ? f->run.first : failure_immortal(FRIT_NO_HOST_MEMORY);
    }
    if (!f->values || f->run.not_run)
        give_up_collectives(f, failure);
    home_enter(&stream->home);
    publish(f, failure);
    drop_failures(f);
    end(f);
    failure_unref(failure);
}

/* ---- running a plan as before ---- */

/* Replays a bound plan that fits; false: nothing has happened. */
static bool replay_one(struct execution *f, struct bound_entry *entry)
{
    struct bound_plan *bound = entry->bound;
    struct stream *stream = f->stream;
    frit_device *device = stream->device;
    struct failure *failure = NULL;
    uint64_t begun = timeline_begin();
    frit_status st;
    bool fits;

    home_enter(&stream->home);
    fits = replay_matches(bound, f->segment, f->assigned);
    home_leave(&stream->home);
    if (!fits || !replay_await(bound, device) || !replay_is_sound(bound, device) ||
        !replay_fetch(bound, device))
        return false;
    bound->ranks = stream->ranks;
    st = replay_run(bound, device, f->segment, f->ordinal, &failure);
    f->lacked = launch_lacked_memory(st);
    if (st)
        return false;
    timeline_end(begun, "plan", str_of("replay"));
    if (!failure)
        failure = replay_failure(bound, device);
    home_enter(&stream->home);
    replay_publish(bound, f->segment, failure);
    stream_count(&stream->count.replays, 1);
    stream_count(&stream->count.launches, bound->n_launches - bound->n_collectives);
    stream_count(&stream->count.fused, bound->n_blocks);
    stream_count(&stream->count.in_parts, bound->n_in_parts);
    stream_count(&stream->count.captured, bound->n_captured);
    if (failure && !stream->first_error)
        stream->first_error = failure_ref(failure);
    f->segment->last_bound_plan = bound;
    end(f);
    replay_end(bound);
    bound_cache_used(&f->executor->bound, entry);
    if (bound->grew)
        bound_cache_recount(&f->executor->bound, bound);
    bound->grew = false;
    failure_unref(failure);
    return true;
}

/* Where one that fits found no memory, no other one would.  Under inspection the
 * plan is run step by step, so that its steps are seen. */
static bool replay(struct execution *f, const struct plan *plan)
{
    struct bound_cache *cache = &f->executor->bound;
    frit_device *device = f->stream->device;
    const void *likely = f->segment->last_bound_plan;
    struct bound_entry *entry;
    bool replayed = false;
    uint32_t at = 0;

    if (watch_is_on(&device->watch))
        return false;
    while (!replayed && !f->lacked && (entry = bound_cache_next(cache, plan, likely, &at))) {
        replayed = replay_one(f, entry);
        if (!entry->bound->spoiled)
            continue;
        bound_cache_remove(cache, entry);
        at--;
    }
    return replayed;
}

/* The graph of what the plan covers, and a plan for it: a plan of equal keys need not fit. */
static frit_status make_fit(struct execution *f, const struct plan *plan, struct plan **other,
                            frit_err *err)
{
    struct explorer *explorer = &f->executor->explorer;
    const struct segment *segment = f->segment;
    frit_device *device = f->stream->device;

    bool fits = false;

    *other = NULL;
    TRY(explorer_graph(explorer, device, segment, f->n_calls, err));
    if (plan)
        TRY(explorer_fits(explorer, device, segment, plan, &fits, err));
    if (fits)
        return FRIT_OK;
    return explorer_plan_unfused(explorer, device, segment, f->n_calls, other, err);
}

void execution_fail(struct execution *f, frit_status status)
{
    give_up_collectives(f, failure_immortal(status));
    home_enter(&f->stream->home);
    publish(f, failure_immortal(status));
    end(f);
    preassign_end(f->assigned);
}

void execution_run(struct execution *f, struct plan *plan)
{
    struct plan *other;
    frit_err err;

    bound_cache_sweep(&f->executor->bound, f->serial);
    if (plan && replay(f, plan)) {
        f->replayed = plan->serial;
        preassign_end(f->assigned);
        return;
    }
    err_init(&err);
    if (make_fit(f, plan, &other, &err))
        plan = NULL;
    else if (other)
        plan = other;
    f->makeshift = other;
    execute(f, plan, &err);
    plan_unref(other);
    preassign_end(f->assigned);
}
