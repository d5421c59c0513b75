/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy queues: one per thread and device.
 *
 * A stream has a lock (its queue) and a baton (who executes).  To run: take the baton, detach the
 * queue under the lock, unlock, execute.  A queue holds no pending tensor of another stream, so
 * executing one stream never waits for another, and nobody waits for a baton while holding a lock.
 * A stream outlives its device while its thread still knows it.  The device keeps the stream of a
 * thread that is gone, with what it queued, and gives it to the next thread that comes. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "stream/device.h"
#include "tensor/slot.h"

struct op_record;

/* Ops in order, with the memory they lie in. */
struct segment_queue {
    struct arena arena;
    struct op_record *first, *last;
    uint64_t count;
};

/* A tensor that a scope has to release; `handle` NULL: it was kept by the program. */
struct scoped {
    frit_tensor *handle;
    uint32_t depth;
};

struct stream {
    atomic_uint refs; /* the thread's and the device's */
    frit_device *device;
    uint64_t device_id;  /* tells a new device from a closed one at the same address */
    struct stream *next; /* in the device's list, under its lock */
    atomic_bool closed;  /* the device is gone */

    pthread_mutex_t baton;
    struct arena spare; /* under the baton: memory for the next queue */
    pthread_mutex_t lock;
    struct segment_queue queue;  /* under the lock */
    struct failure *first_error; /* under the lock; since the last sync */

    /* Of the owning thread alone. */
    struct scoped *scoped;
    uint32_t n_scoped, scoped_room;
    uint32_t depth; /* open scopes */
    uint32_t persistent;
    bool has_ordinal;
    uint32_t ordinal;
    uint32_t op_counter;
    uint64_t epoch; /* of the seed that op_counter counts under */
};

/* An op that waits.  Its tensors hold a use of their slot each. */
struct record_input {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t dtype; /* SCALAR: type it is used as */
    struct slot *slot;
    frit_scalar scalar;
};

struct op_record {
    struct op_record *next, *prev;
    uint32_t op;
    uint32_t n_in;
    uint32_t n_out;
    bool persistent;
    bool dropped; /* nobody wants its outputs */
    void *attrs;  /* NULL: the row has none */
    struct record_input *in;
    struct slot *out[FRIT_OP_MAX_OUT]; /* NULL: not wanted */
    uint64_t seed, counter;            /* SEEDED rows */
};

/* What to queue.  `in` uses slots whose state is not PENDING on another stream; `types` as op_check
 * gave. */
struct stream_call {
    uint32_t op;
    uint32_t n_in;
    uint32_t n_out;
    const struct record_input *in;
    const void *attrs;
    const struct op_type *types; /* n_out */
};

/* The calling thread's stream on a device, made at its first use. */
frit_status stream_current(frit_device *device, struct stream **out, frit_err *err);
/* The same if there is one already. */
struct stream *stream_peek(const frit_device *device);
/* The stream of this thread with the innermost scope of any device, for errors that have no device.
 */
struct stream *stream_scoped(void);

/* Whether the calling thread owns it. */
bool stream_is_mine(const struct stream *stream);

/* Appends an op; `out` gets a slot with one owner and one use (the caller's) per wanted output. */
frit_status stream_push(struct stream *stream, const struct stream_call *call, struct slot **out,
                        frit_err *err);
/* Runs everything queued so far and does not wait for the device.  Any thread. */
void stream_drain(struct stream *stream, enum drain_cause cause);
/* Makes sure a slot in use is not PENDING. */
void stream_settle(struct slot *slot, enum drain_cause cause);

/* Remembers the first error since the last sync; any thread. */
void stream_note_error(struct stream *stream, struct failure *failure);
/* Takes it out, the caller's reference; NULL if there is none. */
struct failure *stream_take_error(struct stream *stream);

/* Calls `fn` for each stream of the device. */
void streams_each(frit_device *device, void (*fn)(struct stream *stream, void *ctx), void *ctx);
/* Detaches all streams from a device that is being closed; queued ops are dropped. */
void streams_close(frit_device *device);
uint64_t streams_queued(frit_device *device);

/* Scopes; owning thread only. */
uint64_t scope_begin(struct stream *stream);
void scope_end(struct stream *stream, uint64_t depth);
/* The same without running what is queued; false for a scope that is not open. */
bool scope_leave(struct stream *stream, uint64_t depth);
/* Registers a new slot with the innermost scope, if there is one. */
frit_status scope_add(struct stream *stream, struct slot *slot, frit_err *err);
/* Moves it one scope out. */
void scope_keep(struct stream *stream, struct slot *slot);

#endif
