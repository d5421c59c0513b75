/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/failure.h"

#include <stdlib.h>
#include <string.h>

/* Never changed: `refs` 0 is only read. */
static const struct failure immortals[] = {
#define FRIT_STATUS(value, NAME, name, meaning) \
    [-(value)] = {.status = (value), .text = name ": " meaning},
#include <frit/status.def>
};

struct failure *failure_immortal(frit_status status)
{
    size_t index = (size_t) - (int64_t)status;

    if (status >= 0 || index >= sizeof(immortals) / sizeof(immortals[0]))
        index = -FRIT_INTERNAL;
    return (struct failure *)&immortals[index];
}

struct failure *failure_create(const frit_err *err)
{
    struct failure *failure = malloc(sizeof(*failure));

    if (!failure)
        return failure_immortal(err->status);
    atomic_init(&failure->refs, 1);
    failure->status = err->status;
    memcpy(failure->text, err->text, sizeof(failure->text));
    return failure;
}

struct failure *failure_ref(struct failure *failure)
{
    if (atomic_load_explicit(&failure->refs, memory_order_relaxed))
        atomic_fetch_add_explicit(&failure->refs, 1, memory_order_relaxed);
    return failure;
}

void failure_unref(struct failure *failure)
{
    if (failure && atomic_load_explicit(&failure->refs, memory_order_relaxed) &&
        atomic_fetch_sub_explicit(&failure->refs, 1, memory_order_acq_rel) == 1)
        free(failure);
}
