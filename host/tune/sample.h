/* SPDX-License-Identifier: Apache-2.0 */
/* Elements to try candidates on, and whether two results agree.  Pure. */
#ifndef TUNE_SAMPLE_H
#define TUNE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills storage of `count` elements.  Floats are of either sign with magnitudes in [1/2, 2), so
 * that sums cancel and nothing is lost in them; integers are in [0, below), so that they may be
 * positions in any dim of at least that extent; bools are 0 or 1; packed types are any bits.
 * `state` goes on. */
void sample_fill(void *to, uint32_t dtype, int64_t count, uint64_t below, uint64_t *state);

/* Where two results differ by more than their class allows. */
struct sample_difference {
    int64_t index; /* of the first such element; -1: there is none */
    int64_t count; /* of them */
    double got, expected;
};

/* Compares dense elements.  EXACT: the same bits, but for NaNs, which are all equal.  Other classes
 * allow floats a part of the largest expected magnitude: REORDERED what sums in another order may
 * come to, REDUCED what products of 8 bits may, RELAXED four times that; a NaN or infinity is equal
 * to its like only.  Types that are no floats have the same bits in every class. */
void sample_compare(const void *got, const void *expected, uint32_t dtype, int64_t count,
                    uint32_t numeric_class, struct sample_difference *out);

/* Whether all bytes are still what they were filled with. */
bool sample_is_untouched(const void *bytes, uint64_t n_bytes, uint8_t filled);

#endif
