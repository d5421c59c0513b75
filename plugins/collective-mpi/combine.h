/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of several ranks combined into one.
 *
 * Values are added in the order of ranks, f16 and bf16 in f32, and rounded once at the end: a
 * result depends on the values alone, not on where in a buffer or a message they lie. */
#ifndef MPI_COMBINE_H
#define MPI_COMBINE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of an element; 0: it has no whole number of them. */
uint32_t combine_element_bytes(uint32_t dtype);
bool combine_can(uint32_t dtype, uint32_t combine);
/* `from`: of each of `n` ranks `count` elements; `into` may be one of them. */
void combine_ranks(uint32_t dtype, uint32_t combine, const void *const *from, uint32_t n,
                   uint64_t count, void *into);

#endif
