/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one allocation of this process fail: malloc, calloc and realloc as called by what is linked
 * statically (not inside shared libraries).  A test enables it in its CMakeLists.txt with
 * frit_failing_alloc(NAME).
 *
 * The usual loop:
 *     for (long n = 0, hit = 1; hit; n++) {
 *         failing_alloc_arm(n);
 *         status = work();
 *         hit = failing_alloc_disarm();
 *         check that status is FRIT_NO_HOST_MEMORY if hit, else FRIT_OK
 *     }
 * Threads: allocations of all threads count. */
#ifndef TESTS_FAILING_ALLOC_H
#define TESTS_FAILING_ALLOC_H

#include <stdbool.h>

/* From here on `n` allocations succeed, the next one fails, and those after it succeed. */
void failing_alloc_arm(long n);
/* All succeed again; whether one failed since failing_alloc_arm. */
bool failing_alloc_disarm(void);

#endif
