/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a group: begun in any thread, done by the threads that wait.
 *
 * Whoever waits, for whatever value, works on the operation that all ranks have begun, a portion at
 * a time, and sleeps while there is no portion left.  The engine has no thread of its own. */
#ifndef LOCAL_PROGRESS_H
#define LOCAL_PROGRESS_H

#include <frit/collective.h>

/* Slots of frit.collective/1. */
void progress_destroy(frit_group *group);
void progress_abort(frit_group *group, const frit_err *why);
frit_status progress_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                           frit_err *err);
frit_status progress_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err);

#endif
