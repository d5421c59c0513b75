/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments. */
#ifndef SPIRV_ACCESS_H
#define SPIRV_ACCESS_H

#include <stdint.h>

struct emit;

void access_load(struct emit *e, uint32_t at);
void access_store(struct emit *e, uint32_t at);
void access_atomic(struct emit *e, uint32_t at);
/* Words of lanes j to j + n of a tcopy, zeros where its condition is false: of 64 bits where
 * elements are, else of 32, two elements of 16 bits in each if n > 1. */
void access_copy(struct emit *e, uint32_t at, uint32_t j, uint32_t n, uint32_t *words);
/* The word that has the bits of a value's lanes j and j + 1 in elements of a dtype of 16 bits,
 * where the value was loaded so and words are kept; else 0. */
uint32_t access_word(const struct emit *e, uint32_t value, uint32_t dtype, uint32_t j);

#endif
