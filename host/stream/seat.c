/* SPDX-License-Identifier: Apache-2.0 */
/* Which stream a thread records into: the thread's list of places, one per device that it used.
 * The list is the thread's own; who owns a stream changes under the device's lock. */
#include <stdlib.h>

#include "base/array.h"
#include "base/fail.h"
#include "stream/preassign.h"
#include "stream/stream.h"

struct seats {
    struct seat **list;
    uint32_t count, room;
    bool driving;
};

static _Thread_local struct seats mine;
_Thread_local struct seat *seat_used;
static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* Streams without a device, for the next one. */
static struct {
    pthread_mutex_t lock;
    struct stream *first;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- streams ---- */

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

static bool work_create(struct stream *stream)
{
    stream->work = works_init(&stream->works);
    if (stream->work && !run_scratch_create(&stream->scratch, NULL))
        return true;
    works_fini(&stream->works);
    stream->work = NULL;
    return false;
}

static struct stream *stream_create(frit_device *device, const void *owner, bool explicit)
{
    struct stream *stream = stream_alloc();

    if (!stream)
        return NULL;
    if (!work_create(stream)) {
        stream_put_away(stream);
        return NULL;
    }
    home_enter(&stream->home);
    stream->device = device;
    atomic_store(&stream->device_id, device->id);
    stream->explicit = explicit;
    stream->n_scopes = stream->op_counter = 0;
    stream->has_ordinal = false;
    stream->seed_epoch = 0;
    stream->count = (struct stream_counters){0};
    segment_reset(&stream->work->segment, ++stream->last_epoch);
    walker_init(&stream->walker, device->automaton);
    home_leave(&stream->home);
    home_set_owner(&stream->home, owner);
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
    return stream;
}

/* Inside the device's lock: a stream that no thread records into and no program has; with a scope
 * still open it is left alone, since nobody may end that. */
static struct stream *find_orphan(frit_device *device)
{
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        if (!atomic_load(&stream->home.owner) && !stream->explicit && !stream->n_scopes)
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

    if (seat_is_driving())
        return NULL;
    pthread_mutex_lock(&device->lock);
    stream = find_orphan(device);
    if (stream)
        home_set_owner(&stream->home, home_self());
    pthread_mutex_unlock(&device->lock);
    if (!stream)
        return NULL;
    stream_drain(stream, DRAIN_SYNC);
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

static frit_status stream_for(frit_device *device, struct stream **out, frit_err *err)
{
    *out = NULL;
    if (device->config.single_stream) {
        *out = stream_oldest(device);
        if (!*out && stream_create(device, NULL, true))
            *out = stream_oldest(device);
    } else {
        *out = stream_get(device, home_self(), false);
    }
    return *out ? FRIT_OK : fail_memory(err, sizeof(**out));
}

/* ---- places ---- */

/* What its scopes own belongs to the program from now on. */
static void seat_destroy(struct seat *seat)
{
    for (uint32_t i = 0; i < seat->scopes.count; i++) {
        struct slot *slot = slot_enter(seat->scopes.entries[i].handle, NULL);

        if (slot) {
            slot->scope = NULL;
            slot_leave(slot);
        }
    }
    free(seat->scopes.entries);
    free(seat);
}

/* Nobody's from now on, if it still is on the device where the thread met it. */
static void abandon(struct stream *stream, uint64_t device_id)
{
    if (stream && atomic_load(&stream->device_id) == device_id && home_is_mine(&stream->home))
        home_set_owner(&stream->home, NULL);
}

static void forget_thread(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < mine.count; i++) {
        abandon(mine.list[i]->stream, mine.list[i]->device_id);
        abandon(mine.list[i]->own, mine.list[i]->device_id);
        seat_destroy(mine.list[i]);
    }
    free(mine.list);
    mine = (struct seats){0};
    seat_used = NULL;
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, forget_thread);
}

struct seat *seat_peek(const frit_device *device)
{
    if (seat_used && seat_used->device_id == device->id)
        return seat_used;
    for (uint32_t i = 0; i < mine.count; i++) {
        if (mine.list[i]->device_id == device->id)
            return seat_used = mine.list[i];
    }
    return NULL;
}

bool seat_is_driving(void)
{
    return mine.driving;
}

void seat_set_driving(bool driving)
{
    mine.driving = driving;
}

static bool is_open(const struct seat *seat)
{
    return atomic_load(&seat->stream->device_id) == seat->device_id;
}

struct seat *seat_any(void)
{
    struct seat *any = NULL;

    for (uint32_t i = 0; i < mine.count; i++) {
        struct seat *seat = mine.list[i];
        bool last = seat == seat_used;

        if (!is_open(seat))
            continue;
        if (!any || (seat->scopes.depth > 0) > (any->scopes.depth > 0) ||
            (last && (seat->scopes.depth > 0) == (any->scopes.depth > 0)))
            any = seat;
    }
    return any;
}

/* A place, of a closed device or new. */
static struct seat *seat_place(void)
{
    struct seat *seat;

    if (!array_grow(&mine.list, &mine.room, mine.count, 1, sizeof(*mine.list)))
        return NULL;
    seat = calloc(1, sizeof(*seat));
    if (seat)
        mine.list[mine.count++] = seat;
    return seat;
}

/* Places of devices that are closed go; `seat_used` may be one. */
static void sweep(void)
{
    uint32_t kept = 0;

    seat_used = NULL;
    for (uint32_t i = 0; i < mine.count; i++) {
        struct seat *seat = mine.list[i];

        if (is_open(seat))
            mine.list[kept++] = seat;
        else
            seat_destroy(seat);
    }
    mine.count = kept;
}

frit_status seat_current(frit_device *device, struct seat **out, frit_err *err)
{
    struct seat *seat = seat_peek(device);
    struct stream *stream;

    *out = seat;
    if (seat)
        return FRIT_OK;
    pthread_once(&key_once, make_key);
    sweep();
    TRY(stream_for(device, &stream, err));
    seat = seat_place();
    if (!seat) {
        abandon(stream, device->id);
        return fail_memory(err, sizeof(*seat));
    }
    pthread_setspecific(at_thread_end, &mine);
    *seat = (struct seat){.device = device,
                          .device_id = device->id,
                          .stream = stream,
                          .own = stream,
                          .scopes.owner = home_self()};
    seat_used = *out = seat;
    return FRIT_OK;
}

/* ---- a program's streams ---- */

frit_status stream_open(frit_device *device, struct stream **out, frit_err *err)
{
    *out = NULL;
    if (device->config.single_stream)
        return fail(err, FRIT_UNSUPPORTED,
                    "stream_open: with [stream] single = yes there is one stream for all");
    *out = stream_get(device, NULL, true);
    return *out ? FRIT_OK : fail_memory(err, sizeof(**out));
}

/* Under the device's lock. */
static bool is_listed(const frit_device *device, const struct stream *stream)
{
    const struct stream *at = device->streams;

    while (at && at != stream)
        at = at->next;
    return at;
}

frit_status stream_enter(frit_device *device, struct stream *stream, struct stream **before,
                         frit_err *err)
{
    struct seat *seat;
    frit_status st = FRIT_OK;

    *before = NULL;
    TRY(seat_current(device, &seat, err));
    if (!stream)
        stream = seat->own;
    if (seat->stream != seat->own)
        *before = seat->stream;
    pthread_mutex_lock(&device->lock);
    if (!is_listed(device, stream) || (stream != seat->own && !stream->explicit))
        st = fail(err, FRIT_INVALID, "stream_enter: not an open stream of %s", device->entry->name);
    else if (atomic_load(&stream->home.owner) && !home_is_mine(&stream->home))
        st = fail(err, FRIT_BUSY, "stream_enter: another thread is in this stream");
    else if (stream != seat->own)
        home_set_owner(&stream->home, home_self());
    if (!st && *before && *before != stream)
        home_set_owner(&(*before)->home, NULL);
    pthread_mutex_unlock(&device->lock);
    if (!st)
        seat->stream = stream;
    return st;
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
    else
        home_set_owner(&stream->home, home_self());
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
    *(uint64_t *)ctx += stream->work->segment.n_records;
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
    stream_count(&sum->plays, atomic_load_explicit(&stream->count.plays, memory_order_relaxed));
    stream_count(&sum->launches,
                 atomic_load_explicit(&stream->count.launches, memory_order_relaxed));
    stream_count(&sum->fused, atomic_load_explicit(&stream->count.fused, memory_order_relaxed));
}

void streams_counted(frit_device *device, struct stream_counters *out)
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

static void stream_stop(struct stream *stream)
{
    struct alias *gone;

    slot_each(&stream->home, end_tensor, NULL);
    home_enter(&stream->home);
    segment_release(&stream->work->segment);
    segment_reset(&stream->work->segment, ++stream->last_epoch);
    gone = alias_take_gone(&stream->aliases);
    home_leave_drop(&stream->home);
    alias_free(gone);
    preassign_forget(stream);
}

static void stream_retire(struct stream *stream)
{
    works_fini(&stream->works);
    run_scratch_destroy(stream->scratch);
    stream->scratch = NULL;
    stream->work = NULL;
    walker_fini(&stream->walker);
    alias_table_fini(&stream->aliases);
    failure_unref(stream->first_error);
    stream->first_error = NULL;
    free(stream->memo);
    stream->memo = NULL;
    stream->device = NULL;
    atomic_store(&stream->device_id, 0);
    home_fini(&stream->home);
    home_set_owner(&stream->home, NULL);
    stream_put_away(stream);
}

static bool has_effects(const struct segment *segment)
{
    for (uint32_t i = 0; i < segment->n_records; i++) {
        if (op_row(segment->records[i]->op)->traits & FRIT_OP_ORDERED)
            return true;
    }
    return false;
}

/* What nobody asked for is dropped, but where it has effects.  All tensors end first: until then
 * streams know each other's. */
void streams_close(frit_device *device)
{
    for (struct stream *stream = device->streams; stream; stream = stream->next) {
        if (has_effects(&stream->work->segment))
            stream_drain(stream, DRAIN_SYNC);
    }
    for (struct stream *stream = device->streams; stream; stream = stream->next)
        stream_stop(stream);
    while (device->streams) {
        struct stream *stream = device->streams;

        device->streams = stream->next;
        stream_retire(stream);
    }
}
