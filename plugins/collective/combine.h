/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and means of several arrays, element by element, in the order of the arrays: their rounding
 * depends neither on timing nor on how the elements are divided into ranges.
 *
 * f16 and bf16 are summed in f32 and rounded once.  Sums of integers wrap.  A mean divides the sum
 * once; that of integers is summed in 64 bits and truncated. */
#ifndef COLLECTIVE_COMBINE_H
#define COLLECTIVE_COMBINE_H

#include <stdbool.h>
#include <stdint.h>

bool combine_has(uint32_t dtype);

struct combine {
    uint32_t dtype; /* one that combine_has */
    bool mean;
    uint32_t n_from, n_into;
    const void *const *from;
    void *const *into; /* each is equal to a `from`, or overlaps none */
    uint64_t from_at, into_at;
    uint64_t count;
};

/* Elements from_at.. of all `from`, combined, to into_at.. of each `into`.  Where an `into` is a
 * `from`, the two offsets must be equal. */
void combine_run(const struct combine *combine);

#endif
