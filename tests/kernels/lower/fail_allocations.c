/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed build leaves is freed by the caller, as programs do. */
#include "kernels/lower/fail_allocations.h"

#include "failing_alloc.h"
#include "unit.h"

void rig_fail_allocations(const struct rig *rig, const struct schedule *schedule, uint32_t least)
{
    uint32_t failed = 0;
    bool hit = true;

    for (long n = 0; hit; n++) {
        struct kir_module module;
        struct sched_numbers numbers = {0};
        struct sched s = {&rig->block, &rig->sig, &rig->target, rig->extents,
                          &module,     &numbers,  false};
        frit_status status;

        failing_alloc_arm(n);
        kir_init(&module, "test");
        status = schedule->build(&s, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        failed += hit;
        kir_fini(&module);
        arena_fini(&numbers.arena);
    }
    assert_true(failed >= least);
}
