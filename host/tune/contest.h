/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a program's candidates is the fastest: who is measured next, how often, and when it is
 * over.  It runs nothing itself: its user makes the trials that it requests and reports how long
 * each took, so that a simulated clock gives the same answers as a real one.
 *
 * Candidates of equal priority are measured together, those of the highest first; once one of them
 * works, lower ones are not looked at.  Each has a warm-up and a first sample, in order, which ends
 * the contest where the sample is as fast as the device can be.  Then come rounds of one sample
 * each: out is who is half as slow again as the best after `min_samples`, but for two; the end is
 * when nobody improves any more.
 *
 * Scores are 0.8 of the least and 0.2 of the (lower) median time, in whole nanoseconds, as in
 * cubecl; but not times one plus the coefficient of variation: an interruption of the process would
 * count against the candidate that it hit.  Scores within 3 % are equal, and then the order
 * decides.
 *
 * Threads: one. */
#ifndef TUNE_CONTEST_H
#define TUNE_CONTEST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CONTEST_SAMPLES = 32, /* most of a candidate */
    CONTEST_ENOUGH = 2,   /* samples within `enough_ns` */
    CONTEST_CUT = 20      /* a trial ends after so many times the best */
};

struct contest_rules {
    uint32_t min_samples, max_samples; /* 1 .. CONTEST_SAMPLES */
    uint64_t enough_ns;                /* nobody can be much faster; 0: unknown */
    uint64_t least_ns; /* nobody can be faster: a shorter sample refutes `enough_ns`, which does not
                          count from then on; 0: unknown */
    uint64_t candidate_ns, budget_ns; /* for all trials of one candidate, and of all; 0: no limit */
};

enum contest_state { CONTEST_WAITS, CONTEST_LIVE, CONTEST_OUT, CONTEST_FAILED };

struct contestant {
    int32_t priority; /* set by the user; negative: is not measured */
    /* Set by the contest. */
    enum contest_state state;
    bool warm;
    uint32_t n_late;          /* trials in a row that exceeded their limit */
    uint32_t n_samples, calm; /* rounds in a row with hardly any improvement */
    uint64_t spent_ns, best_ns;
    uint64_t samples[CONTEST_SAMPLES]; /* in their order */
};

struct contest {
    struct contest_rules rules;
    struct contestant *list; /* the user's, in order of preference */
    uint32_t count;
    int64_t batch; /* priority of those that are measured, -1: none is left */
    uint32_t next; /* whose turn it is in this round */
    bool first_pass, over;
    bool enough;                /* over because samples were within `enough_ns` */
    bool refuted;               /* a sample was shorter than `least_ns` */
    uint64_t spent_ns, best_ns; /* best 0: none yet */
};

/* A trial that is to be made. */
struct contest_turn {
    uint32_t candidate;
    bool is_warm_up;   /* its time is not compared, but spent */
    uint64_t limit_ns; /* end it when it takes longer and report that it did; 0: no limit */
};

void contest_begin(struct contest *contest, const struct contest_rules *rules,
                   struct contestant *list, uint32_t count);
/* False: it is over. */
bool contest_next(struct contest *contest, struct contest_turn *out);
/* The trial of that turn took so long, or failed. */
void contest_took(struct contest *contest, const struct contest_turn *turn, uint64_t ns);
void contest_failed(struct contest *contest, const struct contest_turn *turn);

/* Nanoseconds; UINT64_MAX of one that failed or has no sample. */
uint64_t contest_score(const struct contestant *contestant);
/* The candidates that have a score, best first, into `ranking` with room for all; their number. */
uint32_t contest_rank(const struct contest *contest, uint32_t *ranking);

#endif
