/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of a stream: the one it records into, the one that runs, and others whose ops are
 * predicted to be recorded again.
 *
 * A program's loop runs a few plans in turn.  So each segment remembers which one ran after it, and
 * that one is recorded into next; an op that is not the predicted first op looks whether it is the
 * first op of another segment.  Threads: inside the stream's lock. */
#ifndef RECORD_SEGMENTS_H
#define RECORD_SEGMENTS_H

#include "record/segment.h"

/* A loop that goes through more different segments than this records them without prediction. */
enum { SEGMENTS_MAX = 40 };

struct segments {
    struct segment *all[SEGMENTS_MAX];
    uint32_t count;
    struct segment *last; /* that ran */
    uint64_t n_runs;
};

/* Makes two segments and returns the first, to record into; NULL if out of memory. */
struct segment *segments_init(struct segments *segments);
/* Frees all; their values are no longer held. */
void segments_fini(struct segments *segments);

/* Begins a run of `current`, which was recorded into, and returns the segment to record into from
 * now on: the predicted successor, or, with `blank`, one that predicts nothing. */
struct segment *segments_next(struct segments *segments, struct segment *current, bool blank);
/* `ran` has run: returns the segment to record into instead of `current`, which has no ops. */
struct segment *segments_after(const struct segment *ran, struct segment *current);
/* Iterates over the segments with predicted ops, other than `current` and the one that runs: the
 * one after `seen`, NULL for the first.  NULL at the end. */
struct segment *segments_other(const struct segments *segments, const struct segment *current,
                               const struct segment *seen);
/* A segment without predicted ops, made or emptied; the least recently used goes first. */
struct segment *segments_blank(struct segments *segments, struct segment *current);

#endif
