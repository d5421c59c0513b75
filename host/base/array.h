/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays of plain items, kept as pointer, count and room by their owner. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The array with room for `more` items beyond `count`, doubling; `item` in bytes.  NULL without
 * memory, and the array is as it was. */
static inline void *array_grow(void *items, uint32_t *room, uint32_t count, uint32_t more,
                               size_t item)
{
    uint64_t wanted = *room ? *room : 8;
    void *grown;

    while (wanted < (uint64_t)count + more)
        wanted *= 2;
    if (items && wanted == *room)
        return items;
    if (wanted > UINT32_MAX || wanted > SIZE_MAX / item)
        return NULL;
    grown = realloc(items, (size_t)wanted * item);
    if (grown)
        *room = (uint32_t)wanted;
    return grown;
}

#endif
