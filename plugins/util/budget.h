/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes in the buffers of a device, against the cap of an option.
 *
 * The count is taken before the memory and given back if there is none, so that threads that
 * allocate at once cannot pass the cap together.  Threads: any. */
#ifndef UTIL_BUDGET_H
#define UTIL_BUDGET_H

#include <stdatomic.h>

#include "util/plug.h"

struct budget {
    const struct plug *plug;
    uint64_t cap; /* 0: none */
    _Atomic uint64_t in_use;
};

/* FRIT_NO_DEVICE_MEMORY with a text where they pass the cap. */
frit_status budget_take(struct budget *budget, uint64_t bytes, frit_err *err);
void budget_give(struct budget *budget, uint64_t bytes);
/* Gives them back, since the process has no memory: FRIT_NO_DEVICE_MEMORY with a text. */
frit_status budget_fail(struct budget *budget, uint64_t bytes, frit_err *err);

#endif
