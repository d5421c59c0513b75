/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "stream/exec.h"

/* ---- the calling thread's streams ---- */

struct thread_streams {
    struct stream **streams;
    uint32_t count, room;
};

static _Thread_local struct thread_streams mine;
static pthread_key_t at_thread_end;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void stream_unref(struct stream *stream)
{
    if (atomic_fetch_sub(&stream->refs, 1) != 1)
        return;
    failure_unref(stream->first_error);
    arena_fini(&stream->queue.arena);
    arena_fini(&stream->spare);
    pthread_mutex_destroy(&stream->lock);
    pthread_mutex_destroy(&stream->baton);
    free(stream->scoped);
    free(stream);
}

/* The device keeps the stream and what it queued; whoever needs one of its values runs it. */
static void forget_thread(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < mine.count; i++)
        stream_unref(mine.streams[i]);
    free(mine.streams);
    mine = (struct thread_streams){0};
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, forget_thread);
}

struct stream *stream_peek(const frit_device *device)
{
    for (uint32_t i = 0; i < mine.count; i++) {
        if (mine.streams[i]->device_id == device->id)
            return mine.streams[i];
    }
    return NULL;
}

bool stream_is_mine(const struct stream *stream)
{
    for (uint32_t i = 0; i < mine.count; i++) {
        if (mine.streams[i] == stream)
            return true;
    }
    return false;
}

struct stream *stream_scoped(void)
{
    for (uint32_t i = mine.count; i-- > 0;) {
        if (mine.streams[i]->depth > 0)
            return mine.streams[i];
    }
    return NULL;
}

/* Room for one more; streams of closed devices go. */
static bool mine_reserve(void)
{
    uint32_t kept = 0, room = mine.room ? mine.room * 2 : 4;
    struct stream **grown;

    for (uint32_t i = 0; i < mine.count; i++) {
        if (atomic_load(&mine.streams[i]->closed))
            stream_unref(mine.streams[i]);
        else
            mine.streams[kept++] = mine.streams[i];
    }
    mine.count = kept;
    if (mine.count < mine.room)
        return true;
    grown = realloc(mine.streams, room * sizeof(struct stream *));
    if (!grown)
        return false;
    mine.streams = grown;
    mine.room = room;
    return true;
}

/* One reference for the thread, one for the device. */
static struct stream *stream_create(frit_device *device)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    atomic_init(&stream->refs, 2);
    stream->device = device;
    stream->device_id = device->id;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_init(&stream->baton, NULL);
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
    return stream;
}

/* The stream of a thread that is gone, NULL if there is none: so a device has as many streams as
 * threads at once, not as threads ever.  What the old one queued stays, its error and its random
 * numbers do not; with a scope still open it is left alone, since nobody may end that. */
static struct stream *stream_adopt(frit_device *device)
{
    struct stream *stream;

    pthread_mutex_lock(&device->lock);
    for (stream = device->streams; stream; stream = stream->next) {
        unsigned only_device = 1;

        if (!atomic_compare_exchange_strong(&stream->refs, &only_device, 2))
            continue;
        if (stream->depth == 0)
            break;
        atomic_store(&stream->refs, 1);
    }
    pthread_mutex_unlock(&device->lock);
    if (!stream)
        return NULL;
    failure_unref(stream_take_error(stream));
    stream->persistent = 0;
    stream->has_ordinal = false;
    stream->op_counter = 0;
    return stream;
}

frit_status stream_current(frit_device *device, struct stream **out, frit_err *err)
{
    struct stream *stream = stream_peek(device);

    *out = stream;
    if (stream)
        return FRIT_OK;
    pthread_once(&key_once, make_key);
    if (!mine_reserve())
        return fail_memory(err, sizeof(stream));
    stream = stream_adopt(device);
    if (!stream)
        stream = stream_create(device);
    if (!stream)
        return fail_memory(err, sizeof(*stream));
    pthread_setspecific(at_thread_end, &mine);
    mine.streams[mine.count++] = stream;
    *out = stream;
    return FRIT_OK;
}

/* ---- the queue ---- */

/* Counter words of a random op, taken when it is recorded. */
static void seed_record(struct stream *stream, struct op_record *record)
{
    const struct device_config *config = &stream->device->config;
    uint64_t epoch = atomic_load(config->epoch);

    if (stream->epoch != epoch) {
        stream->epoch = epoch;
        stream->op_counter = 0;
    }
    record->seed = atomic_load(config->seed);
    record->counter = stream->op_counter++ | (uint64_t)stream->ordinal << 32;
}

/* The record and its tails in the queue's arena; NULL without memory. */
static struct op_record *record_create(struct arena *arena, const struct stream_call *call)
{
    const frit_op_info *row = frit_op_info_at(call->op);
    uint32_t attrs_bytes = frit_record_info_at(row->record)->size;
    struct op_record *record = arena_alloc(arena, sizeof(*record));

    if (!record)
        return NULL;
    record->op = call->op;
    record->n_in = call->n_in;
    record->n_out = call->n_out;
    record->in = arena_array(arena, call->n_in, sizeof(*record->in));
    if (call->attrs)
        record->attrs = arena_alloc(arena, attrs_bytes);
    if (!record->in || (call->attrs && !record->attrs))
        return NULL;
    if (call->n_in)
        memcpy(record->in, call->in, call->n_in * sizeof(*record->in));
    if (call->attrs)
        memcpy(record->attrs, call->attrs, attrs_bytes);
    return record;
}

static frit_status create_outputs(struct stream *stream, const struct stream_call *call,
                                  struct slot **out, frit_err *err)
{
    frit_status st = FRIT_OK;

    memset(out, 0, call->n_out * sizeof(struct slot *));
    for (uint32_t i = 0; i < call->n_out && !st; i++) {
        if (call->types[i].dtype == FRIT_NO_DTYPE)
            continue;
        st = slot_create(stream->device, stream, &out[i], err);
        if (!st)
            out[i]->value.type = call->types[i];
    }
    for (uint32_t i = 0; i < call->n_out && st; i++) {
        if (out[i]) {
            slot_disown(slot_handle(out[i]));
            slot_unuse(out[i]);
            out[i] = NULL;
        }
    }
    return st;
}

frit_status stream_push(struct stream *stream, const struct stream_call *call, struct slot **out,
                        frit_err *err)
{
    frit_device *device = stream->device;
    struct op_record *record;
    uint64_t queued;

    TRY(create_outputs(stream, call, out, err));
    if (!stream->has_ordinal) {
        stream->has_ordinal = true;
        stream->ordinal = atomic_fetch_add(&device->next_ordinal, 1);
    }
    pthread_mutex_lock(&stream->lock);
    record = record_create(&stream->queue.arena, call);
    if (!record) {
        pthread_mutex_unlock(&stream->lock);
        for (uint32_t i = 0; i < call->n_out; i++) {
            if (out[i]) {
                slot_disown(slot_handle(out[i]));
                slot_unuse(out[i]);
            }
        }
        return fail_memory(err, sizeof(*record));
    }
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (record->in[i].kind == FRIT_OPERAND_TENSOR)
            slot_use_again(record->in[i].slot);
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        record->out[i] = out[i];
        if (out[i])
            slot_use_again(out[i]);
    }
    record->persistent = stream->persistent > 0;
    if (frit_op_info_at(call->op)->traits & FRIT_OP_SEEDED)
        seed_record(stream, record);
    record->prev = stream->queue.last;
    if (stream->queue.last)
        stream->queue.last->next = record;
    else
        stream->queue.first = record;
    stream->queue.last = record;
    queued = ++stream->queue.count;
    pthread_mutex_unlock(&stream->lock);
    atomic_fetch_add(&device->count.ops, 1);
    if (queued >= (uint64_t)device->config.max_ops)
        stream_drain(stream, DRAIN_FULL);
    return FRIT_OK;
}

void stream_drain(struct stream *stream, enum drain_cause cause)
{
    struct segment_queue queue;

    pthread_mutex_lock(&stream->baton);
    pthread_mutex_lock(&stream->lock);
    queue = stream->queue;
    stream->queue = (struct segment_queue){.arena = stream->spare};
    stream->spare = (struct arena){0};
    pthread_mutex_unlock(&stream->lock);
    if (queue.first) {
        atomic_fetch_add(&stream->device->count.drains[cause], 1);
        exec_queue(stream, &queue);
    }
    arena_reset(&queue.arena);
    stream->spare = queue.arena;
    pthread_mutex_unlock(&stream->baton);
}

void stream_settle(struct slot *slot, enum drain_cause cause)
{
    if (slot_state(slot) == SLOT_PENDING)
        stream_drain(slot->home, cause);
}

/* ---- errors ---- */

void stream_note_error(struct stream *stream, struct failure *failure)
{
    pthread_mutex_lock(&stream->lock);
    if (!stream->first_error)
        stream->first_error = failure_ref(failure);
    pthread_mutex_unlock(&stream->lock);
}

struct failure *stream_take_error(struct stream *stream)
{
    struct failure *failure;

    pthread_mutex_lock(&stream->lock);
    failure = stream->first_error;
    stream->first_error = NULL;
    pthread_mutex_unlock(&stream->lock);
    return failure;
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
    pthread_mutex_lock(&stream->lock);
    *(uint64_t *)ctx += stream->queue.count;
    pthread_mutex_unlock(&stream->lock);
}

uint64_t streams_queued(frit_device *device)
{
    uint64_t count = 0;

    streams_each(device, count_queued, &count);
    return count;
}

void streams_close(frit_device *device)
{
    struct stream *stream = device->streams;

    device->streams = NULL;
    while (stream) {
        struct stream *next = stream->next;

        scope_leave(stream, 1);
        for (struct op_record *record = stream->queue.first; record; record = record->next)
            exec_drop(record);
        stream->queue.first = stream->queue.last = NULL;
        atomic_store(&stream->closed, true);
        stream_unref(stream);
        stream = next;
    }
}
