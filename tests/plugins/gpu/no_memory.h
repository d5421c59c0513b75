/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail one after the other, of a plugin that is linked into the test. */
#ifndef GPU_NO_MEMORY_H
#define GPU_NO_MEMORY_H

#include "rig.h"

/* Whether the status and its text say that there is no memory. */
bool is_memory_error(const struct rig *rig, frit_status status);
/* Runs a step repeatedly, each time with the next malloc failing, until none fails.  Returns how
 * often the step returned FRIT_NO_HOST_MEMORY.  It may also succeed or return FRIT_UNSUPPORTED: a
 * schedule without memory refuses the op, and another one may accept it.  Fails the test on another
 * status, and if a step that leaves no device leaves memory of the host. */
int fail_each_malloc(struct rig *rig, frit_status (*step)(struct rig *rig));

#endif
