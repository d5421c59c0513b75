/* SPDX-License-Identifier: Apache-2.0 */
/* Filling descriptions of callers that were compiled with fewer or more fields.  Pure. */
#ifndef API_COPY_SIZED_H
#define API_COPY_SIZED_H

#include <string.h>

#include <frit/status.h>

/* Copies as many bytes of a description of `known` bytes as the caller's struct has; its
 * struct_size, the first field, stays.  FRIT_INVALID if struct_size is not set. */
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
