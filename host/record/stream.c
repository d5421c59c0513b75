/* SPDX-License-Identifier: Apache-2.0 */
/* Life of streams, recording, and the errors that a sync reports. */
#include "record/stream.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/versioned.h"
#include "device/device.h"
#include "device/watch.h"
#include "plan/automaton.h"
#include "record/alias.h"
#include "record/binding.h"
#include "tensor/failure.h"

/* ---- life ---- */

/* Streams without a device, for the next one. */
static struct {
    pthread_mutex_t lock;
    struct stream *first;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct stream *stream_alloc(void)
{
    struct stream *stream;

    pthread_mutex_lock(&idle.lock);
    stream = idle.first;
    if (stream)
        idle.first = stream->next;
    pthread_mutex_unlock(&idle.lock);
    if (stream)
        return stream;
    stream = aligned_alloc(_Alignof(struct stream),
                           (sizeof(*stream) + _Alignof(struct stream) - 1) /
                               _Alignof(struct stream) * _Alignof(struct stream));
    if (!stream)
        return NULL;
    *stream = (struct stream){.device = NULL};
    home_init(&stream->home);
    pthread_mutex_init(&stream->baton, NULL);
    return stream;
}

static void stream_put_away(struct stream *stream)
{
    pthread_mutex_lock(&idle.lock);
    stream->next = idle.first;
    idle.first = stream;
    pthread_mutex_unlock(&idle.lock);
}

struct late_failure {
    struct failure *failure;
    uint32_t stream;
    bool noted;
};

static void note_error(struct stream *stream, void *ctx)
{
    struct late_failure *late = ctx;
    bool is_it = late->stream == DEVICE_ALL_STREAMS;

    home_enter(&stream->home);
    is_it |= stream->has_ordinal && stream->ordinal == late->stream;
    if (is_it && !stream->first_error)
        stream->first_error = failure_ref(late->failure);
    home_leave(&stream->home);
    late->noted |= is_it;
}

/* The stream may have passed to another thread, whose error it is not. */
void stream_note_failure(frit_device *device, struct failure *failure, uint32_t stream)
{
    struct late_failure late = {failure, stream, false};

    streams_each(device, note_error, &late);
    if (!late.noted)
        device_keep_error(device, failure_ref(failure));
}

static struct stream *stream_create(frit_device *device, const void *owner, bool explicit)
{
    struct stream *stream = stream_alloc();

    if (!stream)
        return NULL;
    stream->segment = segments_init(&stream->segments);
    if (!stream->segment) {
        stream_put_away(stream);
        return NULL;
    }
    home_enter(&stream->home);
    stream->device = device;
    atomic_store(&stream->device_id, device->id);
    stream->explicit = explicit;
    stream->n_scopes = stream->op_counter = 0;
    stream->has_ordinal = false;
    stream->seed_version = 0;
    stream->count = (struct stream_counters){0};
    segment_reset(stream->segment, ++stream->last_epoch);
    walker_init(&stream->walker, device->automaton);
    home_leave(&stream->home);
    home_set_owner(&stream->home, owner);
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
    return stream;
}

/* Inside the device's lock: a stream that no thread records into and no program has.  With a scope
 * still open it is left alone, since nobody may end that; and while it is a rank of a group, whose
 * other ranks the caller may be to run. */
static struct stream *find_orphan(frit_device *device)
{
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        if (!atomic_load(&stream->home.owner) && !stream->explicit && !stream->n_scopes &&
            !atomic_load(&stream->n_ranks))
            return stream;
    }
    return NULL;
}

/* The stream of a thread that is gone or that a program closed, NULL if there is none: so a device
 * has as many streams as are used at once, not as were used ever.  What the old owner queued runs
 * first, and its error is kept for frit_sync_all: nothing of it reaches the new owner, nor do its
 * random numbers.  Inside of a driver's call nothing can run, and no stream is adopted. */
static struct stream *stream_adopt(frit_device *device, const void *owner, bool explicit)
{
    struct stream *stream;

    if (thread_is_executing())
        return NULL;
    pthread_mutex_lock(&device->lock);
    stream = find_orphan(device);
    if (stream)
        home_set_owner(&stream->home, thread_token());
    pthread_mutex_unlock(&device->lock);
    if (!stream)
        return NULL;
    device->config.run_orphan(stream);
    device_keep_error(device, stream_take_error(stream));
    home_enter(&stream->home);
    stream->has_ordinal = false;
    stream->op_counter = 0;
    home_leave(&stream->home);
    pthread_mutex_lock(&device->lock);
    stream->explicit = explicit;
    home_set_owner(&stream->home, owner);
    pthread_mutex_unlock(&device->lock);
    return stream;
}

static struct stream *stream_get(frit_device *device, const void *owner, bool explicit)
{
    struct stream *stream = stream_adopt(device, owner, explicit);

    return stream ? stream : stream_create(device, owner, explicit);
}

/* The one for all threads; if two made one at once, the same for both. */
static struct stream *stream_oldest(frit_device *device)
{
    struct stream *stream;

    pthread_mutex_lock(&device->lock);
    stream = device->streams;
    while (stream && stream->next)
        stream = stream->next;
    pthread_mutex_unlock(&device->lock);
    return stream;
}

frit_status stream_for_thread(frit_device *device, struct stream **out, frit_err *err)
{
    *out = NULL;
    if (device->config.single_stream) {
        *out = stream_oldest(device);
        if (!*out && stream_create(device, NULL, true))
            *out = stream_oldest(device);
    } else {
        *out = stream_get(device, thread_token(), false);
    }
    return *out ? FRIT_OK : fail_memory(err, sizeof(**out));
}

frit_status stream_open(frit_device *device, struct stream **out, frit_err *err)
{
    *out = NULL;
    if (device->config.single_stream)
        return fail(err, FRIT_UNSUPPORTED,
                    "stream_open: with [stream] single = yes there is one stream for all");
    *out = stream_get(device, NULL, true);
    return *out ? FRIT_OK : fail_memory(err, sizeof(**out));
}

/* ---- all streams of a device ---- */

void streams_each(frit_device *device, void (*fn)(struct stream *stream, void *ctx), void *ctx)
{
    struct stream *stream;

    /* Streams are only ever prepended, and leave with the device. */
    pthread_mutex_lock(&device->lock);
    stream = device->streams;
    pthread_mutex_unlock(&device->lock);
    for (; stream; stream = stream->next)
        fn(stream, ctx);
}

static void count_queued(struct stream *stream, void *ctx)
{
    home_enter(&stream->home);
    *(uint64_t *)ctx += stream->segment->n_ops;
    home_leave(&stream->home);
}

uint64_t streams_queued(frit_device *device)
{
    uint64_t count = 0;

    streams_each(device, count_queued, &count);
    return count;
}

static void add_counts(struct stream *stream, void *ctx)
{
    struct stream_counters *sum = ctx;

    stream_count(&sum->ops, atomic_load_explicit(&stream->count.ops, memory_order_relaxed));
    stream_count(&sum->plan_hits,
                 atomic_load_explicit(&stream->count.plan_hits, memory_order_relaxed));
    stream_count(&sum->replays, atomic_load_explicit(&stream->count.replays, memory_order_relaxed));
    stream_count(&sum->launches,
                 atomic_load_explicit(&stream->count.launches, memory_order_relaxed));
    stream_count(&sum->captured,
                 atomic_load_explicit(&stream->count.captured, memory_order_relaxed));
    stream_count(&sum->fused, atomic_load_explicit(&stream->count.fused, memory_order_relaxed));
    stream_count(&sum->in_parts,
                 atomic_load_explicit(&stream->count.in_parts, memory_order_relaxed));
}

void streams_sum_counters(frit_device *device, struct stream_counters *out)
{
    *out = (struct stream_counters){0};
    streams_each(device, add_counts, out);
}

static void count_tensors(struct stream *stream, void *ctx)
{
    *(uint64_t *)ctx += atomic_load_explicit(&stream->home.n_live, memory_order_relaxed);
}

uint64_t streams_tensors(frit_device *device)
{
    uint64_t count = 0;

    streams_each(device, count_tensors, &count);
    return count;
}

static void count_stream(struct stream *stream, void *ctx)
{
    (void)stream;
    ++*(uint64_t *)ctx;
}

uint64_t streams_count(frit_device *device)
{
    uint64_t count = 0;

    streams_each(device, count_stream, &count);
    return count;
}

/* ---- the end of a device ---- */

static void end_tensor(struct slot *slot, void *ctx)
{
    (void)ctx;
    slot->scope = NULL;
    while (slot->owners)
        stream_disown(slot_handle(slot));
}

void stream_stop(struct stream *stream)
{
    struct alias *gone;

    slot_each(&stream->home, end_tensor, NULL);
    home_enter(&stream->home);
    segment_release(stream->segment);
    segment_reset(stream->segment, ++stream->last_epoch);
    gone = alias_take_gone(&stream->aliases);
    home_leave_drop(&stream->home);
    alias_free(gone);
}

void stream_retire(struct stream *stream)
{
    segments_fini(&stream->segments);
    stream->segment = NULL;
    walker_fini(&stream->walker);
    alias_table_fini(&stream->aliases);
    failure_unref(stream->first_error);
    stream->first_error = NULL;
    stream->device = NULL;
    atomic_store(&stream->device_id, 0);
    home_fini(&stream->home);
    home_set_owner(&stream->home, NULL);
    stream_put_away(stream);
}

/* ---- recording ---- */

/* Of the calling thread; NULL: the streams' own sequences. */
static _Thread_local struct random_place *drawn_from;

/* Inside the lock. */
static struct random_place own_place(struct stream *stream)
{
    struct random_place place = {.device = stream->device};
    uint64_t version;

    place.seed = versioned_get(&stream->device->seed, &version);
    if (stream->seed_version != version) {
        stream->seed_version = version;
        stream->op_counter = 0;
    }
    place.counter = stream->op_counter | (uint64_t)stream->ordinal << 32;
    return place;
}

void stream_take_numbers(struct stream *stream, uint64_t *seed, uint64_t *counter)
{
    struct random_place place;

    if (drawn_from && drawn_from->device == stream->device) {
        *seed = drawn_from->seed;
        *counter = drawn_from->counter++;
        return;
    }
    place = own_place(stream);
    *seed = place.seed;
    *counter = place.counter;
    stream->op_counter++;
}

static void give_ordinal(struct stream *stream)
{
    if (stream->has_ordinal)
        return;
    stream->has_ordinal = true;
    stream->ordinal = atomic_fetch_add(&stream->device->next_ordinal, 1);
}

struct random_place stream_place(struct stream *stream)
{
    struct random_place place;

    if (drawn_from && drawn_from->device == stream->device)
        return *drawn_from;
    home_enter(&stream->home);
    give_ordinal(stream);
    place = own_place(stream);
    home_leave(&stream->home);
    return place;
}

struct random_place *stream_draw_from(struct random_place *place)
{
    struct random_place *before = drawn_from;

    drawn_from = place;
    return before;
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

static bool create_outputs(struct binding *binding, const struct segment_call *call,
                           struct slot **out)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        out[i] = NULL;
        if (call->types[i].dtype == FRIT_NO_DTYPE)
            continue;
        out[i] = binding_create_output(binding, call->op, &call->types[i]);
        if (!out[i]) {
            drop_outputs(out, i);
            return false;
        }
    }
    return true;
}

bool stream_append(struct binding *binding, struct segment_call *call, struct slot **out)
{
    struct stream *stream = binding->stream;

    if (stream->segment->n_ops == 0 && stream->segment->n_predicted)
        stream_switch(stream, segments_blank(&stream->segments, stream->segment));
    if (!create_outputs(binding, call, out))
        return false;
    give_ordinal(stream);
    call->out = out;
    call->context = binding->context;
    call->seeded = op_row(call->op)->traits & FRIT_OP_SEEDED;
    if (call->seeded)
        stream_take_numbers(stream, &call->seed, &call->counter);
    if (segment_append(stream->segment, call)) {
        stream_count(&stream->count.ops, 1);
        if (watch_is_on(&stream->device->watch))
            watch_recorded(&stream->device->watch, call);
        return true;
    }
    drop_outputs(out, call->n_out);
    return false;
}

/* The usual release: by the owner, of a tensor that no other stream knows; `scoped`: of the owner
 * that is its scope. */
static inline __attribute__((always_inline)) bool disown_mine(frit_tensor *tensor, bool scoped)
{
    struct slot *slot = slot_of(tensor);
    struct slot_home *home = slot ? slot_home_of(slot) : NULL;
    bool mine;

    if (!home || !home_is_mine(home))
        return false;
    owner_lock_enter(&home->lock);
    mine = slot_is(slot, tensor) && slot_home_of(slot) == home && !slot->aliases;
    if (mine && (!scoped || slot->scope)) {
        if (scoped)
            slot->scope = NULL;
        stream_disown_locked((struct stream *)home, slot);
    }
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

    if (disown_mine(tensor, false))
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

void stream_disown_scoped(frit_tensor *tensor)
{
    struct slot *slot;
    bool owns;

    if (disown_mine(tensor, true))
        return;
    slot = slot_enter(tensor, NULL);
    if (!slot)
        return;
    owns = slot->scope;
    slot->scope = NULL;
    slot_leave(slot);
    if (owns)
        stream_disown(tensor);
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
