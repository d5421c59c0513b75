/* SPDX-License-Identifier: Apache-2.0 */
/* Running a bound plan again with other operands.  Where operands do not match or the first
 * submit is refused, nothing has changed and the plan runs step by step, so that nothing here needs
 * a fallback.  Threads: one at a time per bound plan. */
#ifndef RUN_REPLAY_H
#define RUN_REPLAY_H

#include <stdbool.h>

#include <frit/frit.h>

struct bound_plan;
struct failure;
struct segment;

/* Outside, after replay_matches: whether no failed command that is known wrote an operand, and no
 * block of the plan has failed; with such a block it is spoiled. */
bool replay_is_sound(struct bound_plan *bound, frit_device *device);
/* Outside, after replay_matches: waits for collective operations that use operands or memory for
 * results.  False: an operand may not be overwritten after all. */
bool replay_await(const struct bound_plan *bound, frit_device *device);
/* Outside, after replay_matches: brings operands home whose bytes are on the fallback device; false
 * after a failure. */
bool replay_fetch(const struct bound_plan *bound, frit_device *device);
/* Outside: writes addresses and scalars, allocates, submits.  Anything but FRIT_OK: nothing has
 * happened.  *late: a later submit was refused, or a launch failed inside its submit (the caller's
 * reference), else NULL; what it was to write is spoiled then. */
frit_status replay_run(struct bound_plan *bound, frit_device *device, const struct segment *segment,
                       uint32_t stream, struct failure **late);
/* Inside the lock: gives the slots their values; those that are spoiled get the failure (borrowed).
 */
void replay_publish(struct bound_plan *bound, const struct segment *segment,
                    struct failure *failure);
/* Outside: gives back what nobody wants. */
void replay_end(struct bound_plan *bound);

#endif
