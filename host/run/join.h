/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that a stream runs one after the other, again and again, as one plan.
 *
 * Where replays are recorded, each bound plan costs one call of the driver.  So a stream keeps the
 * order of what it replays.  When a sequence of bound plans came three times in a row, which ends
 * at a drain or follows itself, the segment that begins with its first plan goes on recording over
 * the ends of its parts: all of it is searched, bound, recorded and replayed as one plan.  A sum of
 * counted ops is the limit.
 *
 * A segment that turns out to be something else is matched again from its first op, and runs as it
 * did without this; that sequence then has to come more often before it is joined again.
 *
 * Threads: inside the stream's lock. */
#ifndef RUN_JOIN_H
#define RUN_JOIN_H

#include "plan/automaton.h"

struct plan_join; /* of one stream: its last runs, and the sequences found in them */
struct plan;
struct segment;
struct stream;

enum {
    JOIN_PERIODS = 3,   /* so often it came */
    JOIN_MAX_OPS = 2048 /* of all parts */
};

void join_destroy(struct plan_join *join); /* NULL does nothing */

/* After a run, with the baton: of the first `n_calls` ops of a segment, by the plan of this serial
 * as it ran before, or (0) in another way. */
void join_note_run(struct stream *stream, const struct segment *segment, uint32_t n_calls,
                   uint64_t plan);
/* Everything that was recorded has run. */
void join_note_drain(struct stream *stream);

enum join_step {
    JOIN_NONE,    /* the segment is not joined: do as the walker says */
    JOIN_GO_ON,   /* its next part begins */
    JOIN_ALL,     /* it is complete, and not known as one plan yet */
    JOIN_GIVE_UP, /* it is no such sequence: match again from the first op */
};
/* What to do where the walker gives this answer. */
enum join_step join_step(struct stream *stream, enum lazy_kind kind, const struct plan *plan);
/* After JOIN_GIVE_UP, with the baton and an explorer that was reset: no op is matched. */
void join_rematch(struct stream *stream);

#endif
