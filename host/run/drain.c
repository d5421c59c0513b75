/* SPDX-License-Identifier: Apache-2.0 */
#include "run/drain.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/plan_saver.h"
#include "device/wait.h"
#include "plan/plan.h"
#include "record/binding.h"
#include "record/scope.h"
#include "run/execution.h"
#include "run/explore.h"
#include "run/idle.h"
#include "run/join.h"
#include "run/match.h"
#include "run/preassign.h"
#include "run/rank.h"
#include "tensor/failure.h"

/* ---- the lazy way ---- */

/* Inside the lock, with the baton: takes the segment off the stream, but for the ops after the
 * first `n_calls`, which begin the next segment.  If out of memory, everything is taken. */
static void detach(struct stream *stream, uint32_t n_calls, struct execution *f)
{
    uint32_t n_left = stream->segment->n_ops - n_calls;
    struct segment *next = segments_next(&stream->segments, stream->segment, n_left > 0);

    *f = (struct execution){.stream = stream,
                            .executor = stream->executor,
                            .segment = stream->segment,
                            .n_calls = n_calls,
                            .ordinal = stream->ordinal,
                            .serial = stream->walker.serial};
    segment_begin(next, ++stream->last_epoch);
    if (!segment_move(next, f->segment, n_calls)) {
        segment_release(next);
        segment_reset(next, ++stream->last_epoch);
        f->n_calls = f->segment->n_ops;
    }
    if (stream->assignments)
        f->assigned = preassign_detach(stream, next);
    next->in_scope = stream->n_scopes > 0;
    stream->segment = next;
}

/* Inside the lock: the segment that detach took off ran. */
static void attach(struct stream *stream, struct segment *ran)
{
    ran->running = false;
    if (stream->segment->n_ops == 0)
        stream_switch(stream, segments_after(ran, stream->segment));
}

/* Takes the baton if nobody has it. */
static bool begin_executing(struct stream *stream)
{
    if (thread_is_executing() || pthread_mutex_trylock(&stream->baton))
        return false;
    if (executor_of(stream)) {
        thread_set_executing(true);
        return true;
    }
    pthread_mutex_unlock(&stream->baton);
    return false;
}

static void end_executing(struct stream *stream)
{
    thread_set_executing(false);
    pthread_mutex_unlock(&stream->baton);
}

static bool capped(frit_device *device)
{
    uint64_t most = device->config.max_explorations;

    return most && atomic_load(&device->count.explorations) >= most;
}

/* Outside of the lock: searches a plan; NULL: go on.  The reference is the caller's. */
static struct plan *explore_lazy(struct stream *stream)
{
    struct segment *segment = stream->segment;
    uint64_t begun = timeline_begin();
    struct plan *plan = NULL;
    frit_err err = ERR_INIT;

    if (!explorer_lazy(&stream->executor->explorer, stream->device, segment, segment->n_matched,
                       &plan, &err)) {
        walker_set_lazy(&stream->walker, plan);
        plan_saver_note(stream->device->saver);
    }
    timeline_end(begun, "search", str_of("explore"));
    return plan;
}

/* Outside of the lock, with the baton: puts the plan that a saved one at the walker's node is of in
 * its place.  If it is none for these ops, nothing is known there. */
static void rebuild(const struct stream *stream, struct executor *executor,
                    const struct segment *segment, struct walker *walker, const struct plan *saved)
{
    uint64_t begun = timeline_begin();
    frit_err err = ERR_INIT;
    struct plan *plan;
    frit_status st =
        explorer_rebuild(&executor->explorer, stream->device, segment, saved, &plan, &err);

    if (st)
        log_write(FRIT_LOG_DEBUG, "plan", "a saved plan is not used: %s", err.text);
    walker_replace_saved(walker, saved, plan);
    plan_unref(plan);
    timeline_end(begun, "search", str_of("rebuild"));
}

/* Inside the lock, with the baton, of LAZY_RUN: the plan to run; NULL: nothing is known. */
static struct plan *lazy_plan(struct stream *stream, struct plan *plan)
{
    if (!plan->saved)
        return plan;
    home_leave(&stream->home);
    rebuild(stream, stream->executor, stream->segment, &stream->walker, plan);
    home_enter(&stream->home);
    (void)walker_lazy(&stream->walker, &plan);
    return plan && !plan->saved ? plan : NULL;
}

/* Inside the lock, with the baton: runs the first `n_calls` ops, by the plan or (NULL) op by op. */
static void run_first(struct stream *stream, uint32_t n_calls, struct plan *plan)
{
    struct execution f;

    detach(stream, n_calls, &f);
    home_leave(&stream->home);
    execution_run(&f, f.n_calls == n_calls ? plan : NULL);
    home_enter(&stream->home);
    join_note_run(stream, f.segment, f.n_calls, f.replayed);
    attach(stream, f.segment);
    walker_restart(&stream->walker);
}

/* Inside the lock, with the baton, where nothing is known.  When no more may be searched, what is
 * queued runs op by op. */
static void run_unknown(struct stream *stream)
{
    struct plan *found;

    atomic_fetch_add(&stream->device->count.plan_misses, 1);
    if (capped(stream->device)) {
        run_first(stream, stream->segment->n_matched, NULL);
        return;
    }
    home_leave(&stream->home);
    found = explore_lazy(stream);
    home_enter(&stream->home);
    if (!found)
        return;
    run_first(stream, found->n_calls, found);
    home_leave(&stream->home);
    plan_unref(found);
    home_enter(&stream->home);
}

/* Inside the lock: acts on what is known at the walker's node, if that is not to go on.  False if
 * another thread has the baton: then matching waits here. */
static bool follow(struct stream *stream, enum lazy_kind kind, struct plan *plan)
{
    if (!begin_executing(stream))
        return false;
    if (kind == LAZY_RUN)
        plan = lazy_plan(stream, plan);
    if (!plan) {
        run_unknown(stream);
    } else {
        stream_count(&stream->count.plan_hits, 1);
        run_first(stream, plan->n_calls, plan);
    }
    end_executing(stream);
    return true;
}

/* Inside the lock: the segment is the plans of a sequence, and complete. */
static void run_joined(struct stream *stream)
{
    struct segment *segment = stream->segment;
    struct plan *found = NULL;
    frit_err err = ERR_INIT;

    atomic_fetch_add(&stream->device->count.plan_misses, 1);
    home_leave(&stream->home);
    if (!capped(stream->device) &&
        !explorer_whole(&stream->executor->explorer, stream->device, segment, &found, &err))
        walker_set_lazy(&stream->walker, found);
    home_enter(&stream->home);
    run_first(stream, segment->n_ops, found);
    home_leave(&stream->home);
    plan_unref(found);
    home_enter(&stream->home);
}

/* Inside the lock: the segment is recorded on over the end of a plan, or (JOIN_NONE) not.  False if
 * another thread has the baton: then matching waits here. */
static bool follow_join(struct stream *stream, enum join_step step)
{
    if (step == JOIN_GO_ON) {
        stream->segment->ops[stream->segment->n_matched - 1]->search_continues = true;
        return true;
    }
    if (!begin_executing(stream))
        return false;
    if (step == JOIN_ALL && stream->segment->n_ops == stream->segment->n_matched) {
        run_joined(stream);
    } else {
        home_leave(&stream->home);
        explorer_reset(&stream->executor->explorer);
        home_enter(&stream->home);
        join_rematch(stream);
    }
    end_executing(stream);
    return true;
}

/* Inside the lock: leaves it to take the next op with its expansion.  False if another thread has
 * the baton, or several threads record: then matching waits here. */
static bool match_outside(struct stream *stream)
{
    if (!home_is_mine(&stream->home) || !begin_executing(stream))
        return false;
    home_leave(&stream->home);
    match_expanded(&stream->executor->explorer, stream->device, stream->segment, &stream->walker);
    home_enter(&stream->home);
    end_executing(stream);
    return true;
}

/* Inside the lock: takes the next op, whose deaths are final; false: matching waits. */
static bool match_next(struct stream *stream)
{
    struct segment *segment = stream->segment;

    if (match_predicted(segment, &stream->walker))
        return true;
    if (match_needs_form(segment))
        return match_outside(stream);
    match_key(segment, &stream->walker, NULL);
    return true;
}

void stream_settle_all(struct stream *stream)
{
    while (stream->segment->n_matched < stream->segment->n_ops || stream->stalled) {
        struct recorded_op *record;
        struct plan *plan = NULL;
        enum lazy_kind kind;
        enum join_step step;
        bool done;

        if (!stream->stalled && !match_next(stream))
            return;
        stream->stalled = false;
        record = stream->segment->ops[stream->segment->n_matched - 1];
        /* A stream that several threads record into runs by drains alone. */
        if (record->search_continues || stream->n_scopes || !home_is_mine(&stream->home))
            continue;
        kind = walker_lazy(&stream->walker, &plan);
        step = join_step(stream, kind, plan);
        if (step == JOIN_NONE) {
            record->search_continues = kind == LAZY_GO_ON;
            done = kind == LAZY_GO_ON || follow(stream, kind, plan);
        } else {
            done = follow_join(stream, step);
        }
        if (!done) {
            stream->stalled = true;
            return;
        }
    }
}

/* ---- the sync way ---- */

/* Outside of the lock: the plan over everything that was detached. */
static struct plan *explore_sync(struct execution *f, struct walker *walker)
{
    frit_device *device = f->stream->device;
    struct plan *plan = NULL;
    frit_err err = ERR_INIT;

    atomic_fetch_add(&device->count.plan_misses, 1);
    if (capped(device) || explorer_whole(&f->executor->explorer, device, f->segment, &plan, &err))
        return NULL;
    walker_set_sync(walker, plan);
    plan_saver_note(device->saver);
    return plan;
}

static void run_detached(struct execution *f, struct walker *walker)
{
    struct plan *plan, *found = NULL;

    while (f->segment->n_matched < f->segment->n_ops) {
        if (!match_predicted(f->segment, walker))
            match_expanded(&f->executor->explorer, f->stream->device, f->segment, walker);
    }
    plan = walker_sync(walker);
    if (plan && plan->saved) {
        rebuild(f->stream, f->executor, f->segment, walker, plan);
        plan = walker_sync(walker);
        plan = plan && !plan->saved ? plan : NULL;
    }
    f->known = plan;
    if (!plan) {
        uint64_t begun = timeline_begin();

        plan = found = explore_sync(f, walker);
        timeline_end(begun, "search", str_of("explore"));
    }
    execution_run(f, plan);
    plan_unref(found);
}

bool stream_drain(struct stream *stream, enum drain_cause cause)
{
    static const char *const names[DRAIN_CAUSES] = {[DRAIN_READ] = "drain: read",
                                                    [DRAIN_SYNC] = "drain: sync",
                                                    [DRAIN_SHARE] = "drain: share",
                                                    [DRAIN_FULL] = "drain: full",
                                                    [DRAIN_SCOPE] = "drain: scope"};
    uint64_t begun = timeline_begin();
    struct walker walker;
    struct execution f;

    if (thread_is_executing())
        return false;
    pthread_mutex_lock(&stream->baton);
    home_enter(&stream->home);
    if (!stream->device || stream->segment->n_ops == 0) {
        join_note_drain(stream);
        home_leave_drop(&stream->home);
        pthread_mutex_unlock(&stream->baton);
        return true;
    }
    stream->stalled = false;
    executor_of(stream);
    walker = stream->walker;
    walker_init(&stream->walker, stream->device->automaton);
    detach(stream, stream->segment->n_ops, &f);
    home_leave(&stream->home);
    atomic_fetch_add(&stream->device->count.drains[cause], 1);
    thread_set_executing(true);
    if (f.executor)
        run_detached(&f, &walker);
    else
        execution_fail(&f, FRIT_NO_HOST_MEMORY);
    thread_set_executing(false);
    walker_fini(&walker);
    home_enter(&stream->home);
    stream_count(&stream->count.plan_hits, f.known ? 1 : 0);
    join_note_run(stream, f.segment, f.n_calls, f.replayed);
    join_note_drain(stream);
    attach(stream, f.segment);
    home_leave_drop(&stream->home);
    timeline_end(begun, "stream", str_of(names[cause]));
    pthread_mutex_unlock(&stream->baton);
    return true;
}

void stream_run_orphan(struct stream *stream)
{
    stream_drain(stream, DRAIN_SYNC);
}

frit_status stream_refuse_driver(frit_err *err)
{
    return fail(err, FRIT_BUSY, "cannot wait for queued ops inside of a driver's call");
}

struct slot *stream_enter_settled(frit_tensor *tensor, enum drain_cause cause, frit_err *err)
{
    struct slot *slot = slot_enter(tensor, err);

    if (slot && slot->state == SLOT_PENDING) {
        struct stream *home = (struct stream *)atomic_load(&slot->home);

        slot_leave(slot);
        if (!stream_drain(home, cause)) {
            stream_refuse_driver(err);
            return NULL;
        }
        slot = slot_enter(tensor, err);
    }
    /* Everything that was queued has run: nobody makes it. */
    if (slot && slot->state == SLOT_PENDING)
        slot_set_failed(slot, failure_immortal(FRIT_INTERNAL));
    return slot;
}

/* ---- ends ---- */

void scope_end(struct binding *binding, uint64_t depth)
{
    struct stream *began = binding->scopes.stream;

    if (!scopes_close(binding, depth))
        return;
    stream_drain(began, DRAIN_SCOPE);
    if (binding->stream != began)
        stream_drain(binding->stream, DRAIN_SCOPE);
}

frit_status stream_close(struct stream *stream, frit_err *err)
{
    frit_device *device = stream->device;
    frit_status st = FRIT_OK;

    if (!device)
        return fail(err, FRIT_INVALID, "stream_close: the stream's device is closed");
    pthread_mutex_lock(&device->lock);
    if (!stream->explicit)
        st = fail(err, FRIT_INVALID, "stream_close: not an open stream");
    else if (atomic_load(&stream->home.owner))
        st = fail(err, FRIT_BUSY, "stream_close: a thread is in this stream; leave it first");
    else if (atomic_load(&stream->n_ranks))
        st = fail(err, FRIT_BUSY, "stream_close: this stream is in a group; leave that first");
    else
        home_set_owner(&stream->home, thread_token());
    pthread_mutex_unlock(&device->lock);
    if (st)
        return st;
    /* We are in it, so that nobody else gets it with what is queued or with the errors of that. */
    if (!stream_drain(stream, DRAIN_SYNC))
        st = stream_refuse_driver(err);
    pthread_mutex_lock(&device->lock);
    stream->explicit = st != FRIT_OK;
    home_set_owner(&stream->home, NULL);
    pthread_mutex_unlock(&device->lock);
    return st;
}

static bool has_effects(const struct segment *segment)
{
    for (uint32_t i = 0; i < segment->n_ops; i++) {
        if (op_row(segment->ops[i]->op)->traits & FRIT_OP_ORDERED)
            return true;
    }
    return false;
}

static void retire(struct stream *stream)
{
    pthread_mutex_lock(&stream->baton); /* bound plans may be evicted meanwhile */
    executor_destroy(stream->executor);
    join_destroy(stream->plan_join);
    stream->executor = NULL;
    stream->plan_join = NULL;
    pthread_mutex_unlock(&stream->baton);
    stream_retire(stream);
}

/* Nobody runs what ranks in other streams have queued: one would wait for another. */
static void end_groups(frit_device *device)
{
    char why[160];

    snprintf(why, sizeof(why), "%s is closed, and a rank there has not left", device->name);
    for (struct stream *stream = device->streams; stream; stream = stream->next)
        ranks_abort(stream, why);
}

static void close_streams(frit_device *device)
{
    end_groups(device);
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        if (has_effects(stream->segment))
            stream_drain(stream, DRAIN_SYNC);
    }
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        stream_stop(stream);
        preassign_forget(stream);
    }
    for (struct stream *stream = device->streams; stream; stream = stream->next)
        ranks_leave(stream);
    device_wait_all(device, NULL); /* programs end with executors */
    while (device->streams) {
        struct stream *stream = device->streams;

        device->streams = stream->next;
        retire(stream);
    }
}

void device_close(frit_device *device)
{
    if (device) {
        idle_close(device);
        close_streams(device);
    }
    device_destroy(device);
}
