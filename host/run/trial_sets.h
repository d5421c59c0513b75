/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of operands that timed launches of a trial use in turn. */
#ifndef RUN_TRIAL_SETS_H
#define RUN_TRIAL_SETS_H

#include <stdint.h>

struct launch_trial;

/* Bytes of the operands of one set. */
uint64_t trial_set_bytes(const struct launch_trial *trial);
/* Makes further sets of operands, which launches that are timed use in turn, so that none finds its
 * own in the last level of cache: as many as that takes, up to MAX_SETS and 256 MiB.  Where these
 * are not enough, the operands are so few that a program has them in the cache, too, or so large
 * that they evict each other; and where filling them would take too much of the key's budget, there
 * is one set. */
void trial_rotate(struct launch_trial *trial);
/* The next launch that is added has the operands of the next set. */
void trial_next_set(struct launch_trial *trial);

#endif
