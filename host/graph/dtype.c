/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by name and class. */
#include "graph/dtype.h"

#include <string.h>

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

bool bools_are_clean(const void *bools, uint64_t count)
{
    const uint64_t others = 0xfefefefefefefefe;
    const unsigned char *at = bools;
    uint64_t seen = 0, word = 0;

    for (; count >= sizeof(word); count -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        seen |= word;
    }
    for (; count; count--)
        seen |= *at++;
    return !(seen & others);
}

void bools_clean(void *to, const void *from, uint64_t count)
{
    const unsigned char *in = from;
    unsigned char *out = to;

    for (uint64_t i = 0; i < count; i++)
        out[i] = in[i] != 0;
}
