/* SPDX-License-Identifier: Apache-2.0 */
/* What launches of a bound plan derive from operands: looked up anew in each replay, since the
 * operands may be others, or have other contents, each time. */
#ifndef RUN_REPLAY_DERIVED_H
#define RUN_REPLAY_DERIVED_H

#include <frit/frit.h>

struct bound_plan;

/* Finds or allocates all of it, each with one owner more.  A failure leaves nothing. */
frit_status replay_take_derived(struct bound_plan *bound, frit_device *device, frit_err *err);
/* The launches from..end - 1 were submitted: others may find what they derive. */
void replay_publish_derived(const struct bound_plan *bound, uint32_t from, uint32_t end);
void replay_count_derived(const struct bound_plan *bound, frit_device *device);
/* Disowns what replay_take_derived took. */
void replay_drop_derived(struct bound_plan *bound);

#endif
