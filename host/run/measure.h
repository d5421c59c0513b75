/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of one launch, measured: each is compared with the launch's ops, those that are
 * right are timed in a contest (tune/contest.h), and what was found becomes a record.  The clock
 * may end it at any point; it can go on from there.
 * Threads: one at a time. */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>

#include "run/trial.h"
#include "tune/contest.h"
#include "tune/record.h"

struct measure {
    frit_device *device;
    struct launch_trial *trial; /* owned; its arena has all of the following */
    uint8_t digest[TUNE_DIGEST];
    bool checks; /* else only times are wanted */
    const void *key;
    size_t key_bytes;
    const char *what;
    uint32_t n, n_checked;
    uint32_t *list; /* of candidates, or TRIAL_* */
    struct contest_rules rules;
    struct contest contest;
    struct contestant *contestants; /* as in `list` */
    struct tune_candidate *found;   /* likewise */
    const char **names;             /* likewise: of their trials */
    struct trial_time last;
    bool is_held;   /* the contest has begun */
    bool is_shared; /* others may use the device: a time that they may have changed is dropped */
    uint64_t n_submits; /* of the device, after a step that timed and was alone; else UINT64_MAX */
};

struct measure_params {
    const uint8_t *digest; /* of the program */
    const void *key;
    size_t key_bytes;
    const char *what; /* of the record */
    const uint32_t *list;
    uint32_t n; /* 1 .. TUNE_CANDIDATES */
    bool checks;
    struct contest_rules rules;
};

/* Takes the trial over, also on failure. */
frit_status measure_create(struct launch_trial *trial, const struct measure_params *params,
                           struct measure **out, frit_err *err);
void measure_destroy(struct measure *m); /* NULL does nothing */

/* One step: compares a candidate, or times one.  False: the contest is over. */
bool measure_step(struct measure *m);
/* Compares the candidates until the clock shows `until`, but at least the first.  False: the time
 * was up. */
bool measure_check(struct measure *m, uint64_t until);
/* Compares those that were not, and measures until the contest is over or the clock shows `until`.
 * False: the time was up. */
bool measure_run(struct measure *m, uint64_t until);
/* Adds what was found so far to the device's store, as its newest record of the key. */
void measure_keep(struct measure *m, bool is_over);

#endif
