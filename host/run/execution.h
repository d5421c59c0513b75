/* SPDX-License-Identifier: Apache-2.0 */
/* Running a detached segment by a plan: as it ran before, where there is a bound plan that fits,
 * else step by step.
 * Threads: the one that has the stream's baton, outside of its lock. */
#ifndef RUN_EXECUTION_H
#define RUN_EXECUTION_H

#include <frit/status.h>

#include "run/bound_cache.h"
#include "run/explore.h"
#include "run/run.h"

struct assignment;
struct segment;
struct stream;

/* What a stream keeps from run to run. */
struct executor {
    struct explorer explorer; /* of the segment that is matched or runs */
    struct run_scratch *scratch;
    struct bound_cache bound;
};

/* The stream's executor, made at the first use; NULL if out of memory.  With the baton. */
struct executor *executor_of(struct stream *stream);
void executor_destroy(struct executor *executor); /* NULL does nothing */

struct execution {
    struct stream *stream;
    struct executor *executor;
    struct segment *segment;
    uint64_t serial;             /* of the automaton generation */
    uint32_t n_calls;            /* ops that the plan covers */
    uint32_t ordinal;            /* of the stream when detached: it may pass to another thread */
    bool makeshift;              /* the plan is in no trie: nobody finds what is bound to it */
    bool known;                  /* a drain found the plan in the automaton */
    uint64_t replayed;           /* serial of the plan by which it ran as before; 0: it did not */
    bool lacked;                 /* memory, to be run as before */
    struct assignment *assigned; /* to values that the plan makes */
    struct run_value *values;
    struct run run;
};

/* Runs the first `n_calls` ops, one by one where there is no plan.  Then their slots are ready or
 * failed, and the segment is empty. */
void execution_run(struct execution *execution, struct plan *plan);

/* Fails all of them instead. */
void execution_fail(struct execution *execution, frit_status status);

#endif
