/* SPDX-License-Identifier: Apache-2.0 */
/* Collective rows of a bound plan, between its submits. */
#ifndef RUN_REPLAY_COLLECTIVE_H
#define RUN_REPLAY_COLLECTIVE_H

#include <frit/frit.h>

struct bound_plan;
struct failure;

/* Runs the one at launch `number`; where it fails its result is spoiled, and *late gets the failure
 * unless it has one. */
void replay_collective(struct bound_plan *bound, frit_device *device, uint32_t number,
                       struct failure **late);
/* Those from launch `from` on do not run, for this reason: the other ranks must not wait. */
void replay_give_up(struct bound_plan *bound, uint32_t from, const frit_err *why);

#endif
