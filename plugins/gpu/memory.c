/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/memory.h"

#include <inttypes.h>

#include "util/plug.h"

bool memory_holds(const frit_memory *memory, uint64_t offset, uint64_t bytes)
{
    return offset <= memory->bytes && bytes <= memory->bytes - offset;
}

frit_status memory_check_range(const struct plug *plug, const frit_memory *memory, uint64_t offset,
                               uint64_t bytes, frit_err *err)
{
    if (memory && memory_holds(memory, offset, bytes))
        return FRIT_OK;
    return plug_fail(plug, err, FRIT_INVALID,
                     "%" PRIu64 " bytes at offset %" PRIu64 " of a buffer of %" PRIu64 " bytes",
                     bytes, offset, memory ? memory->bytes : 0);
}
