/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded ops to runs.  Two ways lead to a run: the recording thread finds a plan after an op
 * (lazy), and a drain wants everything done (sync).  Both hold the baton; the lazy way only tries
 * for it, and goes on recording where another thread has it. */
#ifndef RUN_DRAIN_H
#define RUN_DRAIN_H

#include "device/drain_cause.h"
#include "record/stream.h"

struct binding;

/* Inside the lock, by a thread that records into the stream: the deaths known of the last op are
 * final now; matches the op, and runs the plan that the automaton or the search gives.  May leave
 * the lock and come back. */
void stream_settle_all(struct stream *stream);
/* The same, but where the last op was predicted with its deaths, as were all before it, and the
 * automaton is known to go on, the walker need not follow yet. */
static inline void stream_settle(struct stream *stream)
{
    const struct segment *segment = stream->segment;

    if (segment->on_prediction) {
        const struct recorded_op *record = segment->ops[segment->n_ops - 1];

        if (record->n_confirmed_dead == record->n_dead)
            return;
    }
    stream_settle_all(stream);
}

/* Runs everything queued so far and does not wait for the device.  Any thread, no lock held.
 * False, and nothing happened: thread_is_executing. */
bool stream_drain(struct stream *stream, enum drain_cause cause);
/* The same for a stream whose thread has ended; not inside of a driver's call. */
void stream_run_orphan(struct stream *stream);
/* FRIT_BUSY with the text for that. */
frit_status stream_refuse_driver(frit_err *err);
/* Resolves a handle and enters its home's lock like slot_enter, when it is not PENDING any more. */
struct slot *stream_enter_settled(frit_tensor *tensor, enum drain_cause cause, frit_err *err);

/* Closes the scopes from this depth on (scopes_close) and runs what is queued. */
void scope_end(struct binding *binding, uint64_t depth);

/* Runs what is queued in a program's stream, which then serves again.  FRIT_BUSY while a thread is
 * in it, and inside of a driver's call. */
frit_status stream_close(struct stream *stream, frit_err *err);
/* Closes the streams of a device and then the device.  All tensors of it become stale.  What nobody
 * waits for is dropped, but for ops with effects. */
void device_close(frit_device *device);

#endif
