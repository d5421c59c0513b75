/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that a stream runs one after the other, again and again, as one plan.
 *
 * Where replays are recorded, each bound plan costs one call of the driver.  So a stream remembers
 * the order of its replays.  Once a sequence of bound plans, which ends at a drain or is followed
 * by itself, has occurred three times in a row, a segment that begins with its first plan goes on
 * recording over the ends of these plans: the whole is searched, bound, recorded and replayed as
 * one plan.  The total number of ops is limited.
 *
 * If other ops come, the segment is matched again from its first op, and runs as without joining;
 * the sequence then has to occur more often before it is joined again.
 *
 * Threads: inside the stream's lock. */
#ifndef RUN_JOIN_H
#define RUN_JOIN_H

#include "plan/automaton.h"

struct plan_join; /* of one stream: its latest runs, and the sequences found in them */
struct plan;
struct segment;
struct stream;

enum {
    JOIN_PERIODS = 3,   /* occurrences in a row before a sequence is joined */
    JOIN_MAX_OPS = 2048 /* of all plans of a sequence */
};

void join_destroy(struct plan_join *join); /* NULL does nothing */

/* After a run of the first `n_calls` ops of a segment, with the baton.  `plan`: the serial of the
 * plan, if its bound plan was replayed, else 0. */
void join_note_run(struct stream *stream, const struct segment *segment, uint32_t n_calls,
                   uint64_t plan);
/* Everything that was recorded has run. */
void join_note_drain(struct stream *stream);

enum join_step {
    JOIN_NONE,    /* the segment is not joined: do as the walker says */
    JOIN_GO_ON,   /* record on over the end of this plan */
    JOIN_ALL,     /* the sequence is complete, and the trie has no plan for the whole yet */
    JOIN_GIVE_UP, /* other ops came: match again from the first one */
};
/* What to do after the walker's answer at the last matched op. */
enum join_step join_step(struct stream *stream, enum lazy_kind kind, const struct plan *plan);
/* After JOIN_GIVE_UP, with the baton and a reset explorer: unmatches all ops. */
void join_rematch(struct stream *stream);

#endif
