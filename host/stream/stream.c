/* SPDX-License-Identifier: Apache-2.0 */
/* Recording and running.  Two ways lead to a run: the recording thread finds an answer after an op
 * (lazy), and a drain wants everything done (sync).  Both hold the baton; the lazy way only tries
 * for it, and goes on recording where another thread has it. */
#include "stream/stream.h"

#include "base/fail.h"
#include "base/timeline.h"
#include "stream/flight.h"
#include "stream/known.h"
#include "stream/preassign.h"

/* ---- the lazy way ---- */

/* Inside the lock, with the baton: takes the work off the stream, but for the records after the
 * first `n_calls`, which begin the next segment.  Without memory for that everything is taken. */
static void detach(struct stream *stream, uint32_t n_calls, struct flight *f)
{
    uint32_t n_left = stream->work->segment.n_records - n_calls;
    struct work *next = works_next(&stream->works, stream->work, n_left > 0);

    *f = (struct flight){
        .stream = stream, .work = stream->work, .n_calls = n_calls, .ordinal = stream->ordinal};
    segment_begin(&next->segment, ++stream->last_epoch);
    if (!segment_move(&next->segment, &f->work->segment, n_calls)) {
        segment_release(&next->segment);
        segment_reset(&next->segment, ++stream->last_epoch);
        f->n_calls = f->work->segment.n_records;
    }
    if (stream->assigned)
        f->assigned = preassign_detach(stream, &next->segment);
    stream->work = next;
}

/* Inside the lock: the work that detach took off ran. */
static void attach(struct stream *stream, struct work *work)
{
    work->away = false;
    if (stream->work->segment.n_records == 0)
        stream_turn(stream, works_after(work, stream->work));
}

static bool capped(frit_device *device)
{
    uint64_t most = device->config.max_explorations;

    return most && atomic_load(&device->count.explorations) >= most;
}

/* Outside of the lock: asks the search; NULL: go on.  The reference is the caller's. */
static struct plan *explore_lazy(struct stream *stream)
{
    struct work *work = stream->work;
    struct plan *plan = NULL;
    frit_err err = ERR_INIT;

    atomic_fetch_add(&stream->device->count.plan_misses, 1);
    if (capped(stream->device) || explorer_lazy(&work->explorer, stream->device, &work->segment,
                                                work->segment.n_matched, &plan, &err))
        return NULL;
    walker_set_lazy(&stream->walker, plan);
    known_note(stream->device->known);
    return plan;
}

/* Inside the lock: the answer at the walker's place, if it is not to go on.  False if another
 * thread has the baton: then matching waits here. */
static bool follow(struct stream *stream, enum lazy_kind kind, struct plan *plan)
{
    struct plan *found = NULL;
    struct flight f;

    if (seat_is_driving() || pthread_mutex_trylock(&stream->baton))
        return false;
    seat_set_driving(true);
    if (kind == LAZY_UNKNOWN) {
        uint64_t begun = timeline_begin();

        home_leave(&stream->home);
        plan = found = explore_lazy(stream);
        timeline_end(begun, "search", str_of("explore"));
        home_enter(&stream->home);
    } else {
        stream_count(&stream->count.plan_hits, 1);
    }
    if (plan) {
        detach(stream, plan->n_calls, &f);
        home_leave(&stream->home);
        flight_run(&f, f.n_calls == plan->n_calls ? plan : NULL);
        flight_drop_plan(stream->device, found);
        home_enter(&stream->home);
        attach(stream, f.work);
        walker_restart(&stream->walker);
    }
    seat_set_driving(false);
    pthread_mutex_unlock(&stream->baton);
    return true;
}

/* Records that are sure: the walker goes where it was behind the last of them. */
static bool match_sure(struct stream *stream)
{
    struct segment *segment = &stream->work->segment;

    if (segment->n_matched >= segment->n_sure)
        return false;
    stream->walker.node = segment->records[segment->n_sure - 1]->node;
    stream->walker.depth += segment->n_sure - segment->n_matched;
    segment->n_matched = segment->n_sure;
    return true;
}

/* The numbers of attributes are asked for in each generation, or it would forget them. */
static void renew_attrs(struct stream *stream)
{
    struct segment *segment = &stream->work->segment;

    for (uint32_t r = segment->n_matched; r < segment->n_records; r++) {
        struct op_record *record = segment->records[r];

        if (record->attrs_id)
            record->attrs_id = key_attrs(&stream->walker, record->op, record->attrs);
    }
}

/* Inside the lock: lets the walker take the key of the next record that is final. */
static void match_next(struct stream *stream)
{
    struct segment *segment = &stream->work->segment;
    struct op_record *record;
    struct op_key key;

    if (match_sure(stream))
        return;
    record = segment->records[segment->n_matched];
    if (record->again && record->n_again == record->n_dead &&
        segment->n_known > segment->n_matched && segment->serial == stream->walker.serial) {
        stream->walker.node = record->node;
        stream->walker.depth++;
        segment->n_matched++;
        return;
    }
    record->n_dead = record->again ? record->n_again : record->n_dead;
    record->again = record->goes_on = false;
    if (segment->serial != stream->walker.serial)
        renew_attrs(stream);
    if (segment_key(segment, segment->n_matched, &stream->walker, &key))
        walker_step(&stream->walker, &key);
    else
        stream->walker.node = NULL; /* off the trie: nothing is known here or further */
    /* What stood behind another node does not come again, nor has it where it came already. */
    if (record->node != stream->walker.node || segment->serial != stream->walker.serial)
        segment->n_known = 0;
    record->node = stream->walker.node;
    segment->serial = stream->walker.serial;
    segment->n_matched++;
}

void stream_settle_all(struct stream *stream)
{
    while (stream->work->segment.n_matched < stream->work->segment.n_records || stream->stalled) {
        struct op_record *record;
        struct plan *plan = NULL;
        enum lazy_kind kind;

        if (!stream->stalled)
            match_next(stream);
        stream->stalled = false;
        record = stream->work->segment.records[stream->work->segment.n_matched - 1];
        /* A stream that several threads record into runs by drains alone. */
        if (record->goes_on || stream->n_scopes || !home_is_mine(&stream->home))
            continue;
        kind = walker_lazy(&stream->walker, &plan);
        record->goes_on = kind == LAZY_GO_ON;
        if (kind != LAZY_GO_ON && !follow(stream, kind, plan)) {
            stream->stalled = true;
            return;
        }
    }
}

/* ---- the sync way ---- */

/* Outside of the lock: the plan over everything that was detached. */
static struct plan *explore_sync(struct flight *f, struct walker *walker)
{
    frit_device *device = f->stream->device;
    struct plan *plan = NULL;
    frit_err err = ERR_INIT;

    atomic_fetch_add(&device->count.plan_misses, 1);
    if (capped(device) || explorer_sync(&f->work->explorer, device, &f->work->segment, &plan, &err))
        return NULL;
    walker_set_sync(walker, plan);
    known_note(device->known);
    return plan;
}

static void run_detached(struct flight *f, struct walker *walker)
{
    struct plan *plan = walker_sync(walker), *found = NULL;

    if (!plan) {
        uint64_t begun = timeline_begin();

        plan = found = explore_sync(f, walker);
        timeline_end(begun, "search", str_of("explore"));
    }
    flight_run(f, plan);
    flight_drop_plan(f->stream->device, found);
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
    struct flight f;

    if (seat_is_driving())
        return false;
    pthread_mutex_lock(&stream->baton);
    home_enter(&stream->home);
    if (!stream->device || stream->work->segment.n_records == 0) {
        home_leave_drop(&stream->home);
        pthread_mutex_unlock(&stream->baton);
        return true;
    }
    while (stream->work->segment.n_matched < stream->work->segment.n_records)
        match_next(stream);
    stream->stalled = false;
    walker = stream->walker;
    stream_count(&stream->count.plan_hits, walker_sync(&walker) ? 1 : 0);
    walker_init(&stream->walker, stream->device->automaton);
    detach(stream, stream->work->segment.n_records, &f);
    home_leave(&stream->home);
    atomic_fetch_add(&stream->device->count.drains[cause], 1);
    seat_set_driving(true);
    run_detached(&f, &walker);
    seat_set_driving(false);
    walker_fini(&walker);
    home_enter(&stream->home);
    attach(stream, f.work);
    home_leave_drop(&stream->home);
    timeline_end(begun, "stream", str_of(names[cause]));
    pthread_mutex_unlock(&stream->baton);
    return true;
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

/* ---- recording ---- */

/* Counter words of a random op, taken when it is recorded. */
static void take_numbers(struct stream *stream, struct segment_call *call)
{
    const struct device_config *config = &stream->device->config;
    uint64_t epoch = atomic_load(config->epoch);

    if (stream->seed_epoch != epoch) {
        stream->seed_epoch = epoch;
        stream->op_counter = 0;
    }
    call->seed = atomic_load(config->seed);
    call->counter = stream->op_counter++ | (uint64_t)stream->ordinal << 32;
}

static void drop_outputs(struct slot **out, uint32_t n_out)
{
    for (uint32_t i = 0; i < n_out; i++) {
        if (out[i]) {
            slot_disown(out[i]);
            slot_end(out[i]);
        }
        out[i] = NULL;
    }
}

static bool create_outputs(struct seat *seat, const struct segment_call *call, struct slot **out)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        out[i] = NULL;
        if (call->types[i].dtype == FRIT_NO_DTYPE)
            continue;
        out[i] = stream_output(seat, call->op, &call->types[i]);
        if (!out[i]) {
            drop_outputs(out, i);
            return false;
        }
    }
    return true;
}

bool stream_append(struct seat *seat, struct segment_call *call, struct slot **out)
{
    struct stream *stream = seat->stream;

    if (stream->work->segment.n_records == 0 && stream->work->segment.n_known)
        stream_turn(stream, works_fresh(&stream->works, stream->work));
    if (!create_outputs(seat, call, out))
        return false;
    if (!stream->has_ordinal) {
        stream->has_ordinal = true;
        stream->ordinal = atomic_fetch_add(&stream->device->next_ordinal, 1);
    }
    call->out = out;
    call->persistent = seat->persistent > 0;
    if (op_row(call->op)->traits & FRIT_OP_SEEDED)
        take_numbers(stream, call);
    if (segment_append(&stream->work->segment, call)) {
        stream_count(&stream->count.ops, 1);
        if (watch_is_on(&stream->device->watch))
            watch_recorded(&stream->device->watch, call);
        return true;
    }
    drop_outputs(out, call->n_out);
    return false;
}

/* The usual release: by the owner, of a tensor that no other stream knows. */
static inline bool disown_mine(frit_tensor *tensor)
{
    struct slot *slot = slot_of(tensor);
    struct slot_home *home = slot ? slot_home_of(slot) : NULL;
    bool mine;

    if (!home || !home_is_mine(home))
        return false;
    owner_lock_enter(&home->lock);
    mine = slot_is(slot, tensor) && slot_home_of(slot) == home && !slot->aliases;
    if (mine)
        stream_disown_inside((struct stream *)home, slot);
    if (home->dying)
        home_drop(home);
    else
        owner_lock_leave(&home->lock);
    return mine;
}

bool stream_disown(frit_tensor *tensor)
{
    struct alias *aliases = NULL;
    struct slot_home *home;
    struct slot *slot;

    if (disown_mine(tensor))
        return true;
    slot = slot_enter(tensor, NULL);
    if (!slot)
        return false;
    home = atomic_load(&slot->home);
    if (!slot_is_immortal(slot) && slot_disown(slot)) {
        aliases = slot->aliases;
        slot->aliases = NULL;
        if (home_is_mine(home))
            stream_bury((struct stream *)home, slot);
        slot_end(slot);
    }
    home_leave_drop(home);
    if (aliases)
        alias_drop(aliases);
    return true;
}

/* ---- errors ---- */

void stream_note_error(struct stream *stream, struct failure *failure)
{
    home_enter(&stream->home);
    if (!stream->first_error)
        stream->first_error = failure_ref(failure);
    home_leave(&stream->home);
}

struct failure *stream_take_error(struct stream *stream)
{
    struct failure *failure;

    home_enter(&stream->home);
    failure = stream->first_error;
    stream->first_error = NULL;
    home_leave(&stream->home);
    return failure;
}
