/* SPDX-License-Identifier: Apache-2.0 */
/* The works of a stream: the one it records into, the one that runs, and others whose ops may come
 * again.
 *
 * A program's loop runs a few plans in turn.  So each work remembers which one came after it, and
 * that one is recorded into next; an op that is not its first looks whether it is the first of
 * another.  Threads: inside the stream's lock; the explorer of a work belongs to who has the baton.
 */
#ifndef STREAM_WORK_H
#define STREAM_WORK_H

#include "stream/explore.h"
#include "stream/segment.h"

/* A segment with what the search knows of it. */
struct work {
    struct segment segment;
    struct explorer explorer;
    struct work *then; /* what ran after it the last time */
    uint64_t turn;     /* of its last run */
    bool away;         /* it runs */
};

enum { WORKS = 8 };

struct works {
    struct work *all[WORKS];
    uint32_t count;
    struct work *last; /* that ran */
    uint64_t turn;
};

/* Two of them; NULL without memory, else the first, to record into. */
struct work *works_init(struct works *works);
/* What they hold is gone or was given back. */
void works_fini(struct works *works);

/* One to record into while `work`, which is recorded into now, runs, and after: `fresh` where its
 * old records are not to come again. */
struct work *works_next(struct works *works, struct work *work, bool fresh);
/* `work` ran.  What to record into now instead of `current`, which has no records. */
struct work *works_after(const struct work *work, struct work *current);
/* Another one in the place of `current`, which has no records and whose old ones do not come again:
 * the one after `seen` (NULL: the first) that has old records, or NULL. */
struct work *works_other(const struct works *works, const struct work *current,
                         const struct work *seen);
/* One without old records, or the one that is not used for longest. */
struct work *works_fresh(struct works *works, struct work *current);
/* `to` is recorded into in the place of `from`, which has no records. */
void work_turn(struct work *from, struct work *to);

#endif
