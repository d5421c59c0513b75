/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy queues: one per thread and device, or as many as a program opens, or one for all threads
 * (option [stream] single).
 *
 * A stream has a lock (its segment, its matching state, its slots) and a baton (who runs plans).
 * To run: take the baton, detach the segment under the lock, leave the lock, call the driver.
 * Nobody waits for a lock or baton while inside a lock; a plan never waits for another stream.
 * Streams are never freed, so that a handle can be looked up while its device closes: a closed
 * one waits for the next device.  The device keeps the stream of a thread that is gone, with what
 * it queued, and gives it to the next thread that comes. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "stream/device.h"
#include "stream/work.h"

struct assignment;
struct memo;

/* What a stream counts itself, so that streams write no line that others write: inside the lock,
 * read by anybody. */
struct stream_counters {
    atomic_uint_least64_t ops;       /* recorded */
    atomic_uint_least64_t plan_hits; /* answers that were known */
    atomic_uint_least64_t plays;     /* of tapes, and what they launched */
    atomic_uint_least64_t launches, fused;
};

static inline void stream_count(atomic_uint_least64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

struct stream {
    struct slot_home home;           /* first: a slot's home is its stream */
    frit_device *device;             /* NULL while it waits for one */
    atomic_uint_least64_t device_id; /* 0: none */
    struct stream *next;             /* in the device's list, under its lock */
    bool explicit;                   /* made by frit_stream_open; under the device's lock */

    pthread_mutex_t baton;
    struct run_scratch *scratch; /* under the baton, for runs; NULL: they make their own */

    /* Inside the lock. */
    struct works works;
    struct work *work; /* that is recorded into */
    struct walker walker;
    bool stalled; /* there is an answer at the walker's place, and another thread has the baton */
    struct alias_table aliases;
    struct memo *memo;
    struct assignment *assigned; /* see preassign.h; NULL as a rule */
    struct failure *first_error; /* since the last sync */
    uint64_t last_epoch;         /* of segments; never goes back */
    struct stream_counters count;
    uint32_t n_scopes; /* open ones, of any thread */
    bool has_ordinal;
    uint32_t ordinal;
    uint32_t op_counter;
    uint64_t seed_epoch; /* of the seed that op_counter counts under */
};

/* A tensor that a scope has to release; `handle` NULL: it was kept by the program. */
struct scoped {
    frit_tensor *handle;
    uint32_t depth;
};

/* The open scopes of one thread on one device; touched by that thread alone. */
struct scopes {
    const void *owner;     /* home_self of the thread */
    struct stream *stream; /* that is kept from running by itself: where the first one began */
    struct scoped *entries;
    uint32_t count, room;
    uint32_t depth; /* open scopes */
};

/* The calling thread's place at a device. */
struct seat {
    frit_device *device;
    uint64_t device_id;    /* tells a new device from a closed one at the same address */
    struct stream *stream; /* that it records into now */
    struct stream *own;    /* unless it entered another one; NULL: not made yet */
    struct scopes scopes;
    uint32_t persistent;
};

/* ---- places and streams ---- */

/* Whether the calling thread has a baton.  A call that it makes then comes out of a driver or
 * fuser, and must not run anything: that would wait for itself. */
bool seat_is_driving(void);
void seat_set_driving(bool driving);

/* Made at the first use. */
frit_status seat_current(frit_device *device, struct seat **out, frit_err *err);
/* The same if there is one already. */
struct seat *seat_peek(const frit_device *device);
/* The one that the thread used last on any device, NULL: none. */
extern _Thread_local struct seat *seat_used __attribute__((tls_model("initial-exec")));
/* One for what has no device: with an open scope where there is one, rather the last used; NULL:
 * the thread used no device that is open. */
struct seat *seat_any(void);

/* Streams of a program: `stream` NULL in enter means the thread's own; gives the one before, NULL
 * for the thread's own.  FRIT_BUSY if another thread is in it. */
frit_status stream_open(frit_device *device, struct stream **out, frit_err *err);
frit_status stream_enter(frit_device *device, struct stream *stream, struct stream **before,
                         frit_err *err);
/* Runs what is queued; the stream serves again as a thread's or the program's.  FRIT_BUSY while a
 * thread is in it, and inside of a driver's call. */
frit_status stream_close(struct stream *stream, frit_err *err);

/* Calls `fn` for each stream of the device. */
void streams_each(frit_device *device, void (*fn)(struct stream *stream, void *ctx), void *ctx);
/* Detaches all streams from a device that is being closed; queued ops are dropped, tensors end. */
void streams_close(frit_device *device);
uint64_t streams_queued(frit_device *device);
/* The sum of what they counted. */
void streams_counted(frit_device *device, struct stream_counters *out);
uint64_t streams_tensors(frit_device *device);
uint64_t streams_count(frit_device *device);

/* ---- recording ---- */

/* Whether the walker has taken every key, and what came before may come again behind it. */
static inline bool stream_is_settled(const struct stream *stream)
{
    const struct segment *segment = &stream->work->segment;

    return segment_is_settled(segment) && segment->serial == stream->walker.serial &&
           !stream->stalled;
}

/* Inside the lock, by a thread that records into the stream: what the last op is known to have
 * let die is final now; matches it, and runs the plan that the automaton or the search gives.  May
 * leave the lock and come back. */
void stream_settle_all(struct stream *stream);
/* The same, but where the last op came again with its deaths, as did all before it, and the
 * automaton is known to go on, the walker need not follow yet. */
static inline void stream_settle(struct stream *stream)
{
    const struct segment *segment = &stream->work->segment;

    if (segment->smooth) {
        const struct op_record *record = segment->records[segment->n_records - 1];

        if (record->n_again == record->n_dead)
            return;
    }
    stream_settle_all(stream);
}
/* Inside the lock: records into another work; the one before has no records. */
static inline void stream_turn(struct stream *stream, struct work *to)
{
    work_turn(stream->work, to);
    stream->work = to;
}
/* Inside the lock, after stream_settle: appends an op; `out` gets a slot per wanted output.  False
 * without memory, and nothing changed. */
bool stream_append(struct seat *seat, struct segment_call *call, struct slot **out);
/* Inside the lock, by the owner: the value of a slot of the stream, without owners now, died; if
 * this segment made it, the segment knows. */
static inline void stream_bury(struct stream *stream, const struct slot *slot)
{
    struct segment *segment = &stream->work->segment;

    if (slot->epoch == segment->epoch && segment->values[slot->index].maker != SEGMENT_EXTERNAL)
        segment_bury(segment, slot->index);
}

/* Inside the lock, by the owner: gives back an owner of one of the stream's slots, without aliases.
 */
static inline void stream_disown_inside(struct stream *stream, struct slot *slot)
{
    if (slot_disown(slot)) {
        stream_bury(stream, slot);
        slot_end(slot);
    }
}
/* Gives an owner back, from any thread, no lock held; false for a handle that names nothing. */
bool stream_disown(frit_tensor *tensor);

/* ---- running ---- */

/* Runs everything queued so far and does not wait for the device.  Any thread, no lock held. False,
 * and nothing happened: seat_is_driving. */
bool stream_drain(struct stream *stream, enum drain_cause cause);
/* FRIT_BUSY with the text for that. */
frit_status stream_refuse_driver(frit_err *err);
/* Resolves a handle and enters its home's lock like slot_enter, when it is not PENDING any more. */
struct slot *stream_enter_settled(frit_tensor *tensor, enum drain_cause cause, frit_err *err);

/* Remembers the first error since the last sync; any thread, no lock held. */
void stream_note_error(struct stream *stream, struct failure *failure);
/* Takes it out, the caller's reference; NULL if there is none. */
struct failure *stream_take_error(struct stream *stream);

/* ---- scopes; the owning thread only ---- */

uint64_t scope_begin(struct seat *seat);
/* Releases what the scopes from this depth on own and runs what is queued. */
void scope_end(struct seat *seat, uint64_t depth);
/* The same without running; false for a scope that is not open. */
bool scope_leave(struct seat *seat, uint64_t depth);
/* Registers a new slot with the innermost scope, if there is one; inside the slot's lock.  False
 * without memory. */
bool scope_add_entry(struct scopes *scopes, struct slot *slot);
static inline bool scope_add(struct seat *seat, struct slot *slot)
{
    return seat->scopes.depth == 0 || scope_add_entry(&seat->scopes, slot);
}
/* Moves it one scope out; inside the slot's lock. */
void scope_keep(struct slot *slot);

/* ---- the parts of recording an op, inside the lock ---- */

/* A slot for an output; it belongs to the scope.  NULL without memory. */
static inline struct slot *stream_output(struct seat *seat, uint32_t op, const struct op_type *type)
{
    struct slot *slot = slot_create(&seat->stream->home, seat->device);

    if (!slot)
        return NULL;
    slot->made_by = op;
    op_type_copy(&slot->value.type, type);
    if (scope_add(seat, slot))
        return slot;
    slot_disown(slot);
    slot_end(slot);
    return NULL;
}

#endif
