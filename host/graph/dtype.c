/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by name and class. */
#include "graph/dtype.h"

#include "base/str.h"
#include "graph/op.h"

static const char *const names[FRIT_DTYPE_LIMIT] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    [id] = #name,
#include <frit/dtypes.def>
};

const char *dtype_name(uint32_t dtype)
{
    return dtype < FRIT_DTYPE_LIMIT && names[dtype] ? names[dtype] : "?";
}

uint32_t dtype_find(frit_str name)
{
    for (uint32_t i = 0; i < FRIT_DTYPE_LIMIT; i++) {
        if (names[i] && str_is(name, names[i]))
            return i;
    }
    return FRIT_NO_DTYPE;
}

uint32_t dtype_class(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls;
}
