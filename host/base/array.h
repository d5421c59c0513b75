/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays of plain items, kept as pointer, count and room by their owner. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` items beyond `count`, doubling.  `array` is the address of the pointer,
 * `item` in bytes.  False if out of memory, and nothing changed. */
static inline bool array_grow(void *array, uint32_t *capacity, uint32_t count, uint32_t more,
                              size_t item)
{
    uint64_t wanted = *capacity ? *capacity : 8;
    void *items;

    while (wanted < (uint64_t)count + more)
        wanted *= 2;
    if (wanted == *capacity)
        return true;
    if (wanted > UINT32_MAX || wanted > SIZE_MAX / item)
        return false;
    memcpy(&items, array, sizeof(items));
    items = realloc(items, (size_t)wanted * item);
    if (!items)
        return false;
    memcpy(array, &items, sizeof(items));
    *capacity = (uint32_t)wanted;
    return true;
}

#endif
