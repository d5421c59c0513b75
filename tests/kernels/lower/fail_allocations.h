/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering out of memory, for tests that are linked with failing_alloc.h. */
#ifndef TESTS_LOWER_FAIL_ALLOCATIONS_H
#define TESTS_LOWER_FAIL_ALLOCATIONS_H

#include "kernels/lower/rig.h"

/* Builds what rig_run ran, again and again, failing the first, the second, ... allocation, until
 * none is left to fail.  Each failure must be returned as FRIT_NO_HOST_MEMORY.  Fails the test if
 * there were fewer than `least` allocations. */
void rig_fail_allocations(const struct rig *rig, const struct schedule *schedule, uint32_t least);

#endif
