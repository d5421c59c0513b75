/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by name and class. */
#include "base/str.h"
#include "graph/op.h"

static const struct {
    const char *name;
    uint32_t class;
} dtypes[FRIT_DTYPE_LIMIT] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, npy, meaning) [id] = {#name, FRIT_DTYPE_##cls},
#include <frit/dtypes.def>
};

const char *dtype_name(uint32_t dtype)
{
    return dtype < FRIT_DTYPE_LIMIT && dtypes[dtype].name ? dtypes[dtype].name : "?";
}

uint32_t dtype_find(frit_str name)
{
    for (uint32_t i = 0; i < FRIT_DTYPE_LIMIT; i++) {
        if (dtypes[i].name && str_is(name, dtypes[i].name))
            return i;
    }
    return FRIT_NO_DTYPE;
}

uint32_t dtype_class(uint32_t dtype)
{
    return dtype < FRIT_DTYPE_LIMIT ? dtypes[dtype].class : 0;
}
