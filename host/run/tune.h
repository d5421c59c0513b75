/* SPDX-License-Identifier: Apache-2.0 */
/* Which candidate of a launch's program runs: what was decided for its key, and trials where
 * nothing was. */
#ifndef RUN_TUNE_H
#define RUN_TUNE_H

#include <stdbool.h>

#include <frit/program.h>

struct candidates;
struct launch;

/* Puts the candidates, best first by priority, into the order that was decided for the key of the
 * launch, without those that were found wrong; a block is left to its parts where they were faster
 * and the caller can run them.  Where nothing was decided and
 * the configuration says so, they are measured now (trial.h), which may take its budget.  Nothing
 * here fails: without a decision the order stays. */
void launch_tune(struct launch *l, const frit_signature *sig, struct candidates *order);

/* The candidate that was decided for the key of the launch does not take the signature: notes in
 * the record of the key that equal signatures have a key of their own from now on. */
void launch_split(const struct launch *l, const frit_signature *sig,
                  const struct candidates *order);

/* Whether the launch is one that is made, and its program may be tried in this process. */
bool launch_may_be_measured(const struct launch *l);

#endif
