/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/flight.h"

#include "base/fail.h"
#include "base/timeline.h"
#include "stream/preassign.h"
#include "stream/replay.h"

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

/* Inside the lock: what each value is before the run.  Of those that records behind the plan's make
 * the run knows nothing. */
static void bind(struct flight *f)
{
    const struct segment *segment = &f->work->segment;
    const struct explorer *explorer = &f->work->explorer;

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

/* Values that a failed command of the device wrote are failures too; these references are ours. */
static void find_poison(struct flight *f, bool take)
{
    frit_device *device = f->stream->device;

    if (!atomic_load(&device->n_poisons))
        return;
    for (uint32_t i = 0; i < f->work->explorer.graph.n_values; i++) {
        struct run_value *value = &f->values[i];

        if (!value->external || !value->value.buffer)
            continue;
        if (take)
            value->failure =
                device_poison_of(device, atomic_load(&value->value.buffer->last_write));
        else
            failure_unref(value->failure);
    }
}

/* Inside the lock: slots get what the run made, or the failure. */
static void land(struct flight *f, struct failure *failure)
{
    const struct segment *segment = &f->work->segment;
    const struct explorer *explorer = &f->work->explorer;

    for (uint32_t r = 0; r < f->n_calls; r++) {
        const struct op_record *record = segment->records[r];

        for (uint32_t k = 0; k < record->n_out; k++) {
            struct slot *slot;
            struct run_value *value;

            if (record->out[k] == SEGMENT_EXTERNAL)
                continue;
            slot = segment->values[record->out[k]].slot;
            value = f->values ? &f->values[explorer->value_of[record->out[k]]] : NULL;
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
static void drop_failures(struct flight *f)
{
    for (uint32_t i = 0; i < f->work->explorer.graph.n_values && f->values; i++) {
        if (!f->values[i].external)
            failure_unref(f->values[i].failure);
    }
}

/* A plan may number values of ops behind its own. */
static struct run_value *values_alloc(struct work *work, const struct plan *plan)
{
    struct graph *graph = &work->explorer.graph;
    uint32_t n = graph->n_values > plan->n_values ? graph->n_values : plan->n_values;

    return arena_array(&graph->arena, (size_t)n + 1, sizeof(struct run_value));
}

/* Outside of any lock: plans that were forgotten end when what they launched has. */
static void reap_plans(frit_device *device)
{
    if (!automaton_has_gone(device->automaton))
        return;
    device_wait(device, atomic_load(&device->last_value), NULL);
    automaton_reap(device->automaton);
}

void flight_drop_plan(frit_device *device, struct plan *plan)
{
    if (plan && plan_is_unshared(plan))
        device_wait(device, atomic_load(&device->last_value), NULL);
    plan_unref(plan);
}

/* The end of a flight, inside the lock, which it leaves: nothing is held any more. */
static void end(struct flight *f)
{
    struct stream *stream = f->stream;
    struct alias *gone;

    segment_release(&f->work->segment);
    segment_again(&f->work->segment);
    gone = alias_take_gone(&stream->aliases);
    home_leave_drop(&stream->home);
    alias_free(gone);
    explorer_reset(&f->work->explorer);
    reap_plans(stream->device);
}

/* A tape for the run to come, where it could be played again and there is none like it: memory that
 * is filled with NaN or assigned, or failures that are known, want the long way each time. */
static struct tape *blank_tape(const struct flight *f, const struct plan *plan)
{
    const frit_device *device = f->stream->device;

    if (f->lacked || f->assigned || device->config.poison)
        return NULL;
    return tape_create(plan->n_values);
}

static struct plan_warm *warm_set(const struct flight *f, struct plan *plan)
{
    return &plan->warm[f->ordinal % PLAN_WARM_SETS];
}

/* Keeps the tape with the plan if it can be played; an older one makes room. */
static void keep_tape(struct flight *f, struct plan *plan)
{
    struct plan_warm *warm = warm_set(f, plan);
    struct tape *tape = f->run.tape;

    if (!tape)
        return;
    if (f->run.first ||
        !tape_finish(tape, f->values, &f->work->explorer, &f->work->segment, f->n_calls)) {
        tape_destroy(tape);
        return;
    }
    atomic_store(&plan->warm_free, tape_destroy);
    for (uint32_t i = 0; i < PLAN_WARM; i++) {
        void *empty = NULL;

        if (atomic_compare_exchange_strong(&warm->tapes[i], &empty, tape))
            return;
    }
    tape_destroy(atomic_exchange(&warm->tapes[plan->serial % PLAN_WARM], tape));
}

static void fly_plan(struct flight *f, struct plan *plan)
{
    struct stream *stream = f->stream;

    home_enter(&stream->home);
    bind(f);
    home_leave(&stream->home);
    find_poison(f, true);
    f->run = (struct run){.device = stream->device,
                          .plan = plan,
                          .graph = &f->work->explorer.graph,
                          .values = f->values,
                          .ops = f->work->explorer.ops,
                          .stream = f->ordinal,
                          .assigned = f->assigned,
                          .scratch = stream->scratch,
                          .tape = blank_tape(f, plan)};
    atomic_fetch_add(&stream->device->count.plan_runs, 1);
    if (watch_is_on(&stream->device->watch))
        f->run.notes = arena_array(&f->work->segment.arena, plan->n_steps, sizeof(struct run_note));
    run_plan(&f->run);
    if (watch_is_on(&stream->device->watch))
        watch_ran(&stream->device->watch, &f->run);
    keep_tape(f, plan);
    find_poison(f, false);
}

/* Runs the plan over the first records of a work that is detached; without a plan they fail.  No
 * lock is held, the baton is. */
static void fly(struct flight *f, struct plan *plan, const frit_err *err)
{
    struct stream *stream = f->stream;
    struct failure *failure = NULL;

    if (!plan) {
        failure = failure_create(err);
    } else {
        f->values = values_alloc(f->work, plan);
        if (f->values)
            fly_plan(f, plan);
        failure = f->values ? f->run.first : failure_immortal(FRIT_NO_HOST_MEMORY);
    }
    home_enter(&stream->home);
    land(f, failure);
    drop_failures(f);
    end(f);
    failure_unref(failure);
}

/* ---- running a plan as before ---- */

/* Plays a tape that fits; false: nothing has happened. */
static bool play(struct flight *f, struct tape *tape)
{
    struct stream *stream = f->stream;
    frit_device *device = stream->device;
    struct failure *failure = NULL;
    uint64_t value = 0, begun = timeline_begin();
    frit_status st;
    bool fits;

    home_enter(&stream->home);
    fits = tape_matches(tape, &f->work->segment);
    home_leave(&stream->home);
    if (!fits || !tape_is_sound(tape, device))
        return false;
    st = tape_play(tape, device, &f->work->segment, f->ordinal, &value);
    f->lacked = launch_lacked_memory(st);
    if (st)
        return false;
    timeline_end(begun, "plan", str_of("replay"));
    if (atomic_load(&device->n_poisons))
        failure = tape_failure(tape, device, value);
    home_enter(&stream->home);
    tape_land(tape, &f->work->segment, failure);
    stream_count(&stream->count.plays, 1);
    stream_count(&stream->count.launches, tape_launches(tape));
    stream_count(&stream->count.fused, tape_blocks(tape));
    if (failure && !stream->first_error)
        stream->first_error = failure_ref(failure);
    end(f);
    tape_end(tape);
    failure_unref(failure);
    return true;
}

/* Each tape serves one run at a time: whoever takes it out puts it back.  Where one that fits found
 * no memory, no other one would.  Who looks on wants to see the steps. */
static bool replay(struct flight *f, struct plan *plan)
{
    struct plan_warm *warm = warm_set(f, plan);
    bool played = false;

    if (watch_is_on(&f->stream->device->watch))
        return false;
    for (uint32_t i = 0; i < PLAN_WARM && !played && !f->lacked; i++) {
        struct tape *tape = atomic_exchange(&warm->tapes[i], NULL);
        void *empty = NULL;

        if (!tape)
            continue;
        played = play(f, tape);
        if (tape_is_spoiled(tape) || !atomic_compare_exchange_strong(&warm->tapes[i], &empty, tape))
            tape_destroy(tape);
    }
    return played;
}

/* The graph of what the plan covers, and a plan for it: a plan of equal keys need not fit. */
static frit_status make_fit(struct flight *f, const struct plan *plan, struct plan **other,
                            frit_err *err)
{
    struct explorer *explorer = &f->work->explorer;
    const struct segment *segment = &f->work->segment;
    frit_device *device = f->stream->device;

    bool fits = false;

    *other = NULL;
    TRY(explorer_graph(explorer, device, segment, f->n_calls, err));
    if (plan)
        TRY(explorer_fits(explorer, device, segment, plan, &fits, err));
    if (fits)
        return FRIT_OK;
    return explorer_unfused(explorer, device, segment, f->n_calls, other, err);
}

void flight_run(struct flight *f, struct plan *plan)
{
    frit_err err = ERR_INIT;
    struct plan *other;

    if (plan && !f->assigned && replay(f, plan))
        return;
    if (make_fit(f, plan, &other, &err))
        plan = NULL;
    else if (other)
        plan = other;
    fly(f, plan, &err);
    plan_unref(other);
    preassign_end(f->assigned);
}
