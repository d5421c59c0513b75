/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/budget.h"

#include <inttypes.h>

static void trace_use(const struct budget *budget)
{
    plug_counter(budget->plug, FRIT_STR("bytes in use"), (double)atomic_load(&budget->in_use));
}

frit_status budget_take(struct budget *budget, uint64_t bytes, frit_err *err)
{
    uint64_t cap = budget->cap ? budget->cap : UINT64_MAX;
    uint64_t used = atomic_load(&budget->in_use);

    do {
        if (used > cap || bytes > cap - used)
            return plug_fail(budget->plug, err, FRIT_NO_DEVICE_MEMORY,
                             "allocation of %" PRIu64 " bytes with %" PRIu64 " in use of %" PRIu64
                             " (option.memory_bytes)",
                             bytes, used, budget->cap);
    } while (!atomic_compare_exchange_weak(&budget->in_use, &used, used + bytes));
    trace_use(budget);
    return FRIT_OK;
}

void budget_give(struct budget *budget, uint64_t bytes)
{
    atomic_fetch_sub(&budget->in_use, bytes);
    trace_use(budget);
}

frit_status budget_fail(struct budget *budget, uint64_t bytes, frit_err *err)
{
    budget_give(budget, bytes);
    return plug_fail(budget->plug, err, FRIT_NO_DEVICE_MEMORY,
                     "allocation of %" PRIu64 " bytes with %" PRIu64
                     " in use; the process has no memory left",
                     bytes, atomic_load(&budget->in_use));
}
