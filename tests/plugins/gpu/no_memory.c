/* SPDX-License-Identifier: Apache-2.0 */
#include "no_memory.h"

#include <string.h>

#include "failing_alloc.h"

bool is_memory_error(const struct rig *rig, frit_status status)
{
    return status == FRIT_NO_HOST_MEMORY && strstr(rig->err.text, "memory");
}

int fail_each_malloc(struct rig *rig, frit_status (*step)(struct rig *rig))
{
    bool hit = true;
    int reports = 0;

    for (long n = 0; hit; n++) {
        const int n_before = rig->n_allocs;
        frit_status status;

        rig->err.text[0] = '\0';
        failing_alloc_arm(n);
        status = step(rig);
        hit = failing_alloc_disarm();
        if (hit ? status && status != FRIT_UNSUPPORTED && !is_memory_error(rig, status) : status)
            fail_msg("allocation %ld: status %d, '%s'", n, status, rig->err.text);
        reports += status == FRIT_NO_HOST_MEMORY;
        assert_true(rig->device || rig->n_allocs == n_before);
    }
    return reports;
}
