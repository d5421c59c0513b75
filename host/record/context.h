/* SPDX-License-Identifier: Apache-2.0 */
/* The open sections of a thread (frit_persistent_begin, frit_numeric_begin), as bits that each op
 * keeps that is recorded in them; 0: none is open.  Of several ops, all of whose sections count,
 * the strictness is the largest. */
#ifndef RECORD_CONTEXT_H
#define RECORD_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/types.h>

enum {
    CONTEXT_PERSISTENT = 1, /* results lie in persistent memory */
    CONTEXT_STRICTNESS = 6  /* FRIT_NUMERIC_RELAXED minus the class that candidates may have */
};

static inline uint32_t context_of(bool persistent, uint32_t numeric_class)
{
    return (persistent ? CONTEXT_PERSISTENT : 0) | (FRIT_NUMERIC_RELAXED - numeric_class) << 1;
}

static inline uint32_t context_numeric_class(uint32_t context)
{
    return FRIT_NUMERIC_RELAXED - ((context & CONTEXT_STRICTNESS) >> 1);
}

#endif
