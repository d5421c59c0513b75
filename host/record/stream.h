/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy queues: one per thread and device, or as many as a program opens, or one for all threads
 * (option [stream] single).
 *
 * A stream has a lock, which guards what this folder holds (segments, matching state, slots), and a
 * baton, which guards what `run/` does with them.  To run: take the baton, detach the segment under
 * the lock, leave the lock, call the driver.  Nobody waits for a lock or baton while inside a lock;
 * a plan never waits for another stream.
 * Streams are never freed, so that a handle can be looked up while its device closes: a closed
 * stream waits for the next device.  The device keeps the stream of a thread that has ended for the
 * next thread that comes; ops still queued there run before that thread gets it. */
#ifndef RECORD_STREAM_H
#define RECORD_STREAM_H

#include "plan/walker.h"
#include "record/alias.h"
#include "record/segments.h"

struct slot;
struct slot_home;
struct failure;
struct assignment;
struct binding;
struct executor;
struct plan_join;

/* Counters of one stream; each stream has its own, since counters in a cache line that all streams
 * write would slow recording.  Written inside the lock, read by anybody. */
struct stream_counters {
    atomic_uint_least64_t ops;       /* recorded */
    atomic_uint_least64_t plan_hits; /* plans that were known */
    atomic_uint_least64_t replays;   /* of bound plans */
    atomic_uint_least64_t launches;  /* by replays, as are the next three */
    atomic_uint_least64_t fused;     /* launches of more than one op */
    atomic_uint_least64_t captured;  /* launches submitted as part of a driver's recording */
    atomic_uint_least64_t in_parts;  /* blocks, see run/parts.h */
};

static inline void stream_count(atomic_uint_least64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

struct stream {
    struct slot_home home; /* first: a slot's home is its stream */
    /* Accessed by each op, and therefore in one cache line. */
    frit_device *device;     /* NULL while it waits for one */
    struct segment *segment; /* that is recorded into; inside the lock */
    struct stream_counters count;

    atomic_uint_least64_t device_id; /* 0: none */
    struct stream *next;             /* in the device's list, under its lock */
    bool explicit;                   /* made by frit_stream_open; under the device's lock */

    pthread_mutex_t baton;
    struct executor *executor; /* of run/, under the baton; NULL: not made yet */
    struct frit_rank *ranks;   /* of run/, under the baton: groups that the stream is in */
    atomic_uint n_ranks;

    /* Inside the lock. */
    struct walker walker;
    bool stalled; /* a plan waits at the walker's node, and another thread has the baton */
    struct alias_table aliases;
    struct assignment *assignments; /* run/preassign.h: results with given memory; usually NULL */
    struct plan_join *plan_join;    /* run/join.h; NULL until a plan has run on a device whose
                                       driver records submits */
    struct failure *first_error;    /* since the last sync */
    uint64_t last_epoch;            /* of segments; never goes back */
    uint32_t n_scopes;              /* open ones, of any thread */
    bool has_ordinal;               /* set by the first op */
    uint32_t ordinal;      /* number among the device's streams: selects the queue and the random
                              numbers */
    uint32_t op_counter;   /* random ops since the device's seed was set */
    uint64_t seed_version; /* of that seed */
    struct segments segments;
};

/* ---- life ---- */

/* A program's own stream. */
frit_status stream_open(frit_device *device, struct stream **out, frit_err *err);
/* The stream for a thread's binding. */
frit_status stream_for_thread(frit_device *device, struct stream **out, frit_err *err);
/* Ends a stream of a device that closes, after its executor was destroyed: its tensors become
 * stale, queued ops are dropped. */
void stream_stop(struct stream *stream);
/* Frees what a stopped stream has.  All streams of the device are stopped first, since they hold
 * aliases of each other's tensors. */
void stream_retire(struct stream *stream);

/* Calls `fn` for each stream of the device. */
void streams_each(frit_device *device, void (*fn)(struct stream *stream, void *ctx), void *ctx);
/* Sums over the streams of a device: ops that wait, counters, tensors, streams. */
uint64_t streams_queued(frit_device *device);
void streams_sum_counters(frit_device *device, struct stream_counters *out);
uint64_t streams_tensors(frit_device *device);
uint64_t streams_count(frit_device *device);

/* ---- recording ---- */

/* Whether the walker has taken every key, so that a predicted op may be recorded next. */
static inline bool stream_is_settled(const struct stream *stream)
{
    const struct segment *segment = stream->segment;

    return segment_is_settled(segment) && segment->serial == stream->walker.serial &&
           !stream->stalled;
}

/* Inside the lock: records into another segment; the one before has no ops. */
static inline void stream_switch(struct stream *stream, struct segment *to)
{
    if (stream->segment != to) {
        to->in_scope = stream->segment->in_scope;
        to->epoch = stream->segment->epoch;
        stream->segment->epoch = 0;
    }
    stream->segment = to;
}

/* The counter words of a random op, taken when it is recorded. */
void stream_take_numbers(struct stream *stream, uint64_t *seed, uint64_t *counter);
/* A place in a random sequence: the words of the next random op. */
struct random_place {
    const frit_device *device;
    uint64_t seed, counter;
};
/* Where the calling thread's next random op in the stream is; the stream's owner, no lock held. */
struct random_place stream_place(struct stream *stream);
/* From now on the calling thread's random ops on the place's device are the ones from `place` on,
 * which moves on, and the streams' own sequences stay where they are; NULL: until now.  Returns
 * what was set before. */
struct random_place *stream_draw_from(struct random_place *place);
/* Inside the lock, after the last op was settled: appends an op; `out` gets a slot per wanted
 * output.  False if out of memory, and nothing changed. */
bool stream_append(struct binding *binding, struct segment_call *call, struct slot **out);

/* Inside the lock, by the owner: the value of a slot of the stream, without owners now, died; if
 * this segment made it, the segment notes it. */
static inline void stream_bury(struct stream *stream, const struct slot *slot)
{
    struct segment *segment = stream->segment;

    if (slot->epoch == segment->epoch && segment->values[slot->index].maker != SEGMENT_EXTERNAL)
        segment_bury(segment, slot->index);
}

/* Inside the lock, by the stream's owner: gives back one owner of a slot of the stream that has no
 * aliases. */
static inline void stream_disown_locked(struct stream *stream, struct slot *slot)
{
    if (slot_disown(slot)) {
        stream_bury(stream, slot);
        slot_end(slot);
    }
}
/* Gives an owner back, from any thread, no lock held; false for a handle that names nothing. */
bool stream_disown(frit_tensor *tensor);
/* Removes the tensor from its scope and gives back the scope's owner, if the program has not
 * released it; the tensor lives on if it has other owners. */
void stream_disown_scoped(frit_tensor *tensor);

/* ---- errors ---- */

/* Keeps the first error since the last sync; any thread, no lock held. */
void stream_note_error(struct stream *stream, struct failure *failure);
/* For device_config.note_failure: keeps it as the error of the stream of this ordinal, or of the
 * device where no thread has that stream any more. */
void stream_note_failure(frit_device *device, struct failure *failure, uint32_t stream);
/* Takes it out, the caller's reference; NULL if there is none. */
struct failure *stream_take_error(struct stream *stream);

#endif
