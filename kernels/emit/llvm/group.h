/* SPDX-License-Identifier: Apache-2.0 */
/* Across lanes. */
#ifndef LLVM_GROUP_H
#define LLVM_GROUP_H

#include <stdint.h>

#include "emit/llvm/api.h"

struct ll;

/* group.c */
void ll_exchange(struct ll *l, uint32_t at);
void ll_shift(struct ll *l, uint32_t at);
void ll_first(struct ll *l, uint32_t at);
void ll_hold(struct ll *l, uint32_t value); /* into its slot */
/* What a phi between regions has next: for the chunk, then for all once every chunk has read. */
void ll_carry(struct ll *l, uint32_t value, uint32_t phi);
void ll_carried(struct ll *l, uint32_t phi);
void ll_fetch(struct ll *l, uint32_t value);           /* from its slot */
ll_value ll_fetch_group(struct ll *l, uint32_t value); /* a scalar, between regions */
void ll_cross(struct ll *l, uint32_t at);              /* exchange or shift, of one chunk */

#endif
