/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions for the caller, which may know fewer fields than we do.  Pure. */
#ifndef API_COPY_SIZED_H
#define API_COPY_SIZED_H

#include <string.h>

#include <frit/status.h>

/* Copies as much of a description as the caller's struct has room for; `struct_size`, the first
 * field of both, is its own.  FRIT_INVALID if that is not set. */
static inline frit_status copy_sized(void *out, const void *from, uint64_t known)
{
    uint64_t size;

    memcpy(&size, out, sizeof(size));
    if (size < sizeof(size))
        return FRIT_INVALID;
    memcpy((unsigned char *)out + sizeof(size), (const unsigned char *)from + sizeof(size),
           (size < known ? size : known) - sizeof(size));
    return FRIT_OK;
}

#endif
