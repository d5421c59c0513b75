/* SPDX-License-Identifier: Apache-2.0 */
/* Several rounds of a loop of products at a time. */
#ifndef LLVM_UNROLL_H
#define LLVM_UNROLL_H

#include <stdint.h>

#include "emit/llvm/api.h"

struct ll;

/* How many rounds of a loop are emitted together; 1: it stays as it is. */
uint32_t ll_rounds_together(const struct ll *l, uint32_t loop);
/* The offset of a load in such a loop: in the first of the rounds as it is, in the others that of
 * the first one and a distance. */
ll_value ll_offset_in_round(struct ll *l, uint32_t load, ll_value offset);
/* Emits such a loop, `n` rounds at a time. */
void ll_rounds(struct ll *l, uint32_t at, uint32_t n);

#endif
