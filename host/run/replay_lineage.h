/* SPDX-License-Identifier: Apache-2.0 */
/* What the launches of a replay depend on and what they spoil when they fail, see device/lineage.h.
 * Threads: one at a time per bound plan. */
#ifndef RUN_REPLAY_LINEAGE_H
#define RUN_REPLAY_LINEAGE_H

#include <stdbool.h>

#include <frit/frit.h>

struct bound_plan;
struct failure;
struct lineage_batch;

/* Which launches wrote the operands that the replay overwrites: noted before its launches are
 * entered, restored when its first submit was refused. */
void replay_note_writers(struct bound_plan *bound, frit_device *device);
void replay_restore_writers(struct bound_plan *bound, frit_device *device);

/* Enters the launches `from` to `end` - 1, those of one submit, into the device's lineage and gives
 * them cookies. */
void replay_enter_lineage(struct bound_plan *bound, frit_device *device, uint32_t from,
                          uint32_t end, uint32_t stream, struct lineage_batch *batch);
/* After their submit on a device with an inline queue, which has run them: if they failed, spoils
 * their outputs and disables the programs.  The first failure goes to *late, a reference. */
void replay_check_inline(struct bound_plan *bound, frit_device *device, uint32_t from, uint32_t end,
                         uint64_t point, struct failure **late);
/* Their submit was refused, though an earlier one was not: spoils what all launches from `from` on
 * were to write.  *late is this failure then. */
void replay_fail_rest(struct bound_plan *bound, frit_device *device, uint32_t from,
                      struct failure **late, const frit_err *err);

/* Whether a program of a block is disabled. */
bool replay_is_disabled(const struct bound_plan *bound);
/* A failure that is known of what is wanted, a new reference, or NULL. */
struct failure *replay_failure(const struct bound_plan *bound, frit_device *device);

#endif
